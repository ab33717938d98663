//! Seeds become the losses of this folder: what they are differentiated by, and arrays of the sizes that the table names.

mod networks;
mod places;
mod series;
mod statistics;

use crate::common::npy;
use crate::common::numbers::Numbers;
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// An argument in row-major order; one without dimensions is a number.
struct Argument {
    name: &'static str,
    shape: Vec<usize>,
    values: Values,
}

enum Values {
    Floats(Vec<f64>),
    Integers(Vec<i64>),
}

/// A loss: the program of its name in this folder, and its arguments in order.
pub struct Loss {
    pub name: &'static str,
    pub data: &'static str,
    /// The parameters by which it is differentiated.
    pub by: &'static [&'static str],
    arguments: Vec<Argument>,
    numbers: Numbers,
}

impl Loss {
    /// The seed is the name's, so that no loss changes the data of another.
    fn new(name: &'static str, data: &'static str, by: &'static [&'static str]) -> Loss {
        let seed = name.bytes().fold(7, |s: u64, b| s.wrapping_mul(257).wrapping_add(b.into()));
        Loss { name, data, by, arguments: vec![], numbers: Numbers(seed) }
    }

    /// The files of the arguments, in order.
    pub fn files(&self, folder: &Path) -> Vec<PathBuf> {
        self.arguments.iter().map(|a| folder.join(format!("{}_{}.npy", self.name, a.name))).collect()
    }

    pub fn write(&self, folder: &Path) {
        for (argument, path) in self.arguments.iter().zip(self.files(folder)) {
            match &argument.values {
                Values::Floats(v) => npy::write(&path, &argument.shape, v.clone()),
                Values::Integers(v) => npy::write(&path, &argument.shape, v.clone()),
            }
        }
    }

    fn with(mut self, name: &'static str, shape: &[usize], values: Values) -> Loss {
        self.arguments.push(Argument { name, shape: shape.into(), values });
        self
    }

    fn fixed(self, name: &'static str, shape: &[usize], values: &[f64]) -> Loss {
        self.with(name, shape, Values::Floats(values.into()))
    }

    fn constant(self, name: &'static str, shape: &[usize], value: f64) -> Loss {
        let values = vec![value; count(shape)];
        self.fixed(name, shape, &values)
    }

    /// Between 0 and 1, and each as it is changed.
    fn uniform(mut self, name: &'static str, shape: &[usize], each: impl Fn(f64) -> f64) -> Loss {
        let values: Vec<f64> = self.numbers.some(count(shape), 0.5).into_iter().map(|u| each(u + 0.5)).collect();
        self.fixed(name, shape, &values)
    }

    fn normal(mut self, name: &'static str, shape: &[usize], scale: f64) -> Loss {
        let values: Vec<f64> = (0..count(shape)).map(|_| scale * normal(&mut self.numbers)).collect();
        self.fixed(name, shape, &values)
    }

    fn integers(mut self, name: &'static str, shape: &[usize], below: usize) -> Loss {
        let values = (0..count(shape)).map(|_| self.below(below)).collect();
        self.with(name, shape, Values::Integers(values))
    }

    fn counts(mut self, name: &'static str, shape: &[usize], mean: f64) -> Loss {
        let values: Vec<f64> = (0..count(shape)).map(|_| poisson(&mut self.numbers, mean)).collect();
        self.fixed(name, shape, &values)
    }

    fn below(&mut self, n: usize) -> i64 {
        (unit(&mut self.numbers) * n as f64) as i64
    }
}

fn count(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// From 0 up to, without, 1.
fn unit(numbers: &mut Numbers) -> f64 {
    0.5 * (numbers.next() + 1.0)
}

/// By the method of Box and Muller.
fn normal(numbers: &mut Numbers) -> f64 {
    let (u, v) = (1.0 - unit(numbers), unit(numbers));
    (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos()
}

/// Arrivals within a time of `mean`, one apart from the next in the mean.
fn poisson(numbers: &mut Numbers, mean: f64) -> f64 {
    let (mut arrivals, mut time) = (0.0, -(1.0 - unit(numbers)).ln());
    while time < mean {
        arrivals += 1.0;
        time -= (1.0 - unit(numbers)).ln();
    }
    arrivals
}

pub fn all() -> Vec<Loss> {
    [statistics::all(), series::all(), networks::all(), places::all()].into_iter().flatten().collect()
}
