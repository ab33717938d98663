//! Networks become files and files networks: safetensors, whose metadata say what the weights are for.
//!
//! Weights that were trained on kinds of nodes that this version does not have are refused, as are those of
//! another version of features and edges. A kind that the weights do not know, because it is newer, begins as
//! nothing.

use super::network::{Network, Setting, TENSORS, number};
use super::vocabulary::{KINDS, VERSION, class_of};
use crate::data;
use crate::data::tensors::{Part, Wanted, floats, pack, unpack};
use crate::diag::{Diagnostic, Result};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What files hold.
pub(super) const WANTED: Wanted = Wanted { what: "value network", by: "daedal train value" };

/// What the metadata say.
#[derive(Serialize, Deserialize)]
struct About {
    version: u32,
    width: usize,
    propagations: usize,
    steps: usize,
    kinds: Vec<String>,
}

/// Larger networks are refused: width, propagations, steps.
const MOST: [usize; 3] = [4096, 1000, 10_000];

/// Reads a network from a file.
///
/// # Errors
/// The file cannot be read, or holds no network of this version.
pub fn read(path: &Path) -> Result<Network> {
    parse(&path.display().to_string(), &data::bytes(path)?)
}

/// The network in the bytes of a file of this name.
///
/// # Errors
/// The bytes hold no network of this version.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Network> {
    let (about, file) = unpack(name, bytes, &WANTED)?;
    let about: About = serde_json::from_str(&about).map_err(|_| WANTED.foreign(name))?;
    if about.version != VERSION {
        let found = about.version;
        return Err(Diagnostic::user(format!("`{name}` holds a network of version {found}, expected {VERSION}"))
            .note("train it anew with `daedal train value`"));
    }
    let setting = Setting { width: about.width, propagations: about.propagations, steps: about.steps };
    let sizes = [setting.width, setting.propagations, setting.steps];
    if sizes.iter().zip(MOST).any(|(n, most)| *n == 0 || *n > most) {
        let [width, propagations, steps] = sizes;
        return Err(Diagnostic::user(format!(
            "`{name}` holds a network of width {width} with {propagations} propagations and {steps} steps"
        ))
        .note(format!("expected at least 1 of each, and at most {}, {} and {}", MOST[0], MOST[1], MOST[2])));
    }
    if let Some(kind) = about.kinds.iter().find(|kind| !KINDS.contains(kind)) {
        return Err(Diagnostic::user(format!("`{name}` holds a network that was trained on other kinds of nodes"))
            .note(format!("it knows `{kind}`, which this version of daedal does not have"))
            .note("train it anew with `daedal train value`"));
    }
    let mut tensors = Vec::with_capacity(TENSORS);
    for (k, (tensor, shape)) in setting.tensors().into_iter().enumerate() {
        let rows = if k == number::KIND { about.kinds.len() } else { shape[0] };
        tensors.push(floats(name, &file, tensor, [rows, shape[1]])?);
    }
    let mut kinds = Array2::zeros((KINDS.len(), setting.width));
    let known = &tensors[number::KIND];
    let row = |kind: &str| about.kinds.iter().position(|known| known == kind).map(|row| known.row(row));
    for (k, kind) in KINDS.iter().enumerate() {
        match row(kind) {
            Some(row) => kinds.row_mut(k).assign(&row),
            // An operation that is newer than the network is the mean of those of its cost class.
            None => {
                let alike: Vec<_> = class_of(k).into_iter().filter_map(row).collect();
                for like in &alike {
                    kinds.row_mut(k).scaled_add(1.0 / alike.len() as f32, like);
                }
            }
        }
    }
    tensors[number::KIND] = kinds;
    Ok(Network { setting, tensors })
}

/// The bytes of a file that holds a network.
///
/// # Errors
/// A bug, where they cannot be made.
pub fn bytes(network: &Network) -> Result<Vec<u8>> {
    let Setting { width, propagations, steps } = network.setting;
    let about = About { version: VERSION, width, propagations, steps, kinds: KINDS.clone() };
    let about =
        serde_json::to_string(&about).map_err(|e| Diagnostic::bug(format!("weights cannot be written: {e}")))?;
    let named = network.setting.tensors().into_iter().zip(&network.tensors);
    let parts = named.map(|((name, _), tensor)| (name.to_string(), Part::floats(tensor))).collect();
    pack(about, parts)
}

impl Network {
    /// The network that comes with Daedal.
    ///
    /// # Errors
    /// It is not one of this version.
    pub fn shipped() -> Result<Network> {
        parse("the shipped network", include_bytes!("shipped.safetensors"))
    }
}
