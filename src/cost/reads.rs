//! Sizes that nobody names, guessed from what reads them: a tensor that is read at the index of a loop is taken to be as
//! large as that loop is long.
//!
//! A guess is for costs alone: a tensor may be larger than what is read of it. Told `n` of `(x : (Vec Float) n)`, an `y`
//! without names that is read in the same loop would otherwise count as tiny, and work would seem cheap where it moves into
//! loops over `y`.

use crate::ir::{Def, Head, Id, Op, Program, Terms, Ty, deep};
use std::collections::BTreeMap;

/// All names of sizes of a program, those of axes without a name among them.
pub fn size_names(program: &Program) -> Vec<String> {
    let axes = |def: &Def| {
        let each = def.params.iter().enumerate().flat_map(|(p, of)| (0..of.ty.axes()).map(move |k| (p, k)));
        each.map(|(p, k)| def.params[p].size(k)).collect::<Vec<_>>()
    };
    program.defs.values().flat_map(axes).collect()
}

/// What was told of sizes, and what follows of those without a name, where definitions do not disagree.
pub fn with_reads(program: &Program, told: &[(String, u64)]) -> Vec<(String, u64)> {
    let mut found: BTreeMap<String, Option<u64>> = BTreeMap::new();
    for def in program.defs.values().filter(|_| !told.is_empty()) {
        let Some(body) = def.term() else { continue };
        let mut look = Look { def, terms: &program.terms, found: vec![] };
        let mut env: Vec<Known<'_>> = (0..def.params.len()).map(|k| look.param(k)).collect();
        deep(|| look.term(body, &mut env));
        for ((param, axis), size) in look.found {
            let name = def.params[param].size(axis);
            let Some((_, n)) = told.iter().find(|(m, _)| m == size) else { continue };
            found.entry(name).and_modify(|known| *known = known.filter(|m| m == n)).or_insert(Some(*n));
        }
    }
    let new = found.into_iter().filter_map(|(name, n)| Some((name, n?)));
    let new = new.filter(|(name, _)| told.iter().all(|(m, _)| m != name));
    told.iter().cloned().chain(new).collect()
}

/// What is known of a value: names of sizes alone.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// About the size of this name.
    Size(&'a str),
    /// An index of a loop that runs so often.
    Index(&'a str),
    /// A parameter, or an element of it from an axis on.
    Part(usize, usize),
    Other,
}

struct Look<'a> {
    def: &'a Def,
    terms: &'a Terms,
    /// Axes without a name, and the sizes of the loops that they are read in.
    found: Vec<((usize, usize), &'a str)>,
}

impl<'a> Look<'a> {
    fn param(&self, k: usize) -> Known<'a> {
        let p = &self.def.params[k];
        if p.ty == Ty::int() { Known::Size(&p.name) } else { Known::Part(k, 0) }
    }

    fn term(&mut self, id: Id, env: &mut Vec<Known<'a>>) -> Known<'a> {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id));
        if let Head::Var(i, _) = head {
            return env.len().checked_sub(1 + i as usize).map_or(Known::Other, |l| env[l]);
        }
        let (n, depth) = (kids.len(), env.len());
        let mut of: Vec<Known<'a>> = vec![];
        for (k, kid) in kids.iter().enumerate() {
            env.extend(bound(head, head.binds(k, n), &of));
            let known = deep(|| self.term(*kid, env));
            env.truncate(depth);
            of.push(known);
        }
        self.made(head, kids, &of)
    }

    fn made(&mut self, head: Head, kids: &[Id], of: &[Known<'a>]) -> Known<'a> {
        match (head, of) {
            (Head::Let, [_, body]) => *body,
            (Head::Size(k), [Known::Part(p, from)]) => {
                self.def.params[*p].sizes.get(from + k).map_or(Known::Other, |name| Known::Size(name))
            }
            // What is near a size, or an index, counts as that.
            (Head::Op(Op::Add | Op::Sub), [known, _]) if self.terms.as_lit(kids[1]).is_some() => *known,
            (Head::Op(Op::Add), [_, known]) if self.terms.as_lit(kids[0]).is_some() => *known,
            (Head::Index(d), [at @ .., Known::Part(p, from)]) => {
                for (k, i) in at.iter().enumerate() {
                    if let Known::Index(size) = i
                        && self.def.params[*p].sizes.get(from + k).is_none()
                    {
                        self.found.push(((*p, from + k), size));
                    }
                }
                Known::Part(*p, from + d)
            }
            _ => Known::Other,
        }
    }
}

/// What the last child of a node sees of what stands before it.
fn bound<'a>(head: Head, count: usize, of: &[Known<'a>]) -> Vec<Known<'a>> {
    let index = |k: usize| match of.get(k) {
        Some(Known::Size(name)) => Known::Index(name),
        _ => Known::Other,
    };
    match head {
        Head::Let if count > 0 => vec![of[0]],
        Head::Build(_) | Head::Reduce(..) => (0..count).map(index).collect(),
        Head::Arg(_) if count > 0 => vec![index(0)],
        Head::Scan if count > 0 => vec![Known::Other, index(1)],
        _ => vec![Known::Other; count],
    }
}
