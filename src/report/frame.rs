//! What stands in a page becomes a page: an HTML file that loads nothing.

use super::text::escape;

/// A page of a title, and of what stands below it, as HTML.
pub fn framed(title: &str, body: &str) -> String {
    let (title, style) = (escape(title), include_str!("style.css"));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>\n{style}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
    )
}
