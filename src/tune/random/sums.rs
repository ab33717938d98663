//! Stages that go along a dimension: reductions, scans, products, normalizations.

use super::making::Making;
use super::tensor::{Element, Size};
use rand::RngExt;

impl Making {
    /// One number for each row.
    pub(super) fn reduced(&mut self) -> bool {
        let last = self.last.clone();
        let Some((over, outer)) = last.sizes.split_last().filter(|(_, outer)| !outer.is_empty()) else { return false };
        let operations = 2.0 * over.large as f64;
        if !self.fits(outer, operations) {
            return false;
        }
        let wide = last.element.wide();
        let mut at = self.here();
        at.truncate(outer.len());
        at.push("a".into());
        let e = last.element.cast(wide, &last.at(&at));
        let op = self.pick(&["add", "add", "max", "min"], "add");
        let e = format!("(reduce {op} {} (lam (a : Integer) {e}))", over.text);
        self.stage(wide, outer.to_vec(), operations, &e);
        true
    }

    /// Each row becomes its running sums, or what a filter with feedback makes of it; or each column does.
    pub(super) fn running(&mut self) -> bool {
        let last = self.last.clone();
        let rank = last.sizes.len();
        if rank > 2 || !self.fits(&last.sizes, 4.0) {
            return false;
        }
        let down = rank == 2 && self.rng.random_bool(0.4);
        let (rows, along) = if down { (0, 0) } else { (rank - 1, rank - 1) };
        let steps = last.sizes[along].text.clone();
        let wide = last.element.wide();
        let at = match (rank, down) {
            (1, _) => vec!["a".to_string()],
            (_, true) => vec!["a".into(), "i".into()],
            (_, false) => vec!["i".into(), "a".into()],
        };
        let x = last.element.cast(wide, &last.at(&at));
        let next = match (wide, self.rng.random_bool(0.5)) {
            (Element::F32, true) => format!("(add (mul 0.75f32 s) (mul 0.25f32 {x}))"),
            (Element::F32, false) => format!("(add s (mul 0.03125f32 {x}))"),
            (_, true) => format!("(max s {x})"),
            (_, false) => format!("(add s {x})"),
        };
        let scan = format!("(scan (lam ((s : {}) (a : Integer)) {next}) {} {steps})", wide.ty(), wide.whole(0));
        if rank == 1 {
            self.raw(wide, last.sizes, 4.0, false, scan);
            return true;
        }
        let outer = last.sizes[1 - rows].clone();
        let text = format!("(build {} (lam (i : Integer) {scan}))", outer.text);
        let sizes = vec![outer, last.sizes[along].clone()];
        self.raw(wide, sizes, 4.0, true, text);
        true
    }

    /// A product with a matrix that comes in, or with its own transpose.
    pub(super) fn product(&mut self) -> bool {
        let last = self.last.clone();
        let [rows, over] = last.sizes.as_slice() else { return false };
        if last.element != Element::F32 {
            return false;
        }
        let operations = 2.0 * over.large as f64;
        let x = last.at(&["i".into(), "a".into()]);
        if self.rng.random_bool(0.25) {
            let sizes = vec![rows.clone(), rows.clone()];
            if !self.fits(&sizes, operations) {
                return false;
            }
            let y = last.at(&["j".into(), "a".into()]);
            let e = format!("(sumbuild {} (lam (a : Integer) (mul {x} {y})))", over.text);
            self.stage(Element::F32, sizes, operations, &e);
            return true;
        }
        let n = self.rng.random_range(16..400);
        let columns = Size { text: format!("s{}", self.sizes.len() + 1), large: n, small: 9 };
        if !self.fits(&[rows.clone(), columns.clone()], operations) {
            return false;
        }
        // A matrix by rows or by columns; its inner size is not less than it has to be.
        let turned = self.rng.random_bool(0.3);
        let (inner, name) = (format!("s{}", self.sizes.len()), format!("p{}", self.params.len()));
        self.sizes.push((inner.clone(), over.large, over.small));
        self.sizes.push((columns.text.clone(), columns.large, columns.small));
        let (names, at) = match turned {
            true => (format!("{} {inner}", columns.text), "(tuple j a)"),
            false => (format!("{inner} {}", columns.text), "(tuple a j)"),
        };
        self.params.push(format!("({name} : (Tensor 2 Float32) ({names}))"));
        let e = format!("(sumbuild {} (lam (a : Integer) (mul {x} (index {at} {name}))))", over.text);
        self.stage(Element::F32, vec![rows.clone(), columns], operations, &e);
        true
    }

    /// Rows become distributions, or are brought to a mean of 0 and a deviation of 1.
    pub(super) fn normalized(&mut self) -> bool {
        let last = self.last.clone();
        let [rows, over] = last.sizes.as_slice() else { return false };
        if last.element != Element::F32 || !self.fits(&last.sizes, 60.0) {
            return false;
        }
        let (rows, n) = (vec![rows.clone()], over.text.clone());
        let (x, along) = (last.at(&["i".into(), "j".into()]), last.at(&["i".into(), "a".into()]));
        let sum = |e: String| format!("(sumbuild {n} (lam (a : Integer) {e}))");
        let each = over.large as f64;
        if self.rng.random_bool(0.5) {
            let top = format!("(reduce max {n} (lam (a : Integer) {along}))");
            let top = self.stage(Element::F32, rows.clone(), each, &top).at(&["i".into()]);
            let e = self.stage(Element::F32, last.sizes.clone(), 30.0, &format!("(exp (sub {x} {top}))"));
            let total = sum(e.at(&["i".into(), "a".into()]));
            let total = self.stage(Element::F32, rows, each, &total).at(&["i".into()]);
            let here = e.at(&["i".into(), "j".into()]);
            self.stage(Element::F32, last.sizes.clone(), 8.0, &format!("(div {here} {total})"));
        } else {
            let mean = format!("(div {} (cast Float32 {n}))", sum(along.clone()));
            let mean = self.stage(Element::F32, rows.clone(), each, &mean).at(&["i".into()]);
            let square = format!("(let (d (sub {along} {mean})) (mul d d))");
            let var = format!("(div {} (cast Float32 {n}))", sum(square));
            let var = self.stage(Element::F32, rows, 3.0 * each, &var).at(&["i".into()]);
            let e = format!("(div (sub {x} {mean}) (sqrt (add 0.001f32 {var})))");
            self.stage(Element::F32, last.sizes.clone(), 16.0, &e);
        }
        true
    }
}
