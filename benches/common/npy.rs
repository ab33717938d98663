//! An array becomes a file of numpy's format, which `daedal` and the libraries beside it read.

use ndarray::ArrayD;
use ndarray_npy::{WritableElement, write_npy};
use std::path::Path;

/// Writes an array in row-major order; one without dimensions is a number.
pub fn write<T: WritableElement>(path: &Path, shape: &[usize], values: Vec<T>) {
    write_npy(path, &ArrayD::from_shape_vec(shape, values).unwrap()).unwrap();
}
