//! Deterministic arrays: what both sides of the comparison compute with.

use serde_json::{Value as Json, json};

/// The numbers of an array.
#[derive(Clone)]
pub enum Numbers {
    Float(Vec<f64>),
    Single(Vec<f32>),
    Integer(Vec<i64>),
}

/// An array in row-major order; one without dimensions is a number.
#[derive(Clone)]
pub struct Array {
    pub dims: Vec<usize>,
    pub numbers: Numbers,
}

impl Array {
    pub fn floats(dims: &[usize], each: impl FnMut(usize) -> f64) -> Array {
        Array { dims: dims.into(), numbers: Numbers::Float((0..dims.iter().product()).map(each).collect()) }
    }

    pub fn integers(dims: &[usize], each: impl FnMut(usize) -> i64) -> Array {
        Array { dims: dims.into(), numbers: Numbers::Integer((0..dims.iter().product()).map(each).collect()) }
    }

    pub fn zeros(dims: &[usize]) -> Array {
        Array::floats(dims, |_| 0.0)
    }

    /// Floats in 32 bits; integers as they are.
    pub fn single(&self) -> Array {
        let numbers = match &self.numbers {
            Numbers::Float(v) => Numbers::Single(v.iter().map(|x| *x as f32).collect()),
            other => other.clone(),
        };
        Array { dims: self.dims.clone(), numbers }
    }

    pub fn to_floats(&self) -> Vec<f64> {
        match &self.numbers {
            Numbers::Float(v) => v.clone(),
            Numbers::Single(v) => v.iter().map(|x| f64::from(*x)).collect(),
            Numbers::Integer(v) => v.iter().map(|x| *x as f64).collect(),
        }
    }

    pub fn index(&self, at: usize) -> usize {
        match &self.numbers {
            Numbers::Integer(v) => v[at] as usize,
            _ => panic!("only integers are indices"),
        }
    }

    /// Moves floats along a direction.
    pub fn moved(&self, direction: &[f64], by: f64) -> Array {
        let v = self.to_floats();
        Array::floats(&self.dims, |i| v[i] + by * direction[i])
    }

    /// Nested lists, as arguments of programs are written.
    pub fn to_json(&self) -> Json {
        let flat: Vec<Json> = match &self.numbers {
            Numbers::Float(v) => v.iter().map(|x| json!(x)).collect(),
            Numbers::Single(v) => v.iter().map(|x| json!(x)).collect(),
            Numbers::Integer(v) => v.iter().map(|x| json!(x)).collect(),
        };
        nested(&self.dims, &flat)
    }
}

fn nested(dims: &[usize], flat: &[Json]) -> Json {
    match dims {
        [] => flat[0].clone(),
        [_] => Json::Array(flat.to_vec()),
        [n, inner @ ..] => {
            let each = flat.len() / n;
            Json::Array((0..*n).map(|i| nested(inner, &flat[i * each..(i + 1) * each])).collect())
        }
    }
}

/// A stream of numbers: splitmix64, so that no version of a library changes the data.
pub struct Stream(pub u64);

impl Stream {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between the bounds.
    pub fn number(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Floats between the bounds.
    pub fn floats(&mut self, dims: &[usize], low: f64, high: f64) -> Array {
        Array::floats(dims, |_| self.number(low, high))
    }

    /// Integers from 0 up to, without, `below`.
    pub fn indices(&mut self, dims: &[usize], below: usize) -> Array {
        Array::integers(dims, |_| (self.bits() % below as u64) as i64)
    }
}
