//! Bytes of PNG images become tensors of height, width and, where a type has a third axis, channels, and back. It must
//! not touch the file system.
//!
//! Integers are samples as they stand, and must have room for all that the image may hold. Floats are fractions of the
//! greatest sample; what is written of them has 8 bits a sample.

use super::files::MAX_BYTES;
use super::flat::{element, fits, nest, numbers, sizes};
use crate::diag::{Diagnostic, Result};
use crate::eval::{Number, Numbers, Value};
use crate::ir::{Lit, Scalar, Ty};
use png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, Limits, Transformations};
use std::io::Cursor;

/// The value of a type from the bytes of an image.
///
/// # Errors
/// The bytes are no such image, or the type has no place for what it holds.
pub fn read(bytes: &[u8], ty: Ty) -> Result<Value> {
    let scalar = element(ty).as_scalar().filter(|s| *s != Scalar::Bool);
    let (Some(scalar), 2 | 3) = (scalar, ty.axes()) else {
        let message = format!("a parameter of type {ty} cannot come from an image");
        return Err(Diagnostic::user(message).note(EXPECTED));
    };
    let samples = samples(bytes)?;
    let [height, width, channels] = samples.dims;
    let mut dims = vec![height, width, channels];
    if ty.axes() == 2 {
        if channels > 1 {
            let message =
                format!("the image has {channels} channels, and its parameter, of type {ty}, no axis for them");
            return Err(
                Diagnostic::user(message).note("expected a gray image, or a tensor of height, width and channels")
            );
        }
        dims.pop();
    }
    if !scalar.is_float() && scalar.wrap(samples.greatest) != samples.greatest {
        let bits = if samples.greatest == 255 { 8 } else { 16 };
        let message = format!("the image has {bits} bits a sample, for which {} has no room", scalar.name());
        return Err(Diagnostic::user(message).note(EXPECTED));
    }
    Ok(nest(ty, &dims, converted(samples, scalar)?))
}

/// Samples as numbers of a type that has room for them.
fn converted(samples: Samples, to: Scalar) -> Result<Numbers> {
    if samples.each.scalar() == to {
        return Ok(samples.each);
    }
    let mut out = Numbers::new(to);
    for v in samples.each.iter().filter_map(Lit::as_int) {
        let part = v as f64 / samples.greatest as f64;
        let sample = match to {
            Scalar::F64 => Lit::float(part),
            Scalar::F32 => Lit::float32(part as f32),
            s => Lit::Int(s, v),
        };
        if !out.push(sample) {
            return Err(Diagnostic::bug("a sample has no place in its type"));
        }
    }
    Ok(out)
}

/// What images and values have in common.
const EXPECTED: &str = "an image is a tensor of height and width, or of height, width and channels, whose elements are UInt8 \
    or UInt16, a wider integer, or floats from 0 to 1";

/// Samples of an image: its height, width and channels, the greatest that a sample may be, and all of them.
struct Samples {
    dims: [usize; 3],
    greatest: i64,
    each: Numbers,
}

fn samples(bytes: &[u8]) -> Result<Samples> {
    let bad = |e: DecodingError| match e {
        DecodingError::IoError(_) => Diagnostic::user("the image is cut short"),
        DecodingError::LimitsExceeded => Diagnostic::limit("the image is larger than 1 GiB"),
        e => Diagnostic::user(format!("the file is no PNG image: {e}")),
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MAX_BYTES as usize });
    // Palettes become colours, and samples of few bits those of 8.
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(bad)?;
    let dims = [reader.info().height, reader.info().width, reader.output_color_type().0.samples() as u32];
    let dims = dims.map(|n| n as usize);
    // Before there is memory for it: a small file may hold a large picture.
    fits(&dims)?;
    let mut data = vec![0; reader.output_buffer_size().ok_or_else(|| bad(DecodingError::LimitsExceeded))?];
    let frame = reader.next_frame(&mut data).map_err(bad)?;
    data.truncate(frame.buffer_size());
    let wide = frame.bit_depth == BitDepth::Sixteen;
    let each = match wide {
        true => u16::list(data.as_chunks().0.iter().map(|b| u16::from_be_bytes(*b)).collect()),
        false => u8::list(data),
    };
    Ok(Samples { dims, greatest: if wide { 0xffff } else { 0xff }, each })
}

/// The type of the samples of an image of values of a type.
///
/// # Errors
/// They have no place in an image.
pub fn writable(ty: Ty) -> Result<Scalar> {
    let scalar = element(ty).as_scalar();
    match (scalar, ty.axes()) {
        (Some(s @ (Scalar::U8 | Scalar::U16 | Scalar::F32 | Scalar::F64)), 2 | 3) => Ok(s),
        _ => Err(Diagnostic::user(format!("a result of type {ty} cannot be written as an image")).note(
            "expected a tensor of height and width, or of height, width and channels, of UInt8, UInt16 or floats",
        )),
    }
}

/// The bytes of an image that shows a value of a type: floats below 0 or beyond 1 are shown as 0 and 1.
///
/// # Errors
/// The value is empty, has more than four channels, or has a number that is none.
pub fn write(value: &Value, ty: Ty) -> Result<Vec<u8>> {
    let scalar = writable(ty)?;
    let dims = sizes(value, ty);
    let color = match dims.get(2) {
        None | Some(1) => ColorType::Grayscale,
        Some(2) => ColorType::GrayscaleAlpha,
        Some(3) => ColorType::Rgb,
        Some(4) => ColorType::Rgba,
        Some(n) => {
            let message = format!("a result with {n} channels cannot be written as an image");
            return Err(
                Diagnostic::user(message).note("expected 1 (gray), 2 (gray, alpha), 3 (colours) or 4 (colours, alpha)")
            );
        }
    };
    let side = |n: usize| u32::try_from(n).ok().filter(|n| *n > 0);
    let (Some(height), Some(width)) = (side(dims[0]), side(dims[1])) else {
        return Err(Diagnostic::user(format!(
            "a result of {} by {} pixels cannot be written as an image",
            dims[0], dims[1]
        )));
    };
    let data = shown(&numbers(value, scalar)?)?;
    let mut out = vec![];
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(if scalar == Scalar::U16 { BitDepth::Sixteen } else { BitDepth::Eight });
    let done = encoder.write_header().and_then(|mut w| w.write_image_data(&data));
    done.map_err(|e| Diagnostic::bug(format!("an image cannot be laid out: {e}")))?;
    Ok(out)
}

/// The samples that show numbers, as an image has them.
fn shown(all: &Numbers) -> Result<Vec<u8>> {
    if let Some(bytes) = u8::slice(all) {
        return Ok(bytes.to_vec());
    }
    if let Some(words) = u16::slice(all) {
        return Ok(words.iter().flat_map(|n| n.to_be_bytes()).collect());
    }
    let shown = |(at, l): (usize, Lit)| match l.as_f64() {
        Some(v) if !v.is_nan() => Ok((v.clamp(0.0, 1.0) * 255.0).round() as u8),
        _ => Err(Diagnostic::user(format!("element {at} of the result is no number, which no image shows"))),
    };
    all.iter().enumerate().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str, ty: Ty) -> Value {
        Value::from_json(&serde_json::from_str(json).unwrap(), ty).unwrap()
    }

    fn of(rank: usize, s: Scalar) -> Ty {
        Ty::tensor(rank, Ty::scalar(s))
    }

    /// Protects: what is written reads back, gray and colours, with 8 and 16 bits, in flat and nested tensors.
    #[test]
    fn images_read_back() {
        for (json, ty) in [
            ("[[0,1,255],[7,8,9]]", of(2, Scalar::U8)),
            ("[[0,1,65535]]", of(2, Scalar::U16)),
            ("[[[1,2,3],[4,5,6]]]", of(3, Scalar::U8)),
            ("[[[1,2,3,256]]]", of(3, Scalar::U16)),
            ("[[[1],[2]]]", of(3, Scalar::U8)),
            ("[[0.0,1.0,0.2]]", of(2, Scalar::F64)),
            ("[[[9,8]]]", Ty::tensor(1, Ty::tensor(1, of(1, Scalar::U8)))),
        ] {
            let value = value(json, ty);
            assert_eq!(read(&write(&value, ty).unwrap(), ty).unwrap(), value, "{json}");
        }
    }

    /// Protects: samples are integers as they stand, or fractions; what has no place is refused, and says so.
    #[test]
    fn samples_have_a_place_or_are_refused() {
        let (bytes, words) = (of(2, Scalar::U8), of(2, Scalar::U16));
        let gray = write(&value("[[0,51,255]]", bytes), bytes).unwrap();
        let text = |file: &[u8], ty: Ty| read(file, ty).unwrap().to_json().to_string();
        assert_eq!(text(&gray, of(2, Scalar::F64)), "[[0.0,0.2,1.0]]");
        assert_eq!(text(&gray, of(2, Scalar::I64)), "[[0,51,255]]");
        assert_eq!(text(&gray, of(3, Scalar::U16)), "[[[0],[51],[255]]]");
        let deep = write(&value("[[300]]", words), words).unwrap();
        let colours = write(&value("[[[1,2,3]]]", of(3, Scalar::U8)), of(3, Scalar::U8)).unwrap();
        for (file, ty, what) in [
            (&gray, of(2, Scalar::I8), "8 bits a sample, for which Int8 has no room"),
            (&deep, bytes, "16 bits a sample, for which UInt8 has no room"),
            (&colours, bytes, "has 3 channels"),
            (&gray, of(1, Scalar::U8), "cannot come from an image"),
            (&gray, of(2, Scalar::Bool), "cannot come from an image"),
        ] {
            let e = read(file, ty).unwrap_err();
            assert!(e.message.contains(what), "{e}");
        }
    }

    /// Protects: floats beyond the ends are shown as the ends, and results that no image shows are refused.
    #[test]
    fn results_are_shown_or_refused() {
        let floats = of(2, Scalar::F32);
        let shown = write(&value("[[-0.5,1.5,0.5,0.499]]", floats), floats).unwrap();
        assert_eq!(read(&shown, of(2, Scalar::U8)).unwrap().to_json().to_string(), "[[0,255,128,127]]");
        for (json, ty, what) in [
            ("[[\"nan\"]]", floats, "element 0"),
            ("[]", floats, "0 by 0 pixels"),
            ("[[[1,2,3,4,5]]]", of(3, Scalar::U8), "5 channels"),
            ("[[1]]", of(2, Scalar::I64), "cannot be written as an image"),
            ("[1]", of(1, Scalar::U8), "cannot be written as an image"),
        ] {
            let e = write(&value(json, ty), ty).unwrap_err();
            assert!(e.message.contains(what), "{e}");
        }
    }

    /// Protects: damaged images end in an error or in some image, whatever their headers promise.
    #[test]
    fn damaged_images_are_refused() {
        let ty = of(3, Scalar::U8);
        let good = write(&value("[[[1,2,3],[4,5,6]],[[7,8,9],[10,11,12]]]", ty), ty).unwrap();
        // The last chunk holds nothing.
        for cut in 0..good.len() - 12 {
            let e = read(&good[..cut], ty).unwrap_err();
            assert!(e.message.contains("cut short") || e.message.contains("no PNG image"), "{e}");
        }
        // A header that is right, of a picture that no tensor holds.
        let mut header = vec![];
        let mut encoder = Encoder::new(&mut header, 1 << 20, 1 << 20);
        encoder.set_color(ColorType::Rgb);
        encoder.write_header().unwrap().write_chunk(png::chunk::IDAT, &[0x78, 0x9c]).unwrap();
        let e = read(&header, ty).unwrap_err();
        assert!(e.message.contains("more than 536870912 elements"), "{e}");
        for at in 0..good.len() {
            let mut file = good.clone();
            file[at] ^= 0x15;
            let _ = read(&file, ty);
        }
    }
}
