//! Rows of different lengths that are summed side by side in tiles of registers: every bit stays, and what cannot be is refused.

use crate::common::scheduled::{check, empty, read, scheduled, stages, tensor};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Program, Scalar};
use daedal::machine::Machine;
use daedal::schedule::{default, text};

/// A product with a triangle, whose rows have the terms that a size in `i` says.
const PRODUCT: &str = "
(def f (Tensor 2 TYPE) ((a : (Tensor 2 TYPE) (n p)) (b : (Tensor 2 TYPE) (p m)))
  (build (tuple n m) (lam ((i : Integer) (j : Integer))
    (sumbuild TERMS (lam (k : Integer) (mul (index (tuple i FROM) a) (index (tuple FROM j) b)))))))
";

fn product(terms: &str, from: &str, ty: &str) -> String {
    PRODUCT.replace("TERMS", terms).replace("FROM", from).replace("TYPE", ty)
}

/// The same with a sum over two indices, of which the inner one is as long as a number, or the row, says.
const TWICE: &str = "
(def f (Tensor 2 Float) ((a : (Tensor 2 Float) (n p)) (b : (Tensor 2 Float) (p m)))
  (build (tuple n m) (lam ((i : Integer) (j : Integer))
    (sumbuild (tuple (add i 1) SIZE) (lam ((k : Integer) (l : Integer))
      (mul (index (tuple l k) a) (index (tuple k j) b)))))))
";

fn squares(ty: Scalar, sizes: &[[usize; 2]]) -> Vec<Vec<Value>> {
    sizes.iter().map(|[n, m]| vec![tensor(ty, &[*n, *n], 1), tensor(ty, &[*n, *m], 2)]).collect()
}

/// How often rows of a triangle get more, get less, two for each, or none in the first ones.
const TRIANGLES: [(&str, &str); 5] = [
    ("(add i 1)", "k"),
    ("(sub n i)", "(add i k)"),
    ("(sub (sub n 1) i)", "(add k (add i 1))"),
    ("(max 0 (sub (mul 2 i) n))", "k"),
    ("i", "(sub (sub i 1) k)"),
];

/// Protects: tiles of rows that are as long as their index says keep every bit, whether rows get longer or shorter, at sizes
/// that fill tiles and that do not, on one thread and two.
#[test]
fn rows_of_any_length_keep_every_bit() {
    let sizes = [[0, 3], [1, 1], [3, 4], [4, 4], [7, 9], [13, 8], [16, 17]];
    let steps = "split f i 3\nsplit f j 4\nreorder f io jo k ii ji\nvectorize f ji\nunroll f ii\nparallel f io\n";
    for (terms, from) in TRIANGLES {
        let program = read(&product(terms, from, "Float"));
        let steps = steps.replace(" f ", &format!(" {} ", last(&program)));
        if terms.starts_with("(max") {
            // Not by one number a row: the rows stay around it.
            let refused = refusal(&program, &steps);
            assert!(refused.contains("says how long `k` is"), "{terms}: {refused}");
            continue;
        }
        check(&program, "f", &scheduled(&program, "f", &steps), &squares(Scalar::F64, &sizes));
    }
}

/// The name of the last stage.
fn last(program: &Program) -> String {
    let g = empty(program, "f").graph;
    g.stage(g.ids().last().unwrap()).name.clone()
}

/// What a schedule is refused with.
fn refusal(program: &Program, steps: &str) -> String {
    let made = text::apply(empty(program, "f"), &Source::new("test.sched", steps));
    made.err().map(|d| d.render()).unwrap_or_default()
}

/// Protects: the default schedule of a product with a triangle is a tile of several rows of vectors, for all lengths of vectors,
/// in both widths of floats, with the interpreter's bits.
#[test]
fn triangles_have_tiles_by_default() {
    for (terms, from) in [TRIANGLES[0], TRIANGLES[1], TRIANGLES[2]] {
        for (ty, name) in [(Scalar::F64, "Float"), (Scalar::F32, "Float32")] {
            let text = product(terms, from, name);
            for args in squares(ty, &[[48, 64], [37, 35], [5, 3]]) {
                stages(&text, &args);
            }
            let program = read(&text);
            let graph = empty(&program, "f").graph.only_for(&[48.0, 48.0, 0.0, 48.0, 64.0, 0.0]);
            let s = default(graph, &Machine { vector_bytes: 64, threads: 1, ..Machine::host() });
            let loops = s.to_string();
            let tile = loops.find("reduced").map_or("", |at| &loops[at..]);
            assert!(tile.contains("unrolled") && tile.contains("vector"), "{loops}");
        }
    }
}

/// Protects: what would not be right is refused with the reason: rows that are lanes, a loop over what is reduced that is split
/// or not the outermost one, stages that are computed in it.
#[test]
fn what_a_triangle_cannot_be_is_refused() {
    let program = read(&product("(add i 1)", "k", "Float"));
    let name = last(&program);
    for (steps, why) in [
        (format!("split {name} i 4\nreorder {name} io j k ii\nvectorize {name} ii\n"), "says how long `k` is"),
        (format!("split {name} i 4\nreorder {name} io j k ii\nparallel {name} ii\n"), "says how long `k` is"),
        (format!("split {name} k 4\nsplit {name} i 4\nreorder {name} io j ko ki ii\n"), "which is split"),
        (format!("split {name} i 4\nreorder {name} io j k ii\nsplit {name} k 2\n"), "which is split"),
        (
            format!("split {name} i 4\nreorder {name} io j k ii\ncache-read {name} b at k as copy\n"),
            "rows of different lengths are summed",
        ),
    ] {
        let refused = refusal(&program, &steps);
        assert!(refused.contains(why), "{steps}{refused}");
    }
    for size in ["1", "(add i 1)"] {
        let program = read(&TWICE.replace("SIZE", size));
        let name = last(&program);
        let steps = format!("split {name} i 2\nreorder {name} io j k l ii\n");
        match size {
            "1" => {
                let s = scheduled(&program, "f", &steps);
                check(&program, "f", &s, &squares(Scalar::F64, &[[5, 3], [6, 1], [1, 2]]));
            }
            _ => assert!(refusal(&program, &steps).contains("says how long"), "{}", refusal(&program, &steps)),
        }
    }
}
