//! A rule becomes the numbers and texts that it speaks of, with neighbours: where its meaning may turn.
//!
//! A rule that is wrong for 23 alone names 23 on one of its sides. It must not know what is done with
//! them.

use crate::ir::{Lit, Scalar};
use crate::rules::Rule;

/// Numbers to try, beside those that are tried for every rule.
#[derive(Clone, Default, Debug)]
pub struct Pool {
    /// For integers and sizes.
    pub ints: Vec<i64>,
    /// For floats.
    pub floats: Vec<f64>,
    /// For strings.
    pub texts: Vec<&'static str>,
    /// The integers themselves: a tensor of several axes may have to have several of them as its sizes.
    pub sizes: Vec<i64>,
}

/// Strings that are tried for every rule.
const TEXTS: [&str; 3] = ["", "a", "b"];

/// Integers that are tried for every rule.
const USUAL: std::ops::RangeInclusive<i64> = -1..=3;

impl Pool {
    /// The numbers of a rule.
    pub fn of(rule: &Rule) -> Pool {
        let (terms, sides) = (&rule.sides.terms, rule.sides.sides);
        let mut out = Pool::default();
        for id in terms.reachable(sides.0).into_iter().chain(terms.reachable(sides.1)) {
            let Some(lit) = terms.as_lit(id) else { continue };
            match (lit, lit.as_f64()) {
                (Lit::Int(_, v), _) => {
                    out.around(v);
                    out.sizes.push(v);
                }
                (Lit::Str(text), _) => out.texts.push(text),
                (_, Some(v)) => out.beside(v),
                _ => {}
            }
        }
        out.texts.extend(TEXTS);
        out.texts.sort_unstable();
        out.texts.dedup();
        out.sizes.sort_unstable();
        out.sizes.dedup();
        out.ints.sort_unstable();
        out.ints.dedup();
        out.floats.sort_unstable_by(f64::total_cmp);
        out.floats.dedup_by(|a, b| a.to_bits() == b.to_bits());
        out
    }

    fn around(&mut self, v: i64) {
        if !USUAL.contains(&v) {
            self.ints.extend([v.wrapping_sub(1), v, v.wrapping_add(1)]);
            self.floats.push(v as f64);
        }
    }

    fn beside(&mut self, v: f64) {
        let usual = v.fract() == 0.0 && USUAL.contains(&(v as i64));
        if !v.is_finite() || usual || v == 0.5 {
            return;
        }
        self.floats.extend([v, v.next_up(), v.next_down(), -v, f64::from(v as f32)]);
        if v.fract() == 0.0 && v.abs() < 9e15 {
            self.around(v as i64);
        }
    }

    /// The numbers as literals of a type.
    pub fn literals(&self, s: Scalar) -> Vec<Lit> {
        match s {
            s if s.is_float() => self.floats.iter().map(|v| Lit::of(s, *v)).collect(),
            Scalar::Bool => vec![],
            s => self.ints.iter().map(|v| Lit::Int(s, s.wrap(*v))).collect(),
        }
    }
}
