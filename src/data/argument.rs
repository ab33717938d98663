//! A word of the command line becomes a value: it is JSON, or names a file whose ending says what it holds.

use super::files::filled;
use super::{image, npy};
use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::Ty;
use serde_json::Value as Json;
use std::path::Path;

/// What a file of a value holds, by its ending.
#[derive(Clone, Copy)]
pub enum Format {
    /// An array.
    Npy,
    /// A picture.
    Png,
    /// Any value, as text.
    Json,
}

impl Format {
    /// By its ending; nothing for others.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "npy" => Some(Format::Npy),
            "png" => Some(Format::Png),
            "json" => Some(Format::Json),
            _ => None,
        }
    }
}

/// The value that a word of the command line stands for: JSON, or `@` and the path of a file.
///
/// # Errors
/// The word or the file does not hold a value of the type.
pub fn argument(word: &str, ty: Ty) -> Result<Value> {
    if let Some(path) = word.strip_prefix('@') {
        return file(Path::new(path), ty);
    }
    let json = match serde_json::from_str::<Json>(word) {
        Ok(json) => json,
        // A bare word is a text; among floats `inf`, `-inf` and `nan` are words.
        Err(_) if !word.trim_start().starts_with(['[', '{', '"']) && !word.is_empty() => Json::from(word),
        Err(e) => return Err(no_json("the argument", &e, ty)),
    };
    Value::from_json(&json, ty)
}

fn file(path: &Path, ty: Ty) -> Result<Value> {
    let name = path.display();
    let value = match Format::of(path) {
        Some(Format::Npy) => npy::read(&filled(path)?, ty),
        Some(Format::Png) => image::read(&filled(path)?, ty),
        Some(Format::Json) => match serde_json::from_slice::<Json>(&filled(path)?) {
            Ok(json) => Value::from_json(&json, ty),
            Err(e) => Err(no_json("the file", &e, ty)),
        },
        None => Err(Diagnostic::user(format!("`{name}` has an unknown ending"))
            .note("expected a file that ends in `.npy`, `.png` or `.json`")),
    };
    value.map_err(|d| d.note(format!("in the file `{name}`")))
}

fn no_json(what: &str, e: &serde_json::Error, ty: Ty) -> Box<Diagnostic> {
    Diagnostic::user(format!("{what} is no JSON: {e}")).note(format!("expected {ty}"))
}
