//! A definition and what is known of its arguments become the memory that its native code takes at most.
//!
//! The nest that is looked at is the one that runs: under the default schedule for these sizes, where there is one. It
//! must not know what the definition is for.

use super::native;
use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::{Def, Param, Program, Scalar, Ty, TyKind};
use crate::machine::Machine;
use crate::nest::{self, Held};
use crate::schedule::{self, Schedule};
use crate::stage::{self, Graph, Node};
use crate::tune::example;

/// Numbers that come in, in the order of the calling form; nothing where they are not known, or are data.
pub type Incoming = Vec<Option<f64>>;

/// What is known of arguments: they are there, or names of sizes and of integers are told.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// The arguments.
    Arguments(&'a [Value]),
    /// Sizes and integers by name.
    Sizes(&'a [(String, u64)]),
    /// The same, where others are assumed.
    Assumed(&'a [(String, u64)]),
}

impl Known<'_> {
    /// The numbers that come into a definition.
    ///
    /// # Errors
    /// A size or an integer that is not told, or that has no name.
    pub fn incoming(&self, def: &Def) -> Result<Incoming> {
        let (sizes, assumed) = match self {
            Known::Arguments(args) => return Ok(example::incoming(def, args).into_iter().map(Some).collect()),
            Known::Sizes(sizes) => (sizes, false),
            Known::Assumed(sizes) => (sizes, true),
        };
        let told =
            |name: &str| told(sizes, name).or_else(|d| if assumed { Ok(example::ASSUMED as f64) } else { Err(d) });
        let mut out = vec![];
        for p in &def.params {
            let mut axes = (0..p.ty.axes()).map(|k| p.sizes.get(k).map(String::as_str));
            let mut next = || match axes.next().flatten() {
                Some(name) => told(name),
                None if assumed => Ok(example::ASSUMED as f64),
                None => Err(nameless(p)),
            };
            let integer = || match p.ty == Ty::int() || assumed {
                true => told(&p.name),
                false => Err(nameless(p)),
            };
            words(p.ty, false, &mut next, &integer, &mut out)?;
        }
        Ok(out)
    }

    /// Sizes and integers by name, for cost models.
    pub fn named(&self, def: &Def) -> Result<Vec<(String, u64)>> {
        let args = match self {
            Known::Sizes(sizes) | Known::Assumed(sizes) => return Ok(sizes.to_vec()),
            Known::Arguments(args) => args,
        };
        let mut out: Vec<(String, u64)> = vec![];
        for (p, v) in def.params.iter().zip(*args) {
            let incoming = example::incoming(&Def { params: vec![p.clone()], ..def.clone() }, std::slice::from_ref(v));
            let number = |n: f64| n.max(0.0) as u64;
            if p.ty == Ty::int() {
                out.extend(incoming.first().map(|n| (p.name.clone(), number(*n))));
            }
            // Through nested tensors of numbers, the sizes come first.
            if p.ty.as_tensor().is_some() {
                out.extend(p.sizes.iter().cloned().zip(incoming.into_iter().map(number)));
            }
        }
        Ok(out)
    }
}

fn told(sizes: &[(String, u64)], name: &str) -> Result<f64> {
    let found = sizes.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v as f64);
    found.ok_or_else(|| Diagnostic::user(format!("`--size {name}=N` is needed to know how much memory is taken")))
}

fn nameless(p: &Param) -> Box<Diagnostic> {
    let message = format!("`{}` has sizes or integers without names, so no option can tell them", p.name);
    Diagnostic::user(message).note("hint: name them, as `n` in `(x : (Vec Float) n)`, or give arguments")
}

/// The words of a parameter in the calling form, by what gives the next size and the integer that it is.
fn words(
    ty: Ty,
    inside: bool,
    next: &mut dyn FnMut() -> Result<f64>,
    integer: &dyn Fn() -> Result<f64>,
    out: &mut Incoming,
) -> Result<()> {
    match ty.kind() {
        TyKind::Tuple(parts) => parts.iter().try_for_each(|part| words(*part, inside, next, integer, out))?,
        TyKind::Tensor(rank, elem) => {
            for _ in 0..*rank {
                out.push(Some(next()?));
            }
            words(*elem, true, next, integer, out)?;
        }
        TyKind::Scalar(Scalar::I64) if !inside => out.push(Some(integer()?)),
        _ => out.push(None),
    }
    Ok(())
}

/// The sizes among the words of a type, from these words on.
fn sizes_of(ty: Ty, words: &mut impl Iterator<Item = Option<f64>>, out: &mut Vec<Option<f64>>) {
    match ty.kind() {
        TyKind::Tuple(parts) => parts.iter().for_each(|part| sizes_of(*part, words, out)),
        TyKind::Tensor(rank, elem) => {
            out.extend((0..*rank).map(|_| words.next().flatten()));
            sizes_of(*elem, words, out);
        }
        _ => drop(words.next()),
    }
}

/// The words of a value of a type with these sizes.
fn words_of(ty: Ty, sizes: &mut impl Iterator<Item = Option<f64>>, out: &mut Incoming) {
    match ty.kind() {
        TyKind::Tuple(parts) => parts.iter().for_each(|part| words_of(*part, sizes, out)),
        TyKind::Tensor(rank, elem) => {
            out.extend((0..*rank).map(|_| sizes.next().flatten()));
            words_of(*elem, sizes, out);
        }
        _ => out.push(None),
    }
}

/// The numbers that come into a derivative: those of its source, then of tangents of some parameters or, where there
/// are none, of the adjoint of a result of these sizes.
pub fn after_arguments(
    (def, own): (&Def, &Incoming),
    result: &[Option<f64>],
    derived: &Def,
    tangents: &[usize],
) -> Incoming {
    let mut words = own.iter().copied();
    let of_params: Vec<Vec<Option<f64>>> = def
        .params
        .iter()
        .map(|p| {
            let mut sizes = vec![];
            sizes_of(p.ty, &mut words, &mut sizes);
            sizes
        })
        .collect();
    let mut out = own.clone();
    for (k, p) in derived.params.iter().skip(def.params.len()).enumerate() {
        let sizes = tangents.get(k).map_or(result, |of| of_params[*of].as_slice());
        words_of(p.ty, &mut sizes.iter().copied(), &mut out);
    }
    out
}

/// The named sizes and integers of a definition, as they are told or assumed.
///
/// # Errors
/// As [`Known::incoming`].
pub fn named_sizes(def: &Def, known: &Known<'_>) -> Result<Vec<(String, u64)>> {
    let (told, mut out) = (known.named(def)?, Vec::<(String, u64)>::new());
    for p in &def.params {
        let own = (p.ty == Ty::int()).then_some(&p.name);
        for name in p.sizes.iter().chain(own) {
            if !out.iter().any(|(n, _)| n == name) {
                let value = told.iter().rev().find(|(n, _)| n == name).map_or(example::ASSUMED, |(_, v)| *v);
                out.push((name.clone(), value));
            }
        }
    }
    Ok(out)
}

/// The default schedule of a definition for what comes in; nothing where it cannot be scheduled, or has no loop to
/// schedule.
pub fn default_schedule(program: &Program, def: &Def, incoming: &Incoming, machine: &Machine) -> Option<Schedule> {
    let graph = stage::extract(program, def).ok()?;
    let known: Vec<f64> = incoming.iter().map(|v| v.unwrap_or(0.0)).collect();
    let general = incoming.iter().any(Option::is_none) && floats_decide(&graph);
    let made = match general {
        true => schedule::default(graph, machine),
        false => schedule::default_for(graph, &known, machine),
    };
    Some(made).filter(|made| made.graph.has_loops())
}

/// Whether floats that come in become whole numbers, which would be taken for known.
fn floats_decide(graph: &Graph) -> bool {
    let bodies = &graph.bodies;
    let all = graph.stages.iter().flat_map(stage::Stage::bodies).chain(graph.dims.iter().map(|d| d.extent));
    bodies.reachable(all).into_iter().any(|b| match bodies.node(b) {
        Node::Cast(Scalar::I64, from) if bodies.ty(*from).is_float() => {
            let symbol = |b| matches!(bodies.node(b), Node::Symbol(_)) && bodies.ty(b).is_float();
            bodies.reachable([*from]).into_iter().any(symbol)
        }
        _ => false,
    })
}

/// The memory that native code of a definition takes at most, by what comes in.
///
/// # Errors
/// What lowering refuses; a tensor whose size data decide.
pub fn held(program: &Program, def: &Def, incoming: &Incoming, machine: &Machine) -> Result<Held> {
    let nest = match default_schedule(program, def, incoming, machine) {
        Some(schedule) => native::scheduled_nest(def, &schedule, machine)?,
        None => native::nest(program, def, machine)?,
    };
    nest::held(&nest, incoming, machine.threads).map_err(|name| {
        let message = format!("how much memory `{}` takes is not known from sizes", def.name());
        Diagnostic::user(message).note(format!("data decide how large `{name}` is"))
    })
}
