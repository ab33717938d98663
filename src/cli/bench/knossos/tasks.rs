//! What is optimized: programs, their definitions, and the least costs that are known.

use crate::ad;
use crate::diag::{Result, Source};
use crate::ir::{Def, Program};
use crate::rewrite::agent::value::settings;
use crate::types;

/// Costs nearer than this are equal.
pub const SAME: f64 = 1e-6;

/// The programs, by the names that experiments use.
const PROGRAMS: [(&str, &str); 7] = [
    ("arithmetic", include_str!("../../../../programs/agent/arithmetic.ks")),
    ("sharing", include_str!("../../../../programs/agent/sharing.ks")),
    ("blas", include_str!("../../../../programs/agent/blas.ks")),
    ("gmm", include_str!("../../../../programs/apps/gmm.ks")),
    ("gmm_gradient", include_str!("../../../../programs/grad/gmm.ks")),
    ("conv1d", include_str!("../../../../programs/apps/conv1d.ks")),
    ("conv1d_gradient", include_str!("../../../../programs/grad/conv1d.ks")),
];

/// A definition to optimize.
pub struct Task<'a> {
    /// The name of its program.
    pub file: &'static str,
    /// The program.
    pub program: &'a Program,
    /// The definition.
    pub def: &'a Def,
    /// The least cost that is known.
    pub known: Option<f64>,
}

impl<'a> Task<'a> {
    /// What a network learns of it.
    pub fn learned(&self) -> settings::Task<'a> {
        settings::Task { program: self.program, def: self.def }
    }
}

/// Reads the programs and makes their derivatives.
///
/// # Errors
/// A bug, where a shipped program is wrong.
pub fn programs() -> Result<Vec<(&'static str, Program)>> {
    let read = |(name, text): (&'static str, &'static str)| {
        Ok((name, ad::complete(&types::program(&Source::new(name, text))?)?))
    };
    PROGRAMS.into_iter().map(read).collect()
}

/// The text of a program.
pub fn text(file: &str) -> &'static str {
    PROGRAMS.iter().find(|(name, _)| *name == file).map_or("", |(_, text)| text)
}

/// The definitions of a program, with what its `;; cost` lines say of them.
pub fn tasks<'a>(programs: &'a [(&'static str, Program)], file: &str) -> Vec<Task<'a>> {
    let mut out = vec![];
    for (name, program) in programs.iter().filter(|(name, _)| *name == file) {
        let known = |def: &Def| {
            let start = format!(";; cost knossos {} <= ", def.name());
            text(name).lines().find_map(|l| l.strip_prefix(&start)?.trim().parse::<f64>().ok())
        };
        // Constants, and what is only there to be run, are nothing to optimize.
        let defs = program.defs.values().filter(|d| d.term().is_some() && !d.params.is_empty());
        let defs = defs.filter(|d| !d.name().starts_with("random_"));
        out.extend(defs.map(|def| Task { file: name, program, def, known: known(def) }));
    }
    out
}
