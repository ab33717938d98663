//! Nests become one translation unit, and what is needed to call it.

use super::cpp::{Writer, entry, head};
use crate::ir::Ty;
use crate::ir::elementary;
use crate::nest::{Func, Nest, Site, Var};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What all generated code stands on.
const RUNTIME: &str = concat!(
    include_str!("runtime/ks.hpp"),
    include_str!("runtime/vector.hpp"),
    include_str!("runtime/elementary.hpp"),
    include_str!("runtime/memory.hpp")
);

/// Says that there is an `fma`.
const FUSES: &str = "#define KS_FUSES\n";

/// What parallel loops stand on.
const PARALLEL: &str = include_str!("runtime/parallel.hpp");

/// What times stages.
const TIMERS: &str = include_str!("runtime/timers.hpp");

/// What measures how much the machine does at most.
const ROOFLINE: &str = include_str!("runtime/roofline.hpp");

/// A translation unit.
#[derive(Clone, PartialEq, Debug)]
pub struct Unit {
    /// Its text.
    pub text: String,
    /// What can be called, in the order of the nests.
    pub entries: Vec<Interface>,
}

/// How one function of a unit is called, and how it fails.
#[derive(Clone, PartialEq, Debug)]
pub struct Interface {
    /// Its symbol.
    pub symbol: String,
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result type.
    pub ret: Ty,
    /// How many words the results are.
    pub words: usize,
    /// The places that can fail.
    pub sites: Vec<Site>,
    /// The texts of the source: a text is its index here.
    pub texts: Vec<&'static str>,
    /// The types of what each place writes that prints.
    pub prints: Vec<Vec<Ty>>,
    /// What tensors are called that take memory, and the bytes of their elements.
    pub tensors: Vec<(String, u64)>,
    /// Whether functions in it call themselves.
    pub recursive: bool,
    /// How many variables the function has.
    pub variables: usize,
}

/// The buffers of a function.
fn tensors(f: &Func) -> impl Iterator<Item = (String, u64)> + '_ {
    f.bufs.iter().map(|b| (b.name.clone(), u64::from(b.lanes * b.ty.bytes())))
}

impl Unit {
    /// The unit of several nests.
    pub fn new(nests: &[&Nest]) -> Unit {
        Unit::with(nests, None)
    }

    /// The unit of a nest with timers around loops of its entry, by their variables: each has the number of what its time is,
    /// of which there are so many.
    pub fn timed(nest: &Nest, loops: &BTreeMap<Var, usize>, count: usize) -> Unit {
        let mut out = Unit::with(&[nest], Some(loops));
        // Behind the runtime, in front of what uses them.
        let at = out.text.find("\nnamespace nest0 {").unwrap_or(out.text.len());
        out.text.insert_str(at, &format!("\nnamespace ks {{\nconstexpr int stages = {count};\n}}\n{TIMERS}"));
        out
    }

    fn with(nests: &[&Nest], timed: Option<&BTreeMap<Var, usize>>) -> Unit {
        let mut text = String::new();
        let mut entries = vec![];
        for (k, nest) in nests.iter().enumerate() {
            let symbol = format!("ks_entry_{k}");
            let _ = writeln!(text, "\nnamespace nest{k} {{\n");
            for (at, f) in nest.funcs.iter().enumerate() {
                let _ = writeln!(text, "{};", head(f, at));
            }
            for (at, f) in nest.funcs.iter().enumerate() {
                let _ = write!(text, "\n{} {{\n{}}}\n", head(f, at), Writer::new(f, nest).function());
            }
            let _ = write!(text, "{}\n}}\n", entry(nest, timed));
            let _ = write!(
                text,
                "\nextern \"C\" __attribute__((visibility(\"default\"))) int32_t {symbol}(ks::Call* call) {{\n  return ks::guard(call, nest{k}::start);\n}}\n",
            );
            entries.push(Interface {
                symbol,
                params: nest.params.clone(),
                ret: nest.ret,
                words: nest.entry.results.len(),
                sites: nest.sites.clone(),
                texts: nest.texts.clone(),
                prints: nest.prints.clone(),
                tensors: nest.funcs.iter().chain([&nest.entry]).flat_map(tensors).collect(),
                recursive: !nest.funcs.is_empty(),
                variables: nest.entry.vars.len(),
            });
        }
        if text.contains("ks::parallel<") {
            text.insert_str(0, PARALLEL);
        }
        let calls = |name: &str| text.matches(&format!("ks::{name}(")).count();
        // Functions of floats end in one, too.
        let fuses = calls("fma") + elementary::names().map(calls).sum::<usize>() > 0;
        let below = if fuses { FUSES } else { "" }.to_string() + &runtime(calls);
        Unit { text: below + &text, entries }
    }
}

/// What generated code stands on, with the elementary functions that are called; `calls` says how often.
pub fn runtime(calls: impl Fn(&str) -> usize) -> String {
    format!("{RUNTIME}\n{}#undef KS_INLINE\n", elementary::cpp(calls))
}

/// What parallel loops stand on, after [`runtime`].
pub fn parallel() -> &'static str {
    PARALLEL
}

/// A translation unit of `ks_fused_64`, `ks_fused_32`, `ks_copy` and `ks_triad`, which keep the machine busy.
pub fn roofline() -> String {
    format!("{RUNTIME}\n{ROOFLINE}#undef KS_INLINE\n")
}
