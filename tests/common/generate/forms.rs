//! A type becomes a random form that has it: one function a type.
//!
//! It must not know what is in scope; the maker does.

use super::Maker;
use super::T::{self, B, F, I, V};
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

    pub(super) fn float_expr(&mut self, fuel: usize) -> String {
        match self.rng.random_range(0..20) {
            0 | 1 => self.two("add", &F, fuel),
            2 => self.two("sub", &F, fuel),
            3 => format!("(mul {} {})", self.factor(fuel / 2), self.expr(&F, fuel / 2)),
            4 => self.two("min", &F, fuel),
            5 => self.two("max", &F, fuel),
            6 => format!("(neg {})", self.expr(&F, fuel)),
            7 if self.knobs.dyadic => format!("(to_float (mod {} 64))", self.expr(&I, fuel)),
            7 => format!("(to_float {})", self.expr(&I, fuel)),
            8 => {
                let c = self.expr(&B, fuel / 3);
                format!("(select {c} {} {})", self.expr(&F, fuel / 3), self.expr(&F, fuel / 3))
            }
            9 => format!("(sum {})", self.expr(&V, fuel)),
            10..12 => self.looped("sumbuild", &F, fuel),
            12 => self.looped("reduce max", &F, fuel),
            13..16 => self.element(fuel / 2),
            16 | 17 => self.folded(&F, fuel),
            _ if self.knobs.dyadic => format!("(abs {})", self.expr(&F, fuel)),
            18 => self.two("div", &F, fuel),
            _ => {
                let op = ["exp", "log", "sin", "sqrt", "tanh"][self.rng.random_range(0..5)];
                format!("({op} {})", self.expr(&F, fuel))
            }
        }
    }

    pub(super) fn int_expr(&mut self, fuel: usize) -> String {
        match self.rng.random_range(0..14) {
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
        match self.rng.random_range(0..11) {
            0..4 => self.looped("build", &F, fuel),
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
                let (names, body) = self.repeated(&[(&F, None), (&I, None)], &F, fuel / 2);
                format!("(scan (lam (({} : Float) ({} : Integer)) {body}) {init} {size})", names[0], names[1])
            }
            _ => {
                let each: Vec<String> = (0..self.rng.random_range(1..=3)).map(|_| self.expr(&F, fuel / 3)).collect();
                format!("(Vec_init {})", each.join(" "))
            }
        }
    }
}
