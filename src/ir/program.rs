//! A program: definitions in order, over one arena of terms.

use super::head::Fun;
use super::term::{Id, Terms};
use super::ty::Ty;
use crate::diag::{Source, Span};
use indexmap::IndexMap;
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

impl std::hash::Hash for Def {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.fun.hash(state);
    }
}

impl Program {
    /// The definitions of a name.
    pub fn named(&self, name: &str) -> Vec<&Def> {
        self.defs.values().filter(|d| d.name() == name).collect()
    }
}
