//! Types of numbers and vectors become C++ types.

use crate::ir::Scalar;

pub(super) fn cpp_ty(s: Scalar) -> &'static str {
    match s {
        Scalar::F64 => "double",
        Scalar::F32 => "float",
        Scalar::I64 => "int64_t",
        Scalar::I32 => "int32_t",
        Scalar::I16 => "int16_t",
        Scalar::I8 => "int8_t",
        Scalar::U32 => "uint32_t",
        Scalar::U16 => "uint16_t",
        Scalar::U8 => "uint8_t",
        Scalar::Bool => "bool",
    }
}

/// The type of a variable, or of an element of a buffer in registers.
pub(super) fn lanes_ty(ty: Scalar, lanes: u32) -> String {
    match (ty, lanes) {
        (_, 1) => cpp_ty(ty).to_string(),
        (Scalar::Bool, n) => format!("ks::Mask<{n}>"),
        (_, n) => format!("ks::Vec<{}, {n}>", cpp_ty(ty)),
    }
}
