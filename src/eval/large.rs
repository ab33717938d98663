//! Tensors that do not fit in memory become messages: one text for all that runs programs.
//!
//! It must not know who runs them.

use super::Value;
use crate::diag::{Diagnostic, Kind};
use crate::ir::{Ty, TyKind};

/// Sizes, as messages list them.
fn list(sizes: &[u64]) -> String {
    match sizes {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")),
    }
}

/// A tensor with its sizes.
pub fn sized(name: &str, sizes: &[u64]) -> String {
    format!("`{name}` of size {}", list(sizes))
}

/// That a tensor of these sizes does not fit in memory, or has more elements than any may have.
pub fn message(sizes: &[u64]) -> String {
    format!("a tensor of size {} is too large", list(sizes))
}

/// What it is called, if anything, and the bytes that it would take with so many for each element.
pub fn note(name: Option<&str>, sizes: &[u64], each: u64) -> String {
    let bytes = sizes.iter().fold(u128::from(each), |n, d| n.saturating_mul(u128::from(*d)));
    let name = name.map_or("it".to_string(), |name| format!("`{name}`"));
    format!("{name} takes {bytes} bytes")
}

/// Bytes of each element of a tensor of a type, as the interpreter has it: tensors in tensors are references.
pub fn each(tensor: Ty) -> u64 {
    fn bytes(ty: Ty) -> u64 {
        match ty.kind() {
            TyKind::Scalar(s) => s.bytes().into(),
            TyKind::Tuple(parts) => parts.iter().map(|p| bytes(*p)).sum(),
            TyKind::Tensor(..) | TyKind::String | TyKind::Var(..) => size_of::<Value>() as u64,
        }
    }
    bytes(tensor.as_tensor().map_or(tensor, |(_, elem)| elem))
}

/// Whether an error says that a tensor does not fit in memory.
pub fn is_too_large(d: &Diagnostic) -> bool {
    d.kind == Kind::Limit && d.message.starts_with("a tensor of size ") && d.message.ends_with(" is too large")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Protects: bytes that no integer holds are no panic, and the message is known again.
    #[test]
    fn messages_name_what_is_too_large() {
        assert_eq!(message(&[3, 4]), "a tensor of size (3 4) is too large");
        assert_eq!(note(Some("t"), &[3, 4], 8), "`t` takes 96 bytes");
        assert_eq!(note(None, &[3], 4), "it takes 12 bytes");
        assert!(note(None, &[u64::MAX; 5], 8).len() > 30);
        assert!(is_too_large(&Diagnostic::limit(message(&[5]))) && !is_too_large(&Diagnostic::user(message(&[5]))));
        assert!(!is_too_large(&Diagnostic::limit("recursion is deeper than 5 calls")));
    }
}
