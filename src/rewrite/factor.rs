//! Factors that do not depend on what a sum runs over leave it, also where they stand in a sum within the sum.
//!
//! | a sum of | becomes |
//! |---|---|
//! | `sumbuild n (lam l (sumbuild m (lam j (mul (c j) (f l (e j))))))` | `sumbuild m (lam j (mul (c j) (index (e j) t)))` |
//! | `t` | `build r (lam i (sumbuild n (lam l (f l i))))` |
//!
//! Adjoints of what all rounds of a loop share are such sums: of each round's adjoint by the same matrix, where the matrix
//! times the sum of the adjoints is less work. Addends and differences are summed each by itself, and a table that only such
//! a sum reads is looked through. Sums that no loop asks for again stay. Equal over the reals. It must not know what costs
//! how much.

use super::expose::{exposed, length};
use super::separate::{factors, product};
use crate::derive::flat::lowered;
use crate::ir::{Head, Id, Lit, Monoid, Op, Scalar, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of sums.
#[derive(Default)]
pub struct Sums {
    /// Those that stay as they are.
    pub stay: FxHashSet<Id>,
    /// Those of which what leaves may fail: it is asked first whether there is anything to sum.
    pub guarded: FxHashSet<Id>,
}

/// A sum that factors left.
pub struct Made {
    /// What it was.
    pub of: Id,
    /// What it is. Without a guard it is evaluated where the sum is over nothing, too.
    pub sum: Id,
    /// The tables that it reads, each where the sum stands and in the loop of the sum within. All of their elements are made,
    /// though the sum may have asked for fewer.
    pub tables: Vec<[Id; 2]>,
}

/// The term with all such sums so, and these.
pub fn factored(terms: &mut Terms, id: Id, known: &Sums) -> (Id, Vec<Made>) {
    let mut made = vec![];
    let id = replace(terms, id, 0, (known, &mut made), &mut FxHashMap::default());
    (id, made)
}

/// In a scope of so many loops: variables beyond are parameters.
fn replace(
    terms: &mut Terms,
    id: Id,
    depth: usize,
    (known, made): (&Sums, &mut Vec<Made>),
    memo: &mut FxHashMap<(Id, usize), Id>,
) -> Id {
    if let Some(done) = memo.get(&(id, depth)) {
        return *done;
    }
    let node = terms.node(id).clone();
    let (n, mut kids) = (node.kids.len(), vec![]);
    for (k, kid) in node.kids.iter().enumerate() {
        kids.push(deep(|| replace(terms, *kid, depth + node.head.binds(k, n), (known, made), memo)));
    }
    let mut out = terms.put(node.head, kids);
    if is_sum(terms, out)
        && !known.stay.contains(&id)
        && let Some((sum, tables)) = summed_apart(terms, out, depth)
    {
        let count = terms.kids(out)[0];
        out = if known.guarded.contains(&id) { guarded(terms, count, sum) } else { sum };
        made.push(Made { of: id, sum, tables });
    }
    if out != id {
        terms.called_as(out, id);
    }
    memo.insert((id, depth), out);
    out
}

/// Whether a term is a sum of numbers of 64 bits.
fn is_sum(terms: &Terms, id: Id) -> bool {
    terms.head(id) == Head::Reduce(Monoid::Add, 1) && terms.ty(id).as_scalar() == Some(Scalar::F64)
}

/// An addend of what is summed: whether it is subtracted, and the sum that it becomes, where factors leave that.
struct Addend {
    negated: bool,
    term: Id,
    sum: Option<Pulled>,
}

/// A sum whose factors left it, and the table that it reads.
struct Pulled {
    sum: Id,
    table: Option<Table>,
}

/// Sums over all rounds, one for each index: how many rounds, how many indices, and what is added, over the round (variable
/// 0) and the index (variable 1).
#[derive(Clone, Copy)]
struct Table {
    rows: Id,
    element: Id,
}

/// A sum where there is anything to sum.
fn guarded(terms: &mut Terms, count: Id, sum: Id) -> Id {
    let (none, zero) = (terms.int(0), terms.lit(Lit::float(0.0)));
    let some = terms.op(Op::Gt, [count, none]);
    terms.put(Head::If, [some, sum, zero])
}

/// The sum as one of sums, some of which factors left, and the tables in it; nothing where they leave none.
fn summed_apart(terms: &mut Terms, id: Id, depth: usize) -> Option<(Id, Vec<[Id; 2]>)> {
    let (count, element) = (terms.kids(id)[0], terms.kids(id)[1]);
    let addends = addends(terms, (count, depth), element, false);
    let tables: Vec<Table> = addends.iter().filter_map(|a| a.sum.as_ref()?.table).collect();
    if !addends.iter().any(|a| a.sum.is_some()) {
        return None;
    }
    let mut out: Option<Id> = None;
    for a in addends {
        let sum = match a.sum {
            Some(pulled) => pulled.sum,
            None => plain(terms, count, a.term, &tables),
        };
        out = Some(match (out, a.negated) {
            (None, false) => sum,
            (None, true) => terms.op(Op::Neg, [sum]),
            (Some(all), false) => terms.op(Op::Add, [all, sum]),
            (Some(all), true) => terms.op(Op::Sub, [all, sum]),
        });
    }
    let both = |t: &Table| {
        let here = t.put(terms, count);
        [here, terms.shift(here, 1)]
    };
    let tables = tables.iter().map(both).collect();
    Some((out?, tables))
}

/// The addends of what is summed, over the variable of the sum. What reads an element of a table is looked through where
/// factors leave the sum of what stands there.
fn addends(terms: &mut Terms, over: (Id, usize), e: Id, negated: bool) -> Vec<Addend> {
    let args = terms.kids(e).to_vec();
    let two = |terms: &mut Terms, second: bool| {
        let mut all = deep(|| addends(terms, over, args[0], negated));
        all.extend(deep(|| addends(terms, over, args[1], negated != second)));
        all
    };
    match terms.head(e) {
        Head::Op(Op::Add) => return two(terms, false),
        Head::Op(Op::Sub) => return two(terms, true),
        Head::Op(Op::Neg) => return deep(|| addends(terms, over, args[0], !negated)),
        Head::Index(_) | Head::Get(..) => {
            if let Some(there) = exposed(terms, e) {
                let all = deep(|| addends(terms, over, there, negated));
                if all.iter().any(|a| a.sum.is_some()) {
                    return all;
                }
            }
        }
        _ => {}
    }
    let sum = pulled(terms, over, e);
    vec![Addend { negated, term: e, sum }]
}

/// A sum of products of which one factor is a sum within: what of that does not depend on the round leaves.
fn pulled(terms: &mut Terms, (count, depth): (Id, usize), e: Id) -> Option<Pulled> {
    let (mut outside, mut inside, mut within) = (vec![], vec![], None);
    for factor in factors(terms, e) {
        let own = if terms.free(factor).has(0) { inner_sum(terms, factor) } else { None };
        match own {
            Some(own) if within.is_none() => within = Some(own),
            _ if terms.free(factor).has(0) => inside.push(factor),
            _ => outside.push(lowered(terms, factor, 1)?),
        }
    }
    let (n, body) = within?;
    let n = lowered(terms, n, 1)?;
    // Over the index of the sum within (variable 0) and the round (variable 1).
    let (mut stay, mut leave) = (vec![], vec![]);
    for factor in factors(terms, body) {
        if terms.free(factor).has(1) { stay.push(factor) } else { leave.push(factor) }
    }
    if !leave.iter().any(|f| terms.free(*f).has(0)) {
        return None;
    }
    stay.extend(inside.into_iter().map(|f| terms.shift(f, 1)).collect::<Vec<_>>());
    let each = product(terms, stay);
    // The round comes first: each is over it (variable 0) and the index (variable 1).
    let each = terms.map_free(each, 0, &mut |t, i, ty, under| {
        let new = if i < 2 { 1 - i } else { i };
        t.var(new + under as u32, ty)
    });
    let (read, table) = match terms.free(each).has(1) {
        false => {
            let one = lowered_from(terms, each, 1);
            let sum = terms.put(Head::Reduce(Monoid::Add, 1), [count, one]);
            (terms.shift(sum, 1), None)
        }
        true => {
            let (at, table) = tabled(terms, each)?;
            // A loop around asks for the same sums in each of its rounds.
            let repeats = |k: usize| terms.free(e).has(k) && !terms.free(table.element).has(k + 1);
            if !(1..=depth).any(repeats) {
                return None;
            }
            let t = table.put(terms, count);
            let t = terms.shift(t, 1);
            (terms.put(Head::Index(1), [at, t]), Some(table))
        }
    };
    // What leaves knows no round.
    let leave: Vec<Id> = leave.into_iter().map(|f| lowered_from(terms, f, 1)).collect();
    let each = product(terms, leave.into_iter().chain([read]).collect());
    let sum = terms.put(Head::Reduce(Monoid::Add, 1), [n, each]);
    outside.push(sum);
    Some(Pulled { sum: product(terms, outside), table })
}

/// A factor as a sum: how many, and what is added.
fn inner_sum(terms: &mut Terms, factor: Id) -> Option<(Id, Id)> {
    let there = exposed(terms, factor).unwrap_or(factor);
    is_sum(terms, there).then(|| (terms.kids(there)[0], terms.kids(there)[1]))
}

/// A term that does not depend on variable `k`, without it.
fn lowered_from(terms: &mut Terms, id: Id, k: usize) -> Id {
    terms.map_free(id, k + 1, &mut |t, i, ty, under| t.var(i + (k + under) as u32, ty))
}

/// What is added, over rounds (variable 0) and an index (variable 1), as a table of sums over rounds, and where the table is
/// read, over that index: it depends on the index by way of one place in a tensor alone.
fn tabled(terms: &mut Terms, each: Id) -> Option<(Id, Table)> {
    let (at, rows) = place(terms, each)?;
    // One more variable, for the index of the table: between the round and the index.
    let (wide, at_wide) = (widened(terms, each), widened(terms, at));
    let r = terms.var(1, Ty::int());
    let element = replaced(terms, wide, (at_wide, r), 0, &mut FxHashMap::default());
    if terms.free(element).has(2) {
        return None;
    }
    let element = lowered_from(terms, element, 2);
    Some((lowered(terms, at, 1)?, Table { rows: lowered(terms, rows, 2)?, element }))
}

/// A term over rounds and more with one more variable right outside the round.
fn widened(terms: &mut Terms, id: Id) -> Id {
    terms.map_free(id, 1, &mut |t, i, ty, under| t.var(i + (2 + under) as u32, ty))
}

/// The first place at which something that does not depend on the index is read by the index, and how many there are.
fn place(terms: &mut Terms, each: Id) -> Option<(Id, Id)> {
    let read = reads(terms, each).into_iter().find(|id| {
        let [at, of] = terms.kids(*id) else { return false };
        let by_index = terms.free(*at).has(1) && !terms.free(*at).has(0);
        by_index && !terms.free(*of).has(1)
    })?;
    let (at, of) = (terms.kids(read)[0], terms.kids(read)[1]);
    let rows = length(terms, of)?;
    (!terms.free(rows).has(0) && !terms.free(rows).has(1)).then_some((at, rows))
}

/// What is read of vectors in a term, but for the loops in it, which have variables of their own.
fn reads(terms: &Terms, id: Id) -> Vec<Id> {
    let (mut seen, mut todo) = (vec![], vec![id]);
    while let Some(id) = todo.pop() {
        if !seen.contains(&id) {
            seen.push(id);
            let (head, kids) = (terms.head(id), terms.kids(id));
            todo.extend(kids.iter().enumerate().filter(|(k, _)| head.binds(*k, kids.len()) == 0).map(|(_, kid)| *kid));
        }
    }
    seen.into_iter().filter(|id| terms.head(*id) == Head::Index(1)).collect()
}

/// A term with one in the place of another, wherever that stands.
fn replaced(terms: &mut Terms, id: Id, by: (Id, Id), depth: usize, memo: &mut FxHashMap<(Id, usize), Id>) -> Id {
    let (from, to) = by;
    if id == terms.shift(from, depth) {
        return terms.shift(to, depth);
    }
    if !terms.free(id).above(depth) {
        return id;
    }
    if let Some(done) = memo.get(&(id, depth)) {
        return *done;
    }
    let node = terms.node(id).clone();
    let n = node.kids.len();
    let mut kids = vec![];
    for (k, kid) in node.kids.iter().enumerate() {
        kids.push(deep(|| replaced(terms, *kid, by, depth + node.head.binds(k, n), memo)));
    }
    let out = terms.put(node.head, kids);
    terms.keep_hints(id, out);
    memo.insert((id, depth), out);
    out
}

impl Table {
    /// The table, in the scope of the sum over rounds.
    fn put(self, terms: &mut Terms, count: Id) -> Id {
        let count = terms.shift(count, 1);
        let sum = terms.put(Head::Reduce(Monoid::Add, 1), [count, self.element]);
        terms.put(Head::Build(1), [self.rows, sum])
    }
}

/// The sum of an addend that keeps what depends on the round: an element of a table that has these sums, or a sum of its own.
fn plain(terms: &mut Terms, count: Id, e: Id, tables: &[Table]) -> Id {
    let (inside, outside): (Vec<Id>, Vec<Id>) = factors(terms, e).into_iter().partition(|f| terms.free(*f).has(0));
    let mut all: Vec<Id> = outside.into_iter().map(|f| lowered_from(terms, f, 0)).collect();
    let inside = product(terms, inside);
    let mut sum = terms.put(Head::Reduce(Monoid::Add, 1), [count, inside]);
    for table in tables {
        for at in reads(terms, inside).into_iter().map(|id| terms.kids(id)[0]).collect::<Vec<_>>() {
            let Some(at) = lowered(terms, at, 1) else { continue };
            // What the table adds at that index.
            let same = terms.map_free(table.element, 1, &mut |t, i, ty, under| match i {
                0 => t.shift(at, under + 1),
                _ => t.var(i + under as u32, ty),
            });
            if same == inside {
                let t = table.put(terms, count);
                sum = terms.put(Head::Index(1), [at, t]);
            }
        }
    }
    all.push(sum);
    product(terms, all)
}
