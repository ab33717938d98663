//! Graphs as programs again: the interpreter runs what a schedule's rewrites make of a definition, so that scheduled code is
//! held against it to the bit, sums in another order included.

use crate::common::generate::{self, Knobs};
use crate::common::native::difference;
use crate::common::scheduled::{contracted, empty, read, tensor};
use crate::common::sums::SUMS;
use crate::common::{arguments, everything};
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program, Scalar, Ty, TyKind, print};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::schedule::{self, Step};
use daedal::stage::{Order, extract};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What came of a definition as a program again.
enum Came {
    /// It is no graph.
    Unstaged,
    /// The language cannot say it, for a reason.
    Unsaid(String),
    /// It fails where the definition has a value: a check of the graph does not hold.
    Stricter,
    /// It has the same bits, or fails where the definition fails.
    Same,
}

/// Runs a definition and what its graph is as a program; panics where they differ.
fn back(program: &Program, def: &Def, args: &[Value]) -> Came {
    let Ok(graph) = extract(program, def) else { return Came::Unstaged };
    let again = match graph.program(def) {
        Ok(p) => p,
        Err(why) => return Came::Unsaid(why),
    };
    let want = Interpreter::new(program).run(def, args);
    let have = Interpreter::new(&again).run(&again.defs[&def.fun], args);
    let shown = || format!("{}\n{graph}\n{}", print::def(&program.terms, def), print::program(&again));
    match (&want, &have) {
        (Ok(_), Ok(_)) => {
            let d = difference(&want, &have);
            assert!(d.is_none(), "{}\n{}", d.unwrap(), shown());
            Came::Same
        }
        (Ok(_), Err(_)) => Came::Stricter,
        (Err(_), Err(_)) => Came::Same,
        (Err(d), Ok(_)) => panic!("a value where the definition fails: {}\n{}", d.message, shown()),
    }
}

/// Protects: a graph says all that the definition says: as a program again it has the same bits, in the corpus, workloads and
/// derivatives included. What cannot be said is counted by its reason.
#[test]
fn the_corpus_comes_back() {
    let all = everything();
    let found: Vec<(String, Came)> = all
        .par_iter()
        .flat_map_iter(|case| {
            case.runs.iter().filter_map(|run| {
                let def = case.program.named(&run.def).into_iter().find(|d| d.term().is_some())?;
                let args = arguments(def, &run.args).ok()?;
                Some((format!("{} {}", case.name, run.def), back(&case.program, def, &args)))
            })
        })
        .collect();
    let (mut same, mut stricter, mut unsaid) = (0, vec![], BTreeMap::<String, usize>::new());
    for (name, came) in found {
        match came {
            Came::Same => same += 1,
            Came::Stricter => stricter.push(name),
            Came::Unsaid(why) => *unsaid.entry(why).or_default() += 1,
            Came::Unstaged => {}
        }
    }
    println!("{same} the same, {} stricter, unsaid: {unsaid:#?}", stricter.len());
    assert!(same >= 700, "only {same} came back");
    assert!(stricter.len() * 8 < same, "{} fail where the definition has a value: {stricter:?}", stricter.len());
    assert!(unsaid.values().sum::<usize>() < 40, "{unsaid:#?}");
}

/// Protects: the same for random programs, those that fail included.
#[test]
fn random_programs_come_back() {
    let came: Vec<[usize; 4]> = (0..1500u64)
        .into_par_iter()
        .map(|seed| {
            let knobs = Knobs { budget: 30, failing: seed % 3 == 0, corners: true, ..Knobs::PLAIN };
            let made = generate::program(seed, &knobs);
            let program = read(&made.text);
            let def = program.named("main")[0];
            let Ok(args) = arguments(def, &made.args) else { return [0; 4] };
            match back(&program, def, &args) {
                Came::Unstaged => [1, 0, 0, 0],
                Came::Unsaid(_) => [0, 1, 0, 0],
                Came::Stricter => [0, 0, 1, 0],
                Came::Same => [0, 0, 0, 1],
            }
        })
        .collect();
    let total = came.iter().fold([0; 4], |t, c| std::array::from_fn(|k| t[k] + c[k]));
    println!("not staged, not said, stricter, the same: {total:?}");
    assert!(total[3] > 1000 && total[1] < 100, "{total:?}");
}

/// Beside the sums products of matrices, one of which is 0 on one side of its diagonal.
const PRODUCT: &str = "
(def banded (Tensor 2 Float) ((a : (Tensor 2 Float) (n m)) (b : (Tensor 2 Float) (m p)))
  (build (tuple n p) (lam ((i : Integer) (j : Integer))
    (sumbuild m (lam (k : Integer)
      (if (lte k i) (mul (index (tuple i k) a) (index (tuple k j) b)) 0.0))))))
(def product (Tensor 2 Float) ((a : (Tensor 2 Float) (n m)) (b : (Tensor 2 Float) (m p)))
  (matmul a b))";

/// Whether a definition takes tensors of floats alone.
fn rounds(def: &Def) -> bool {
    let floats = |ty: &Ty| matches!(ty.kind(), TyKind::Tensor(_, of) if of.as_scalar().is_some_and(Scalar::is_float));
    def.params.iter().all(|p| floats(&p.ty))
}

/// Protects: contracted products and sums in another order are a program: its interpreter has the bits of the nest that the
/// schedule is lowered to, where floats round, at sizes that no lane and no block divides; and its text is read back.
#[test]
fn the_interpreter_runs_what_was_reassociated() {
    let program = read(&format!("{SUMS}{PRODUCT}"));
    let orders = [vec![], vec![Order::Strided(4)], vec![Order::Strided(16)], vec![Order::Blocks(3)]]
        .into_iter()
        .chain([vec![Order::Blocks(20), Order::Strided(8)]]);
    let (mut taken, mut rounded) = (0, 0);
    for orders in orders {
        for def in program.defs.values().filter(|d| rounds(d)) {
            let mut graph = empty(&program, def.name()).graph.as_ref().clone();
            graph.real = true;
            let mut made = contracted(graph);
            for stage in made.graph.stages.iter().map(|s| s.name.clone()).collect::<Vec<_>>() {
                for order in &orders {
                    let step = Step::Reassociate { stage: stage.clone(), order: *order };
                    taken += usize::from(step.apply(&mut made).is_ok());
                }
            }
            let again = made.graph.program(def).unwrap_or_else(|why| panic!("{}: {why}\n{}", def.name(), made.graph));
            let text = print::program(&again);
            let reread =
                daedal::types::program(&Source::new("again", &text)).unwrap_or_else(|d| panic!("{}", d.render()));
            let scheduled = schedule::default(made.graph.as_ref().clone(), &Machine::host());
            for (n, m) in [(1, 1), (5, 7), (37, 3), (64, 40), (131, 9)] {
                let mut seed = 0;
                let args: Vec<Value> = def
                    .params
                    .iter()
                    .map(|p| {
                        seed += 1;
                        let sizes: Vec<usize> = p.sizes.iter().map(|s| if s == "n" { n } else { m }).collect();
                        let TyKind::Tensor(_, of) = p.ty.kind() else { panic!("{}", p.ty) };
                        tensor(of.as_scalar().unwrap_or(Scalar::F64), &sizes, seed)
                    })
                    .collect();
                let want = Interpreter::new(&again).run(&again.defs[&def.fun], &args);
                let read_back = Interpreter::new(&reread).run(reread.named(def.name())[0], &args);
                assert!(difference(&want, &read_back).is_none(), "{text}");
                for s in [&made, &scheduled] {
                    // The default schedule may take sums in an order of its own; then it is another program.
                    if s.steps.iter().any(|s| matches!(s, Step::Reassociate { .. })) && !std::ptr::eq(s, &made) {
                        continue;
                    }
                    let nest = native::scheduled_nest(def, s, &Machine::host()).unwrap_or_else(|d| panic!("{d}"));
                    let have = interpret(&nest, &args, &mut String::new());
                    let d = difference(&want, &have);
                    assert!(d.is_none(), "{}: {}\n{}\n{text}", def.name(), d.unwrap(), s.graph);
                }
                let plain = Interpreter::new(&program).run(def, &args);
                rounded += usize::from(difference(&want, &plain).is_some());
            }
        }
    }
    assert!(taken > 20 && rounded > 30, "{taken} taken, {rounded} rounded otherwise");
}
