//! Library functions of several lanes: their dependence chains are interleaved, and calls that both arms of a condition have are
//! merged, with the interpreter's bits.

use crate::common::dice::Dice;
use crate::common::scheduled::{check, empty, read, stages};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::schedule::Schedule;
use daedal::tune::example::incoming;

/// Two vectors of so many numbers, with those among them that functions and comparisons tell apart.
fn numbers(ty: Scalar, n: usize) -> Vec<Value> {
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 800.0, -800.0];
    let mut dice = Dice(7);
    let mut one = || match odd.get(dice.roll(19)) {
        Some(x) => *x,
        None => dice.below(4001) as f64 / 1000.0 - 2.0,
    };
    let mut all = || Value::tensor(vec![n], (0..n).map(|_| Value::Scalar(Lit::of(ty, one()))).collect());
    vec![all(), all()]
}

/// The program of an element of two numbers `a` and `b`.
fn program(ty: &str, element: &str) -> Program {
    read(&format!(
        "(def f (Vec {ty}) ((x : (Vec {ty}) n) (y : (Vec {ty}) n))
           (build n (lam (i : Integer) (let ((a (index i x)) (b (index i y))) {element}))))"
    ))
}

/// The default schedule for arguments on vectors of 256 bits.
fn default(program: &Program, args: &[Value]) -> Schedule {
    let sizes = incoming(program.named("f")[0], args);
    let graph = empty(program, "f").graph.only_for(&sizes);
    daedal::schedule::default(graph, &Machine { vector_bytes: 32, threads: 1, ..Machine::host() })
}

/// The functions that the loops of an element call for several lanes, in their order, after these were held against the interpreter.
fn called(ty: &str, element: &str, n: usize) -> Vec<String> {
    let program = program(ty, element);
    let args = numbers(if ty == "Float" { Scalar::F64 } else { Scalar::F32 }, n);
    let made = default(&program, &args);
    check(&program, "f", &made, std::slice::from_ref(&args));
    let machine = Machine { vector_bytes: 32, threads: 1, ..Machine::host() };
    let nest = native::scheduled_nest(program.named("f")[0], &made, &machine).unwrap().to_string();
    // Each word behind a bracket is an operation.
    let words = nest.split('(').skip(1).filter_map(|w| w.split(' ').next());
    words.filter(|w| ["exp", "log", "tanh", "sin"].contains(w)).map(String::from).collect()
}

/// Protects: four vectors take their first call before any takes its second one.
#[test]
fn chains_are_interleaved() {
    let found = called("Float", "(log (add 1.0 (exp a)))", 64);
    assert_eq!(found, ["exp", "exp", "exp", "exp", "log", "log", "log", "log"]);
    let found = called("Float", "(tanh (sin (exp (mul a b))))", 64);
    assert_eq!(found, [["exp"; 4], ["sin"; 4], ["tanh"; 4]].concat());
}

/// Protects: one call after the other is no reason for more vectors, nor are rows of two.
#[test]
fn what_waits_for_nothing_is_one_vector() {
    assert_eq!(called("Float", "(mul (exp a) (sin b))", 64), ["exp", "sin"]);
    assert_eq!(called("Float", "(log (add 1.0 (exp a)))", 8), ["exp", "log"]);
}

/// Protects: what both arms call is called once in lanes, and what only one calls is called for itself.
#[test]
fn arms_call_what_both_call_once() {
    for ty in ["Float", "Float32"] {
        let one = if ty == "Float" { "1.0" } else { "1.0f32" };
        let arms = |a: &str, b: &str| called(ty, &format!("(if (lt a b) {a} {b})").replace("ONE", one), 24);
        assert_eq!(arms("(exp a)", "(neg (exp b))"), ["exp"]);
        assert_eq!(arms("(div ONE (add ONE (exp a)))", "(let (e (exp (sub b a))) (div e (add ONE e)))"), ["exp"]);
        assert_eq!(arms("(sin a)", "(exp b)").len(), 2);
        assert_eq!(arms("(sin (exp a))", "(exp (sin b))").len(), 3);
        assert_eq!(arms("(if (gt a b) (exp a) (exp (neg a)))", "(exp b)"), ["exp"]);
        assert_eq!(arms("(exp a)", "(if (lt b ONE) (exp b) b)"), ["exp"]);
    }
}

/// Protects: of two numbers that compare so, arms ask no more; of NaN neither order is known, nor that there is none.
#[test]
fn arms_know_what_comparisons_of_floats_say() {
    let conditions = |element: &str| {
        let program = program("Float", element);
        let args = numbers(Scalar::F64, 76);
        let made = default(&program, &args);
        check(&program, "f", &made, std::slice::from_ref(&args));
        made.graph.to_string().matches("(if ").count()
    };
    let asked =
        |outer: &str, inner: &str| conditions(&format!("(if {outer} (if {inner} 1.0 2.0) (if {inner} 3.0 4.0))"));
    // How many conditions are left, where one is decided in so many of both arms.
    assert_eq!(asked("(lt a b)", "(lt a b)"), 1);
    assert_eq!(asked("(lt a b)", "(gt a b)"), 2);
    assert_eq!(asked("(lt a b)", "(gte b a)"), 2);
    assert_eq!(asked("(lt a b)", "(gte a b)"), 2);
    assert_eq!(asked("(eq a b)", "(ne a b)"), 1);
    assert_eq!(asked("(lte a b)", "(lt a b)"), 2);
    assert_eq!(asked("(lt a b)", "(lt a 0.0)"), 3);
}

/// A random number of `a` and `b`, with functions and conditions.
fn element(dice: &mut Dice, depth: u64) -> String {
    if depth == 0 {
        return dice.one(&["a", "b", "0.5", "-2.0"]).into();
    }
    let part = |dice: &mut Dice| {
        let depth = dice.below(depth);
        element(dice, depth)
    };
    match dice.below(6) {
        0 | 1 => {
            let (f, x) = (dice.one(&["exp", "log", "sin", "tanh"]), part(dice));
            format!("({f} {x})")
        }
        2 => {
            let (f, x, y) = (dice.one(&["add", "mul", "div", "sub"]), part(dice), part(dice));
            format!("({f} {x} {y})")
        }
        3 => {
            let (x, y) = (element(dice, depth - 1), part(dice));
            format!("(let (b {x}) (add b {y}))")
        }
        _ => {
            let c = dice.one(&["lt", "gt", "eq", "gte", "ne"]);
            let (x, y) = (part(dice), part(dice));
            let (p, q) = (element(dice, depth - 1), element(dice, depth - 1));
            format!("(if ({c} {x} {y}) {p} {q})")
        }
    }
}

/// Protects: whatever is called in arms within arms, under the default schedule and without one, in vectors of all lengths, has the
/// interpreter's bits.
#[test]
fn random_arms_keep_their_bits() {
    for seed in 0..300 {
        let program = program("Float", &element(&mut Dice(seed), 6));
        let def = program.named("f")[0];
        let args = numbers(Scalar::F64, 37);
        let want = Interpreter::new(&program).run(def, &args);
        let made = default(&program, &args);
        for vector_bytes in [8, 16, 32, 64] {
            let machine = Machine { vector_bytes, threads: 1, ..Machine::host() };
            for nest in [native::scheduled_nest(def, &made, &machine), native::nest(&program, def, &machine)] {
                let nest = nest.unwrap_or_else(|d| panic!("seed {seed}: {}", d.render()));
                let have = interpret(&nest, &args, &mut String::new());
                let wrong = crate::common::native::difference(&want, &have);
                assert_eq!(wrong, None, "seed {seed}\n{nest}");
            }
        }
    }
}

/// Protects: in the steps of a recurrence what is a stage is read by others of the same steps, as a slope reads a value; each fit by
/// gradients has such steps.
#[test]
fn steps_take_functions_once() {
    let text = "(def f (Vec Float) ((x : (Vec Float) n) (b : (Vec Float) n) (steps : Integer))
      (iterate steps (lam (s : (Vec Float))
          (let ((h (build n (lam (i : Integer) (tanh (mul (index i s) (index i x))))))
                (out (sumbuild n (lam (i : Integer) (mul (index i h) (index i h))))))
            (build n (lam (i : Integer)
              (let (t (tanh (mul (index i s) (index i x))))
                (sub (index i s) (mul 0.1 (mul out (sub 1.0 (mul t (index i h))))))))))) b))";
    for (n, steps) in [(9, 4), (1, 1), (5, 0), (16, 3)] {
        let numbers = numbers(Scalar::F64, n);
        let args = [&numbers[..], &[Value::Scalar(Lit::int(steps))]].concat();
        let shown = stages(text, &args);
        assert!(shown.matches("(tanh ").count() <= 1, "{shown}");
    }
}
