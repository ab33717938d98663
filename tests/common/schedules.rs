//! Random schedules of random programs, and what is wrong with their nests and with compiled code of them.

use super::dice::Dice;
use super::generate::{self, Generated, Knobs};
use super::native::{difference, eager};
use daedal::codegen::Unit;
use daedal::diag::{Diagnostic, Source};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Program};
use daedal::machine::Machine;
use daedal::nest::{Nest, interpret};
use daedal::pipeline::native;
use daedal::run::{Native, Toolchain};
use daedal::schedule::plan::{Kind, Site};
use daedal::schedule::{Schedule, Step};
use daedal::stage::{Graph, Order};
use daedal::tune::example::incoming;
use rayon::prelude::*;
use std::sync::Mutex;

/// A step that may or may not be legal.
fn step(s: &Schedule, dice: &mut Dice) -> Option<Step> {
    let at = dice.roll(s.plans.len());
    let stage = s.graph.stages.get(at)?.name.clone();
    let plan = &s.plans[at];
    let names: Vec<String> = plan.loops.iter().map(|l| l.name.clone()).collect();
    Some(match dice.roll(17) {
        0 | 1 => Step::Split { stage, of: dice.pick(&names)?.clone(), factor: *dice.pick(&[1, 2, 3, 4, 8, 0])? },
        2 => {
            let mut order = names.clone();
            for k in (1..order.len()).rev() {
                order.swap(k, dice.roll(k + 1));
            }
            Step::Reorder { stage, order }
        }
        3 => Step::Run { stage, of: names.last()?.clone(), kind: Kind::Vector },
        4 => Step::Run { stage, of: dice.pick(&names)?.clone(), kind: Kind::Unrolled },
        5 => Step::Run { stage, of: dice.pick(&names)?.clone(), kind: Kind::Parallel },
        6 => Step::Inline { stage },
        7 => Step::ComputeRoot { stage },
        8 => {
            let reader = *dice.pick(s.consumers(s.graph.find(&stage)?))?;
            let at = dice.pick(&s.plan(reader).loops)?.name.clone();
            Step::ComputeAt { stage, reader: s.graph.stage(reader).name.clone(), at }
        }
        9 | 16 => {
            let at = dice.roll(names.len().saturating_sub(1));
            let [outer, inner] = names.get(at..at + 2)? else { return None };
            Step::Fuse { stage, outer: outer.clone(), inner: inner.clone() }
        }
        10 => Step::IfConvert { stage },
        11 => {
            // The first that a stage has elements of, or reduces over.
            let first = |s: &Graph, k: usize| {
                let all = s.stages[k].dims.first().into_iter().chain(s.stages[k].over().first());
                all.map(|d| s.dim(*d).extent).collect::<Vec<_>>()
            };
            let own = first(&s.graph, at);
            let alike = |k: &usize| *k != at && first(&s.graph, *k).iter().any(|n| own.contains(n));
            let host = *dice.pick(&(0..s.plans.len()).filter(alike).collect::<Vec<_>>())?;
            let loops = &s.plans[host].loops;
            let of = dice.pick(&loops[..loops.len().min(2)])?.name.clone();
            Step::FuseStages { stage, host: s.graph.stages[host].name.clone(), at: of }
        }
        12 => {
            let kept = (0..s.plans.len()).filter(|k| matches!(s.plans[*k].site, Site::At(..)));
            let k = *dice.pick(&kept.collect::<Vec<_>>())?;
            let Site::At(host, _) = s.plans[k].site else { return None };
            let at = dice.pick(&s.plan(host).loops)?.name.clone();
            let reader = s.graph.stage(host).name.clone();
            Step::StoreAt { stage: s.graph.stages[k].name.clone(), reader, at }
        }
        14 => {
            let id = s.graph.find(&stage)?;
            let dims = &s.plan(id).dims[..s.graph.stage(id).dims.len()];
            let mut order: Vec<String> = dims.iter().map(|(n, _)| n.clone()).collect();
            let k = dice.roll(order.len().max(1));
            order.rotate_left(k);
            let last = order.len().saturating_sub(1);
            let other = dice.roll(order.len().max(1));
            if !order.is_empty() {
                order.swap(other, last);
            }
            Step::Layout { stage, order }
        }
        13 => {
            let states = (0..s.plans.len()).filter(|k| s.plans[*k].steps.is_some());
            let k = *dice.pick(&states.collect::<Vec<_>>())?;
            let of = dice.pick(&s.plans[k].loops)?.name.clone();
            Step::Strip { stage: s.graph.stages[k].name.clone(), of, factor: *dice.pick(&[1, 2, 3, 8, 0])? }
        }
        _ => {
            let id = s.graph.find(&stage)?;
            let reads = s.graph.reads(s.graph.stage(id).bodies());
            let source = s.graph.source_name(*dice.pick(&reads)?).to_string();
            let name = format!("copy{}", s.plans.len());
            let mut axes: Vec<usize> = (0..dice.roll(4)).collect();
            let k = dice.roll(axes.len());
            axes.rotate_left(k);
            Step::CacheRead { stage, source, at: dice.pick(&names)?.clone(), name, axes }
        }
    })
}

/// A schedule of random steps, and how many were taken and refused.
pub fn random(graph: &Graph, seed: u64) -> (Schedule, Vec<Step>, usize) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    let mut s = Schedule::new(graph.clone());
    let (mut taken, mut refused) = (vec![], 0);
    // What is exact in any order is reassociated first.
    let orders = (0..dice.roll(4)).filter_map(|_| {
        let stage = dice.pick(&graph.stages)?.name.clone();
        let order = [Order::Strided(1 << dice.roll(5)), Order::Blocks(dice.roll(9) as i64)][dice.roll(2)];
        Some(Step::Reassociate { stage, order })
    });
    let mut orders: Vec<Step> = orders.collect();
    for _ in 0..orders.len() + dice.roll(24) {
        let Some(step) = orders.pop().or_else(|| step(&s, &mut dice)) else { continue };
        let before = s.clone();
        match step.apply(&mut s) {
            Ok(()) => taken.push(step),
            Err(why) => {
                assert!(!why.0.is_empty(), "{step}: refused without a reason");
                assert_eq!((before.plans, before.graph.to_string()), (s.plans.clone(), s.graph.to_string()), "{step}");
                refused += 1;
            }
        }
    }
    (s, taken, refused)
}

/// A schedule after so many steps more that may or may not be legal.
pub fn random_after(mut s: Schedule, seed: u64, count: usize) -> Schedule {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    for _ in 0..count {
        if let Some(step) = step(&s, &mut dice) {
            let _ = step.apply(&mut s);
        }
    }
    s
}

/// The schedule with two more loops of each stage on threads, where they may be: by itself none chooses them in loops that are
/// as short as those of random programs.
pub fn threaded(mut s: Schedule) -> Schedule {
    for stage in s.graph.ids() {
        let names: Vec<String> = s.plan(stage).loops.iter().map(|l| l.name.clone()).collect();
        let serial =
            |s: &Schedule, of: &str| s.plan(stage).loops.iter().any(|l| l.name == of && l.kind == Kind::Serial);
        for of in names.into_iter().take(2).filter(|of| serial(&s, of)).collect::<Vec<_>>() {
            let stage = s.graph.stage(stage).name.clone();
            let _ = Step::Run { stage, of, kind: Kind::Parallel }.apply(&mut s);
        }
    }
    s
}

/// Runs a nest, and says how it differs from the interpreter; nothing where it leaves the case to the reference.
pub fn disagreement(program: &Program, def: &Def, args: &[Value], nest: &Nest) -> (bool, Option<String>) {
    let want = Interpreter::new(program).run(def, args);
    let have = interpret(nest, args, &mut String::new());
    if have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run")) {
        return (true, None);
    }
    (false, difference(&want, &have))
}

/// A call of a scheduled nest, and the reference that runs where a check fails.
pub struct Scheduled<'a> {
    /// What it is called where it is wrong.
    pub name: String,
    program: &'a Program,
    def: &'a Def,
    args: Vec<Value>,
    /// The nest.
    pub nest: Nest,
    reference: Option<Nest>,
}

impl<'a> Scheduled<'a> {
    /// Its nest, and the reference.
    pub fn new(
        name: String,
        program: &'a Program,
        def: &'a Def,
        args: Vec<Value>,
        schedule: &Schedule,
    ) -> Scheduled<'a> {
        let nest = native::scheduled_nest(def, schedule, &Machine::host()).unwrap();
        let reference = Some(native::reference(program, def).unwrap());
        Scheduled { name, program, def, args, nest, reference }
    }

    /// The same of a nest; without a reference where no check fails, so that to run it is wrong.
    pub fn of(
        name: String,
        (program, def, args): (&'a Program, &'a Def, Vec<Value>),
        nest: Nest,
        reference: Option<Nest>,
    ) -> Scheduled<'a> {
        Scheduled { name, program, def, args, nest, reference }
    }

    /// What compiled code gives otherwise than the interpreter, on one thread and on two.
    fn wrong(&self, native: Native) -> Vec<String> {
        let mut wrong = vec![];
        let want = Interpreter::new(self.program).run(self.def, &self.args);
        let mut native = native;
        for threads in [1, 2] {
            native = native.with_threads(threads);
            // Places of failures are of the source of the first program of the unit.
            let have = native.call(&self.args);
            let (name, nest) = (&self.name, &self.nest);
            let (Err(a), Err(b)) = (&want, &have) else {
                wrong.extend(difference(&want, &have).map(|d| format!("{name}: {d}\n{nest}")));
                continue;
            };
            if a.message != b.message {
                wrong.push(format!("{name}: {} is not {}\n{nest}", b.message, a.message));
            }
        }
        wrong
    }
}

/// The default schedule as `daedal run` chooses it: for these arguments alone.
pub fn chosen(graph: &Graph, def: &Def, args: &[Value]) -> Schedule {
    daedal::schedule::default(graph.only_for(&incoming(def, args)), &Machine::host())
}

/// Compiles calls, fifty to a unit, and says what is wrong.
pub fn compiled(made: &[Scheduled<'_>], tools: &Toolchain) -> Vec<String> {
    compiled_telling(made, tools, &|_| {})
}

/// The same; tells of each call before it runs.
pub fn compiled_telling(made: &[Scheduled<'_>], tools: &Toolchain, running: &(dyn Fn(&str) + Sync)) -> Vec<String> {
    let units: Vec<&[Scheduled<'_>]> = made.chunks(50).collect();
    let each = units.par_iter().flat_map_iter(|some| {
        let nests: Vec<&Nest> = some.iter().flat_map(|s| std::iter::once(&s.nest).chain(&s.reference)).collect();
        let compiled = Native::load(eager(Unit::new(&nests)), &some[0].program.source, tools);
        let mut each = compiled.unwrap_or_else(|d| panic!("{}", d.render())).into_iter();
        let mut wrong = vec![];
        for s in *some {
            let native = each.next().unwrap();
            let reference = Mutex::new(s.reference.as_ref().and_then(|_| each.next()));
            let once =
                move || reference.lock().unwrap().take().ok_or_else(|| Diagnostic::bug("made twice, or not at all"));
            running(&s.name);
            wrong.extend(s.wrong(native.with_reference(once)));
        }
        wrong
    });
    each.collect()
}

/// A random program, and its text and arguments.
pub fn generated(seed: u64) -> (Program, Generated) {
    let (dyadic, failing) = (false, seed.is_multiple_of(2));
    let knobs = Knobs { budget: 12, dyadic, failing, states: true, ..Knobs::PLAIN };
    let made = generate::program(seed, &knobs);
    (daedal::types::program(&Source::new("main", &made.text)).unwrap(), made)
}
