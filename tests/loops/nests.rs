//! The verifier and the interpreter of nests find what is wrong with a nest, each planted here by hand.

use crate::common::planted::change;
use daedal::diag::{Kind, Source};
use daedal::eval::Value;
use daedal::ir::{Lit, Op, Scalar};
use daedal::nest::{Expr, Func, Info, Loop, LoopKind, Nest, Slot, Stmt, Var, interpret, verify, walk};
use daedal::pipeline::native;

/// A function with a vector, a loop with a local buffer, a condition, and a mutable variable.
const PROGRAM: &str = "
(def f (Vec Float) ((x : (Vec Float) n) (m : Integer))
  (build n (lam (i : Integer)
    (let (row (build m (lam (j : Integer) (mul (index i x) (to_float j)))))
      (add (sumbuild m (lam (j : Integer) (index j row))) (sumbuild m (lam (j : Integer) (index (sub m (add j 1)) row))))))))";

fn sound() -> Nest {
    let program =
        daedal::types::program(&Source::new("nests.ks", PROGRAM)).unwrap_or_else(|d| panic!("{}", d.render()));
    native::reference(&program, program.named("f")[0]).unwrap()
}

fn run(nest: &Nest) -> daedal::diag::Result<Value> {
    let x = Value::tensor(vec![3], vec![1.5, -2.0, 4.0].into());
    interpret(nest, &[x, Value::Scalar(Lit::int(2))], &mut String::new())
}

/// The message of the verifier, or of the interpreter where the verifier sees nothing.
fn found(plant: impl FnOnce(&mut Func) -> bool) -> String {
    let mut nest = sound();
    assert!(plant(&mut nest.entry), "nothing was planted in\n{nest}");
    let d = verify(&nest).and_then(|()| run(&nest).map(drop)).err().unwrap_or_else(|| panic!("not found in\n{nest}"));
    assert_eq!(d.kind, Kind::Bug, "{}", d.message);
    d.message.clone()
}

fn check(plant: impl FnOnce(&mut Func) -> bool, message: &str) {
    let have = found(plant);
    assert!(have.contains(message), "{have}\nwhere this is meant: {message}");
}

fn plant(f: &mut Func, mut pick: impl FnMut(&Stmt) -> Option<Vec<Stmt>>) -> bool {
    change(&mut f.body, &mut pick)
}

fn plus_one(e: &Expr) -> Expr {
    Expr::Op(Op::Add, Scalar::I64, vec![e.clone(), Expr::int(1)])
}

/// Protects: the nest that the faults are planted in has none.
#[test]
fn the_sound_nest_is_sound() {
    let nest = sound();
    verify(&nest).unwrap();
    let want: Vec<f64> = [1.5, -2.0, 4.0].iter().map(|x| x * 2.0).collect();
    assert_eq!(run(&nest).unwrap().to_json().to_string(), serde_json::to_string(&want).unwrap());
}

/// Protects: accesses out of bounds, too high and too low, of reads and of writes.
#[test]
fn accesses_out_of_bounds_are_found() {
    let high = |s: &Stmt| match s {
        Stmt::Store(b, at, e) => Some(vec![Stmt::Store(*b, plus_one(at), e.clone())]),
        _ => None,
    };
    check(|f| plant(f, high), "accesses number 2 of");
    let low = |s: &Stmt| match s {
        Stmt::Store(b, _, e) => Some(vec![Stmt::Store(*b, Expr::int(-1), e.clone())]),
        _ => None,
    };
    check(|f| plant(f, low), "accesses number -1 of");
    let longer = |s: &Stmt| match s {
        Stmt::For(l) if matches!(l.body.last(), Some(Stmt::Set(..))) => {
            Some(vec![Stmt::For(Box::new(Loop { to: plus_one(&l.to), ..(**l).clone() }))])
        }
        _ => None,
    };
    check(|f| plant(f, longer), "accesses number 2 of");
}

/// Protects: memory that was not written, or was given back.
#[test]
fn memory_is_read_only_while_it_holds_something() {
    let shorter = |s: &Stmt| match s {
        Stmt::For(l) if matches!(l.body.last(), Some(Stmt::Store(..))) && l.independent && l.takes => None,
        Stmt::For(l) if matches!(l.body.last(), Some(Stmt::Store(..))) => {
            Some(vec![Stmt::For(Box::new(Loop { from: Expr::int(1), ..(**l).clone() }))])
        }
        _ => None,
    };
    check(|f| plant(f, shorter), "before it is written");
    let mut taken = false;
    let early = |s: &Stmt| match s {
        Stmt::Alloc(..) if taken => Some(vec![Stmt::Mark(77), s.clone()]),
        Stmt::Alloc(..) => {
            taken = true;
            None
        }
        _ => None,
    };
    let reset = |s: &Stmt| match s {
        Stmt::Mut(..) => Some(vec![Stmt::Reset(77), s.clone()]),
        _ => None,
    };
    check(|f| plant(f, early) && plant(f, reset), "after its memory was given back");
}

/// Protects: iterations that claim to be independent and are not.
#[test]
fn races_are_found() {
    let one_place = |s: &Stmt| match s {
        Stmt::For(l) if l.independent => {
            let mut l = l.clone();
            for s in &mut l.body {
                if let Stmt::Store(_, at, _) = s {
                    *at = Expr::int(0);
                }
            }
            Some(vec![Stmt::For(l)])
        }
        _ => None,
    };
    check(|f| plant(f, one_place), "iterations that are not independent");
    let claim = |s: &Stmt| match s {
        Stmt::For(l) if matches!(l.body.last(), Some(Stmt::Set(..))) => {
            Some(vec![Stmt::For(Box::new(Loop { independent: true, ..(**l).clone() }))])
        }
        _ => None,
    };
    check(|f| plant(f, claim), "independent iterations that set");
}

/// Protects: iterations of parallel loops of which the last may compute again what the one before does, and no other.
#[test]
fn only_the_last_two_iterations_overlap() {
    let overlapping = |early: i64| {
        move |s: &Stmt| match s {
            Stmt::For(l) if l.independent => {
                let mut l = l.clone();
                (l.kind, l.independent) = (LoopKind::Parallel { overlap: true }, false);
                // The first iterations, or the last ones, write one place.
                let to = Expr::index_op(Op::Sub, l.to.clone(), Expr::int(2));
                let place = move |at: &Expr| match early {
                    0 => Expr::index_op(Op::Min, at.clone(), to.clone()),
                    n => Expr::index_op(Op::Max, at.clone(), Expr::int(n)),
                };
                for s in &mut l.body {
                    if let Stmt::Store(_, at, _) = s {
                        *at = place(at);
                    }
                }
                Some(vec![Stmt::For(l)])
            }
            _ => None,
        }
    };
    check(|f| plant(f, overlapping(1)), "iterations that are not independent");
    let mut nest = sound();
    assert!(plant(&mut nest.entry, overlapping(0)));
    let d = verify(&nest).and_then(|()| run(&nest).map(drop)).err();
    // What the last one wrote elsewhere is missing, and that alone.
    assert!(d.is_none_or(|d| !d.message.contains("independent")), "{nest}");
}

/// Protects: types, numbers of lanes, and what is declared.
#[test]
fn types_and_scopes_are_checked() {
    let mistyped = |s: &Stmt| match s {
        Stmt::Mut(v, _) => Some(vec![Stmt::Mut(*v, Expr::int(0))]),
        _ => None,
    };
    check(|f| plant(f, mistyped), "where Float is meant");
    let undeclared = |s: &Stmt| if matches!(s, Stmt::Mut(..)) { Some(vec![]) } else { None };
    check(|f| plant(f, undeclared), "where it is not declared");
    let unmade = |s: &Stmt| if matches!(s, Stmt::Alloc(..)) { Some(vec![]) } else { None };
    check(|f| plant(f, unmade), "where it is not declared");
    let constant = |s: &Stmt| match s {
        Stmt::Mut(v, e) => Some(vec![Stmt::Let(*v, e.clone())]),
        _ => None,
    };
    check(|f| plant(f, constant), "which is a constant");
    let wide = |s: &Stmt| match s {
        Stmt::Store(b, at, e) => Some(vec![Stmt::Store(*b, Expr::Broadcast(Box::new(at.clone()), 4), e.clone())]),
        _ => None,
    };
    check(|f| plant(f, wide), "where 4 lanes of Float is meant");
    let leave = |s: &Stmt| match s {
        Stmt::Mut(..) => Some(vec![Stmt::Leave(Var(0), Expr::bool(true)), s.clone()]),
        _ => None,
    };
    check(|f| plant(f, leave), "leaves a loop that is not around");
}

/// Protects: the operations on vectors mean what they say.
#[test]
fn vectors_mean_what_they_say() {
    let mut f = Func { name: "lanes".into(), ..Func::default() };
    let x = f.fresh_buf(Info::scalar("x", Scalar::I64));
    let size = f.fresh("n", Scalar::I64);
    f.params = vec![Slot::Size(size), Slot::Data(x)];
    let v = f.fresh_var(Info { name: "v".into(), ty: Scalar::I64, lanes: 4 });
    let out = f.fresh_buf(Info::scalar("out", Scalar::I64));
    let k = f.fresh("k", Scalar::I64);
    let i = f.fresh("i", Scalar::I64);
    let var = |v: Var| Expr::Var(v);
    let ramp = |from: i64, by: i64| Expr::Ramp(Box::new([Expr::int(from), Expr::int(by)]), 4);
    let first = |n: i64| Expr::PrefixMask(Box::new(Expr::int(n)), 4);
    f.body = vec![
        // 30, 20, 10 and nothing from behind the end.
        Stmt::Let(v, Expr::MaskedLoad(x, Box::new([ramp(2, -1), first(3)]))),
        Stmt::Alloc(out, vec![Expr::int(7)]),
        Stmt::Store(
            out,
            ramp(0, 1),
            Expr::Op(Op::Add, Scalar::I64, vec![var(v), Expr::Broadcast(Box::new(var(size)), 4)]),
        ),
        Stmt::MaskedStore(
            out,
            ramp(4, 1),
            Expr::PerLane(k, 4, Box::new([Expr::int(2), Expr::Extract(Box::new([var(v), var(k)]))])),
            first(3),
        ),
        Stmt::For(Box::new(Loop {
            from: Expr::int(1),
            ..Loop::new(
                i,
                Expr::int(9),
                vec![
                    Stmt::Leave(i, Expr::Op(Op::Gt, Scalar::Bool, vec![var(i), Expr::int(2)])),
                    Stmt::Store(out, var(i), Expr::int(0)),
                ],
            )
        })),
    ];
    f.results = vec![
        daedal::nest::Arg::Size(Expr::int(7)),
        daedal::nest::Arg::Data(out, Expr::int(0)),
        daedal::nest::Arg::Scalar(Expr::All(Box::new(Expr::Op(
            Op::Gte,
            Scalar::Bool,
            vec![var(v), Expr::Broadcast(Box::new(Expr::int(0)), 4)],
        )))),
    ];
    let int = daedal::ir::Ty::scalar(Scalar::I64);
    let vector = daedal::ir::Ty::tensor(1, int);
    let ret = daedal::ir::Ty::tuple([vector, daedal::ir::Ty::bool()]);
    let nest =
        Nest { entry: f, funcs: vec![], sites: vec![], texts: vec![], prints: vec![], params: vec![vector], ret };
    verify(&nest).unwrap();
    let x = Value::tensor(vec![3], vec![10_i64, 20, 30].into());
    assert_eq!(interpret(&nest, &[x], &mut String::new()).unwrap().to_json().to_string(), "[[33,0,0,3,30,20,0],true]");
    assert_eq!(walk::count(&nest.entry.body), 7);
}
