//! A value becomes a short text: equal values have one, to the bit but for what is no number.

use crate::eval::Value;
use crate::ir::Lit;
use sha2::{Digest, Sha256};

/// The text that stands for a value.
pub fn digest(value: &Value) -> String {
    let mut hash = Sha256::new();
    add(value, &mut hash);
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

fn add(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Scalar(l) => match l.to_f64() {
            Some(v) if v.is_nan() => hash.update(b"nan"),
            _ => hash.update(bits(*l)),
        },
        Value::Tuple(parts) => parts.iter().for_each(|p| add(p, hash)),
        Value::Tensor(t) => {
            t.dims.iter().for_each(|n| hash.update((*n as u64).to_le_bytes()));
            t.iter().for_each(|v| add(&v, hash));
        }
    }
}

fn bits(l: Lit) -> Vec<u8> {
    match l {
        Lit::F64(b) => b.to_le_bytes().to_vec(),
        Lit::F32(b) => b.to_le_bytes().to_vec(),
        Lit::Int(_, v) => v.to_le_bytes().to_vec(),
        Lit::Bool(b) => vec![u8::from(b)],
        Lit::Str(s) => s.as_bytes().to_vec(),
    }
}
