//! Names of the source become C++ identifiers, each used once in a function.

use rustc_hash::FxHashMap;

/// Words that C++ keeps for itself, and names that generated code uses.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "const",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "ks",
    "arena",
    "in",
    "out",
    "call",
    "main",
    "linux",
    "unix",
    "asm",
    "typeof",
    "stdin",
    "stdout",
    "stderr",
    "errno",
    "NULL",
];

/// Gives each name of a scope an identifier.
#[derive(Default)]
pub(super) struct Names {
    used: FxHashMap<String, usize>,
}

impl Names {
    /// An identifier near a name of the source that has not been given yet.
    pub(super) fn give(&mut self, name: &str) -> String {
        let stem = identifier(name);
        loop {
            let count = self.used.entry(stem.clone()).or_insert(0);
            *count += 1;
            let out = if *count == 1 { stem.clone() } else { format!("{stem}_{count}") };
            if *count == 1 || !self.used.contains_key(&out) {
                self.used.insert(out.clone(), self.used.get(&out).copied().unwrap_or(1));
                return out;
            }
        }
    }
}

/// Letters and digits of a name, with a letter first and no word of C++.
pub(super) fn identifier(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => out.push(c),
            '\'' => out.push('p'),
            _ if out.ends_with('_') => {}
            _ => out.push('_'),
        }
    }
    let out = out.trim_matches('_').to_string();
    // Capitals alone may be macros of the platform, and types such as int8_t end in `_t`.
    let odd = out.is_empty()
        || out.starts_with(|c: char| c.is_ascii_digit())
        || out.ends_with("_t")
        || TAKEN.contains(&out.as_str())
        || out.len() > 1 && out.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if odd { format!("x_{out}").trim_end_matches('_').to_string() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: names that C++ would read otherwise, and names that differ only in odd letters.
    #[test]
    fn names_are_identifiers_and_differ() {
        let mut names = Names::default();
        let given: Vec<String> =
            ["x'", "for", "a.b", "a-b", "a_b_2", "int8_t", "3", "?", "_", "x'"].iter().map(|n| names.give(n)).collect();
        let mut sorted = given.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), given.len(), "{given:?}");
        assert_eq!(&given[..3], ["xp", "x_for", "a_b"]);
    }
}
