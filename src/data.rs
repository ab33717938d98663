//! Files and words become values, and values become files: source texts, arguments, results, sections of pages.
//!
//! It must not know what a function computes: a parameter is a name and a type. Every output file
//! is complete or untouched: it is written beside its place and renamed.

mod flat;
mod image;
mod npy;
mod section;
mod short;

use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::ir::Ty;
use serde_json::Value as Json;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use section::section;
pub use short::shortened;

/// Larger files are refused.
const MAX_BYTES: u64 = 1 << 30;

/// Reads a source text.
///
/// # Errors
/// The file cannot be read, is too large, or is no UTF-8 text.
pub fn source(path: &Path) -> Result<Arc<Source>> {
    let name = path.display().to_string();
    let bytes = bytes(path)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            Err(Diagnostic::user(format!("`{name}` is no UTF-8 text: the byte at offset {at} fits no character")))
        }
    }
}

/// What a file of a value holds, by its ending.
#[derive(Clone, Copy)]
enum Format {
    Npy,
    Png,
    Json,
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
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

/// The bytes of a file that must hold some.
fn filled(path: &Path) -> Result<Vec<u8>> {
    let bytes = bytes(path)?;
    if bytes.is_empty() {
        return Err(Diagnostic::user(format!("the file `{}` is empty", path.display())));
    }
    Ok(bytes)
}

/// The bytes of a file.
///
/// # Errors
/// The file cannot be read, or is too large.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    let bad = |e: io::Error| Diagnostic::user(format!("`{}` cannot be read: {}", path.display(), reason(&e)));
    let file = fs::File::open(path).map_err(bad)?;
    let known = file.metadata().map_err(bad)?.len();
    let mut out = vec![];
    if known <= MAX_BYTES {
        // The size is checked again while reading: a pipe does not know its size.
        file.take(MAX_BYTES + 1).read_to_end(&mut out).map_err(bad)?;
    }
    if known > MAX_BYTES || out.len() as u64 > MAX_BYTES {
        return Err(Diagnostic::limit(format!("`{}` is larger than 1 GiB", path.display())));
    }
    Ok(out)
}

/// What the system says, without its number.
fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => e.to_string(),
    }
}

/// A place for a result, checked before any long work starts.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    /// Whether the place is a device or pipe, which is written as it is.
    direct: bool,
}

impl Output {
    /// Checks that a file can be written there.
    ///
    /// # Errors
    /// The place is a directory, is read-only, or its directory does not exist.
    pub fn at(path: &Path) -> Result<Output> {
        let bad = |what: &str| Err(Diagnostic::user(format!("`{}` cannot be written: {what}", path.display())));
        let (path, direct) = match fs::metadata(path) {
            Ok(m) if m.is_dir() => return bad("it is a directory"),
            Ok(m) if m.permissions().readonly() => return bad("it is read-only"),
            // A link stays a link: what it points to is replaced.
            Ok(m) => (fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()), !m.is_file()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if path.file_name().is_none() {
                    return bad("it names no file");
                }
                if !folder(path).is_dir() {
                    return bad("its directory does not exist");
                }
                (path.to_path_buf(), false)
            }
            Err(e) => return bad(&reason(&e)),
        };
        Ok(Output { path, direct })
    }

    /// As [`Output::at`], for values of a type: the ending must be `.npy`, `.png` or `.json`, and such files must have a place
    /// for them.
    ///
    /// # Errors
    /// As [`Output::at`]; another ending, or one of files without a place for such values.
    pub fn for_value(path: &Path, ty: Ty) -> Result<Output> {
        let Some(format) = Format::of(path) else {
            return Err(Diagnostic::user(format!("`{}` has an unknown ending", path.display()))
                .note("expected an output that ends in `.npy`, `.png` or `.json`"));
        };
        let place = Output::at(path)?;
        match format {
            Format::Npy => drop(npy::writable(ty)?),
            Format::Png => drop(image::writable(ty)?),
            Format::Json => {}
        }
        Ok(place)
    }

    /// Writes a value of a type.
    ///
    /// # Errors
    /// The value has no place in such a file; the file cannot be written.
    pub fn value(&self, value: &Value, ty: Ty) -> Result<()> {
        match Format::of(&self.path) {
            Some(Format::Npy) => self.bytes(&npy::write(value, ty)?),
            Some(Format::Png) => self.bytes(&image::write(value, ty)?),
            Some(Format::Json) | None => self.bytes(format!("{}\n", value.to_json()).as_bytes()),
        }
    }

    /// Writes a whole file, or leaves what stands there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn bytes(&self, bytes: &[u8]) -> Result<()> {
        let bad =
            |e: io::Error| Diagnostic::user(format!("`{}` cannot be written: {}", self.path.display(), reason(&e)));
        if self.direct {
            return fs::OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|mut f| f.write_all(bytes))
                .map_err(bad);
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let beside = folder(&self.path).join(format!(".{name}.{}.part", std::process::id()));
        let done = replace(&beside, &self.path, bytes);
        if done.is_err() {
            // It may never have come to be; the first error is the one to tell.
            let _ = fs::remove_file(&beside);
        }
        done.map_err(bad)
    }
}

fn replace(beside: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    if let Ok(old) = fs::metadata(path) {
        fs::set_permissions(beside, old.permissions())?;
    }
    fs::rename(beside, path)
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}
