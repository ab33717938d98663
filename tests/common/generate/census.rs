//! A generated program and a call of it become marks: which of the corners it has that programs go wrong in, and which
//! of them its call comes by.
//!
//! It must not know how programs are generated.

use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Head, Id, Lit, Monoid, Op, Program, Terms, deep};

/// The corners, with what is counted of each: how many programs of a hundred have it at least.
pub const CORNERS: [(&str, usize); 12] = [
    ("a sum of vectors", 20),
    ("a sum of vectors over a computed number", 8),
    ("a sum of vectors over nothing, evaluated", 3),
    ("a sum of empty vectors, evaluated", 3),
    ("a negative size, evaluated", 3),
    ("a cast", 30),
    ("a fold with a tuple as state", 8),
    ("a loop in a triangle", 5),
    ("an arm that fails", 5),
    ("an arm that fails, and is not taken", 2),
    ("a value", 50),
    ("a failure", 5),
];

/// The numbers of the corners that a call of a definition has.
pub fn marks(program: &Program, def: &Def, args: &[Value]) -> Vec<usize> {
    let terms = &program.terms;
    let all: Vec<Id> = program.defs.values().filter_map(Def::term).flat_map(|b| terms.reachable(b)).collect();
    let sums: Vec<Id> = all.iter().copied().filter(|id| is_vector_sum(terms, *id)).collect();
    let run = |p: &Program| Interpreter::new(p).run(&p.defs[&def.fun], args);
    let outcome = run(program);
    // What fails elsewhere where it is asserted not to be so came by it.
    let comes_by = |holds: &dyn Fn(&mut Terms, Id) -> Id| match (&outcome, run(&asserted(program, &sums, holds))) {
        (Ok(_), Err(_)) => true,
        (Err(a), Err(b)) => a.message != b.message,
        _ => false,
    };
    let failing =
        all.iter().any(|id| terms.head(*id) == Head::If && terms.kids(*id)[1..].iter().any(|k| fails(terms, *k)));
    let found = [
        !sums.is_empty(),
        sums.iter().any(|id| extents(terms, *id).iter().any(|n| is_computed(terms, *n))),
        comes_by(&|t, id| {
            let zero = t.int(0);
            let sizes: Vec<Id> = match t.head(id) {
                Head::Reduce(_, d) => t.kids(id)[..d].to_vec(),
                _ => {
                    let of = t.kids(id)[0];
                    vec![t.put(Head::Size(0), [of])]
                }
            };
            let each: Vec<Id> = sizes.into_iter().map(|n| t.op(Op::Ne, [n, zero])).collect();
            each.into_iter().reduce(|a, b| t.op(Op::And, [a, b])).unwrap()
        }),
        comes_by(&|t, id| {
            let (n, zero) = (t.put(Head::Size(0), [id]), t.int(0));
            t.op(Op::Ne, [n, zero])
        }),
        outcome.as_ref().is_err_and(|d| d.message.contains("negative size")),
        all.iter().any(|id| matches!(terms.head(*id), Head::Cast(_))),
        all.iter().any(|id| terms.head(*id) == Head::Fold && terms.ty(*id).as_tuple().is_some()),
        program.defs.values().filter_map(Def::term).any(|b| has_triangle(terms, b, &mut vec![])),
        failing,
        failing && outcome.is_ok(),
        outcome.is_ok(),
        outcome.is_err(),
    ];
    (0..found.len()).filter(|k| found[*k]).collect()
}

fn is_vector_sum(terms: &Terms, id: Id) -> bool {
    matches!(terms.head(id), Head::Sum | Head::Reduce(Monoid::Add, _)) && terms.ty(id).as_tensor().is_some()
}

/// The numbers of rounds of a sum.
fn extents(terms: &Terms, id: Id) -> Vec<Id> {
    let kids = terms.kids(id);
    match (terms.head(id), terms.head(kids[0])) {
        (Head::Reduce(_, d), _) => kids[..d].to_vec(),
        (_, Head::Build(d)) => terms.kids(kids[0])[..d].to_vec(),
        _ => vec![],
    }
}

/// Whether a number of rounds is neither written down nor the size of a variable.
fn is_computed(terms: &Terms, n: Id) -> bool {
    match terms.head(n) {
        Head::Const(_) => false,
        Head::Size(_) => !matches!(terms.head(terms.kids(n)[0]), Head::Var(..)),
        _ => true,
    }
}

/// Whether a term fails whatever its variables are, as the generator writes that.
fn fails(terms: &Terms, id: Id) -> bool {
    let kids = terms.kids(id);
    let int = |id: Id| terms.as_lit(id).and_then(Lit::as_int);
    match terms.head(id) {
        Head::Assert => terms.as_lit(kids[0]) == Some(Lit::Bool(false)),
        Head::Op(Op::Div) => int(kids[1]) == Some(0),
        Head::Index(1) if terms.head(kids[1]) == Head::VecInit => {
            int(kids[0]).is_some_and(|i| i >= terms.kids(kids[1]).len() as i64)
        }
        Head::ConstVec(1) => int(kids[0]).is_some_and(|n| n < 0),
        Head::Get(..) | Head::Tuple | Head::Sum => kids.iter().any(|k| fails(terms, *k)),
        _ => false,
    }
}

/// Whether a loop has a number of rounds that depends on the variable of a loop around it.
fn has_triangle(terms: &Terms, id: Id, scope: &mut Vec<bool>) -> bool {
    let (head, kids) = (terms.head(id), terms.kids(id));
    let rounds = match head {
        Head::Build(d) | Head::Reduce(_, d) => d,
        _ => 0,
    };
    let of_loop =
        |n: &Id, scope: &[bool]| (0..scope.len()).any(|i| scope[scope.len() - 1 - i] && terms.free(*n).has(i));
    if kids[..rounds].iter().any(|n| of_loop(n, scope)) {
        return true;
    }
    kids.iter().enumerate().any(|(k, kid)| {
        let (depth, binds) = (scope.len(), head.binds(k, kids.len()));
        scope.extend(std::iter::repeat_n(rounds > 0, binds));
        let found = deep(|| has_triangle(terms, *kid, scope));
        scope.truncate(depth);
        found
    })
}

/// The program with an assertion around each of some terms.
fn asserted(program: &Program, at: &[Id], holds: &dyn Fn(&mut Terms, Id) -> Id) -> Program {
    fn term(terms: &mut Terms, id: Id, at: &[Id], holds: &dyn Fn(&mut Terms, Id) -> Id) -> Id {
        let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
        let kids: Vec<Id> = kids.into_iter().map(|k| deep(|| term(terms, k, at, holds))).collect();
        let made = if kids.is_empty() { id } else { terms.put(head, kids) };
        if !at.contains(&id) {
            return made;
        }
        let c = holds(terms, made);
        terms.put(Head::Assert, [c, made])
    }
    let mut out = program.clone();
    for def in program.defs.values() {
        let Some(body) = def.term() else { continue };
        let body = term(&mut out.terms, body, at, holds);
        out.defs[&def.fun].body = daedal::ir::Body::Term(body);
    }
    out
}
