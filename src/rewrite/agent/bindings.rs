//! The moves that bind and unbind, which no list of rules could hold for every node (Knossos, Table 3):
//! inline, delete, introduce, lift, swap and merge a let; inline a call; carry out an operation on literals.

use super::matching::lowered;
use super::oracle::{Oracle, Scope};
use crate::ir::{Def, Fun, Head, Id, Program, Terms};
use crate::rewrite::egraph::pattern::Compiled;
use rustc_hash::FxHashSet;

/// Names of the moves, in the order of their numbers.
pub const NAMES: [&str; 8] =
    ["fold-literals", "inline-let", "delete-let", "new-let", "lift-let", "swap-lets", "merge-lets", "inline-call"];

/// The name of all moves together.
pub const GROUP: &str = "bindings";

/// Which of the moves are made, by number.
pub type Bindings = [bool; NAMES.len()];

/// All of them.
pub const ALL: Bindings = [true; NAMES.len()];
/// Only what does not bind: operations on literals are carried out.
pub const NONE: Bindings = [true, false, false, false, false, false, false, false];

const FOLD: usize = 0;
const INLINE: usize = 1;
const DELETE: usize = 2;
const NEW: usize = 3;
const LIFT: usize = 4;
const SWAP: usize = 5;
const MERGE: usize = 6;
const CALL: usize = 7;

/// The rules and moves of a search.
pub struct Moves<'a> {
    /// The program whose functions calls may be replaced by.
    pub program: &'a Program,
    /// Functions whose calls stay.
    pub kept: FxHashSet<Fun>,
    /// The rules.
    pub rules: &'a [Compiled<'a>],
    /// The moves that bind and unbind, by number.
    pub bindings: Bindings,
}

/// All moves at the root of a term in a scope, each with what it makes.
pub fn moves(terms: &mut Terms, by: &Moves<'_>, oracle: &mut Oracle, id: Id, scope: &Scope) -> Vec<(usize, Id)> {
    let mut out = vec![];
    let node = terms.node(id).clone();
    let folds = by.bindings[FOLD];
    if folds && let Head::Op(op) = node.head {
        let args: Option<Vec<_>> = node.kids.iter().map(|k| terms.as_lit(*k)).collect();
        let value = args.and_then(|args| op.eval(&args).ok());
        let value = value.filter(|v| v.as_f64().is_none_or(f64::is_finite));
        out.extend(value.map(|v| (FOLD, terms.lit(v))));
    }
    if by.bindings == NONE {
        return out;
    }
    match node.head {
        Head::Let => of_let(terms, oracle, id, scope, &mut out),
        Head::Call(f) if !by.kept.contains(&f) => {
            if let Some(def) = by.program.defs.get(&f) {
                out.extend(called(terms, by.program, def, &node.kids).map(|body| (CALL, body)));
            }
        }
        _ => {}
    }
    lifted(terms, oracle, id, scope, &mut out);
    if !matches!(node.head, Head::Var(..) | Head::Const(_) | Head::Let | Head::Get(..) | Head::Tuple)
        && !node.kids.is_empty()
    {
        let ty = terms.ty(id);
        let var = terms.var(0, ty);
        out.push((NEW, terms.put(Head::Let, [id, var])));
    }
    out.retain(|(k, _)| by.bindings[*k]);
    out
}

fn of_let(terms: &mut Terms, oracle: &mut Oracle, id: Id, scope: &Scope, out: &mut Vec<(usize, Id)>) {
    let (value, body) = (terms.kids(id)[0], terms.kids(id)[1]);
    if !terms.free(body).has(0) {
        // What is thrown away cannot fail any more, and that is allowed.
        let body = lowered(terms, body, 1);
        return out.push((DELETE, body));
    }
    out.push((INLINE, terms.substitute(body, &[value])));
    if terms.head(body) != Head::Let {
        return;
    }
    let (second, inner) = (terms.kids(body)[0], terms.kids(body)[1]);
    let shifted = terms.shift(value, 1);
    if second == shifted {
        let ty = terms.ty(value);
        let var = terms.var(0, ty);
        let merged = terms.substitute(inner, &[var]);
        out.push((MERGE, terms.put(Head::Let, [value, merged])));
    } else if !terms.free(second).has(0) {
        // Where both may fail, their order says which failure is seen; either is a failure.
        let second = lowered(terms, second, 1);
        if !oracle.total(terms, value, scope) && !oracle.total(terms, second, scope) {
            return;
        }
        let value = terms.shift(value, 1);
        let inner = swapped(terms, inner);
        let inner = terms.put(Head::Let, [value, inner]);
        out.push((SWAP, terms.put(Head::Let, [second, inner])));
    }
}

/// The term with its two innermost variables exchanged.
fn swapped(terms: &mut Terms, id: Id) -> Id {
    terms.map_free(id, 0, &mut |t, i, ty, under| {
        let i = match i {
            0 => 1,
            1 => 0,
            other => other,
        };
        t.var(i + under as u32, ty)
    })
}

/// The lets that children begin with, moved around the term.
fn lifted(terms: &mut Terms, oracle: &mut Oracle, id: Id, scope: &Scope, out: &mut Vec<(usize, Id)>) {
    let node = terms.node(id).clone();
    let n = node.kids.len();
    for k in 0..n {
        if terms.head(node.kids[k]) != Head::Let {
            continue;
        }
        let binds = node.head.binds(k, n);
        let (value, body) = (terms.kids(node.kids[k])[0], terms.kids(node.kids[k])[1]);
        if terms.free(value).below(binds) || node.head == Head::Let && k == 1 {
            continue;
        }
        // A loop may not run, and an arm may not be taken: what was not certain to be evaluated must not fail.
        let certain = binds == 0 && !(matches!(node.head, Head::If | Head::Assert) && k > 0);
        let value = lowered(terms, value, binds);
        if !certain && !oracle.total(terms, value, scope) {
            continue;
        }
        let body = rotated(terms, body, binds);
        let mut kids: Vec<Id> = vec![];
        for (j, kid) in node.kids.iter().enumerate() {
            let under = node.head.binds(j, n);
            kids.push(if j == k { body } else { inside(terms, *kid, under) });
        }
        let inner = terms.put(node.head, kids);
        out.push((LIFT, terms.put(Head::Let, [value, inner])));
    }
}

/// The term with a new variable bound outside of its `under` innermost ones.
fn inside(terms: &mut Terms, id: Id, under: usize) -> Id {
    terms.map_free(id, under, &mut |t, i, ty, depth| t.var((i as usize + under + depth + 1) as u32, ty))
}

/// The body of a let under `binds` variables, once the let stands outside of them: the let's variable,
/// which was the innermost, is then the outermost of them all.
fn rotated(terms: &mut Terms, id: Id, binds: usize) -> Id {
    terms.map_free(id, 0, &mut |t, i, ty, under| {
        let i = match i as usize {
            0 => binds,
            i if i <= binds => i - 1,
            i => i,
        };
        t.var((i + under) as u32, ty)
    })
}

/// The body of a definition with its arguments bound by lets.
fn called(terms: &mut Terms, program: &Program, def: &Def, args: &[Id]) -> Option<Id> {
    let body = def.term()?;
    let mut out = terms.import(&program.terms, body);
    for (k, arg) in args.iter().enumerate().rev() {
        let arg = terms.shift(*arg, k);
        out = terms.put(Head::Let, [arg, out]);
    }
    Some(out)
}
