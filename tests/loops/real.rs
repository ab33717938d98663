//! Sums in another order, and contracted products: where data are small whole numbers no float rounds, so that every bit must
//! stay; where floats round, the difference is bounded by the sum of the magnitudes of what is added.

use crate::common;
use crate::common::native::difference;
use crate::common::scheduled::{check, contracted, empty, read, tensor, tools};
use crate::common::sums::SUMS;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Lit, Program, Scalar, Ty, TyKind};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::Native;
use daedal::schedule::{self, Schedule, Step, text};
use daedal::stage::Order;
use daedal::tune::example::incoming;

/// Whole numbers from -8 to 8, and as indices from 0 to 3.
fn whole(def: &Def, sizes: [usize; 2]) -> Vec<Value> {
    let (mut seed, shape) = (sizes[0] * 31 + sizes[1], |d: usize| sizes[..d].to_vec());
    let mut number = |ty: Scalar| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let of = if ty.is_int() { (seed >> 40) % 4 } else { (seed >> 40) % 17 };
        Value::Scalar(Lit::of(ty, of as f64 - if ty.is_int() { 0.0 } else { 8.0 }))
    };
    let mut value = |ty: Ty| match ty.kind() {
        TyKind::Tensor(d, of) => {
            let dims = shape(*d);
            let n = dims.iter().product();
            let of = of.as_scalar().unwrap();
            Value::tensor(dims, (0..n).map(|_| number(of)).collect())
        }
        _ => number(Scalar::F64),
    };
    def.params.iter().map(|p| value(p.ty)).collect()
}

/// A definition where only values over the reals have to stay.
fn over_the_reals(program: &Program, def: &str) -> Schedule {
    let mut graph = empty(program, def).graph.as_ref().clone();
    graph.real = true;
    contracted(graph)
}

/// The orders that a reduction is taken in, one after another.
fn orders() -> Vec<Vec<Order>> {
    let alone = [Order::Strided(2), Order::Strided(8), Order::Strided(64), Order::Blocks(1), Order::Blocks(7)];
    let mut out: Vec<Vec<Order>> = alone.into_iter().map(|o| vec![o]).collect();
    out.push(vec![Order::Strided(16), Order::Strided(4)]);
    out.push(vec![Order::Strided(4), Order::Blocks(3)]);
    out.push(vec![Order::Blocks(20), Order::Strided(4)]);
    out
}

/// Reassociates all stages that there are at the start; gives how many steps were taken.
fn reassociated(s: &mut Schedule, orders: &[Order]) -> usize {
    let stages: Vec<String> = s.graph.stages.iter().map(|s| s.name.clone()).collect();
    let mut taken = 0;
    for (stage, order) in stages.iter().flat_map(|s| orders.iter().map(move |o| (s, *o))) {
        taken += usize::from(Step::Reassociate { stage: stage.clone(), order }.apply(s).is_ok());
    }
    taken
}

const SIZES: [[usize; 2]; 8] = [[0, 3], [3, 0], [1, 1], [5, 7], [8, 64], [65, 9], [40, 131], [130, 16]];

/// Protects: a reduction in any order has the same terms: sums that do not round keep every bit, at all sizes, with what is
/// left of lanes and blocks; and failures stay what they are.
#[test]
fn whole_numbers_keep_their_bits_in_any_order() {
    let program = read(SUMS);
    let mut taken = 0;
    for def in program.defs.values() {
        let name = def.name();
        let each = orders().into_iter().map(|orders| {
            let mut s = over_the_reals(&program, name);
            let n = reassociated(&mut s, &orders);
            (s, n)
        });
        let mut made: Vec<Schedule> = vec![];
        for (s, n) in each {
            assert!(n > 0, "no order for `{name}`\n{}", s.graph);
            taken += n;
            made.push(s);
        }
        let graph = over_the_reals(&program, name).graph;
        made.push(schedule::default(graph.as_ref().clone(), &Machine::host()));
        for sizes in SIZES {
            let args = whole(def, sizes);
            let want = Interpreter::new(&program).run(def, &args);
            let special = schedule::default(graph.only_for(&incoming(def, &args)), &Machine::host());
            let known = made.iter().map(|s| s.specialized(&incoming(def, &args)));
            for s in known.chain(made.iter().cloned()).chain([special]) {
                let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap_or_else(|d| panic!("{d}"));
                let have = interpret(&nest, &args, &mut String::new());
                if have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run")) {
                    assert!(sizes.contains(&0) || want.is_err(), "`{name}` at {sizes:?} is left\n{}\n{nest}", s.graph);
                } else if let Some(d) = difference(&want, &have) {
                    panic!("`{name}` at {sizes:?}: {d}\n{}\n{nest}", s.graph);
                }
            }
        }
    }
    assert!(taken >= 100, "only {taken} reductions were reassociated");
}

/// Protects: compiled code of reassociated sums, on threads; and that sums of floats stay within the error of their terms: for
/// n terms at most n roundings of the sum of their magnitudes, in each of two orders (Higham, 2002, section 4.2).
#[test]
fn floats_stay_near_in_any_order() {
    let program = read(SUMS);
    let magnitudes = read(&SUMS.replace("(mul (index i x) (index i y))", "(abs (mul (index i x) (index i y)))"));
    let def = program.named("dot")[0];
    for n in [5, 1000, 200_003] {
        let args = [tensor(Scalar::F64, &[n], 3), tensor(Scalar::F64, &[n], 4)].to_vec();
        let number = |v: Value| match v {
            Value::Scalar(l) => l.as_f64().unwrap(),
            other => panic!("{other:?} is no number"),
        };
        let want = number(Interpreter::new(&program).run(def, &args).unwrap());
        let most = number(Interpreter::new(&magnitudes).run(magnitudes.named("dot")[0], &args).unwrap());
        let graph = over_the_reals(&program, "dot").graph.only_for(&incoming(def, &args));
        let s = schedule::default(graph, &Machine::host());
        let strided = s.steps.iter().any(|s| matches!(s, Step::Reassociate { order: Order::Strided(_), .. }));
        let blocks = s.steps.iter().any(|s| matches!(s, Step::Reassociate { order: Order::Blocks(_), .. }));
        assert_eq!((strided, blocks), (n >= 1000, n >= 200_000), "{n}");
        let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap();
        let have = [1, 2].map(|threads| {
            let (program, def) = (program.clone(), def.clone());
            let native =
                Native::load(common::native::eager(daedal::codegen::Unit::new(&[&nest])), &program.source, &tools());
            let native = native.unwrap().pop().unwrap().with_threads(threads);
            let native = native.with_reference(move || native::compile(&program, &def, &tools()));
            number(native.call(&args).unwrap())
        });
        assert!(have[0].to_bits() == have[1].to_bits(), "threads change the bits: {have:?}");
        let bound = 2.0 * n as f64 * f64::EPSILON * most;
        assert!((have[0] - want).abs() <= bound, "{} is not within {bound} of {want}", have[0]);
    }
}

/// Protects: what changes bits is refused unless it was asked for, exact orders never are, and both say why.
#[test]
fn what_rounds_otherwise_is_asked_for() {
    let program = read(SUMS);
    let refused = |s: Schedule, steps: &str| {
        let error = text::apply(s, &Source::new("test.sched", steps)).map(|s| s.steps.len());
        error.map_err(|d| d.message.clone())
    };
    let step = |def: &str, steps: &str| refused(empty(&program, def), steps);
    let real = |def: &str, steps: &str| refused(over_the_reals(&program, def), steps);
    let says =
        |have: Result<usize, String>, what: &str| assert!(have.clone().is_err_and(|e| e.contains(what)), "{have:?}");
    says(step("dot", "reassociate sum strided 8"), "`--float real` allows that");
    // One of the two contracts.
    assert_eq!(real("dot", "reassociate sum strided 8"), Ok(2));
    assert_eq!(step("most", "reassociate sum strided 8"), Ok(1));
    says(real("dot", "split sum i 8\nreassociate sum strided 8"), "before all steps");
    says(real("dot", "reassociate sum strided 12"), "a power of two");
    says(real("dot", "reassociate sum blocks 0"), "at least one");
    says(real("dot", "reassociate sum strided eight"), "a number in place of `eight`");
    says(real("dot", "reassociate sum by 8"), "`reassociate STAGE strided LANES`");
    let program =
        read("(def f Float (x : (Vec Float)) (fold (lam ((a : Float) (v : Float)) (div v (add a 1.0))) 1.0 x))");
    let mut s = Schedule::new(empty(&program, "f").graph.as_ref().clone());
    let stage = s.graph.stages[0].name.clone();
    let why = Step::Reassociate { stage, order: Order::Strided(8) }.apply(&mut s).unwrap_err();
    assert!(why.0.contains("terms that stand by themselves"), "{}", why.0);
}

/// What decides, beside what is computed of the same product: an index, a condition, and a sum that is neither.
const DECIDED: &str = "
(def f (Vec Float) ((x : (Vec Float) n) (y : (Vec Float) n) (t : (Vec Float) m))
  (build n (lam (i : Integer)
    (let ((v (add (mul (index i x) (index i y)) 1.0)) (k (cast Integer v)))
      (if (lt v 0.0) (mul v v)
        (if (and (gte k 0) (lt k m)) (add (index k t) (mul (index i x) 3.0)) (add v (mul v (index i y)))))))))";

/// Protects: what decides is not contracted, nor what it is made of, so that an index lies where its check says; all else is,
/// and the interpreter of the rewritten program has the bits of what is scheduled, at numbers next to where it is decided.
#[test]
fn what_decides_keeps_its_bits() {
    let program = read(DECIDED);
    let def = program.named("f")[0];
    let s = over_the_reals(&program, "f");
    let shown = s.graph.to_string();
    assert_eq!(s.steps.len(), 1, "{shown}");
    assert!(shown.contains("(fma x[i] 3.0 t[") && shown.contains("(add (mul x[i] y[i]) 1.0)"), "{shown}");
    let again = s.graph.program(def).unwrap();
    let mut rounded = 0;
    for k in 1..400 {
        // Products that are whole numbers but for their last bits, on both sides of them.
        let near = |v: f64, ulps: i64| f64::from_bits((v.to_bits() as i64 + ulps) as u64);
        let x: Vec<f64> = (1..30).map(|i| near(f64::from(i) / f64::from(k), i64::from(i % 5 - 2))).collect();
        let y: Vec<f64> =
            (1..30).map(|i| near(f64::from(k) * f64::from(i % 7 - 3) / 3.0, i64::from(i % 3 - 1))).collect();
        let vector =
            |v: &[f64]| Value::tensor(vec![v.len()], v.iter().map(|v| Value::Scalar(Lit::float(*v))).collect());
        let args = [vector(&x), vector(&y), vector(&[0.1, 0.7, -0.3, 0.9])];
        let want = Interpreter::new(&again).run(&again.defs[&def.fun], &args);
        rounded += usize::from(difference(&Interpreter::new(&program).run(def, &args), &want).is_some());
        for s in [s.clone(), schedule::default(s.graph.as_ref().clone(), &Machine::host())] {
            let nest = native::scheduled_nest(def, &s, &Machine::host()).unwrap();
            let have = interpret(&nest, &args, &mut String::new());
            assert!(difference(&want, &have).is_none(), "{}\n{nest}", difference(&want, &have).unwrap());
        }
    }
    assert!(rounded > 100, "only {rounded} round otherwise");
}

/// Protects: contractions are lines of a schedule like any: printed and read, before all others, refused where bits have to
/// stay or where there is nothing to contract; a schedule without them contracts nothing, and the default one says all.
#[test]
fn contractions_are_lines() {
    let program = read(SUMS);
    let plain = |real: bool| {
        let mut s = empty(&program, "dot");
        let mut graph = s.graph.as_ref().clone();
        graph.real = real;
        s = Schedule::new(graph);
        s
    };
    let applied = |real: bool, steps: &str| text::apply(plain(real), &Source::new("test.sched", steps));
    let refused = |real: bool, steps: &str, why: &str| {
        let d = applied(real, steps).unwrap_err();
        assert!(d.message.contains(why), "{}", d.message);
    };
    refused(false, "contract sum", "`--float real` allows that");
    refused(true, "split sum i 8\ncontract sum", "before all else");
    refused(true, "reassociate sum strided 8\ncontract sum", "before all else");
    refused(true, "contract sum\ncontract sum", "no product of floats is added");
    refused(true, "contract", "expected `contract STAGE`");
    refused(true, "contract product", "no stage `product`");
    let fused = |s: &Schedule| s.graph.to_string().contains("(fma ");
    assert!(!fused(&applied(true, "split sum i 8").unwrap()));
    let s = applied(true, "contract sum\nreassociate sum strided 8").unwrap();
    assert!(fused(&s));
    let printed: String = s.steps.iter().map(|s| format!("{s}\n")).collect();
    assert_eq!(printed, "contract sum\nreassociate sum strided 8\n");
    assert_eq!(applied(true, &printed).unwrap().graph.to_string(), s.graph.to_string());
}

/// Protects: the default schedule as a file gives the same loops and bits as without one, for all sizes and for stated ones;
/// and these are the bits of the program that its rewrites make, whatever numbers are known at stated sizes.
#[test]
fn the_default_schedule_is_a_file_of_its_rewrites() {
    let known = "(def known (Vec Float) (x : (Vec Float) n)
      (build n (lam (i : Integer) (add (index i x) (mul (sqrt (to_float n)) 0.1)))))";
    let program = read(&format!("{SUMS}{known}"));
    let (mut contracted, mut n) = (0, 0);
    for def in program.defs.values() {
        let mut graph = empty(&program, def.name()).graph.as_ref().clone();
        graph.real = true;
        for sizes in [[5, 7], [65, 9], [40, 131]] {
            let args = whole(def, sizes);
            let sizes = incoming(def, &args);
            let general = schedule::default(graph.clone(), &Machine::host());
            let special = schedule::default_for(graph.clone(), &sizes, &Machine::host());
            let file =
                |s: &Schedule| Source::new("d.sched", s.steps.iter().map(|s| format!("{s}\n")).collect::<String>());
            let again = text::apply(Schedule::new(graph.clone()), &file(&general)).unwrap();
            assert_eq!((again.to_string(), &again.plans), (general.to_string(), &general.plans));
            let again = text::apply_for(graph.clone(), &sizes, &file(&special)).unwrap();
            assert_eq!(again.graph.to_string(), special.graph.to_string());
            assert_eq!((again.to_string(), &again.plans), (special.to_string(), &special.plans));
            contracted += special.steps.iter().filter(|s| matches!(s, Step::Contract { .. })).count();
            let mut rewritten = Schedule::new(graph.clone());
            special.steps.iter().filter(|s| s.is_rewrite()).for_each(|s| s.apply(&mut rewritten).unwrap());
            let rewritten = rewritten.graph.program(def).unwrap();
            let want = Interpreter::new(&rewritten).run(&rewritten.defs[&def.fun], &args);
            let nest = native::scheduled_nest(def, &special, &Machine::host()).unwrap();
            let have = interpret(&nest, &args, &mut String::new());
            assert!(want.is_err() || difference(&want, &have).is_none(), "`{}`: {nest}", def.name());
            n += usize::from(want.is_ok());
        }
    }
    assert!(n > 20 && (contracted > 5 || !daedal::machine::contracts()), "{n} ran, {contracted} contracted");
}

/// Protects: the sign of a zero that `fma` gives, where it is negated: compilers make one operation of both, which adds the
/// other way. Negations that are written as products and differences are such to compilers, too.
#[test]
fn a_negated_fma_keeps_its_zero() {
    for (name, ty) in [("Float", Scalar::F64), ("Float32", Scalar::F32)] {
        let suffix = if ty == Scalar::F32 { "f32" } else { "" };
        let forms = ["(neg V)", "(mul -1.0S V)", "(mul V -1.0S)", "(div V -1.0S)", "(sub -0.0S V)"];
        let defs = forms.iter().enumerate().map(|(k, form)| {
            let value = "(fma (index i x) (index i y) (index i z))";
            let body = form.replace('S', suffix).replace('V', value);
            let params = ["x", "y", "z"].map(|p| format!("({p} : (Vec {name}) n)")).join(" ");
            format!("(def f{k} (Vec {name}) ({params}) (build n (lam (i : Integer) {body})))\n")
        });
        let program = read(&defs.collect::<String>());
        let of = [0.0, -0.0, 1.0, -1.0];
        let column = |step: usize, n: usize| {
            Value::tensor(vec![n], (0..n).map(|i| Value::Scalar(Lit::of(ty, of[i / step % 4]))).collect())
        };
        let cases: Vec<Vec<Value>> =
            [1, 2, 7, 64].iter().map(|n| [1, 4, 16].map(|step| column(step, *n)).to_vec()).collect();
        for def in program.defs.values() {
            let default = schedule::default(empty(&program, def.name()).graph.as_ref().clone(), &Machine::host());
            for s in [empty(&program, def.name()), default] {
                check(&program, def.name(), &s, &cases);
            }
            let plain = native::compile(&program, def, &tools()).unwrap();
            for args in &cases {
                let want = Interpreter::new(&program).run(def, args);
                assert!(
                    difference(&want, &plain.call(args)).is_none(),
                    "{}",
                    difference(&want, &plain.call(args)).unwrap()
                );
            }
        }
    }
}

/// Protects: by default, sums of what is read backwards run in lanes, as those of what is read as it lies; small whole numbers
/// keep every bit.
#[test]
fn sums_backwards_are_lanes() {
    for at in ["i", "(sub (sub n 1) i)"] {
        let program = read(&format!(
            "(def f Float ((x : (Vec Float) n) (y : (Vec Float) n))
               (sumbuild n (lam (i : Integer) (mul (index {at} x) (index i y)))))"
        ));
        let args = whole(program.named("f")[0], [333, 0]);
        let sizes = incoming(program.named("f")[0], &args);
        let graph = over_the_reals(&program, "f").graph.as_ref().clone();
        let made = schedule::default_for(graph, &sizes, &Machine { threads: 1, ..Machine::host() });
        let lanes = made.graph.stages.iter().find(|s| s.name.ends_with("_lanes")).unwrap_or_else(|| panic!("{made}"));
        let plan = made.plan(made.stage(&lanes.name).unwrap());
        assert!(plan.loops.iter().any(|l| l.kind == schedule::plan::Kind::Vector), "{made}");
        check(&program, "f", &made, &[args]);
    }
}

/// Protects: sums over each row of a table, in lanes of the row, are no batches of rows, in which lanes would be far apart.
#[test]
fn rows_in_lanes_are_no_batches() {
    let program = read(
        "(def f Float ((x : (Tensor 2 Float) (n m)) (y : (Tensor 2 Float) (n m)))
           (sumbuild n (lam (i : Integer)
             (let (s (sumbuild m (lam (j : Integer) (mul (index (tuple i j) x) (index (tuple i j) y)))))
               (mul s (sumbuild m (lam (j : Integer) (index (tuple i j) x))))))))",
    );
    let args = [tensor(Scalar::F64, &[512, 256], 1), tensor(Scalar::F64, &[512, 256], 2)];
    let sizes = incoming(program.named("f")[0], &args);
    let graph = over_the_reals(&program, "f").graph.as_ref().clone();
    let machine = Machine { vector_bytes: 64, threads: 1, caches: [32 << 10, 256 << 10, 8 << 20] };
    let made = schedule::default_for(graph, &sizes, &machine);
    let text = made.to_string();
    let lanes = made.graph.stages.iter().filter(|s| s.name.ends_with("_lanes")).collect::<Vec<_>>();
    assert!(!lanes.is_empty(), "{text}");
    for stage in lanes {
        let plan = made.plan(made.stage(&stage.name).unwrap());
        let vector =
            plan.loops.iter().find(|l| l.kind == schedule::plan::Kind::Vector).unwrap_or_else(|| panic!("{text}"));
        let k = plan.root(&vector.name).unwrap();
        assert_eq!(Some(&plan.dims[k].1), stage.dims.last(), "{text}");
    }
}

/// Protects: sums along the rows of a matrix that no cache holds have a few rows side by side, also where these are no multiple of
/// that; of whole numbers all bits are those of the program.
#[test]
fn rows_of_a_large_matrix_are_summed_side_by_side() {
    let text = "(def f (Vec Float) ((a : (Tensor 2 Float) (n m)) (x : (Vec Float) m)) (matmul a x))";
    let program = read(text);
    let def = program.named("f")[0];
    let numbers = |dims: &[usize], by: usize| {
        let n = dims.iter().product::<usize>();
        let each = (0..n).map(|k| Value::Scalar(Lit::of(Scalar::F64, ((k * by) % 17) as f64 - 8.0)));
        Value::tensor(dims.to_vec(), each.collect())
    };
    for [n, m] in [[1030, 1021], [1024, 1024], [33, 32003]] {
        let args = [numbers(&[n, m], 7), numbers(&[m], 5)].to_vec();
        let graph = over_the_reals(&program, "f").graph.only_for(&incoming(def, &args));
        let made = schedule::default(graph, &Machine { threads: 2, ..Machine::host() });
        let steps = made.steps.iter().map(Step::to_string).collect::<Vec<_>>();
        assert!(steps.iter().any(|s| s.starts_with("compute-at sum_lanes")), "{steps:?}");
        let nest = native::scheduled_nest(def, &made, &Machine::host()).unwrap();
        let (want, have) = (Interpreter::new(&program).run(def, &args), interpret(&nest, &args, &mut String::new()));
        assert_eq!(difference(&want, &have), None, "{n} {m}");
    }
}
