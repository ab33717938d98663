//! Gradients that keep few states are the same gradients, and keep few states.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

mod common;

use common::calls::{Call, asked};
use common::native::quick;
use common::{agree, agree_from};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Fun, Lit, Program};
use daedal::pipeline::native;
use daedal::pipeline::{Options, optimize};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the bytes that a thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

fn count(bytes: isize) {
    let _ = HELD.try_with(|h| {
        let (now, most) = h.get();
        h.set((now + bytes, most.max(now + bytes)));
    });
}

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held at a time during a call, beyond those before it.
fn peak(call: impl FnOnce()) -> f64 {
    let before = HELD.with(|h| {
        let (now, _) = h.get();
        h.set((now, now));
        now
    });
    call();
    HELD.with(|h| (h.get().1 - before) as f64)
}

/// The reverse derivatives of a function: plain, and with few states.
fn both(program: &Program, def: &Def) -> daedal::diag::Result<[(Program, Fun); 2]> {
    let wrt: Vec<bool> = def.params.iter().map(|p| ad::has_floats(p.ty)).collect();
    let wanted = |checkpoint| Wanted { fun: def.fun, mode: Mode::Reverse, wrt: wrt.clone(), value: false, checkpoint };
    Ok([ad::derive(program, &wanted(false))?, ad::derive(program, &wanted(true))?])
}

fn run((program, fun): &(Program, Fun), args: &[Value]) -> daedal::diag::Result<Value> {
    Interpreter::new(program).run(&program.defs[fun], args)
}

fn floats(of: impl IntoIterator<Item = f64>) -> Value {
    let data: Vec<Value> = of.into_iter().map(|v| Value::Scalar(Lit::float(v))).collect();
    Value::tensor(vec![data.len()], data.into())
}

const FOLDS: &str = "
(def vector (Vec Float) ((w : (Vec Float) d) (xs : (Vec Float) n))
  (fold (lam ((s : (Vec Float)) (x : Float))
          (build d (lam (i : Integer) (tanh (add (mul (index i w) (index i s)) x)))))
        w xs))
(def numbered Float ((a : Float) (xs : (Vec Float) n))
  (fold (lam ((s : Float) (i : Integer)) (if (gt s 0.3) (mul s (index i xs)) (add (sin s) (mul a (index i xs)))))
        a (build n (lam (i : Integer) i))))
(def nested Float ((a : Float) (xs : (Vec Float) n))
  (fold (lam ((s : Float) (x : Float))
          (fold (lam ((t : Float) (y : Float)) (sin (add (mul t x) (mul y s)))) s xs))
        a xs))
(def rows Float ((a : Float) (xs : (Vec Float) n))
  (get$1$2 (fold (lam ((s : (Tuple Float Float)) (row : (Vec Float)))
          (tuple (mul (get$2$2 s) (index 1 row)) (add (cos (get$1$2 s)) (index 0 row))))
        (tuple a 0.5) (build n (lam (i : Integer) (Vec_init (index i xs) (mul a (index i xs))))))))
(def pairs Float ((a : Float) (xs : (Vec Float) n))
  (fold (lam ((s : Float) (x : (Tuple Float Integer))) (sin (mul (add s (get$1$2 x)) (to_float (get$2$2 x)))))
        a (build n (lam (i : Integer) (tuple (index i xs) i)))))
";

/// Protects: every number of elements, whether or not it fills its parts, in all ways of running.
#[test]
fn few_states_give_the_same_gradient() {
    let program = common::read("folds", FOLDS).unwrap();
    let toolchain = quick("ad");
    for def in program.defs.values() {
        let [plain, few] = both(&program, def).unwrap();
        let native = native::compile(&few.0, &few.0.defs[&few.1], &toolchain).unwrap_or_else(|d| panic!("{d}"));
        let options = Options { max_nodes: 1500, ..Options::standard() };
        let fast = optimize(&few.0, &options).unwrap().program;
        for n in 0..12 {
            let xs = floats((0..n).map(|k| 0.9 - 0.13 * f64::from(k)));
            let first = match def.name() {
                "vector" => floats([0.5, -0.75]),
                _ => Value::Scalar(Lit::float(0.7)),
            };
            let dr = match def.name() {
                "vector" => floats([1.0, 0.5]),
                _ => Value::Scalar(Lit::float(1.0)),
            };
            let args = [first, xs, dr];
            let want = run(&plain, &args).unwrap();
            let again = Interpreter::new(&fast).run(&fast.defs[&few.1], &args);
            for (how, found) in [("few", run(&few, &args)), ("native", native.call(&args)), ("optimized", again)] {
                let found = found.unwrap_or_else(|d| panic!("{} at {n}, {how}: {d}", def.name()));
                let good = agree(&found, &want, 1e-9);
                assert!(good, "{} at {n}, {how}: {} is not {}", def.name(), found.to_json(), want.to_json());
            }
        }
    }
}

/// Protects: the corpus, and programs that nobody thought of.
#[test]
fn few_states_give_the_same_gradient_of_everything() {
    let same = |&Call { name, program, def, args, .. }: &Call<'_>| {
        let Ok([plain, few]) = both(program, def) else { return false };
        let dr = Interpreter::new(program).run(def, args).ok().filter(|_| ad::has_floats(def.fun.sig().ret));
        let Some(dr) = dr.map(|v| ad::check::change(&v, 3)) else { return false };
        let args = [args, &[dr]].concat();
        let Ok(want) = run(&plain, &args) else { return false };
        let found = run(&few, &args).unwrap_or_else(|d| panic!("{name} {}: {d}", def.name()));
        let good = agree_from(&found, &want, 1e-7, 1e-6);
        assert!(good, "{name} {}: {} is not {}", def.name(), found.to_json(), want.to_json());
        true
    };
    let [of_corpus, random] = asked(2400, &["(fold "], &same);
    assert!(of_corpus >= 50 && random >= 400, "only {of_corpus} of the corpus and {random} random ones compared");
}

/// Protects: a fold of no steps has a gradient with few states wherever it has a value, in the shape of the arguments,
/// whatever its steps would read.
#[test]
fn folds_of_no_steps_have_gradients_with_few_states() {
    let text = "
(def inner Float ((w : (Vec Float) d) (xs : (Vec Float) k))
  (fold (lam ((s : Float) (x : Float))
          (mul s (index 0 (fold (lam ((t : (Vec Float)) (y : Float))
                                  (build d (lam (i : Integer) (mul y (mul s (index i t))))))
                                w xs))))
        0.5 xs))
(def scans Float ((w : (Vec Float) d) (xs : (Vec Float) k))
  (fold (lam ((s : Float) (x : Float))
          (mul s (index 0 (index 1 (scan (lam ((t : (Vec Float)) (j : Integer))
                                           (build d (lam (i : Integer) (mul x (mul s (index i t))))))
                                         w 3)))))
        0.5 xs))
(def tuples Float ((w : (Vec Float) d) (xs : (Vec Float) k))
  (get$2$2 (fold (lam ((s : (Tuple (Vec Float) Float)) (x : Float))
                   (tuple (add w (mul x (get$1$2 s))) (mul x (sum (get$1$2 s)))))
                 (tuple w 1.5) xs)))
(def nothing (Vec Float) ((w : (Vec Float) d) (xs : (Vec Float) k))
  (sumbuild (sub k 2) (lam (o : Integer)
    (fold (lam ((s : (Vec Float)) (x : Float)) (mul x (add s w))) (mul 2.0 w) (build o (lam (i : Integer) (index i xs)))))))
";
    let program = common::read("none", text).unwrap();
    for def in program.defs.values() {
        let [plain, few] = both(&program, def).unwrap();
        for n in 0..4 {
            let w = floats([0.5, 1.5, 1.0]);
            let args = [w, floats((0..n).map(|k| 0.5 + 0.25 * f64::from(k)))];
            let Ok(value) = Interpreter::new(&program).run(def, &args) else { continue };
            let args = [&args[..], &[ad::check::change(&value, 3)]].concat();
            let told = |d: Box<daedal::diag::Diagnostic>| panic!("{} of {n} steps: {d}", def.name());
            let (want, found) = (run(&plain, &args).unwrap_or_else(told), run(&few, &args).unwrap_or_else(told));
            assert!(
                agree(&found, &want, 1e-9),
                "{} of {n} steps: {} is not {}",
                def.name(),
                found.to_json(),
                want.to_json()
            );
        }
    }
}

/// Protects: the states that are held at a time grow with the root of their number.
#[test]
fn few_states_are_held() {
    let program = common::read("folds", FOLDS).unwrap();
    let [plain, few] = both(&program, program.named("vector")[0]).unwrap();
    let d = 400;
    let states = |of: &(Program, Fun), n: u32| {
        let w = floats((0..d).map(|k| f64::from(k) / f64::from(d)));
        let args = [w.clone(), floats((0..n).map(|k| f64::from(k % 7) * 0.1)), w];
        let bytes = peak(|| drop(run(of, &args).unwrap()));
        bytes / (f64::from(d) * size_of::<f64>() as f64)
    };
    let held = [(&plain, 100), (&plain, 900), (&few, 100), (&few, 900)].map(|(of, n)| states(of, n));
    println!("states held: plain {:.0}, {:.0}; few {:.0}, {:.0}", held[0], held[1], held[2], held[3]);
    assert!(held[1] > 2.0 * 900.0, "plain keeps states and adjoints: {held:?}");
    // Four times √n, and some copies of the elements, each as large as nine states.
    assert!(held[3] < 10.0 * 30.0, "more than 10√n: {held:?}");
    assert!(held[3] < 4.0 * held[2], "nine times the states, more than four times the memory: {held:?}");
}
