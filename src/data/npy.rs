//! Bytes of `.npy` files become values of a type, and back. It must not touch the file system.

use super::flat::{element, fits, nest, numbers, sizes};
use crate::diag::{Diagnostic, Result};
use crate::eval::{Number, Numbers, Value};
use crate::ir::{Lit, Scalar, Ty};
use ndarray::{ArrayD, ArrayView, IxDyn};
use ndarray_npy::{ReadNpyError, ReadNpyExt, ReadableElement, WritableElement, WriteNpyExt};

/// Sizes, and the elements in row-major order, whatever order the file has, at the type of the file.
struct Array {
    dims: Vec<usize>,
    all: Numbers,
}

/// The value of a type from the bytes of a file.
///
/// # Errors
/// The bytes are no such file, or hold an array that is not exactly a value of the type.
pub fn read(bytes: &[u8], ty: Ty) -> Result<Value> {
    let (axes, elem) = (ty.axes(), element(ty));
    let Some(scalar) = elem.as_scalar() else {
        let message = format!("a parameter of type {ty} cannot come from an `.npy` file");
        return Err(Diagnostic::user(message).note("expected a number, or tensors of numbers; write it as JSON"));
    };
    plausible(bytes)?;
    let array = array(bytes)?;
    if array.dims.len() != axes {
        let found = array.dims.len();
        return Err(Diagnostic::user("the array has another rank than its parameter")
            .note(format!("expected {axes} {} for {ty}, found {found}", if axes == 1 { "axis" } else { "axes" })));
    }
    fits(&array.dims)?;
    Ok(nest(ty, &array.dims, converted(array.all, scalar)?))
}

/// The same numbers at another type.
fn converted(all: Numbers, to: Scalar) -> Result<Numbers> {
    if all.scalar() == to {
        return Ok(all);
    }
    let mut out = Numbers::new(to);
    for (at, l) in all.iter().enumerate() {
        if !exact(l, to).is_some_and(|l| out.push(l)) {
            let message = format!("element {at} of the array, {}, is not exactly a {}", show(l), to.name());
            return Err(Diagnostic::user(message).note("convert the array before, and choose how to round"));
        }
    }
    Ok(out)
}

fn show(l: Lit) -> String {
    match l {
        Lit::Int(_, v) => v.to_string(),
        Lit::Bool(v) => v.to_string(),
        Lit::F64(_) | Lit::F32(_) | Lit::Str(_) => format!("{:?}", l.as_f64().unwrap_or_default()),
    }
}

/// The literal of a type with the same value, where there is one.
fn exact(l: Lit, s: Scalar) -> Option<Lit> {
    match (l, s) {
        (Lit::Bool(_), Scalar::Bool) => Some(l),
        (Lit::Bool(_) | Lit::Str(_), _) | (_, Scalar::Bool) => None,
        (Lit::Int(_, v), Scalar::F64) => ((v as f64) as i128 == i128::from(v)).then(|| Lit::float(v as f64)),
        (Lit::Int(_, v), Scalar::F32) => ((v as f32) as i128 == i128::from(v)).then(|| Lit::float32(v as f32)),
        (Lit::Int(_, v), s) => (s.wrap(v) == v).then_some(Lit::Int(s, v)),
        (Lit::F64(_) | Lit::F32(_), s) => float(l.as_f64()?, s),
    }
}

fn float(v: f64, s: Scalar) -> Option<Lit> {
    match s {
        Scalar::F64 => Some(Lit::float(v)),
        Scalar::F32 => (v.is_nan() || f64::from(v as f32) == v).then(|| Lit::float32(v as f32)),
        s => {
            let int = v as i64;
            // Past the ends of the range the conversion saturates, and 2^63 would seem to fit.
            let same = (int as f64).to_bits() == v.to_bits() && int != i64::MAX;
            (same && s.wrap(int) == int).then_some(Lit::Int(s, int))
        }
    }
}

/// Refuses what is no `.npy` file, and headers that promise more than the file holds: a reader that
/// believes them asks for that much memory.
fn plausible(bytes: &[u8]) -> Result<()> {
    let bad = |what: &str| Diagnostic::user(format!("the file is no `.npy` array: {what}"));
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(bad("it does not start with the mark of one"));
    }
    let (start, length) = match (bytes.get(6), bytes.get(8..10), bytes.get(8..12)) {
        (Some(1), Some(n), _) => (10, usize::from(n[0]) | usize::from(n[1]) << 8),
        (Some(2 | 3), _, Some(n)) => (12, n.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte))),
        _ => return Err(bad("its version is unknown, or it ends within its header")),
    };
    let Some(header) = bytes.get(start..start + length) else {
        return Err(bad("it ends within its header"));
    };
    let header = String::from_utf8_lossy(header);
    let shape = header.split_once("shape").and_then(|(_, rest)| rest.split_once('('));
    let Some((words, _)) = shape.and_then(|(_, rest)| rest.split_once(')')) else {
        return Err(bad("its header names no shape"));
    };
    let sizes = words.split(',').map(|w| w.trim().trim_end_matches('L')).filter(|w| !w.is_empty());
    let total = sizes.map(str::parse::<u64>).try_fold(1u64, |all, n| all.checked_mul(n.ok()?));
    match total {
        Some(n) if n <= bytes.len() as u64 => Ok(()),
        Some(_) => Err(Diagnostic::user(format!("the file is cut short: its header promises the shape ({words})"))),
        None => Err(bad("its shape is no list of sizes")),
    }
}

/// Reads the file at the element type that it has.
fn array(bytes: &[u8]) -> Result<Array> {
    let readers: [fn(&[u8]) -> Read; 10] =
        [at::<f64>, at::<f32>, at::<i64>, at::<i32>, at::<i16>, at::<i8>, at::<u8>, at::<u16>, at::<u32>, at::<bool>];
    for reader in readers {
        match reader(bytes) {
            Ok(array) => return Ok(array),
            Err(ReadNpyError::WrongDescriptor(_)) => {}
            Err(ReadNpyError::MissingData) => {
                return Err(Diagnostic::user("the file is cut short: it holds less than its header promises"));
            }
            Err(ReadNpyError::ExtraBytes(n)) => {
                return Err(Diagnostic::user(format!("the file goes on for {n} bytes after its array")));
            }
            Err(e) => return Err(Diagnostic::user(format!("the file is no `.npy` array: {e}"))),
        }
    }
    let known = "expected one of float64, float32, int64, int32, int16, int8, uint8, uint16, uint32, bool";
    Err(Diagnostic::user("the array has elements of an unknown type").note(known))
}

type Read = std::result::Result<Array, ReadNpyError>;

fn at<T: ReadableElement + Number>(bytes: &[u8]) -> Read {
    let array = ArrayD::<T>::read_npy(bytes)?;
    let dims = array.shape().to_vec();
    // Those of a file in the other order are put in row-major order.
    let all =
        if array.is_standard_layout() { array.into_raw_vec_and_offset().0 } else { array.iter().copied().collect() };
    Ok(Array { dims, all: T::list(all) })
}

/// The type of the elements of a file for values of a type.
///
/// # Errors
/// Tuples and texts have no place in an array.
pub fn writable(ty: Ty) -> Result<Scalar> {
    element(ty).as_scalar().ok_or_else(|| {
        Diagnostic::user(format!("a result of type {ty} cannot be written as an `.npy` file"))
            .note("only numbers and tensors of numbers can; choose a name that ends in `.json`")
    })
}

/// The bytes of a file that holds a value of a type.
///
/// # Errors
/// As [`writable`].
pub fn write(value: &Value, ty: Ty) -> Result<Vec<u8>> {
    let scalar = writable(ty)?;
    let (dims, all) = (sizes(value, ty), numbers(value, scalar)?);
    match scalar {
        Scalar::F64 => bytes::<f64>(&dims, &all),
        Scalar::F32 => bytes::<f32>(&dims, &all),
        Scalar::I64 => bytes::<i64>(&dims, &all),
        Scalar::I32 => bytes::<i32>(&dims, &all),
        Scalar::I16 => bytes::<i16>(&dims, &all),
        Scalar::I8 => bytes::<i8>(&dims, &all),
        Scalar::U32 => bytes::<u32>(&dims, &all),
        Scalar::U16 => bytes::<u16>(&dims, &all),
        Scalar::U8 => bytes::<u8>(&dims, &all),
        Scalar::Bool => bytes::<bool>(&dims, &all),
    }
}

fn bytes<T: WritableElement + Number>(dims: &[usize], all: &Numbers) -> Result<Vec<u8>> {
    let array = ArrayView::from_shape(IxDyn(dims), T::slice(all).unwrap_or_default())
        .map_err(|e| Diagnostic::bug(format!("a result does not fill its shape: {e}")))?;
    let mut out = vec![];
    array.write_npy(&mut out).map_err(|e| Diagnostic::bug(format!("a result cannot be laid out: {e}")))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy<T: WritableElement + Clone>(dims: &[usize], data: Vec<T>, fortran: bool) -> Vec<u8> {
        let mut array = ArrayD::from_shape_vec(IxDyn(dims), data).unwrap();
        if fortran {
            // The same elements in the other order of memory.
            let turned = array.t().as_standard_layout().into_owned();
            array = turned.reversed_axes();
        }
        let mut out = vec![];
        array.write_npy(&mut out).unwrap();
        out
    }

    fn text(value: &Value) -> String {
        value.to_json().to_string()
    }

    /// Protects: element types convert where exact, in either order, into flat and nested tensors.
    #[test]
    fn arrays_are_read_exactly_or_refused() {
        let (f, i) = (Ty::float(), Ty::int());
        let rows = Ty::tensor(1, Ty::tensor(1, f));
        for fortran in [false, true] {
            let file = npy(&[2, 3], vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0], fortran);
            assert_eq!(text(&read(&file, rows).unwrap()), "[[0.5,1.0,2.0],[3.0,4.0,5.0]]");
            assert_eq!(text(&read(&file, Ty::tensor(2, f)).unwrap()), "[[0.5,1.0,2.0],[3.0,4.0,5.0]]");
            let e = read(&file, Ty::tensor(1, f)).unwrap_err();
            assert!(e.notes[0].contains("expected 1 axis"), "{e}");
        }
        assert_eq!(text(&read(&npy(&[2], vec![3u8, 255], false), Ty::tensor(1, f)).unwrap()), "[3.0,255.0]");
        assert_eq!(text(&read(&npy(&[], vec![7i16], false), i).unwrap()), "7");
        assert_eq!(text(&read(&npy(&[1], vec![true], false), Ty::tensor(1, Ty::bool())).unwrap()), "[true]");
        let small = Ty::scalar(Scalar::U8);
        for (file, ty) in [
            (npy(&[1], vec![0.5], false), Ty::tensor(1, i)),
            (npy(&[1], vec![256i32], false), Ty::tensor(1, small)),
            (npy(&[1], vec![0.1], false), Ty::tensor(1, Ty::scalar(Scalar::F32))),
            (npy(&[1], vec![i64::MAX], false), Ty::tensor(1, f)),
            (npy(&[1], vec![9_223_372_036_854_775_808.0], false), Ty::tensor(1, i)),
            (npy(&[1], vec![1i8], false), Ty::tensor(1, Ty::bool())),
        ] {
            let e = read(&file, ty).unwrap_err();
            assert!(e.message.contains("element 0"), "{e}");
        }
    }

    /// Protects: damaged files end in an error, whatever their headers promise.
    #[test]
    fn damaged_files_are_refused() {
        let (good, ty) = (npy(&[3], vec![1.0, 2.0, 3.0], false), Ty::tensor(1, Ty::float()));
        for cut in 0..good.len() {
            read(&good[..cut], ty).unwrap_err();
        }
        read(&[&good[..], &[0]].concat(), ty).unwrap_err();
        read(&[0x80; 300], ty).unwrap_err();
        let huge = String::from_utf8_lossy(&good).replace("(3,)", "(9999999999999,)");
        let huge: Vec<u8> = [&good[..6], huge.split_once("NUMPY").unwrap().1.as_bytes()].concat();
        read(&huge, ty).unwrap_err();
        for at in 0..good.len() - 24 {
            let mut file = good.clone();
            file[at] ^= 0x15;
            let _ = read(&file, ty);
        }
    }

    /// Protects: what is written reads back, at the type's own element type.
    #[test]
    fn results_read_back() {
        for (json, ty) in [
            ("[[1.5,2.5]]", Ty::tensor(1, Ty::tensor(1, Ty::float()))),
            ("[[1,-2],[3,4]]", Ty::tensor(2, Ty::scalar(Scalar::I16))),
            ("[true,false]", Ty::tensor(1, Ty::bool())),
            ("0.25", Ty::scalar(Scalar::F32)),
            ("[]", Ty::tensor(1, Ty::int())),
        ] {
            let value = Value::from_json(&serde_json::from_str(json).unwrap(), ty).unwrap();
            assert_eq!(read(&write(&value, ty).unwrap(), ty).unwrap(), value);
        }
        let pair = Ty::tuple([Ty::int(), Ty::int()]);
        write(&Value::tuple(vec![]), pair).unwrap_err();
    }
}
