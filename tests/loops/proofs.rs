//! What the verifier proves of nests without running them: faults that are planted in nests of the corpus are found, and
//! none where there is none, whatever the schedule.

use crate::common;
use crate::common::everything;
use crate::common::generate::Knobs;
use crate::common::planted::change;
use crate::common::schedules::random;
use daedal::diag::{Kind, Source};
use daedal::ir::{Op, Program};
use daedal::machine::Machine;
use daedal::nest::{Buf, Expr, Func, LoopKind, Nest, Stmt, Var, faults, proofs, verify};
use daedal::pipeline::native;
use daedal::schedule::{self, Schedule};
use daedal::stage::extract;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A machine with vectors of 32 bytes, whatever runs the test.
const MACHINE: Machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 512 << 10, 8 << 20] };

fn program(path: &str) -> Program {
    let text = std::fs::read_to_string(common::root(path)).unwrap();
    daedal::types::program(&Source::new(path, text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

/// The nest of a definition as it is lowered, or by the default schedule.
fn nest(path: &str, def: &str, scheduled: bool) -> Nest {
    let program = program(path);
    let def = program.named(def)[0];
    if !scheduled {
        return native::reference(&program, def).unwrap();
    }
    let made = schedule::default(extract(&program, def).unwrap(), &MACHINE);
    native::scheduled_nest(def, &made, &MACHINE).unwrap()
}

fn plus(e: &Expr, by: i64) -> Expr {
    let add = |e: &Expr| Expr::index_op(Op::Add, e.clone(), Expr::int(by));
    match e {
        Expr::Ramp(p, n) => Expr::Ramp(Box::new([add(&p[0]), p[1].clone()]), *n),
        e => add(e),
    }
}

/// The first store, to another place.
fn moved(f: &mut Func, to: impl Fn(&Expr) -> Expr) -> bool {
    change(&mut f.body, &mut |s| match s {
        Stmt::Store(b, at, e) => Some(vec![Stmt::Store(*b, to(at), e.clone())]),
        _ => None,
    })
}

/// The first read of a parameter, at another place.
fn read_at(f: &mut Func, by: i64) -> bool {
    let mut done = false;
    f.body.iter_mut().for_each(|s| {
        s.map_exprs(&mut |e| {
            if let Expr::Load(Buf(0), at) = e
                && !done
            {
                **at = plus(at, by);
                done = true;
            }
        });
    });
    done
}

/// The first loop that a predicate picks, changed.
fn in_loop(
    f: &mut Func,
    pick: impl Fn(&daedal::nest::Loop) -> bool,
    make: impl Fn(&mut daedal::nest::Loop) -> Vec<Stmt>,
) -> bool {
    change(&mut f.body, &mut |s| match s {
        Stmt::For(l) if pick(l) => {
            let mut l = l.clone();
            let mut out = make(&mut l);
            out.push(Stmt::For(l));
            Some(out)
        }
        _ => None,
    })
}

/// All that a block stores goes where it goes in one iteration.
fn of_iteration(stmts: &mut [Stmt], v: Var, to: i64) {
    for s in stmts {
        if matches!(s, Stmt::Store(..) | Stmt::Let(..)) {
            s.exprs_mut().into_iter().for_each(|e| {
                e.map(&mut |e| {
                    if *e == Expr::Var(v) {
                        *e = Expr::int(to);
                    }
                });
            });
        }
        s.blocks_mut().into_iter().for_each(|b| of_iteration(b, v, to));
    }
}

fn is_parallel(l: &daedal::nest::Loop) -> bool {
    matches!(l.kind, LoopKind::Parallel { .. })
}

/// A fault: what it is, where it is planted, how, and what the verifier says.
type Fault = (&'static str, (&'static str, &'static str, bool), fn(&mut Func) -> bool, &'static str);

const BLUR: (&str, &str, bool) = ("programs/imaging/blur.ks", "blur", true);
const ADD: (&str, &str, bool) = ("programs/blas.ks", "vadd", false);
const DOT: (&str, &str, bool) = ("programs/blas.ks", "dot", false);
const GEMM: (&str, &str, bool) = ("programs/agent/blas.ks", "gemm", false);

const FAULTS: [Fault; 14] = [
    ("a store one behind", ADD, |f| moved(f, |at| plus(at, 1)), "out of bounds"),
    ("a store one before", ADD, |f| moved(f, |at| plus(at, -1)), "out of bounds"),
    ("a read one behind", DOT, |f| read_at(f, 1), "out of bounds"),
    (
        "a loop of one more",
        GEMM,
        |f| {
            in_loop(
                f,
                |l| l.extent().is_some(),
                |l| {
                    l.to = plus(&l.to, 1);
                    vec![]
                },
            )
        },
        "out of bounds",
    ),
    (
        "a buffer of one less",
        ADD,
        |f| {
            change(&mut f.body, &mut |s| match s {
                Stmt::Alloc(b, dims) => Some(vec![Stmt::Alloc(*b, vec![plus(&dims[0], -1)])]),
                _ => None,
            })
        },
        "out of bounds",
    ),
    ("a vector of stores that starts late", BLUR, |f| moved(f, |at| plus(at, 256)), "out of bounds"),
    (
        "stores of all iterations to one place",
        GEMM,
        |f| {
            in_loop(
                f,
                |l| l.independent,
                |l| {
                    of_iteration(&mut l.body, l.var, 0);
                    vec![]
                },
            )
        },
        "not independent",
    ),
    (
        "threads that write one row",
        BLUR,
        |f| {
            in_loop(f, is_parallel, |l| {
                of_iteration(&mut l.body, l.var, 0);
                vec![]
            })
        },
        "not independent",
    ),
    (
        "a buffer of a thread that all share",
        BLUR,
        |f| {
            in_loop(f, is_parallel, |l| {
                let mut taken = vec![];
                change(&mut l.body, &mut |s| match s {
                    Stmt::Alloc(..) => {
                        taken.push(s.clone());
                        Some(vec![])
                    }
                    _ => None,
                });
                taken
            })
        },
        "not independent",
    ),
    (
        "a sum on threads",
        DOT,
        |f| {
            in_loop(
                f,
                |l| matches!(l.body.last(), Some(Stmt::Set(..))),
                |l| {
                    (l.kind, l.independent) = (LoopKind::Parallel { overlap: false }, true);
                    vec![]
                },
            )
        },
        "independent",
    ),
    (
        "a sum of another type",
        DOT,
        |f| {
            change(&mut f.body, &mut |s| match s {
                Stmt::Mut(v, _) => Some(vec![Stmt::Mut(*v, Expr::int(0))]),
                _ => None,
            })
        },
        "is meant",
    ),
    (
        "a condition that is a number",
        GEMM,
        |f| {
            change(&mut f.body, &mut |s| match s {
                Stmt::Check(_, site, values) => Some(vec![Stmt::Check(Expr::int(1), *site, values.clone())]),
                _ => None,
            })
        },
        "is meant",
    ),
    (
        "a value before it is there",
        GEMM,
        |f| {
            let at = f.body.iter().position(|s| matches!(s, Stmt::Let(..))).unwrap();
            let first = f.body.remove(at);
            f.body.push(first);
            true
        },
        "not declared",
    ),
    (
        "elements that nobody writes",
        GEMM,
        |f| {
            let at = f.body.iter().position(|s| matches!(s, Stmt::For(_))).unwrap();
            f.body.remove(at);
            true
        },
        "before it is written",
    ),
];

/// Protects: faults are found by the verifier alone, whatever kind they are of.
#[test]
fn planted_faults_are_found() {
    let mut missed = vec![];
    for (what, (path, def, scheduled), plant, message) in FAULTS {
        let mut nest = nest(path, def, scheduled);
        verify(&nest).and_then(|()| faults(&nest)).unwrap();
        assert!(plant(&mut nest.entry), "{what}: nothing was planted in\n{nest}");
        match verify(&nest).and_then(|()| faults(&nest)) {
            Err(d) if d.kind == Kind::Bug && d.message.contains(message) => {}
            other => missed.push(format!("{what}: {other:?}\n{nest}")),
        }
    }
    assert!(missed.is_empty(), "{} missed:\n{}", missed.len(), missed.join("\n"));
}

/// Nests of the corpus: as lowered, after all passes, and under the empty, the default and a random schedule.
fn nests(seed: u64, each: &(dyn Fn(&str, &str, &Nest) + Sync)) {
    everything().par_iter().for_each(|case| {
        for def in case.program.defs.values().filter(|d| d.term().is_some()) {
            let name = format!("{} {}", case.name, def.name());
            let Ok(mut nest) = daedal::lower::lower(&case.program, def) else { continue };
            each("lowered", &name, &nest);
            native::PASSES.iter().for_each(|pass| nest.each_func(|f| (pass.run)(f, &MACHINE)));
            each("final", &name, &nest);
            let Ok(graph) = extract(&case.program, def) else { continue };
            let made = schedule::default(graph.clone(), &MACHINE);
            let any = random(&graph, seed).0;
            for (level, s) in [("empty", Schedule::new(graph)), ("default", made), ("random", any)] {
                let mut nest = schedule::lower(&s, def).unwrap();
                each(&format!("{level}, lowered"), &name, &nest);
                native::SCHEDULED.iter().for_each(|pass| nest.each_func(|f| (pass.run)(f, &MACHINE)));
                each(level, &name, &nest);
            }
        }
    });
}

/// Accesses, those that are not proved, loops, and those that are not proved.
type Counts = [usize; 4];

/// Protects: nothing is said to be wrong where nothing is, and most accesses and loops are proved right.
#[test]
fn the_corpus_is_proved() {
    let (sums, wrong) = (Mutex::new(BTreeMap::<String, Counts>::new()), Mutex::new(vec![]));
    nests(7, &|level, name, nest| {
        if let Err(d) = verify(nest).and_then(|()| faults(nest)) {
            wrong.lock().unwrap().push(format!("{level} {name}: {}\n{nest}", d.message));
        }
        // The largest are left to the other checks.
        if nest.to_string().lines().count() > 80 {
            return;
        }
        let found = proofs(nest);
        let loops = found.open.iter().filter(|t| t.starts_with("iterations")).count();
        let now = [found.looked[0], found.open.len() - loops, found.looked[1], loops];
        let mut sums = sums.lock().unwrap();
        sums.entry(level.to_string()).or_default().iter_mut().zip(now).for_each(|(sum, n)| *sum += n);
    });
    let (sums, wrong) = (sums.into_inner().unwrap(), wrong.into_inner().unwrap());
    println!("{sums:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let all = sums.values().fold([0; 4], |sum: Counts, n| [0, 1, 2, 3].map(|k| sum[k] + n[k]));
    let [accesses, open, loops, racing] = all;
    assert!(accesses >= 20_000 && 10 * open <= accesses, "{open} of {accesses} accesses are not proved");
    assert!(loops >= 8_000 && 10 * racing <= loops, "{racing} of {loops} loops are not proved");
}

/// Protects: nothing is said to be wrong of random programs either, which have sizes of nothing, and conditions that never
/// hold around what has no elements.
#[test]
fn random_programs_have_no_faults() {
    let wrong: Vec<String> = (0..400u64)
        .into_par_iter()
        .filter_map(|k| {
            let made = common::generate::program(k * 17 + 13, &Knobs { sums: true, ..Knobs::PLAIN });
            let program = common::read("random.ks", &made.text).unwrap();
            let def = program.named("main")[0];
            let mut nests = vec![native::reference(&program, def).ok()?];
            if let Ok(graph) = extract(&program, def) {
                let made = schedule::default(graph, &MACHINE);
                nests.push(native::scheduled_nest(def, &made, &MACHINE).unwrap());
            }
            let said =
                nests.iter().find_map(|n| verify(n).and_then(|()| faults(n)).err().map(|d| (d.message.clone(), n)));
            said.map(|(what, nest)| format!("{what}\n{}\n{nest}", made.text))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
