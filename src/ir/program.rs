//! A program: definitions in order, over one arena of terms.

use super::head::{Fun, Head};
use super::term::{Id, Terms};
use super::ty::Ty;
use crate::diag::{Source, Span};
use indexmap::IndexMap;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A parameter of a definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name in the source.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// Names of its sizes, one an axis through nested tensors; empty where none are named.
    pub sizes: Vec<String>,
}

impl Param {
    /// What the size of an axis is called: its name, or `y.1` for the first of `y`, where it has none.
    pub fn size(&self, axis: usize) -> String {
        self.sizes.get(axis).cloned().unwrap_or_else(|| format!("{}.{}", self.name, axis + 1))
    }
}

/// An axis of a parameter: which parameter, and which of its axes, through nested tensors.
pub type Axis = (usize, usize);

/// Where a definition's meaning comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A term over the parameters as free variables: the last parameter is variable 0.
    Term(Id),
    /// `edef`: only the type is known.
    External,
    /// `gdef`: a derivative that was asked for.
    Derivative,
}

/// A named function.
#[derive(Clone, PartialEq, Debug)]
pub struct Def {
    /// Name and types: what calls name.
    pub fun: Fun,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Its meaning.
    pub body: Body,
    /// Where its name stands.
    pub span: Span,
}

impl Def {
    /// The name as the source writes it.
    pub fn name(&self) -> &'static str {
        &self.fun.sig().name
    }

    /// The body, where there is one.
    pub fn term(&self) -> Option<Id> {
        match self.body {
            Body::Term(id) => Some(id),
            Body::External | Body::Derivative => None,
        }
    }

    /// The name of a parameter's size, where that name means the size of this axis: the first that has it.
    pub fn named_size(&self, (p, axis): Axis) -> Option<&str> {
        named_size(&self.params, (p, axis))
    }

    /// Pairs of axes whose sizes share a name: they must agree at each call.
    pub fn equal_sizes(&self) -> Vec<(Axis, Axis, &str)> {
        let mut first: IndexMap<&str, Axis> = IndexMap::new();
        let mut out = vec![];
        for (p, param) in self.params.iter().enumerate() {
            for (axis, name) in param.sizes.iter().enumerate() {
                match first.get(name.as_str()) {
                    Some(seen) => out.push((*seen, (p, axis), name.as_str())),
                    None => {
                        first.insert(name, (p, axis));
                    }
                }
            }
        }
        out
    }
}

/// Definitions over one arena.
#[derive(Clone)]
pub struct Program {
    /// All terms.
    pub terms: Terms,
    /// The definitions in the order of the source.
    pub defs: IndexMap<Fun, Def>,
    /// The text it was read from.
    pub source: Arc<Source>,
}

/// The name of a parameter's size, where that name means the size of this axis: the first that has it.
pub fn named_size(params: &[Param], (p, axis): Axis) -> Option<&str> {
    let name = params.get(p)?.sizes.get(axis)?;
    let before = params[..p].iter().flat_map(|p| &p.sizes).chain(&params[p].sizes[..axis]);
    (!before.into_iter().any(|n| n == name)).then_some(name.as_str())
}

impl std::hash::Hash for Def {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.fun.hash(state);
    }
}

impl Program {
    /// The functions that print, or call such functions.
    pub fn printing(&self) -> FxHashSet<Fun> {
        let mut found = FxHashSet::default();
        // A body names functions above it, and itself.
        for def in self.defs.values() {
            let Some(body) = def.term() else { continue };
            let prints = |id: &Id| match self.terms.head(*id) {
                Head::Print => true,
                Head::Call(f) => found.contains(&f),
                _ => false,
            };
            if self.terms.reachable(body).iter().any(prints) {
                found.insert(def.fun);
            }
        }
        found
    }

    /// The definitions of a name.
    pub fn named(&self, name: &str) -> Vec<&Def> {
        self.defs.values().filter(|d| d.name() == name).collect()
    }

    /// A name that no definition has: this one, with primes where it is taken.
    pub fn unused_name(&self, name: &str) -> String {
        let mut name = name.to_string();
        while !self.named(&name).is_empty() {
            name += "'";
        }
        name
    }
}
