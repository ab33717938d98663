//! Networks become files and files networks: safetensors that say of which features and terms they are, and what they
//! learned from.
//!
//! Weights of other features, terms or pipelines are refused.

use super::network::{Network, tables};
use super::terms::{TERMS, term_names};
use crate::data;
use crate::data::tensors::{Part, Wanted, floats, pack, unpack};
use crate::diag::{Diagnostic, Result};
use crate::tune::features::{VERSION, names};
use crate::tune::random;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::path::Path;

const WANTED: Wanted = Wanted { what: "model of costs", by: "daedal train cost" };

/// What a file says of a network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct About {
    /// Which features there are.
    pub version: u32,
    /// Their names.
    pub features: Vec<String>,
    /// The names of the terms.
    pub terms: Vec<String>,
    /// What it learned from.
    pub learned: Learned,
}

/// What a network learned from.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Learned {
    /// Which pipelines seeds stand for.
    pub pipelines: u32,
    /// Seeds of pipelines that it learned from.
    pub seeds: Vec<u64>,
    /// Seeds of those on which it was compared with others.
    pub held_out: Vec<u64>,
    /// How many schedules of them.
    pub schedules: usize,
    /// The machine that they were measured on.
    pub machine: String,
}

/// Reads a network from a file.
///
/// # Errors
/// The file cannot be read, or holds no network of this version.
pub fn read(path: &Path) -> Result<(Network, Learned)> {
    parse(&path.display().to_string(), &data::bytes(path)?)
}

/// The network in the bytes of a file of this name, and what it learned from.
///
/// # Errors
/// The bytes hold no network of this version.
pub fn parse(name: &str, bytes: &[u8]) -> Result<(Network, Learned)> {
    let (about, file) = unpack(name, bytes, &WANTED)?;
    let about: About = serde_json::from_str(&about).map_err(|_| WANTED.foreign(name))?;
    let again = "train it anew with `daedal train cost`";
    if about.version != VERSION || about.learned.pipelines != random::VERSION {
        let (found, other) = (about.version, about.learned.pipelines);
        return Err(Diagnostic::user(format!(
            "`{name}` holds a model of costs of version {found}.{other}, expected {VERSION}.{}",
            random::VERSION
        ))
        .note(again));
    }
    if about.features != names() || about.terms != term_names() {
        return Err(Diagnostic::user(format!("`{name}` holds a model of costs of other features")).note(again));
    }
    let list = |what: &str, shape: [usize; 2]| -> Result<Vec<f64>> {
        Ok(floats(name, &file, what, shape)?.iter().map(|v| f64::from(*v)).collect())
    };
    let tables = tables().into_iter().map(|(what, shape)| list(what, shape)).collect::<Result<_>>()?;
    let scaling = [list("shift", [names().len(), 1])?, list("scale", [names().len(), 1])?];
    let given = list("stated", [TERMS, 1])?;
    if given.iter().any(|n| *n < 0.0) {
        return Err(Diagnostic::user(format!("among the coefficients of `{name}` are negative ones")).note(again));
    }
    Ok((Network { tables, scaling, stated: std::array::from_fn(|k| given[k]) }, about.learned))
}

/// The bytes of a file that holds a network.
///
/// # Errors
/// A bug, where they cannot be made.
pub fn bytes(network: &Network, learned: &Learned) -> Result<Vec<u8>> {
    let terms = term_names().into_iter().map(String::from).collect();
    let about = About { version: VERSION, features: names().to_vec(), terms, learned: learned.clone() };
    let about =
        serde_json::to_string(&about).map_err(|e| Diagnostic::bug(format!("weights cannot be written: {e}")))?;
    let part = |what: &str, [rows, columns]: [usize; 2], values: &[f64]| -> Result<(String, Part)> {
        let table = Array2::from_shape_vec((rows, columns), values.iter().map(|v| *v as f32).collect());
        let table = table.map_err(|e| Diagnostic::bug(format!("weights of another size: {e}")))?;
        Ok((what.to_string(), Part::floats(&table)))
    };
    let named = tables().into_iter().zip(&network.tables);
    let mut parts = named.map(|((what, shape), t)| part(what, shape, t)).collect::<Result<Vec<_>>>()?;
    parts.push(part("shift", [names().len(), 1], &network.scaling[0])?);
    parts.push(part("scale", [names().len(), 1], &network.scaling[1])?);
    parts.push(part("stated", [TERMS, 1], &network.stated)?);
    pack(about, parts)
}
