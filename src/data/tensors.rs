//! Tables of numbers become files and files tables: safetensors, with a text about them.

use crate::diag::{Diagnostic, Result};
use ndarray::Array2;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;

/// The one key of the metadata: several would be written in any order.
const KEY: &str = "daedal";

/// What a file is expected to hold, and what writes such files: for messages.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// As in "a value network".
    pub what: &'static str,
    /// The command.
    pub by: &'static str,
}

impl Wanted {
    /// A file that holds something else.
    pub fn foreign(&self, name: &str) -> Box<Diagnostic> {
        Diagnostic::user(format!("`{name}` holds no {}", self.what))
            .note(format!("expected a file that `{}` wrote", self.by))
    }
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

/// The text about a file, and its numbers.
///
/// # Errors
/// The bytes are no such file, or are cut short.
pub fn unpack<'a>(name: &str, bytes: &'a [u8], wanted: &Wanted) -> Result<(String, SafeTensors<'a>)> {
    let bad = |e| {
        Diagnostic::user(format!("`{name}` is no file of weights, or not all of one: {e}"))
            .note(format!("expected a safetensors file that `{}` wrote", wanted.by))
    };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(bad)?;
    let about = metadata.metadata().as_ref().and_then(|all| all.get(KEY)).ok_or_else(|| wanted.foreign(name))?.clone();
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
