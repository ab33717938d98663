//! Files become bytes and source texts. Larger ones than fit are refused before they are read.

use crate::diag::{Diagnostic, Result, Source};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Larger files are refused.
pub const MAX_BYTES: u64 = 1 << 30;

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

/// The bytes of a file that must hold some.
pub fn filled(path: &Path) -> Result<Vec<u8>> {
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
pub fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        _ => e.to_string(),
    }
}
