//! A section of a page becomes what was measured last; the rest of the page stays.

use super::files::source;
use super::output::Output;
use crate::diag::{Diagnostic, Result};
use std::path::Path;

/// Replaces what stands between the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a page by lines.
///
/// # Errors
/// The page cannot be read or written, or has no such section.
pub fn section(path: &Path, name: &str, lines: &[String]) -> Result<()> {
    let page = source(path)?;
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let place = |mark: &str| {
        page.text.find(mark).ok_or_else(|| {
            Diagnostic::user(format!("`{}` has no line `{mark}`", page.name))
                .note("a section of the page stands between two such comments, and is replaced")
        })
    };
    let (from, to) = (place(&begin)? + begin.len(), place(&end)?);
    if to < from {
        return Err(Diagnostic::user(format!("in `{}` the section ends before it begins", page.name)));
    }
    let text = format!("{}\n{}\n{}", &page.text[..from], lines.join("\n"), &page.text[to..]);
    Output::at(path)?.bytes(text.as_bytes())
}
