//! The least and the greatest of floats, and where they are, among numbers that are none and zeros of either sign: no order of
//! the terms shows, whatever runs the program.

use crate::common::scheduled::{check, compare, empty, read};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::schedule::{self, Schedule, Step};
use daedal::stage::Order;
use daedal::tune::example::incoming;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Reductions over vectors and over rows, in one width.
fn program(float: &str) -> Program {
    let each = |name: &str, form: &str, ret: &str| {
        format!(
            "(def {name} {ret} (x : (Vec {float}) n) ({form} n (lam (i : Integer) (index i x))))
(def {name}_rows (Vec {ret}) (x : (Vec {float}) n)
  (build 3 (lam (r : Integer) ({form} n (lam (i : Integer) (mul (select (eq r 1) (cast {float} -1) (cast {float} 1)) (index i x)))))))\n"
        )
    };
    let text = each("least", "reduce min", float)
        + &each("greatest", "reduce max", float)
        + &each("first_least", "argmin", "Integer")
        + &each("first_greatest", "argmax", "Integer")
        // Not one instruction, so that the vectors are ours.
        + &format!(
            "(def pairs (Vec (Tuple {float} {float} Bool)) ((x : (Vec {float}) n) (y : (Vec {float}) n))
  (build n (lam (i : Integer) (let ((a (mul (index i x) (exp (mul (cast {float} 0) (tanh (cast {float} i)))))) (b (index i y)))
    (tuple (minimum a b) (maximum a b) (precedes a b))))))"
        );
    read(&text)
}

const ENDS: [f64; 8] = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.0, 3.25];

/// A vector, mostly of numbers that are not at the ends.
fn vector(ty: Scalar, n: usize, ends: u32, random: &mut StdRng) -> Vec<Lit> {
    let mut number = || match random.random_range(0..100) < ends {
        true => ENDS[random.random_range(0..ENDS.len())],
        false => f64::from(random.random_range(-1000i32..1000)) / 8.0,
    };
    (0..n).map(|_| Lit::of(ty, number())).collect()
}

fn value(of: &[Lit]) -> Value {
    Value::tensor(vec![of.len()], of.iter().map(|l| Value::Scalar(*l)).collect())
}

/// The order in which the least stands first: what is no number, then -0 before +0.
fn order(a: f64, b: f64) -> std::cmp::Ordering {
    b.is_nan().cmp(&a.is_nan()).then_with(|| if a.is_nan() { std::cmp::Ordering::Equal } else { a.total_cmp(&b) })
}

/// Protects: `reduce min|max` and `argmin|argmax` are those of one order of all floats, as the page of the language says.
#[test]
fn the_least_is_that_of_one_order() {
    let (program, mut random) = (program("Float"), StdRng::seed_from_u64(1));
    let run = |def: &str, x: &[Lit]| match Interpreter::new(&program).run(program.named(def)[0], &[value(x)]).unwrap() {
        Value::Scalar(l) => l,
        other => panic!("{other:?}"),
    };
    for round in 0..2000 {
        let x = vector(Scalar::F64, 1 + round % 9, 70, &mut random);
        let of = |k: usize| x[k].as_f64().unwrap();
        let least = (0..x.len()).min_by(|a, b| order(of(*a), of(*b))).unwrap();
        let greatest = (0..x.len()).min_by(|a, b| order(-of(*a), -of(*b))).unwrap();
        for (name, at) in [("least", least), ("greatest", greatest)] {
            let have = run(name, &x).as_f64().unwrap();
            let same = have.to_bits() == of(at).to_bits() || have.is_nan() && of(at).is_nan();
            assert!(same, "{name} of {x:?} is {have}");
            assert_eq!(run(&format!("first_{name}"), &x).as_int(), Some(at as i64), "first {name} of {x:?}");
        }
    }
}

/// Protects: nests and compiled code, under the default schedule, for all sizes and for one, on one thread and on two, and in
/// all orders that need not be asked for, have the interpreter's bits: these are reassociated without `--float real`.
#[test]
fn no_order_shows_in_the_least() {
    let mut random = StdRng::seed_from_u64(2);
    for (float, ty) in [("Float", Scalar::F64), ("Float32", Scalar::F32)] {
        let program = program(float);
        for def in program.defs.values().filter(|d| d.params.len() == 1) {
            let cases: Vec<Vec<Value>> = [1, 2, 7, 8, 9, 64, 131, 1000]
                .iter()
                .flat_map(|n| [2, 50].map(|ends| vec![value(&vector(ty, *n, ends, &mut random))]))
                .collect();
            let graph = empty(&program, def.name()).graph.as_ref().clone();
            let mut all = vec![schedule::default(graph.clone(), &Machine::host())];
            for order in [Order::Strided(4), Order::Strided(16), Order::Blocks(7)] {
                let mut s = Schedule::new(graph.clone());
                for stage in graph.stages.iter().map(|s| s.name.clone()) {
                    let taken = Step::Reassociate { stage, order }.apply(&mut s).is_ok();
                    assert_eq!(taken, !def.name().starts_with("first"), "{} in {order}", def.name());
                }
                all.push(s);
            }
            for s in &all {
                compare(&program, def.name(), s, &cases, true);
            }
            let long = vec![value(&vector(ty, 5000, 1, &mut random))];
            let special = schedule::default(graph.only_for(&incoming(def, &long)), &Machine::host());
            compare(&program, def.name(), &special, &[long], true);
        }
        let pairs = |n: usize, random: &mut StdRng| [0, 1].map(|_| value(&vector(ty, n, 90, random))).to_vec();
        let cases: Vec<Vec<Value>> = (0..40).map(|n| pairs(n, &mut random)).collect();
        let made = schedule::default(empty(&program, "pairs").graph.as_ref().clone(), &Machine::host());
        check(&program, "pairs", &made, &cases);
    }
}
