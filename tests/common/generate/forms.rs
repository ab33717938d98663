//! A type becomes a random form that has it: one function a type.
//!
//! It must not know what is in scope; the maker does.

use super::T::{self, B, F, I, N, P, V};
use super::{Maker, NONE};
use rand::RngExt;

impl Maker {
    fn two(&mut self, op: &str, ty: &T, fuel: usize) -> String {
        format!("({op} {} {})", self.expr(ty, fuel / 2), self.expr(ty, fuel / 2))
    }

    /// What a float or a vector is multiplied by.
    fn factor(&mut self, fuel: usize) -> String {
        if self.knobs.dyadic {
            return ["-1.0", "0.0", "0.5", "2.0"][self.rng.random_range(0..4)].into();
        }
        self.expr(&F, fuel)
    }

    /// A number of any type as one of another.
    fn cast(&mut self, to: &str, fuel: usize) -> String {
        let from = match self.rng.random_range(0..8) {
            0 | 1 => F,
            2 | 3 => I,
            4 => B,
            _ => N(self.small()),
        };
        let e = match (&from, to) {
            // Sums of these stay short.
            (F | I | N(_), "Float" | "Float32") if self.knobs.dyadic => format!("(mod {} 64)", self.expr(&I, fuel)),
            _ => self.expr(&from, fuel),
        };
        format!("(cast {to} {e})")
    }

    pub(super) fn small_expr(&mut self, name: &'static str, fuel: usize) -> String {
        let ty = N(name);
        match self.rng.random_range(0..10) {
            0 => self.two("add", &ty, fuel),
            1 => self.two("sub", &ty, fuel),
            2 => self.two("min", &ty, fuel),
            3 => self.two("max", &ty, fuel),
            4 => self.looped("sumbuild", &ty, fuel),
            5 => self.folded(&ty, fuel),
            6 if name != "Float32" => self.two("mul", &ty, fuel),
            7 if name != "Float32" && self.knobs.failing => self.two("div", &ty, fuel),
            8 if name != "Float32" => format!("(mod {} (cast {name} 3))", self.expr(&ty, fuel)),
            _ => self.cast(name, fuel),
        }
    }

    pub(super) fn float_expr(&mut self, fuel: usize) -> String {
        if self.knobs.casts && self.rng.random_bool(0.1) {
            return self.cast("Float", fuel);
        }
        match self.rng.random_range(0..if self.knobs.corners { 21 } else { 20 }) {
            0 | 1 => self.two("add", &F, fuel),
            2 => self.two("sub", &F, fuel),
            3 if !self.knobs.dyadic && self.rng.random_bool(0.3) => {
                let [a, b, c] = [0, 1, 2].map(|_| self.expr(&F, fuel / 3));
                format!("(fma {a} {b} {c})")
            }
            3 => format!("(mul {} {})", self.factor(fuel / 2), self.expr(&F, fuel / 2)),
            4 => self.two(if fuel.is_multiple_of(2) { "min" } else { "minimum" }, &F, fuel),
            5 => self.two(if fuel.is_multiple_of(2) { "max" } else { "maximum" }, &F, fuel),
            6 => format!("(neg {})", self.expr(&F, fuel)),
            7 if self.knobs.dyadic => format!("(to_float (mod {} 64))", self.expr(&I, fuel)),
            7 => format!("(to_float {})", self.expr(&I, fuel)),
            8 => {
                let c = self.expr(&B, fuel / 3);
                format!("(select {c} {} {})", self.expr(&F, fuel / 3), self.expr(&F, fuel / 3))
            }
            9 => format!("(sum {})", self.expr(&V, fuel)),
            10..12 => self.looped("sumbuild", &F, fuel),
            12 => self.looped(if fuel.is_multiple_of(2) { "reduce max" } else { "reduce min" }, &F, fuel),
            13..16 => self.element(fuel / 2),
            16 | 17 => self.folded(&F, fuel),
            20 => {
                let state = P(vec![F, if self.rng.random_bool(0.5) { I } else { F }]);
                format!("(get$1$2 {})", self.folded(&state, fuel))
            }
            _ if self.knobs.dyadic => format!("(abs {})", self.expr(&F, fuel)),
            18 => self.two("div", &F, fuel),
            _ => {
                let op = ["exp", "log", "sin", "sqrt", "tanh", "cos", "atan", "erf"][self.rng.random_range(0..8)];
                format!("({op} {})", self.expr(&F, fuel))
            }
        }
    }

    pub(super) fn int_expr(&mut self, fuel: usize) -> String {
        if self.knobs.casts && self.rng.random_bool(0.1) {
            return self.cast("Integer", fuel);
        }
        match self.rng.random_range(0..17) {
            14 => {
                let op = ["bitand", "bitor", "bitxor", "shl", "shr"][self.rng.random_range(0..5)];
                self.two(op, &I, fuel)
            }
            15 => {
                let op = if self.rng.random_bool(0.5) { "floordiv" } else { "floormod" };
                let by = ["-3", "2", "5"][self.rng.random_range(0..3)];
                format!("({op} {} {by})", self.expr(&I, fuel))
            }
            16 => format!("(bitnot {})", self.expr(&I, fuel)),
            0..2 => self.two("add", &I, fuel),
            2 => self.two("sub", &I, fuel),
            3 => self.two("mul", &I, fuel),
            4 => self.two("min", &I, fuel),
            5 => format!("(neg {})", self.expr(&I, fuel)),
            6 if self.knobs.failing => self.two("div", &I, fuel),
            6 | 7 => {
                let op = if self.rng.random_bool(0.5) { "div" } else { "mod" };
                format!("({op} {} {})", self.expr(&I, fuel), self.rng.random_range(2..5))
            }
            8 => format!("(size {})", self.expr(&V, fuel)),
            9 => self.looped("sumbuild", &I, fuel),
            10 => self.looped("reduce mul", &I, fuel),
            11 => self.folded(&I, fuel),
            12 if self.knobs.failing => self.looped("argmax", &F, fuel),
            _ => format!("(truncate {})", self.expr(&F, fuel)),
        }
    }

    pub(super) fn bool_expr(&mut self, fuel: usize) -> String {
        if self.knobs.casts && self.rng.random_bool(0.1) {
            let of = N(self.small());
            return if self.rng.random_bool(0.5) { self.cast("Bool", fuel) } else { self.two("lt", &of, fuel) };
        }
        match self.rng.random_range(0..9) {
            0 => self.two("lt", &F, fuel),
            1 => self.two("gte", &I, fuel),
            2 => self.two("eq", &I, fuel),
            3 => self.two("ne", &F, fuel),
            4 => self.two("and", &B, fuel),
            5 => self.two("or", &B, fuel),
            6 => format!("(not {})", self.expr(&B, fuel)),
            7 => self.looped("reduce and", &B, fuel),
            _ => self.looped("reduce or", &B, fuel),
        }
    }

    pub(super) fn vec_expr(&mut self, fuel: usize) -> String {
        match self.rng.random_range(0..if self.knobs.corners { 14 } else { 11 } + if self.knobs.states { 4 } else { 0 })
        {
            0..4 => self.looped("build", &F, fuel),
            14.. => self.vector_state(fuel),
            11.. => self.vector_sum(fuel),
            4 | 5 => {
                let of = self.expr(&V, fuel / 3);
                let (names, body) = self.repeated(&[(&F, None)], &F, fuel * 2 / 3);
                format!("(map (lam ({} : Float) {body}) {of})", names[0])
            }
            6 => {
                let (size, _) = self.size(fuel / 4);
                let (at, e) = (self.expr(&I, fuel / 4), self.expr(&F, fuel / 2));
                if self.rng.random_bool(0.5) {
                    format!("(deltaVec {size} {at} {e})")
                } else {
                    format!("(constVec {size} {e})")
                }
            }
            7 => format!("(mul {} {})", self.factor(fuel / 2), self.expr(&V, fuel / 2)),
            8 if self.knobs.failing => self.two("add", &V, fuel),
            8 => format!("(neg {})", self.expr(&V, fuel)),
            9 => {
                let init = self.expr(&F, fuel / 4);
                let (size, _) = self.size(fuel / 4);
                let (names, body) = self.repeated(&[(&F, None), (&I, Some(NONE))], &F, fuel / 2);
                format!("(scan (lam (({} : Float) ({} : Integer)) {body}) {init} {size})", names[0], names[1])
            }
            _ => {
                let each: Vec<String> = (0..self.rng.random_range(1..=3)).map(|_| self.expr(&F, fuel / 3)).collect();
                format!("(Vec_init {})", each.join(" "))
            }
        }
    }

    /// A sum of vectors, maybe of none; of one size, but where failures may occur.
    pub(super) fn vector_sum(&mut self, fuel: usize) -> String {
        if self.knobs.failing && self.rng.random_bool(0.15) {
            return self.looped("sumbuild", &V, fuel);
        }
        let ((rounds, over), (size, _)) = (self.size(fuel / 5), self.size(fuel / 5));
        let depth = self.scope.len();
        self.name(&I, None, &[], false);
        let own = self.scope[depth].plain.clone();
        self.name(&I, over.or(Some(NONE)), &[own], true);
        let (k, i) = (self.scope[depth].shown.clone(), self.scope[depth + 1].shown.clone());
        self.loops += 1;
        let element = self.sized(&k, if self.loops > 3 { 0 } else { fuel / 2 });
        self.loops -= 1;
        self.scope.truncate(depth);
        let sum = match self.rng.random_range(0..3) {
            0 => format!("(sum (build {rounds} (lam ({i} : Integer) {element})))"),
            1 if self.knobs.failing => {
                let pair = format!("(tuple {i} {element})");
                format!("(get$2$2 (reduce add {rounds} (lam ({i} : Integer) {pair})))")
            }
            _ => format!("(sumbuild {rounds} (lam ({i} : Integer) {element}))"),
        };
        format!("(let ({k} {size}) {sum})")
    }

    /// A fold or scan whose state has a vector of one size, and maybe a number.
    fn vector_state(&mut self, fuel: usize) -> String {
        let ((size, _), of) = (self.size(fuel / 6), self.expr(&V, fuel / 6));
        let depth = self.scope.len();
        self.name(&I, None, &[], false);
        let k = self.scope[depth].shown.clone();
        let init = self.sized(&k, fuel / 4);
        self.loops += 1;
        let fuel = if self.loops > 3 { 0 } else { fuel / 2 };
        self.name(&V, None, &[], false);
        self.name(&F, None, &[], false);
        let (s, x) = (self.scope[depth + 1].shown.clone(), self.scope[depth + 2].shown.clone());
        let out = match self.rng.random_range(0..3) {
            0 => {
                let next = self.sized(&k, fuel);
                format!("(fold (lam (({s} : (Vec Float)) ({x} : Float)) {next}) {init} {of})")
            }
            1 => {
                let next = self.sized(&k, fuel);
                let scan = format!(
                    "(scan (lam (({s} : (Vec Float)) ({x} : Integer)) (let ({x} (to_float {x})) {next})) {init} 3)"
                );
                format!("(map (lam ({s} : (Vec Float)) (if (gt (size {s}) 0) (index 0 {s}) 0.25)) {scan})")
            }
            _ => {
                let (next, number) = (self.sized(&k, fuel / 2), self.expr(&F, fuel / 2));
                let ty = "(Tuple (Vec Float) Float)";
                let both = format!("(tuple {next} {number})");
                let step = format!(
                    "(lam ((p : {ty}) (q : Float)) (let (({s} (get$1$2 p)) ({x} (add q (get$2$2 p)))) {both}))"
                );
                format!("(get$1$2 (fold {step} (tuple {init} 0.5) {of}))")
            }
        };
        self.loops -= 1;
        self.scope.truncate(depth);
        format!("(let ({k} {size}) {out})")
    }

    /// A vector of the size that a name has.
    fn sized(&mut self, k: &str, fuel: usize) -> String {
        if fuel < 2 {
            return format!("(constVec {k} {})", self.leaf(&F));
        }
        match self.rng.random_range(0..8) {
            0..3 => {
                let (names, body) = self.repeated(&[(&I, Some(NONE))], &F, fuel - 1);
                format!("(build {k} (lam ({} : Integer) {body}))", names[0])
            }
            3 => format!("(constVec {k} {})", self.expr(&F, fuel - 1)),
            4 => format!("(deltaVec {k} {} {})", self.expr(&I, fuel / 2), self.expr(&F, fuel / 2)),
            5 => {
                let init = self.expr(&F, fuel / 3);
                let (names, body) = self.repeated(&[(&F, None), (&I, Some(NONE))], &F, fuel / 2);
                format!("(scan (lam (({} : Float) ({} : Integer)) {body}) {init} {k})", names[0], names[1])
            }
            6 => {
                let c = self.expr(&B, fuel / 3);
                format!("(if {c} {} {})", self.sized(k, fuel / 3), self.sized(k, fuel / 3))
            }
            _ => format!("(add {} {})", self.sized(k, fuel / 2), self.sized(k, fuel / 2)),
        }
    }
}
