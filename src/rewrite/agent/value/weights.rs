//! Networks become files and files networks: safetensors, whose metadata say what the weights are for.
//!
//! Weights that were trained on kinds of nodes that this version does not have are refused, as are those of
//! another version of features and edges. A kind that the weights do not know, because it is newer, begins as
//! nothing.

use super::network::{Network, Setting, TENSORS, number};
use super::vocabulary::{KINDS, VERSION, class_of};
use crate::data;
use crate::diag::{Diagnostic, Result};
use ndarray::Array2;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// The one key of the metadata: several would be written in any order.
const KEY: &str = "daedal";

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
    let (about, file) = unpack(name, bytes)?;
    let about: About = serde_json::from_str(&about).map_err(|_| foreign(name))?;
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
    let about = serde_json::to_string(&about).map_err(|e| unwritten(&e))?;
    let named = network.setting.tensors().into_iter().zip(&network.tensors);
    let parts = named.map(|((name, _), tensor)| (name.to_string(), Part::floats(tensor))).collect();
    pack(about, parts)
}

/// Numbers of a file.
pub struct Part {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Part {
    /// Rows of floats.
    pub fn floats(numbers: &Array2<f32>) -> Part {
        let bytes = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        Part { kind: Dtype::F32, shape: numbers.shape().to_vec(), bytes }
    }

    /// A list of numbers.
    pub fn counts(numbers: &[u32]) -> Part {
        let bytes = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
        Part { kind: Dtype::U32, shape: vec![numbers.len()], bytes }
    }
}

/// The bytes of a file with a text about it.
///
/// # Errors
/// A bug, where they cannot be made.
pub fn pack(about: String, parts: Vec<(String, Part)>) -> Result<Vec<u8>> {
    let mut views = vec![];
    for (name, part) in &parts {
        let view = TensorView::new(part.kind, part.shape.clone(), &part.bytes).map_err(|e| unwritten(&e))?;
        views.push((name, view));
    }
    let about = HashMap::from([(KEY.to_string(), about)]);
    safetensors::serialize(views, Some(about)).map_err(|e| unwritten(&e))
}

fn unwritten(e: &dyn std::fmt::Display) -> Box<Diagnostic> {
    Diagnostic::bug(format!("weights cannot be written: {e}"))
}

fn foreign(name: &str) -> Box<Diagnostic> {
    Diagnostic::user(format!("`{name}` holds no value network")).note("expected a file that `daedal train value` wrote")
}

/// The text about a file, and its numbers.
///
/// # Errors
/// The bytes are no such file, or are cut short.
pub fn unpack<'a>(name: &str, bytes: &'a [u8]) -> Result<(String, SafeTensors<'a>)> {
    let bad = |e| {
        Diagnostic::user(format!("`{name}` is no file of weights, or not all of one: {e}"))
            .note("expected a safetensors file that `daedal train value` wrote")
    };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(bad)?;
    let about = metadata.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or_else(|| foreign(name))?.clone();
    Ok((about, SafeTensors::deserialize(bytes).map_err(bad)?))
}

/// The rows of floats of a name.
///
/// # Errors
/// There are none, or they have another shape, or some is no finite number.
pub fn floats(file: &str, all: &SafeTensors<'_>, name: &str, shape: [usize; 2]) -> Result<Array2<f32>> {
    let view = part(file, all, name)?;
    if view.dtype() != Dtype::F32 || view.shape() != shape {
        let (found, kind) = (view.shape(), view.dtype());
        return Err(Diagnostic::user(format!(
            "the weights `{name}` of `{file}` are {found:?} of {kind:?}, expected {shape:?} of F32"
        )));
    }
    let numbers: Vec<f32> = words(view.data()).map(f32::from_le_bytes).collect();
    if numbers.iter().any(|v| !v.is_finite()) {
        return Err(Diagnostic::user(format!("among the weights `{name}` of `{file}` are some that are no numbers")));
    }
    Array2::from_shape_vec(shape, numbers).map_err(|e| Diagnostic::bug(format!("weights of another size: {e}")))
}

/// The list of a name.
///
/// # Errors
/// There is none.
pub fn counts(file: &str, all: &SafeTensors<'_>, name: &str) -> Result<Vec<u32>> {
    let view = part(file, all, name)?;
    match view.dtype() {
        Dtype::U32 => Ok(words(view.data()).map(u32::from_le_bytes).collect()),
        kind => Err(Diagnostic::user(format!("the list `{name}` of `{file}` is of {kind:?}, expected U32"))),
    }
}

fn part<'a>(file: &str, all: &SafeTensors<'a>, name: &str) -> Result<TensorView<'a>> {
    all.tensor(name).map_err(|_| Diagnostic::user(format!("`{file}` lacks the weights `{name}`")))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = [u8; 4]> {
    bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]])
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
