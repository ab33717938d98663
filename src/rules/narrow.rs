//! Rules of `Float` become the same rules of `Float32`: a literal has a type of its own, so that a rule with one holds of one
//! width alone. What knows only 64 bits has no such rule, nor has a literal that 32 bits do not hold.

use super::rule::Rule;

/// Operations that 32-bit floats do not have.
const WIDE: [&str; 4] = ["truncate", "bool_to_float", "$ranhashdoub", "pi"];

/// The text of a rule of `Float` for `Float32`; nothing where it is not of `Float`, or has no such text.
pub(super) fn narrowed(rule: &Rule) -> Option<String> {
    let name = format!("\"{}\"", rule.name);
    let (before, after) = rule.text.split_once(&name)?;
    if !words(after).any(|w| w == "Float") {
        return None;
    }
    let mut out = format!("{before}\"{}-32\"", rule.name);
    let mut rest = after;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(is_apart).unwrap_or(rest.len()).max(if is_apart(c) { c.len_utf8() } else { 0 });
        let (word, more) = rest.split_at(end);
        out.push_str(&narrow_word(word)?);
        rest = more;
    }
    Some(out)
}

/// Whether a rule is of `Float32`, so that it fits nowhere in a program without such numbers.
pub fn is_narrow(rule: &Rule) -> bool {
    words(&rule.text).any(|w| w == "Float32")
}

fn is_apart(c: char) -> bool {
    c.is_whitespace() || c == '(' || c == ')'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_apart)
}

fn narrow_word(word: &str) -> Option<String> {
    Some(match word {
        "Float" => "Float32".into(),
        "to_float" => "cast Float32".into(),
        _ if WIDE.contains(&word) => return None,
        _ if is_float(word) => {
            let x: f64 = word.parse().ok()?;
            (f64::from(x as f32) == x).then(|| format!("{word}f32"))?
        }
        _ => word.into(),
    })
}

/// Whether a word is a literal of a float.
fn is_float(word: &str) -> bool {
    let number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    number && word.contains(['.', 'e']) && word.parse::<f64>().is_ok()
}
