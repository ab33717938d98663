//! Stages that compute each element of those at the same place, or move elements: random expressions, casts, tables.

use super::making::Making;
use super::tensor::{Element, Size, Tensor};
use rand::RngExt;
use rand::seq::IndexedRandom;

impl Making {
    /// A chain of random operations on each element.
    pub(super) fn pointwise(&mut self) -> bool {
        let (element, sizes) = (self.last.element, self.last.sizes.clone());
        if !self.fits(&sizes, 20.0) {
            return false;
        }
        let mut e = self.last.at(&self.here());
        for _ in 0..self.rng.random_range(1..=4) {
            e = self.operation(element, &e);
        }
        self.stage(element, sizes, 12.0, &e);
        true
    }

    /// One operation on a number.
    fn operation(&mut self, element: Element, e: &str) -> String {
        let n = self.rng.random_range(1..8u32);
        let whole = element.whole(n);
        if element != Element::F32 {
            return match self.rng.random_range(0..6) {
                0 => format!("(add {e} {whole})"),
                1 => format!("(mul {e} {whole})"),
                2 => format!("(max {e} {whole})"),
                3 => format!("(shr {e} {})", element.whole(n % 3 + 1)),
                4 => format!("(bitxor {e} {whole})"),
                _ => format!("(min {e} {})", element.whole(100 + n)),
            };
        }
        let c = self.float();
        match self.rng.random_range(0..11) {
            0 => format!("(add {e} {c})"),
            1 | 2 => format!("(mul {c} {e})"),
            3 => format!("(max 0.0f32 {e})"),
            4 => format!("(min {c} {e})"),
            5 => format!("(sqrt (abs {e}))"),
            6 => format!("(let (v {e}) (div v (add 1.0f32 (abs v))))"),
            7 => format!("(let (v {e}) (mul v (sub v {c})))"),
            8 => format!("(tanh {e})"),
            9 => format!("(exp (sub 0.0f32 (abs {e})))"),
            _ => format!("(let (v {e}) (if (gt v {c}) (sub v {c}) (mul {c} v)))"),
        }
    }

    /// Elements of two tensors of the same sizes.
    pub(super) fn binary(&mut self) -> bool {
        let last = self.last.clone();
        let alike: Vec<Tensor> = self.earlier.iter().filter(|t| t.sizes == last.sizes).cloned().collect();
        let Some(other) = alike.choose(&mut self.rng).cloned() else { return false };
        if !self.fits(&last.sizes, 4.0) {
            return false;
        }
        let here = self.here();
        let b = other.element.cast(last.element, &other.at(&here));
        let op = self.pick(&["add", "sub", "mul", "min", "max"], "add");
        self.stage(last.element, last.sizes.clone(), 4.0, &format!("({op} {} {b})", last.at(&here)));
        true
    }

    /// Each element and one of a vector, by the last index or by the first.
    pub(super) fn broadcast(&mut self) -> bool {
        let last = self.last.clone();
        let rank = last.sizes.len();
        if rank < 2 || last.element != Element::F32 || !self.fits(&last.sizes, 4.0) {
            return false;
        }
        let axis = if self.rng.random_bool(0.7) { rank - 1 } else { 0 };
        let size = last.sizes[axis].clone();
        let named = size.text.chars().all(char::is_alphanumeric);
        if !named || size.text.parse::<u64>().is_err() && !self.sizes.iter().any(|(n, ..)| *n == size.text) {
            return false;
        }
        let bias = self.param(Element::F32, vec![size]);
        let here = self.here();
        let op = self.pick(&["add", "mul"], "add");
        let e = format!("({op} {} {})", last.at(&here), bias.at(&[here[axis].clone()]));
        let e = if self.rng.random_bool(0.4) { format!("(max 0.0f32 {e})") } else { e };
        self.stage(Element::F32, last.sizes.clone(), 4.0, &e);
        true
    }

    /// Another type.
    pub(super) fn converted(&mut self) -> bool {
        let last = self.last.clone();
        let to = self.pick(&[Element::F32, Element::U8, Element::I16, Element::I32], Element::F32);
        if to == last.element || !self.fits(&last.sizes, 3.0) {
            return false;
        }
        let e = last.at(&self.here());
        let e = match (last.element, to) {
            (Element::F32, _) => last.element.cast(to, &format!("(mul 64.0f32 (abs {e}))")),
            (_, Element::F32) => format!("(mul 0.0625f32 (cast Float32 {e}))"),
            (from, to) => from.cast(to, &e),
        };
        self.stage(to, last.sizes.clone(), 3.0, &e);
        true
    }

    /// Elements of a table, at places that data decide.
    pub(super) fn looked_up(&mut self) -> bool {
        let last = self.last.clone();
        if !self.fits(&last.sizes, 6.0) {
            return false;
        }
        let n = self.pick(&[16, 64, 256], 64);
        let (table, size) = self.weights("Float32", &[n]);
        let e = last.at(&self.here());
        let e = match last.element {
            Element::F32 => format!("(mul 16.0f32 (abs {e}))"),
            _ => e,
        };
        let at = format!("(max 0 (min (sub {} 1) (cast Integer {e})))", size[0]);
        self.stage(Element::F32, last.sizes.clone(), 6.0, &format!("(index {at} {table})"));
        true
    }

    /// Rows at places that data decide.
    pub(super) fn picked(&mut self) -> bool {
        let last = self.last.clone();
        if last.sizes.len() != 2 || !self.fits(&last.sizes, 3.0) {
            return false;
        }
        let n = self.rng.random_range(20..200);
        let (rows, size) = self.weights("Integer", &[n]);
        let sizes = vec![Size { text: size[0].clone(), large: n, small: n }, last.sizes[1].clone()];
        if !self.fits(&sizes, 3.0) {
            return false;
        }
        let row = format!("(max 0 (min (sub {} 1) (index i {rows})))", last.sizes[0].text);
        let e = last.at(&[row, "j".into()]);
        self.stage(last.element, sizes, 3.0, &e);
        true
    }

    /// The first two dimensions change places, or one is turned around.
    pub(super) fn moved(&mut self) -> bool {
        let last = self.last.clone();
        if last.sizes.len() < 2 || !self.fits(&last.sizes, 2.0) {
            return false;
        }
        let (mut at, mut sizes) = (self.here(), last.sizes.clone());
        if self.rng.random_bool(0.6) {
            at.swap(0, 1);
            sizes.swap(0, 1);
        } else {
            at[1] = format!("(sub (sub {} 1) j)", sizes[1].text);
        }
        self.stage(last.element, sizes, 2.0, &last.at(&at));
        true
    }
}
