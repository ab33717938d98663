//! The sizes of a tensor as terms, without making the tensor where that can be helped.

use super::rows::as_made;
use crate::ir::{Head, Id, Monoid, Op, Program, Terms, Ty, deep};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// A tensor of so many nodes at most is looked into where its size is asked for, with what a let binds in it.
const LOOKED: u64 = 60;

/// One term for each axis of `id`'s type, nested tensors included, in `id`'s own context.
/// Every term is right wherever `id` has a value, but for axes inside an empty tensor.
pub fn shape(terms: &mut Terms, id: Id) -> Vec<Id> {
    sizes(terms, id, false)
}

/// As [`shape`], and right whatever stands for the sizes of variables: where a sum goes over the rows of a variable that
/// may have none, its sizes are 0 there.
pub fn shape_as_made(terms: &mut Terms, id: Id) -> Vec<Id> {
    sizes(terms, id, true)
}

fn sizes(terms: &mut Terms, id: Id, as_made: bool) -> Vec<Id> {
    let axes = terms.ty(id).axes();
    if axes == 0 {
        return vec![];
    }
    match deep(|| known(terms, id, as_made)) {
        Some(dims) if dims.len() == axes => dims,
        _ => (0..axes).map(|k| terms.put(Head::Size(k), [id])).collect(),
    }
}

fn known(terms: &mut Terms, id: Id, as_made: bool) -> Option<Vec<Id>> {
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    let shape = |terms: &mut Terms, id: Id| sizes(terms, id, as_made);
    match head {
        Head::Build(d) => {
            let inner = shape(terms, kids[d]);
            let inner = lower(terms, &inner, d)?;
            Some([&kids[..d], &inner].concat())
        }
        Head::ConstVec(d) => Some([&kids[..d], &shape(terms, kids[d])].concat()),
        Head::DeltaVec(d) => Some([&kids[..d], &shape(terms, kids[2 * d])].concat()),
        Head::VecInit => {
            let n = terms.int(kids.len() as i64);
            Some([&[n], shape(terms, kids[0]).as_slice()].concat())
        }
        Head::Scatter(d) => Some(kids[..d].to_vec()),
        Head::Scan => Some([&kids[1..2], &shape(terms, kids[0])].concat()),
        Head::Fold => Some(shape(terms, kids[0])),
        Head::Index(d) => Some(shape(terms, kids[d])[d..].to_vec()),
        Head::Sum => {
            let (rank, _) = terms.ty(kids[0]).as_tensor()?;
            let inner = shape(terms, kids[0])[rank..].to_vec();
            Some(if as_made { rows_as_made(terms, inner) } else { inner })
        }
        Head::Reduce(_, d) => {
            let inner = shape(terms, kids[d]);
            let inner = lower(terms, &inner, d)?;
            Some(if as_made { rows_as_made(terms, inner) } else { inner })
        }
        Head::Assert => Some(shape(terms, kids[1])),
        Head::Let => {
            let inner = shape(terms, kids[1]);
            Some(inner.into_iter().map(|s| around(terms, kids[0], s)).collect())
        }
        Head::If => {
            let arms = (shape(terms, kids[1]), shape(terms, kids[2]));
            Some(either(terms, kids[0], arms))
        }
        Head::Op(op) if op != Op::Select => {
            let tensor = kids.into_iter().find(|k| terms.ty(*k).axes() > 0)?;
            Some(shape(terms, tensor))
        }
        Head::Get(i, _) if terms.head(kids[0]) == Head::Tuple => {
            let part = terms.kids(kids[0])[i as usize];
            Some(shape(terms, part))
        }
        _ => None,
    }
}

fn rows_as_made(terms: &mut Terms, sizes: Vec<Id>) -> Vec<Id> {
    sizes.into_iter().map(|s| as_made(terms, s)).collect()
}

/// The sizes of all tensors in a value, one part of a tuple after the other. None where they are not known.
pub fn sizes_of_parts(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    all_of_parts(terms, id, Asked::default())
}

fn all_of_parts(terms: &mut Terms, id: Id, how: Asked) -> Option<Vec<Id>> {
    let ty = terms.ty(id);
    of_leaves(terms, ty, &mut vec![], &mut |terms, path| match path {
        [] => Some(sizes(terms, id, how.as_made)),
        _ => part_of(terms, id, path, how),
    })
}

/// The sizes of all tensors in a value, as [`sizes_of_parts`], in tensors of tuples too: there those of all elements. Right
/// whatever stands for the sizes of variables, as [`shape_as_made`].
pub fn all_sizes_as_made(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    let (ty, how) = (terms.ty(id), Asked { named: false, as_made: true });
    let Some((rank, elem)) = ty.as_tensor().filter(|_| !is_plain(ty)) else { return all_of_parts(terms, id, how) };
    let outer = shape_as_made(terms, id)[..rank].to_vec();
    let inner = of_leaves(terms, elem, &mut vec![], &mut |terms, path| part_of_elements(terms, id, rank, path, how))?;
    Some([outer, inner].concat())
}

/// The sizes of a leaf of a type, by the numbers of parts of tuples that lead to it.
type Leaf<'a> = dyn FnMut(&mut Terms, &[u32]) -> Option<Vec<Id>> + 'a;

/// The sizes of all tensors in the tuples of a type, one part after the other.
fn of_leaves(terms: &mut Terms, ty: Ty, path: &mut Vec<u32>, leaf: &mut Leaf<'_>) -> Option<Vec<Id>> {
    let Some(parts) = ty.as_tuple() else {
        return match ty.has_tensor() {
            false => Some(vec![]),
            true if is_plain(ty) => leaf(terms, path),
            true => None,
        };
    };
    let mut out = vec![];
    for (k, ty) in parts.iter().enumerate() {
        path.push(k as u32);
        out.extend(deep(|| of_leaves(terms, *ty, path, leaf))?);
        path.pop();
    }
    Some(out)
}

/// The sizes that are chosen with the arms of a condition.
fn either(terms: &mut Terms, condition: Id, (a, b): (Vec<Id>, Vec<Id>)) -> Vec<Id> {
    let pick = |(x, y): (Id, Id)| if x == y { x } else { terms.put(Head::If, [condition, x, y]) };
    a.into_iter().zip(b).map(pick).collect()
}

/// How sizes of parts are asked for.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// Whether a variable has the sizes that it has.
    named: bool,
    /// Whether sizes are right whatever stands for those of variables, as [`shape_as_made`].
    as_made: bool,
}

const NAMED: Asked = Asked { named: true, as_made: false };

/// The sizes of a part of a tuple, which may be a part of one itself: also where the tuple is chosen, or an element.
pub fn part(terms: &mut Terms, id: Id, path: &[u32]) -> Option<Vec<Id>> {
    part_of(terms, id, path, Asked::default())
}

fn part_of(terms: &mut Terms, id: Id, path: &[u32], how: Asked) -> Option<Vec<Id>> {
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    match head {
        Head::Tuple => {
            let kid = *kids.get(path[0] as usize)?;
            if path.len() > 1 {
                deep(|| part_of(terms, kid, &path[1..], how))
            } else {
                Some(sizes(terms, kid, how.as_made))
            }
        }
        Head::Get(i, _) => deep(|| part_of(terms, kids[0], &[&[i], path].concat(), how)),
        Head::Index(d) => deep(|| part_of_elements(terms, kids[d], d, path, how)),
        Head::Fold => deep(|| part_of(terms, kids[0], path, how)),
        Head::Var(..) if how.named => {
            let mut of = id;
            for i in path {
                let parts = terms.ty(of).as_tuple()?.len();
                of = terms.put(Head::Get(*i, parts as u32), [of]);
            }
            Some(sizes(terms, of, how.as_made))
        }
        _ => through(terms, (head, &kids), &mut |terms, kid| deep(|| part_of(terms, kid, path, how))),
    }
}

/// The sizes of a part of the tuples in a tensor, where they do not depend on which of them it is.
fn part_of_elements(terms: &mut Terms, tensor: Id, d: usize, path: &[u32], how: Asked) -> Option<Vec<Id>> {
    let (head, kids) = (terms.head(tensor), terms.kids(tensor).to_vec());
    match head {
        Head::Build(e) if e == d => {
            let sizes = deep(|| part_of(terms, kids[d], path, how))?;
            lower(terms, &sizes, d)
        }
        Head::ConstVec(e) if e == d => deep(|| part_of(terms, kids[d], path, how)),
        Head::VecInit | Head::Scan if d == 1 => deep(|| part_of(terms, kids[0], path, how)),
        _ => through(terms, (head, &kids), &mut |terms, kid| deep(|| part_of_elements(terms, kid, d, path, how))),
    }
}

/// Sizes of what is chosen, bound or asserted.
fn through(
    terms: &mut Terms,
    (head, kids): (Head, &[Id]),
    sizes: &mut dyn FnMut(&mut Terms, Id) -> Option<Vec<Id>>,
) -> Option<Vec<Id>> {
    match head {
        Head::If => {
            let arms = (sizes(terms, kids[1])?, sizes(terms, kids[2])?);
            Some(either(terms, kids[0], arms))
        }
        Head::Let => {
            let inner = sizes(terms, kids[1])?;
            Some(inner.into_iter().map(|s| around(terms, kids[0], s)).collect())
        }
        Head::Assert => sizes(terms, kids[1]),
        _ => None,
    }
}

/// Terms moved out of `n` binders, where they do not depend on them.
pub fn lower(terms: &mut Terms, ids: &[Id], n: usize) -> Option<Vec<Id>> {
    ids.iter().map(|s| lowered(terms, *s, n)).collect()
}

/// A term moved out of `n` binders, where it does not depend on them.
pub fn lowered(terms: &mut Terms, id: Id, n: usize) -> Option<Id> {
    if terms.free(id).below(n) && terms.variables(id).below(n) {
        return None;
    }
    Some(terms.map_free(id, n, &mut |t, i, ty, depth| t.var(i + depth as u32, ty)))
}

/// A let around a size, where the size depends on it.
fn around(terms: &mut Terms, value: Id, size: Id) -> Id {
    let size = of_value(terms, size, 0, value);
    match lowered(terms, size, 1) {
        Some(out) => out,
        None => terms.put(Head::Let, [value, size]),
    }
}

/// A size in a let under so many more binders, where sizes of what the let binds are those of its value.
fn of_value(terms: &mut Terms, id: Id, under: usize, value: Id) -> Id {
    if !terms.free(id).has(under) {
        return id;
    }
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    if terms.ty(id) == Ty::int()
        && let Some(path) = path_to(terms, id, under)
        && let Some(number) = number(terms, value, &path).filter(|number| terms.size(*number) <= LOOKED)
    {
        return terms.shift(number, under + 1);
    }
    if let (Head::Size(k), Some(path)) = (head, kids.first().and_then(|of| path_to(terms, *of, under))) {
        let dims = if path.is_empty() { Some(shape(terms, value)) } else { part_of(terms, value, &path, NAMED) };
        let axes = terms.ty(kids[0]).axes();
        if let Some(known) = dims.filter(|dims| dims.len() == axes).map(|dims| dims[k]) {
            return terms.shift(known, under + 1);
        }
    }
    if matches!(head, Head::Size(_)) && terms.size(kids[0]) <= LOOKED {
        let of = terms.map_free(kids[0], under, &mut |t, i, ty, within| match i {
            0 => t.shift(value, under + within),
            i => t.var(i - 1 + (under + within) as u32, ty),
        });
        let unknown = terms.put(head, [of]);
        if let Some(known) = size_of(terms, head, of).filter(|known| *known != unknown) {
            return terms.map_free(known, under, &mut |t, i, ty, within| t.var(i + 1 + (under + within) as u32, ty));
        }
    }
    let n = kids.len();
    let new: Vec<Id> = kids
        .iter()
        .enumerate()
        .map(|(k, kid)| deep(|| of_value(terms, *kid, under + head.binds(k, n), value)))
        .collect();
    // Arms may have one size once that is said of both.
    if head == Head::If && new[1] == new[2] {
        return new[1];
    }
    terms.put(head, new)
}

/// The integer that a part of a value is.
fn number(terms: &mut Terms, id: Id, path: &[u32]) -> Option<Id> {
    let (head, kids) = (terms.head(id), terms.kids(id).to_vec());
    match (head, path) {
        (Head::Let, _) => {
            let inner = deep(|| number(terms, kids[1], path))?;
            Some(around(terms, kids[0], inner))
        }
        (Head::Assert, _) => deep(|| number(terms, kids[1], path)),
        (Head::Tuple, [first, rest @ ..]) => deep(|| number(terms, *kids.get(*first as usize)?, rest)),
        (Head::Get(i, _), [_, ..]) => deep(|| number(terms, kids[0], &[&[i], path].concat())),
        (_, []) => Some(id),
        _ => None,
    }
}

/// What the size is that a node stands for, of a tensor.
fn size_of(terms: &mut Terms, head: Head, of: Id) -> Option<Id> {
    let Head::Size(k) = head else { return None };
    let dims = match terms.head(of) {
        Head::Get(..) => part_of(terms, of, &[], NAMED).unwrap_or_else(|| shape(terms, of)),
        _ => shape(terms, of),
    };
    dims.get(k).copied()
}

/// Which part of a variable a term is: the numbers of parts of tuples, from the outside in.
fn path_to(terms: &Terms, id: Id, variable: usize) -> Option<Vec<u32>> {
    match (terms.head(id), terms.kids(id)) {
        (Head::Var(i, _), _) => (i as usize == variable).then(Vec::new),
        (Head::Get(i, _), [of]) => {
            let mut path = deep(|| path_to(terms, *of, variable))?;
            path.push(i);
            Some(path)
        }
        _ => None,
    }
}

/// The sizes of a sum's elements, where those are tensors and their sizes do not depend on the loop:
/// the shape of a sum of nothing. None of what is no sum, or has numbers as elements.
pub fn empty_sum(terms: &mut Terms, id: Id) -> Option<Vec<Id>> {
    if !terms.ty(id).has_tensor() {
        return None;
    }
    let kids = terms.kids(id).to_vec();
    let dims = match terms.head(id) {
        Head::Reduce(Monoid::Add, d) => {
            let dims = shape(terms, kids[d]);
            lower(terms, &dims, d)?
        }
        Head::Sum => {
            let rank = terms.ty(kids[0]).as_tensor().map_or(0, |(r, _)| r);
            shape(terms, kids[0])[rank..].to_vec()
        }
        _ => return None,
    };
    (!dims.is_empty() && is_plain(terms.ty(id))).then_some(dims)
}

/// Whether a node is a sum of tensors that may be over nothing, and has no shape there: it fails, or what is written of
/// its elements does not say their sizes, so that they are those of elements that are not there.
pub fn is_shapeless(terms: &mut Terms, id: Id) -> bool {
    let kids = terms.kids(id).to_vec();
    let may_be_empty = match terms.head(id) {
        Head::Reduce(Monoid::Add, d) => {
            !kids[..d].iter().all(|n| terms.as_lit(*n).and_then(|n| n.as_int()).is_some_and(|n| n > 0))
        }
        Head::Sum => true,
        _ => false,
    };
    if !may_be_empty || !terms.ty(id).has_tensor() {
        return false;
    }
    let Some(sizes) = empty_sum(terms, id) else { return true };
    sizes.into_iter().any(|s| match terms.head(s) {
        Head::Size(_) => matches!(terms.head(terms.kids(s)[0]), Head::Build(_)),
        _ => false,
    })
}

/// Whether a term has a sum that [`is_shapeless`]. A rewrite must not bring in the first one: what it says of the sizes
/// in one place (a let around the sum, an arm of a condition in it) need not be seen in the other.
pub fn has_shapeless(terms: &mut Terms, id: Id) -> bool {
    terms.reachable(id).into_iter().any(|id| is_shapeless(terms, id))
}

/// Whether the axes of a tensor type are all that its zeros depend on: tuples in it hold no tensors.
fn is_plain(ty: Ty) -> bool {
    match ty.as_tensor() {
        Some((_, elem)) => is_plain(elem),
        None => !ty.has_tensor(),
    }
}

/// The terms of a program with those of [`empty_sum`], for every sum that has them: also for those that such sizes are
/// counted of, which may stand nowhere else.
pub fn empty_sums(program: &Program) -> (Cow<'_, Terms>, FxHashMap<Id, Vec<Id>>) {
    let (mut terms, mut found) = (Cow::Borrowed(&program.terms), FxHashMap::default());
    let mut open: Vec<Id> = program.defs.values().filter_map(|d| d.term()).collect();
    let mut seen = FxHashSet::default();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        open.extend_from_slice(terms.kids(id));
        let sums = matches!(terms.head(id), Head::Reduce(Monoid::Add, _) | Head::Sum);
        if sums
            && terms.ty(id).has_tensor()
            && let Some(dims) = empty_sum(terms.to_mut(), id)
        {
            open.extend_from_slice(&dims);
            found.insert(id, dims);
        }
    }
    (terms, found)
}
