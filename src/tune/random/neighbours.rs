//! Stages that compute each element of its neighbours: stencils, pools, strides.

use super::making::Making;
use super::tensor::{Element, Size};
use rand::RngExt;

/// Stencils: the places of their taps, from the first.
const STENCILS: [&[(u64, u64)]; 6] = [
    &[(0, 0), (0, 1), (0, 2)],
    &[(0, 0), (1, 0), (2, 0)],
    &[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)],
    &[(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)],
    &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
    &[(0, 0), (0, 2), (2, 0), (2, 2)],
];

impl Making {
    /// A weighted sum of neighbours, or the greatest of them: where all of them are, or everywhere, with those on the border
    /// in the place of those outside.
    pub(super) fn stencil(&mut self) -> bool {
        let last = self.last.clone();
        let taps = self.pick(&STENCILS, STENCILS[0]);
        let reach = |axis: usize| taps.iter().map(|t| if axis == 0 { t.0 } else { t.1 }).max().unwrap_or(0);
        if last.sizes.len() < 2 || (0..2).any(|a| last.sizes[a].small < reach(a) + 1 || last.sizes[a].large < 16) {
            return false;
        }
        let clamped = self.rng.random_bool(0.5);
        let mut sizes = last.sizes.clone();
        if !clamped {
            (0..2).filter(|a| reach(*a) > 0).for_each(|a| sizes[a] = sizes[a].less(reach(a)));
        }
        if !self.fits(&sizes, 2.0 * taps.len() as f64) {
            return false;
        }
        let index = |axis: usize, by: u64| {
            let (i, middle) = (["i", "j"][axis], reach(axis) / 2);
            match (clamped, by) {
                (false, 0) => i.to_string(),
                (false, by) => format!("(add {i} {by})"),
                (true, by) if by == middle => i.to_string(),
                (true, by) if by < middle => format!("(max 0 (sub {i} {}))", middle - by),
                (true, by) => format!("(min (sub {} 1) (add {i} {}))", last.sizes[axis].text, by - middle),
            }
        };
        let here = self.here();
        let each: Vec<String> = taps
            .iter()
            .map(|(y, x)| {
                let at = [vec![index(0, *y), index(1, *x)], here[2..].to_vec()].concat();
                last.element.cast(last.element.wide(), &last.at(&at))
            })
            .collect();
        let e = self.combined(last.element, &each);
        self.stage(last.element, sizes, 2.0 * taps.len() as f64, &e);
        true
    }

    /// A weighted sum of numbers of a wide type, or the greatest, as one of the narrow type.
    fn combined(&mut self, element: Element, each: &[String]) -> String {
        if self.rng.random_bool(0.2) {
            let op = self.pick(&["max", "min"], "max");
            return element.wide().cast(element, &format!("({op} {})", each.join(" ")));
        }
        let weighted: Vec<String> = each
            .iter()
            .map(|e| match element {
                Element::F32 => format!("(mul {} {e})", self.float()),
                _ => format!("(mul {} {e})", Element::I32.whole(self.rng.random_range(1..5))),
            })
            .collect();
        let sum = format!("(add {})", weighted.join(" "));
        match element {
            Element::F32 => format!("(mul 0.25f32 {sum})"),
            _ => Element::I32.cast(element, &format!("(shr {sum} 2i32)")),
        }
    }

    /// Every second place of both dimensions: the mean or the greatest of four, or one of them.
    pub(super) fn pool(&mut self) -> bool {
        let last = self.last.clone();
        if last.sizes.len() < 2 || (0..2).any(|a| last.sizes[a].large < 40 || last.sizes[a].small < 8) {
            return false;
        }
        let mut sizes = last.sizes.clone();
        (0..2).for_each(|a| sizes[a] = sizes[a].half());
        if !self.fits(&sizes, 8.0) {
            return false;
        }
        let here = self.here();
        let tap = |y: u64, x: u64| {
            let index =
                |i: &str, by: u64| if by == 0 { format!("(mul 2 {i})") } else { format!("(add {by} (mul 2 {i}))") };
            let at = [vec![index("i", y), index("j", x)], here[2..].to_vec()].concat();
            last.element.cast(last.element.wide(), &last.at(&at))
        };
        let each = [tap(0, 0), tap(0, 1), tap(1, 0), tap(1, 1)];
        let e = match self.rng.random_range(0..3) {
            0 => last.element.wide().cast(last.element, &each[0]),
            _ => self.combined(last.element, &each),
        };
        self.stage(last.element, sizes, 8.0, &e);
        true
    }

    /// Twice as many places of both dimensions, the nearest each.
    pub(super) fn enlarged(&mut self) -> bool {
        let last = self.last.clone();
        if last.sizes.len() < 2 {
            return false;
        }
        let mut sizes = last.sizes.clone();
        (0..2).for_each(|a| sizes[a] = sizes[a].twice());
        if !self.fits(&sizes, 4.0) || sizes.iter().any(|s| s.small > 60) {
            return false;
        }
        let mut at = self.here();
        (0..2).for_each(|a| at[a] = format!("(div {} 2)", at[a]));
        self.stage(last.element, sizes, 4.0, &last.at(&at));
        true
    }

    /// A convolution with weights that come in: of one channel, or of all channels into others.
    pub(super) fn convolution(&mut self) -> bool {
        let last = self.last.clone();
        let n = self.pick(&[1, 3, 3, 5], 3);
        let rank = last.sizes.len();
        if last.element != Element::F32
            || rank < 2
            || (0..2).any(|a| last.sizes[a].large < 16 || last.sizes[a].small < n + 4)
        {
            return false;
        }
        let mut sizes: Vec<Size> = last.sizes.clone();
        if n > 1 {
            (0..2).for_each(|a| sizes[a] = sizes[a].less(n - 1));
        }
        let moved = |i: &str, by: &str| if n == 1 { i.to_string() } else { format!("(add {i} {by})") };
        if rank == 2 {
            if n == 1 || !self.fits(&sizes, 2.0 * (n * n) as f64) {
                return false;
            }
            let (f, s) = self.weights("Float32", &[n, n]);
            let x = last.at(&[moved("i", "a"), moved("j", "b")]);
            let e = format!(
                "(sumbuild (tuple {} {}) (lam ((a : Integer) (b : Integer)) (mul {x} (index (tuple a b) {f}))))",
                s[0], s[1]
            );
            self.stage(Element::F32, sizes, 2.0 * (n * n) as f64, &e);
            return true;
        }
        let (channels, others) = (last.sizes[2].clone(), self.pick(&[4, 8, 16, 24], 8));
        let operations = 2.0 * (n * n * channels.large) as f64;
        sizes[2] = Size::number(others);
        if !self.fits(&sizes, operations) {
            return false;
        }
        let e = match n {
            1 => {
                let (f, _) = self.weights("Float32", &[channels.large, others]);
                let x = last.at(&["i".into(), "j".into(), "c".into()]);
                format!("(sumbuild {} (lam (c : Integer) (mul {x} (index (tuple c k) {f}))))", channels.text)
            }
            n => {
                let (f, s) = self.weights("Float32", &[n, n, channels.large, others]);
                let x = last.at(&[moved("i", "a"), moved("j", "b"), "c".into()]);
                format!(
                    "(sumbuild (tuple {} {} {}) (lam ((a : Integer) (b : Integer) (c : Integer)) (mul {x} (index (tuple a b c k) {f}))))",
                    s[0], s[1], channels.text
                )
            }
        };
        self.stage(Element::F32, sizes, operations, &e);
        true
    }
}
