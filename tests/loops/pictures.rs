//! Pictures that are in no cache: what is checked ahead of large tables, computed where it is read rather than stored, and read
//! in several rows at once.

use crate::common::scheduled::{check, empty, read, tensor, tools};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Def, Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::{self, Schedule, text};
use daedal::tune::example::incoming;

/// The greatest numbers of columns of a disc, whose heights are data, and of those beside each other; the picture has 16 rows
/// more than the result.
const DISC: &str = "
(def f (Tensor 2 Float32) ((image : (Tensor 2 Float32) (p w)) (reach : (Vec Integer) n))
  (let ((columns (build (tuple n (sub p 16) w) (lam ((d : Integer) (y : Integer) (x : Integer))
          (add (max (index (tuple y x) image) (index (tuple (add y (index d reach)) x) image))
               (mul 0.25f32 (max (index (tuple (add y 8) x) image) (index (tuple (add y 9) x) image)))))))
        (disc (build (tuple (sub p 16) w) (lam ((y : Integer) (x : Integer))
          (reduce max (sub (mul 2 n) 1) (lam (k : Integer)
            (let (dx (sub k (sub n 1)))
              (index (tuple (abs dx) y (max 0 (min (sub w 1) (add x dx)))) columns))))))))
    disc))";

fn disc_args(h: usize, w: usize, wrong: Option<i64>) -> Vec<Value> {
    let reach = (0..16).map(|d| if d == 5 { wrong } else { None }.unwrap_or(16 - d));
    let reach = reach.map(|d| Value::Scalar(Lit::int(d))).collect();
    vec![tensor(Scalar::F32, &[h + 16, w], 1), Value::tensor(vec![16], reach)]
}

/// The default schedule of a definition for sizes that come in.
fn default_for(program: &Program, def: &Def, sizes: &[f64]) -> Schedule {
    let graph = empty(program, def.name()).graph.only_for(sizes);
    schedule::default(graph, &Machine { threads: 1, caches: [1 << 15, 1 << 20, 1 << 25], ..Machine::host() })
}

/// The definition `f` after steps, for the sizes of arguments.
fn after(program: &Program, args: &[Value], steps: &str) -> Schedule {
    let sizes = incoming(program.named("f")[0], args);
    let graph = empty(program, "f").graph.as_ref().clone();
    text::apply_for(graph, &sizes, &Source::new("test.sched", steps)).unwrap_or_else(|d| panic!("{}", d.render()))
}

fn steps(s: &Schedule) -> Vec<String> {
    s.steps.iter().map(ToString::to_string).collect()
}

/// Protects: what few indices of a large table decide is checked before it, the table then has no checks and may be computed
/// where it is read, and an index that is none fails as it does in the program.
#[test]
fn checks_of_few_indices_come_ahead() {
    let program = read(DISC);
    let def = program.named("f")[0];
    let args = disc_args(256, 256, None);
    let graph = empty(&program, "f").graph.only_for(&incoming(def, &args));
    let shown = graph.to_string();
    let (ahead, table) = shown.split_once("  columns[").unwrap();
    assert!(ahead.contains("  check[d < 16, y < 256]") && ahead.matches("    check ").count() == 2, "{shown}");
    assert!(!table.split_once("  disc[").unwrap().0.contains("check "), "{shown}");
    let plain = native::compile(&program, def, &tools()).unwrap();
    for by in ["", "inline columns", "compute-at columns disc y"] {
        let made = after(&program, &args, by);
        let native = native::compile_scheduled(&program, def, &made, &tools()).unwrap();
        for wrong in [None, Some(-1), Some(17), Some(300)] {
            let args = disc_args(256, 256, wrong);
            let (want, have) = (plain.call(&args), native.call(&args));
            match (want, have) {
                (Ok(want), Ok(have)) => assert!(want == have, "{by}"),
                (Err(want), Err(have)) => assert_eq!(want.to_string(), have.to_string(), "{by}"),
                (want, have) => panic!("{by}, {wrong:?}: {} {}", want.is_ok(), have.is_ok()),
            }
        }
    }
}

/// Protects: a table smaller than that checks where it always did.
#[test]
fn small_tables_check_themselves() {
    let program = read(DISC);
    let def = program.named("f")[0];
    let args = disc_args(64, 64, None);
    let graph = empty(&program, "f").graph.only_for(&incoming(def, &args));
    assert!(!graph.to_string().contains("  check["), "{graph}");
    let made = default_for(&program, def, &incoming(def, &args));
    check(&program, "f", &made, &[args, disc_args(64, 64, Some(-1)), disc_args(64, 64, Some(17))]);
}

/// Protects: a table that would come back from memory for a few reads of each element is computed where it is read, and what is
/// reduced for a long window adds its terms to a row, part by part.
#[test]
fn large_tables_are_computed_where_they_are_read() {
    let program = read(DISC);
    let def = program.named("f")[0];
    let made = default_for(&program, def, &[2016.0, 10_000.0, 0.0, 16.0]);
    let all = steps(&made);
    assert!(all.contains(&"inline columns".to_string()), "{all:#?}");
    assert!(all.iter().any(|s| s.starts_with("reorder disc xo y k xi")), "{all:#?}");
    // In a cache they are read.
    let small = steps(&default_for(&program, def, &[272.0, 256.0, 0.0, 16.0]));
    assert!(!small.contains(&"inline columns".to_string()), "{small:#?}");
}

/// Protects: rows of accumulators have the interpreter's bits, at widths that no vector divides.
#[test]
fn long_windows_add_to_rows() {
    let program = read(
        "(def f (Vec Float32) ((a : (Vec Float32) n) (w : (Vec Float32) m))
           (build n (lam (x : Integer)
             (sumbuild 31 (lam (k : Integer)
               (mul (index k w) (index (max 0 (min (sub n 1) (add x (sub k 15)))) a)))))))",
    );
    let def = program.named("f")[0];
    for n in [1, 31, 64, 129, 500] {
        let args = vec![tensor(Scalar::F32, &[n], 1), tensor(Scalar::F32, &[31], 2)];
        check(&program, "f", &default_for(&program, def, &incoming(def, &args)), &[args]);
    }
}

/// Protects: indices that move by several for each iteration, and are clamped, are cut into ends and a middle without clamps:
/// at every stride and offset, where ends are empty and where there is no middle.
#[test]
fn strides_are_cut_where_they_are_clamped() {
    for by in [2, 3, 8] {
        let program = read(&format!(
            "(def f (Vec Float32) ((a : (Vec Float32) n) (o : Integer) (m : Integer))
               (build m (lam (x : Integer)
                 (add (index (max 0 (min (sub n 1) (add o (mul {by} x)))) a)
                      (index (max 0 (min (sub n 1) (sub (mul {by} x) 1))) a)))))"
        ));
        let def = program.named("f")[0];
        for (n, m) in [(200, 64), (67, 50), (5, 40), (1, 17)] {
            let all = [-40, -3, 0, 1, 2, 50].map(|o| {
                let numbers = [o, m].map(|n| Value::Scalar(Lit::int(n)));
                [vec![tensor(Scalar::F32, &[n], 1)], numbers.to_vec()].concat()
            });
            let general = schedule::default(empty(&program, "f").graph.as_ref().clone(), &Machine::host());
            check(&program, "f", &general, &all);
            for args in all {
                let made = default_for(&program, def, &incoming(def, &args));
                check(&program, "f", &made, &[args]);
            }
        }
        let made = default_for(&program, def, &[4000.0, 0.0, -3.0, 1000.0]);
        let nest = native::scheduled_nest(def, &made, &Machine::host()).unwrap().to_string();
        assert!(nest.contains("middle"), "{nest}");
    }
}

/// Pixels of three channels that are made of all four of a blend, which is no more than a pixel of a coarser picture.
const PIXELS: &str = "
(def f (Tensor 3 Float32) ((image : (Tensor 3 Float32) (h w c)) (coarse : (Tensor 3 Float32) (p q c)))
  (let ((blended (build (tuple h w c) (lam ((y : Integer) (x : Integer) (k : Integer))
          (add (mul (index (tuple (div y 2) (div x 2) k) coarse) (sub 1f32 (index (tuple y x 3) image)))
               (sqrt (index (tuple y x k) image)))))) 
        (out (build (tuple h w 3) (lam ((y : Integer) (x : Integer) (k : Integer))
          (div (index (tuple y x k) blended) (index (tuple y x 3) blended))))))
    out))";

/// Protects: all channels of a pixel are in registers where those of another pixel are made of them, with the bits of the program.
#[test]
fn channels_of_a_pixel_stay_in_registers() {
    let program = read(PIXELS);
    let def = program.named("f")[0];
    for [h, w] in [[64, 128], [33, 65], [2, 3]] {
        let args = vec![tensor(Scalar::F32, &[h, w, 4], 1), tensor(Scalar::F32, &[h.div_ceil(2), w.div_ceil(2), 4], 2)];
        let made = default_for(&program, def, &incoming(def, &args));
        if h > 32 {
            assert!(steps(&made).iter().any(|s| s.starts_with("compute-at blended out x")), "{:#?}", steps(&made));
        }
        check(&program, "f", &made, &[args]);
    }
}

/// Protects: what is made of a picture at the same place alone is not stored where it is in no cache, however many read it; in a
/// cache it is, and so is what is made of two pictures.
#[test]
fn maps_of_far_pictures_are_not_stored() {
    let text = |of: &str| {
        format!(
            "(def f (Tensor 3 Float32) ((a : (Tensor 3 Float32) (h w c)) (b : (Tensor 3 Float32) (h w c)))
               (let ((pre (build (tuple h w c) (lam ((y : Integer) (x : Integer) (k : Integer))
                       (if (lt k 3) (mul (index (tuple y x k) a) (index (tuple y x 3) a)) {of}))))
                     (down (build (tuple (sub h 2) w c) (lam ((y : Integer) (x : Integer) (k : Integer))
                       (add (index (tuple y x k) pre) (index (tuple (add y 2) x k) pre)))))
                     (out (build (tuple (sub h 4) w c) (lam ((y : Integer) (x : Integer) (k : Integer))
                       (mul (index (tuple y x k) pre) (index (tuple (add y 2) x k) down))))))
                 out))"
        )
    };
    let inlined = |text: &str, h: f64| {
        let program = read(text);
        let made = default_for(&program, program.named("f")[0], &[h, 2560.0, 4.0, 0.0, h, 2560.0, 4.0, 0.0]);
        steps(&made).contains(&"inline pre".to_string())
    };
    let one = text("(index (tuple y x 3) a)");
    assert!(inlined(&one, 1536.0) && !inlined(&one, 16.0));
    assert!(!inlined(&text("(index (tuple y x k) b)"), 1536.0));
    let program = read(&one);
    let args = vec![tensor(Scalar::F32, &[9, 21, 4], 1), tensor(Scalar::F32, &[9, 21, 4], 2)];
    check(&program, "f", &after(&program, &args, "inline pre"), &[args]);
}

/// Protects: a strip whose rows all come from one picture reads four of them side by side, and rows at strides are vectors.
#[test]
fn rows_of_one_picture_are_read_side_by_side() {
    let program = read(
        "(def f (Tensor 2 Float32) (image : (Tensor 3 Float32) (h w c))
           (let ((gray (build (tuple h w) (lam ((y : Integer) (x : Integer))
                   (add (mul 0.3f32 (index (tuple y x 0) image))
                        (mul 0.5f32 (index (tuple y x 1) image))
                        (mul 0.2f32 (index (tuple y x 2) image))))))
                 (slopes (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (x : Integer))
                   (sub (mul (index (tuple (add y 2) (add x 1)) gray) (index (tuple (add y 1) (add x 2)) gray))
                        (mul (index (tuple y (add x 1)) gray) (index (tuple (add y 1) x) gray)))))))
             slopes))",
    );
    let def = program.named("f")[0];
    let far = default_for(&program, def, &[2048.0, 2048.0, 3.0, 0.0]);
    assert!(steps(&far).contains(&"split gray y 4".to_string()), "{:#?}", steps(&far));
    let nest = native::scheduled_nest(def, &far, &Machine::host()).unwrap().to_string();
    assert!(nest.contains("by 3 x"), "{nest}");
    let near = default_for(&program, def, &[64.0, 64.0, 3.0, 0.0]);
    assert!(!steps(&near).contains(&"split gray y 4".to_string()), "{:#?}", steps(&near));
    // The same loops at sizes that the interpreter reads.
    let all: Vec<String> = steps(&far);
    for [h, w] in [[70, 48], [131, 67]] {
        let args = vec![tensor(Scalar::F32, &[h, w, 3], 1)];
        check(&program, "f", &after(&program, &args, &all.join("\n")), &[args]);
    }
}
