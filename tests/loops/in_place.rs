//! Recurrences of which a step changes few elements of a table change it in place: by default and without a schedule, to the
//! interpreter's bits, and in work that grows with the number of steps alone.

use crate::common::dice::Dice;
use crate::common::native::{difference, eager, quick};
use crate::common::scheduled::{empty, read};
use daedal::ad::{self, Mode, Wanted};
use daedal::codegen::Unit;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Lit, Program};
use daedal::machine::Machine;
use daedal::nest::{Nest, interpret};
use daedal::pipeline::native;
use daedal::pipeline::simplify::simplified;
use daedal::rules::Level;
use daedal::run::Native;
use daedal::schedule::{self, Schedule};
use daedal::stage::extract;

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 1, ..Machine::host() }
}

fn by_default(program: &Program, def: &str) -> Schedule {
    schedule::default(Clone::clone(&*empty(program, def).graph), &machine())
}

/// A fold over indices `xs` with a table `t` of `n` elements as its state.
fn fold(step: &str) -> String {
    format!(
        "(def f (Vec Float) ((t : (Vec Float) n) (xs : (Vec Integer)))
           (fold (lam ((t : (Vec Float)) (x : Integer)) {step}) t xs))"
    )
}

/// What stands in the loop over the steps of a nest, the first line of which names a variable.
fn steps(nest: &Nest, var: &str) -> String {
    let text = nest.to_string();
    let from = text.lines().skip_while(|l| !l.starts_with(&format!("  for {var}."))).skip(1);
    from.take_while(|l| l.starts_with("    ")).map(|l| format!("{}\n", &l[4..])).collect()
}

/// The step of a fold under the default schedule, and without one.
fn check(step: &str, scheduled: &str, reference: &str) {
    let program = read(&fold(step));
    let def = program.named("f")[0];
    let nest = native::scheduled_nest(def, &by_default(&program, "f"), &machine()).unwrap();
    let found = steps(&nest, "step");
    assert_eq!(found.trim(), scheduled.trim(), "\n{found}");
    let found = steps(&native::nest(&program, def, &machine()).unwrap(), "x_at");
    assert_eq!(found.trim(), reference.trim(), "\n{found}");
}

/// Protects: what a step sets is stored, and nothing is copied, in whichever way the program says it.
#[test]
fn an_element_is_set() {
    check(
        "(setAt x t (add 1.0 (index x t)))",
        "
var v.6 = 0.0
let v.7 = xs:1[step.5]
check (gte v.7 0) else #0
check (lt v.7 t_size0.0) else #0
v.6 = (add 1.0 state_2:2[v.7])
if (if (gte v.7 0) (lt v.7 t_size0.0) false)
  state_2:2[v.7] = v.6
",
        "
let at.4 = xs:1[x_at.3]
check (and (gte at.4 0) (lt at.4 t_size0.0)) else #0
let i.5 = (add 1.0 state:2[at.4])
if (gt t_size0.0 0)
  let only.10 = xs:1[x_at.3]
  if (and (gte only.10 0) (lt only.10 t_size0.0))
    let i.8 = only.10
    if (eq i.8 xs:1[x_at.3])
      state:2[i.8] = i.5
",
    );
    check(
        "(build n (lam (i : Integer) (if (eq i x) (add 1.0 (index 0 t)) (index i t))))",
        "
let v.6 = xs:1[step.5]
check (if (if (gte v.6 0) (lt v.6 t_size0.0) false) (lt 0 t_size0.0) true) else #0
if (if (gte v.6 0) (lt v.6 t_size0.0) false)
  state_2:2[v.6] = (add 1.0 state_2:2[0])
",
        "
if (gt t_size0.0 0)
  let only.6 = xs:1[x_at.3]
  if (and (gte only.6 0) (lt only.6 t_size0.0))
    let i.4 = only.6
    if (eq i.4 xs:1[x_at.3])
      check (lt 0 t_size0.0) else #0
      state:2[i.4] = (add 1.0 state:2[0])
",
    );
}

/// Protects: an arm that keeps the table does nothing.
#[test]
fn an_element_is_set_in_an_arm() {
    check(
        "(if (gt (index x t) 0.5) (setAt x t 0.0) t)",
        "
let v.6 = xs:1[step.5]
let v.7 = (gte v.6 0)
check v.7 else #0
let v.8 = (lt v.6 t_size0.0)
check v.8 else #0
let v.9 = (gt state_2:2[v.6] 0.5)
check (if v.9 v.7 true) else #0
check (if v.9 v.8 true) else #0
if (if (gt state_2:2[v.6] 0.5) (if (gte v.6 0) (lt v.6 t_size0.0) false) false)
  state_2:2[v.6] = 0.0
",
        "
let at.4 = xs:1[x_at.3]
check (and (gte at.4 0) (lt at.4 t_size0.0)) else #0
if (gt state:2[at.4] 0.5)
  if (gt t_size0.0 0)
    let only.13 = xs:1[x_at.3]
    if (and (gte only.13 0) (lt only.13 t_size0.0))
      let i.10 = only.13
      if (eq i.10 xs:1[x_at.3])
        state:2[i.10] = 0.0
",
    );
}

/// Protects: both elements are read before one is stored.
#[test]
fn elements_are_swapped() {
    check(
        "(let ((a (index x t)) (b (index 0 t))) (setAt 0 (setAt x t b) a))",
        "
let v.6 = xs:1[step.5]
check (gte v.6 0) else #0
check (lt v.6 t_size0.0) else #0
var changes.7 = false
var at.8 = 0
var changed.9 = 0.0
if (lt 0 t_size0.0)
  changes.7 = true
  at.8 = 0
  changed.9 = state_2:2[xs:1[step.5]]
if (if (gte v.6 0) (if (lt v.6 t_size0.0) (ne v.6 0) false) false)
  state_2:2[v.6] = state_2:2[0]
if changes.7
  state_2:2[at.8] = changed.9
",
        "
let at.4 = xs:1[x_at.3]
check (and (gte at.4 0) (lt at.4 t_size0.0)) else #0
let a.5 = state:2[at.4]
check (lt 0 t_size0.0) else #1
let b.6 = state:2[0]
if (gt t_size0.0 0)
  let only.13 = xs:1[x_at.3]
  if (and (gte only.13 0) (lt only.13 t_size0.0))
    let i.9 = only.13
    if (eq i.9 xs:1[x_at.3])
      state:2[i.9] = b.6
if (and (gte 0 0) (lt 0 t_size0.0))
  let i.11 = 0
  if (eq i.11 0)
    state:2[i.11] = a.5
",
    );
}

/// Protects: where new elements read others at other places, both tables stay.
#[test]
fn other_elements_are_read_before() {
    let program = read(&fold("(build n (lam (i : Integer) (if (lt i x) (index 0 t) (index i t))))"));
    let def = program.named("f")[0];
    let scheduled = native::scheduled_nest(def, &by_default(&program, "f"), &machine()).unwrap();
    assert!(steps(&scheduled, "step").starts_with("alloc "), "{scheduled}");
    let plain = native::nest(&program, def, &machine()).unwrap();
    assert!(steps(&plain, "x_at").contains("alloc built"), "{plain}");
}

/// What a random step knows: the table that it changes, how an element of that is read at an index and changed there, and what
/// else there is.
struct Table {
    /// Elements that may be read, with `@I` for an index.
    reads: Vec<&'static str>,
    /// Numbers.
    others: Vec<&'static str>,
    /// A change of `@T` at the index `@I` to `@V`.
    set: &'static str,
    /// All elements, each `@E`; that of the table itself is `old`.
    all: &'static str,
    old: &'static str,
}

const LINE: &str = "(build n (lam (i : Integer) @E))";
const GRID: &str = "(build (tuple n m) (lam ((i : Integer) (j : Integer)) @E))";
const ROWS: &str = "(build n (lam (i : Integer) (build m (lam (j : Integer) @E))))";

impl Table {
    fn line(reads: &[&'static str], others: &[&'static str]) -> Table {
        let (reads, others) = (reads.to_vec(), others.to_vec());
        Table { reads, others, set: "(setAt @I @T @V)", all: LINE, old: "(index i @T)" }
    }

    fn index(&self, dice: &mut Dice) -> String {
        dice.one(&["x", "x", "x", "0", "(sub n 1)", "(mod (add x 1) n)", "(sub n (add x 1))"]).to_string()
    }

    fn value(&self, dice: &mut Dice, table: &str, depth: u64) -> String {
        if depth > 0 && dice.below(3) == 0 {
            let (a, b) = (self.value(dice, table, depth - 1), self.value(dice, table, depth - 1));
            return format!("({} {a} {b})", dice.one(&["add", "mul", "sub", "max"]));
        }
        if dice.below(3) == 0 {
            return dice.one(&self.others).to_string();
        }
        let index = self.index(dice);
        dice.one(&self.reads).replace("@T", table).replace("@I", &index)
    }

    fn question(&self, dice: &mut Dice, table: &str) -> String {
        match dice.below(4) {
            0 => format!("(lt x {})", dice.below(4)),
            1 => format!("(eq {} {})", self.index(dice), self.index(dice)),
            _ => format!("(gt {} {})", self.value(dice, table, 0), self.value(dice, table, 0)),
        }
    }

    /// A table made of another one.
    fn change(&self, dice: &mut Dice, table: &str, depth: u64) -> String {
        let deeper = depth > 0;
        let (value, index) = (self.value(dice, table, 1), self.index(dice));
        let old = self.old.replace("@T", table);
        let each = |e: String| self.all.replace("@E", &e);
        match dice.below(if deeper { 11 } else { 5 }) {
            0..=2 => self.set.replace("@T", table).replace("@I", &index).replace("@V", &value),
            3 => each(format!("(if (eq i {index}) {value} {old})")),
            4 => {
                let (other, at) = (self.value(dice, table, 0), self.index(dice));
                each(format!("(if (eq i {index}) {value} (if (eq i {at}) {other} {old}))"))
            }
            5 => format!("(if {} {} {table})", self.question(dice, table), self.change(dice, table, depth - 1)),
            6 => {
                let (a, b) = (self.change(dice, table, depth - 1), self.change(dice, table, depth - 1));
                format!("(if {} {a} {b})", self.question(dice, table))
            }
            7 | 8 => {
                let name = format!("{table}z");
                let (first, then) = (self.change(dice, table, 0), self.change(dice, &name, depth - 1));
                format!("(let ({name} {first}) {then})")
            }
            9 => each(format!("(add {old} {value})")),
            _ => each(format!("(if (lt i {index}) {value} {old})")),
        }
    }
}

/// A random fold over indices.
fn program(dice: &mut Dice, name: &str) -> (String, usize) {
    let plain = ["0.5", "(to_float x)", "-1.25"];
    let grid = ["(index (tuple @I 0) @T)", "(index (tuple @I (sub m 1)) @T)"];
    let rows = ["(index 0 (index @I @T))", "(index (sub m 1) (index @I @T))"];
    let head = |state: &str, rank: &str| format!("(def {name} {state} ((t : {rank}) (xs : (Vec Integer)))\n  ");
    match dice.below(5) {
        0 | 1 => {
            let step = Table::line(&["(index @I @T)"], &plain).change(dice, "t", 2);
            let state = "(Vec Float)";
            let text = format!("(fold (lam ((t : {state}) (x : Integer)) {step}) t xs))");
            (head(state, "(Vec Float) n") + &text, 1)
        }
        2 => {
            let table = |of: &'static str| {
                Table::line(
                    if of == "t" { &["(index @I @T)", "(index @I u)"] } else { &["(index @I @T)", "(index @I t)"] },
                    &["c", "0.5", "(to_float x)"],
                )
            };
            let (a, b) = (table("t").change(dice, "t", 1), table("u").change(dice, "u", 1));
            let c = table("t").value(dice, "t", 1);
            let state = "(Tuple (Vec Float) (Vec Float) Float)";
            let text = format!(
                "(fold (lam ((s : {state}) (x : Integer)) (let ((t u c) s) (tuple {a} {b} {c}))) (tuple t t 0.25) xs))"
            );
            (head(state, "(Vec Float) n") + &text, 1)
        }
        3 => {
            let set = ["(setAt (tuple @I 0) @T @V)", "(setAt (tuple @I (sub m 1)) @T @V)"][dice.below(2) as usize];
            let table =
                Table { reads: grid.to_vec(), others: plain.to_vec(), set, all: GRID, old: "(index (tuple i j) @T)" };
            let step = table.change(dice, "t", 1);
            let text = format!("(fold (lam ((t : (Tensor 2 Float)) (x : Integer)) {step}) t xs))");
            (head("(Tensor 2 Float)", "(Tensor 2 Float) (n m)") + &text, 2)
        }
        _ => {
            let sets = [
                "(setAt @I @T (build m (lam (j : Integer) (add @V (to_float j)))))",
                "(setAt @I @T (setAt 0 (index @I @T) @V))",
                "(setAt @I @T (index (mod (add x 1) n) @T))",
                "(build n (lam (i : Integer) (if (eq i @I) (index 0 @T) (if (eq i 0) (index @I @T) (index i @T)))))",
            ];
            let set = sets[dice.below(4) as usize];
            let table =
                Table { reads: rows.to_vec(), others: plain.to_vec(), set, all: ROWS, old: "(index j (index i @T))" };
            let step = table.change(dice, "t", 1);
            let text = format!("(fold (lam ((t : (Vec (Vec Float))) (x : Integer)) {step}) t xs))");
            (head("(Vec (Vec Float))", "(Vec (Vec Float)) (n m)") + &text, 3)
        }
    }
}

fn numbers(dice: &mut Dice, n: u64) -> Vec<Value> {
    (0..n).map(|_| Value::Scalar(Lit::float(dice.below(64) as f64 / 16.0 - 2.0))).collect()
}

/// Arguments of a few sizes, now and then with an index out of range.
fn arguments(dice: &mut Dice, kind: usize, n: u64) -> Vec<Value> {
    let m = [1, 2, 3, 5][dice.below(4) as usize];
    let table = match kind {
        1 => Value::tensor(vec![n as usize], numbers(dice, n).into()),
        2 => Value::tensor(vec![n as usize, m as usize], numbers(dice, n * m).into()),
        _ => {
            let rows = (0..n).map(|_| Value::tensor(vec![m as usize], numbers(dice, m).into())).collect();
            Value::tensor(vec![n as usize], rows)
        }
    };
    let steps = [0, 1, 4, 9, 17][dice.below(5) as usize];
    let wrong = dice.below(4) == 0;
    let indices = (0..steps).map(|_| {
        let x = if n == 0 || wrong && dice.below(8) == 0 { dice.below(n + 3) as i64 - 1 } else { dice.below(n) as i64 };
        Value::Scalar(Lit::int(x))
    });
    vec![table, Value::tensor(vec![steps as usize], indices.collect())]
}

/// The nests of a definition that are held against the interpreter: before and after all passes.
fn nests(program: &Program, def: &Def) -> (Vec<Nest>, Option<Nest>) {
    let plain = vec![native::reference(program, def).unwrap(), native::nest(program, def, &Machine::host()).unwrap()];
    let scheduled = extract(program, def).ok().map(|graph| {
        let s = schedule::default(graph, &Machine { threads: 2, ..Machine::host() });
        native::scheduled_nest(def, &s, &Machine::host()).unwrap_or_else(|d| panic!("{}", d.render()))
    });
    (plain, scheduled)
}

/// Protects: random folds over tables, of which steps change one element, a row, two, all or none, in arms and one after
/// another, have the interpreter's values and first failures: as nests, with and without a schedule, and compiled, on one
/// thread and two.
#[test]
fn random_folds_have_the_interpreters_bits() {
    let tools = quick("in_place");
    for batch in 0..7 {
        let mut dice = Dice(7_001 + batch);
        let made: Vec<(String, usize)> = (0..32).map(|k| program(&mut dice, &format!("f{k}"))).collect();
        let text: String = made.iter().map(|(text, _)| format!("{text}\n")).collect();
        let program = read(&text);
        let defs: Vec<&Def> = (0..32).map(|k| program.named(&format!("f{k}"))[0]).collect();
        let nests: Vec<(Vec<Nest>, Option<Nest>)> = defs.iter().map(|d| nests(&program, d)).collect();
        let scheduled: Vec<&Nest> = nests.iter().filter_map(|(_, s)| s.as_ref()).collect();
        assert!(scheduled.len() >= 28, "{} of 32 are staged", scheduled.len());
        let compile = || {
            let all = Native::load(eager(Unit::new(&scheduled)), &program.source, &tools);
            all.unwrap_or_else(|d| panic!("{}", d.render())).into_iter()
        };
        let (mut one, mut two) = (compile(), compile());
        let plain = native::compile_all(&program, &defs, &tools).unwrap();
        for (k, (def, plain)) in defs.iter().zip(plain).enumerate() {
            let (plain, mut compiled) = (std::sync::Arc::new(plain.unwrap()), vec![]);
            if nests[k].1.is_some() {
                compiled.extend([one.next().unwrap().with_threads(1), two.next().unwrap().with_threads(2)]);
            }
            for n in [0, 1, 2, 3, 7, 8, 13] {
                let args = arguments(&mut dice, made[k].1, n);
                let want = Interpreter::new(&program).run(def, &args);
                let told = |what: &str, d: String, nest: &dyn std::fmt::Display| {
                    let shown: Vec<String> = args.iter().map(|a| a.to_json().to_string()).collect();
                    panic!("{what}: {d}\n{}\n{}\n{nest}", made[k].0, shown.join(" "))
                };
                for nest in nests[k].0.iter().chain(&nests[k].1) {
                    let have = interpret(nest, &args, &mut String::new());
                    let gave_up = have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run"));
                    if let Some(d) = difference(&want, &have).filter(|_| !gave_up) {
                        told("nest", d, nest);
                    }
                }
                if let Some(d) = difference(&want, &plain.call(&args)) {
                    told("compiled", d, &nests[k].0[1]);
                }
                for (native, nest) in compiled.iter().zip(nests[k].1.iter().cycle()) {
                    let have = native.call(&args);
                    let gave_up = have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run"));
                    if let Some(d) = difference(&want, &have).filter(|_| !gave_up) {
                        told("scheduled", d, nest);
                    }
                }
            }
        }
    }
}

/// What a fold of so many steps over a table of as many elements does, with the default schedule and without one.
fn work(text: &str, n: usize) -> [u64; 2] {
    let program = read(text);
    let def = program.named("f")[0];
    let mut dice = Dice(9);
    let table = Value::tensor(vec![n], numbers(&mut dice, n as u64).into());
    let steps = (0..n).map(|_| Value::Scalar(Lit::int(dice.below(n as u64) as i64)));
    let args = [table, Value::tensor(vec![n], steps.collect())];
    [Some(by_default(&program, "f")), None].map(|s| {
        let counted = native::counted(&program, def, s.as_ref(), (&args, &machine()), &mut String::new()).unwrap();
        assert_eq!(counted.scheduled, s.is_some());
        counted.tally.work()
    })
}

/// Protects: the work of a fold that changes few elements in each step grows with the number of steps, not with its product
/// with the size of the table.
#[test]
fn work_grows_with_the_number_of_steps() {
    let all = [
        "(setAt x t (add 1.0 (index x t)))",
        "(if (gt (index x t) 0.5) (setAt x t 0.0) t)",
        "(if (gt (index x t) 0.5) (setAt x t 0.0) (setAt 0 t (index x t)))",
        "(let ((a (index x t)) (b (index 0 t))) (setAt 0 (setAt x t b) a))",
        "(build n (lam (i : Integer) (if (eq i x) (add 1.0 (index 0 t)) (index i t))))",
    ];
    for step in all {
        let [one, two, four] = [64, 128, 256].map(|n| work(&fold(step), n));
        for k in 0..2 {
            assert!(two[k] <= 2 * one[k] + 64 && four[k] <= 2 * two[k] + 64, "{step}: {one:?} {two:?} {four:?}");
        }
    }
}

/// Each element becomes a product with that of an earlier one, or of none.
const CHAIN: &str = "
(def f Float ((up : (Vec Integer) n) (w : (Vec Float) n))
  (let (t (fold (lam ((t : (Vec Float)) (k : Integer))
      (let ((u (index k up)) (v (if (lt u 0) (index k w) (mul (index k w) (index u t)))))
        (build n (lam (i : Integer) (if (eq i k) v (index i t))))))
    w (build n (lam (k : Integer) k))))
  (sumbuild n (lam (i : Integer) (mul (index i t) (index i t))))))
";

/// Protects: going backwards over such a fold takes work and memory that grow with the number of steps: what steps read of
/// states is kept, not the states, and adjoints of states are changed in place; by the interpreter's bits.
#[test]
fn the_way_back_grows_with_the_number_of_steps() {
    let program = read(CHAIN);
    let def = program.named("f")[0];
    let wanted = Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![false, true], value: false, checkpoint: false };
    let (made, fun) = ad::derive(&program, &wanted).unwrap();
    let made = simplified(&made, &|_| true, Level::Exact).unwrap();
    let def = &made.defs[&fun];
    let graph = extract(&made, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(&made)));
    let schedule = schedule::default(graph, &machine());
    let mut dice = Dice(5);
    let done = [32, 64, 128].map(|n: usize| {
        let up = (0..n).map(|k| Value::Scalar(Lit::int(dice.below(k as u64 + 1) as i64 - 1)));
        let up = Value::tensor(vec![n], up.collect());
        let args = [up, Value::tensor(vec![n], numbers(&mut dice, n as u64).into()), Value::Scalar(Lit::float(0.5))];
        let counted = native::counted(&made, def, Some(&schedule), (&args, &machine()), &mut String::new()).unwrap();
        assert!(counted.scheduled);
        assert_eq!(difference(&Interpreter::new(&made).run(def, &args), &Ok(counted.value)), None);
        (counted.tally.work(), counted.tally.peak_bytes.unwrap())
    });
    for [one, two] in [[done[0], done[1]], [done[1], done[2]]] {
        assert!(two.0 <= 2 * one.0 + 64 && two.1 <= 2 * one.1 + 64, "{done:?}");
    }
}
