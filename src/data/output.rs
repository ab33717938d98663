//! Values become files, whole or not at all: a file is written beside its place and renamed.

use super::argument::Format;
use super::files::reason;
use super::{image, npy};
use crate::diag::{Diagnostic, Result};
use crate::eval::Value;
use crate::ir::Ty;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
