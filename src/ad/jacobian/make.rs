//! A definition becomes its Jacobian, and the indices that its blocks belong to, beside the definitions of a program.

use super::columns::{columns, compressed};
use super::component::{Component, Kinds};
use super::maker::Maker;
use super::pattern::pattern;
use super::rows::rows;
use crate::ad::keeping::{Decisions, Keeping};
use crate::ad::make::{differentiable, normal_body};
use crate::ad::requests::suffix;
use crate::ad::{Mode, Wanted};
use crate::diag::Result;
use crate::ir::{Fun, Head, Program, Ty};
use crate::types::verify;

/// In which order the numbers of a Jacobian stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// In the structure of the result: for each float of it the derivatives by the parameters. Takes one pass of reverse
    /// mode for each float.
    Rows,
    /// In the structure of the parameters: for each float of them the derivatives of the result. Takes one pass of forward
    /// mode for each float.
    Columns,
}

/// A Jacobian, made beside the definitions of a program.
pub struct Jacobian {
    /// The program with both functions.
    pub program: Program,
    /// The Jacobian, a function of the arguments. Where the value is wanted, it stands in front.
    pub fun: Fun,
    /// Which elements of the parameters the blocks belong to: a function of the arguments, whose result has the structure
    /// of the result of the definition. Nothing where no block is of single elements.
    pub pattern: Option<Fun>,
    /// What floats read of the parameters that are differentiated by, by their place in the result; what is not compressed
    /// counts as read as a whole.
    pub kinds: Kinds,
    /// The layout.
    pub layout: Layout,
    /// What there was to decide about what reverse mode keeps.
    pub decisions: Decisions,
}

/// Makes the Jacobian of a function. [`Wanted::mode`] is not looked at.
///
/// # Errors
/// What has no derivative, with its place.
pub fn jacobian(program: &Program, wanted: &Wanted, layout: Layout) -> Result<Jacobian> {
    let keeping = if wanted.checkpoint { Keeping::few() } else { Keeping::everything() };
    jacobian_keeping(program, wanted, layout, &keeping)
}

/// The same, of which each pass of reverse mode keeps so much; [`Wanted::checkpoint`] is not looked at.
///
/// # Errors
/// What has no derivative, with its place.
pub fn jacobian_keeping(program: &Program, wanted: &Wanted, layout: Layout, keeping: &Keeping) -> Result<Jacobian> {
    let def = program.defs[&wanted.fun].clone();
    differentiable(&def).map_err(|d| d.within(&program.source))?;
    let mode = if layout == Layout::Rows { Mode::Reverse } else { Mode::Forward };
    let (terms, body) = normal_body(program, &def, mode);
    let program = Program { terms, ..program.clone() };
    let by: Vec<usize> = (0..def.params.len()).filter(|k| wanted.wrt[*k]).collect();
    let mut m = Maker::new(program, &def, by, keeping);
    let n = def.params.len();
    let mut parts = Component::of(&mut m.program.terms, body, n, &m.by);
    let made = match layout {
        Layout::Rows => rows(&mut m, &parts, &mut vec![])?,
        Layout::Columns => {
            let tys: Vec<Ty> = m.by.iter().map(|k| def.params[*k].ty).collect();
            let compressed = compressed(&parts.kinds(), &tys);
            parts.forget(&compressed);
            columns(&mut m, &compressed)?
        }
    };
    let kinds = parts.kinds();
    let indices = pattern(&mut m.program.terms, &parts, &kinds);
    let made = match (wanted.value, def.term()) {
        (true, Some(value)) => m.program.terms.put(Head::Tuple, [value, made]),
        _ => made,
    };
    let suffix = suffix(def.fun, &wanted.wrt);
    let fun = m.define(&format!("{}jacobian{suffix}", if wanted.value { "value$" } else { "" }), made);
    let pattern = indices.map(|id| m.define(&format!("pattern{suffix}"), id));
    verify::verify(&m.program)?;
    Ok(Jacobian { program: m.program, fun, pattern, kinds, layout, decisions: m.decisions })
}
