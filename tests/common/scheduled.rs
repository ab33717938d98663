//! Programs under schedules are held against the interpreter: as nests, and compiled.

use super::native::{self as compiled, difference};
use daedal::codegen::Unit;
use daedal::diag::Source;
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::{Native, Toolchain};
use daedal::schedule::{Schedule, Step, text};
use daedal::stage::{Graph, extract};

/// The compiler as users have it.
pub fn tools() -> Toolchain {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("schedule");
    Toolchain::discover(std::env::var("CXX").ok(), Some(cache))
}

/// A program of a text that is right.
pub fn read(text: &str) -> Program {
    daedal::types::program(&Source::new("test", text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// A definition under a schedule without a step.
pub fn empty(program: &Program, def: &str) -> Schedule {
    let def = program.named(def)[0];
    let graph = extract(program, def).unwrap_or_else(|u| panic!("{}", u.diagnostic(program)));
    Schedule::new(graph)
}

/// A graph of which only values over the reals have to stay, with all products contracted that may be.
pub fn contracted(graph: Graph) -> Schedule {
    let mut s = Schedule::new(graph);
    for stage in s.graph.stages.iter().map(|s| s.name.clone()).collect::<Vec<_>>() {
        let _ = Step::Contract { stage }.apply(&mut s);
    }
    s
}

/// A definition after the steps of a text, none of which is refused.
pub fn scheduled(program: &Program, def: &str, steps: &str) -> Schedule {
    let start = empty(program, def);
    let shown = start.graph.to_string();
    text::apply(start, &Source::new("test.sched", steps)).unwrap_or_else(|d| panic!("{}\n{shown}", d.render()))
}

/// A tensor of numbers that are not round, the same for the same sizes.
pub fn tensor(ty: Scalar, dims: &[usize], seed: u64) -> Value {
    let n: usize = dims.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let data = (0..n).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Value::Scalar(Lit::of(ty, (state >> 33) as f64 / f64::from(1 << 30) - 1.0))
    });
    Value::tensor(dims.to_vec(), data.collect())
}

/// The interpreter, the nest after each pass, and compiled code on one thread and two agree on all arguments.
pub fn check(program: &Program, def: &str, schedule: &Schedule, cases: &[Vec<Value>]) {
    compare(program, def, schedule, cases, false);
}

/// The same; where `eager`, a nest may give up although the program has a value, since what the start asks is more.
pub fn compare(program: &Program, def: &str, schedule: &Schedule, cases: &[Vec<Value>], eager: bool) {
    let def = program.named(def)[0];
    let machine = Machine::host();
    let nest = native::scheduled_nest(def, schedule, &machine).unwrap_or_else(|d| panic!("{}", d.render()));
    let lowered = daedal::schedule::lower(schedule, def).unwrap();
    // Without the bound of work, which these are too small for.
    let compile = || {
        let unit = compiled::eager(Unit::new(&[&nest]));
        let native = Native::load(unit, &program.source, &tools()).unwrap_or_else(|d| panic!("{}", d.render())).pop();
        let (program, def) = (program.clone(), def.clone());
        native.unwrap().with_reference(move || native::compile(&program, &def, &tools()))
    };
    let (one, two) = (compile().with_threads(1), compile().with_threads(2));
    for args in cases {
        let want = Interpreter::new(program).run(def, args);
        for nest in [&lowered, &nest] {
            let have = interpret(nest, args, &mut String::new());
            // A nest that gives up says so; what it gives is right.
            let gave_up = have.as_ref().is_err_and(|d| d.message.contains("the reference nest was to run"));
            assert!(!gave_up || eager || want.is_err(), "the nest gives up\n{nest}");
            if let Some(d) = difference(&want, &have).filter(|_| !gave_up) {
                panic!("{d}\n{nest}");
            }
        }
        for native in [&one, &two] {
            if let Some(d) = difference(&want, &native.call(args)) {
                panic!("{d}\n{nest}");
            }
        }
    }
}

/// The stages of a definition `f` for arguments, after its default schedules were held against the interpreter.
pub fn stages(text: &str, args: &[Value]) -> String {
    let program = read(text);
    let sizes = daedal::tune::example::incoming(program.named("f")[0], args);
    let graph = empty(&program, "f").graph.only_for(&sizes);
    for vector_bytes in [16, 32, 64] {
        let s = daedal::schedule::default(graph.clone(), &Machine { vector_bytes, ..Machine::host() });
        // Of nothing, sizes of what is never made are asked of the reference.
        compare(&program, "f", &s, &[args.to_vec()], sizes.contains(&0.0));
    }
    graph.to_string()
}
