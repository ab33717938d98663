//! A definition and sizes become arguments that agree, so that sizes can be doubled each alone and all together.
//!
//! Sizes of one name are one; an axis without a name and a parameter that is an `Integer` have one of their own.

use daedal::eval::{Interpreter, Value};
use daedal::ir::evaluate::ranhash;
use daedal::ir::{Def, Lit, Program, Ty, TyKind};
use std::collections::BTreeMap;

/// The sizes of a definition.
pub struct Sizes<'a> {
    def: &'a Def,
    /// What each size is called.
    pub names: Vec<String>,
    /// The number of the size of each axis of each parameter; of an `Integer`, that of its value.
    axes: Vec<Vec<usize>>,
}

/// Values of the sizes, and whether floats are positive.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// One for each size.
    pub sizes: Vec<usize>,
    /// Whether floats lie between 0 and 1, not between -1 and 1.
    pub positive: bool,
}

impl<'a> Sizes<'a> {
    /// Those of a definition.
    pub fn new(def: &'a Def) -> Sizes<'a> {
        let (mut known, mut names, mut axes): (BTreeMap<&str, usize>, Vec<String>, Vec<Vec<usize>>) =
            Default::default();
        for p in &def.params {
            let mut each = vec![];
            let of_tuple = usize::from(p.ty.has_tensor());
            let count = if p.ty == Ty::int() { 1 } else { p.ty.axes().max(of_tuple) };
            for k in 0..count {
                let name = p.sizes.get(k).map(String::as_str);
                let at = name.and_then(|n| known.get(n).copied()).unwrap_or_else(|| {
                    names.push(name.map_or_else(|| format!("{}.{k}", p.name), str::to_string));
                    names.len() - 1
                });
                known.extend(name.map(|n| (n, at)));
                each.push(at);
            }
            axes.push(each);
        }
        Sizes { def, names, axes }
    }

    /// All sizes equal; integers are that, or a number.
    fn equal(&self, size: usize, integer: usize, positive: bool) -> Setting {
        let mut sizes = vec![size; self.names.len()];
        for (p, axes) in self.def.params.iter().zip(&self.axes) {
            if p.ty == Ty::int() {
                sizes[axes[0]] = integer;
            }
        }
        Setting { sizes, positive }
    }

    /// The sizes of arguments.
    fn of(&self, args: &[Value], positive: bool) -> Setting {
        let mut sizes = vec![1; self.names.len()];
        for ((p, axes), v) in self.def.params.iter().zip(&self.axes).zip(args) {
            for (k, at) in axes.iter().enumerate() {
                let integer = v.lit().and_then(Lit::as_int).filter(|_| p.ty == Ty::int());
                let found = integer.and_then(|n| usize::try_from(n).ok()).or_else(|| v.size(k));
                sizes[*at] = found.unwrap_or(2);
            }
        }
        Setting { sizes, positive }
    }

    /// Where to begin: equal sizes, or those of arguments that are known to work, whichever first gives a value within
    /// so many terms.
    pub fn start(&self, program: &Program, known: &[Value], terms: u64) -> Option<Setting> {
        let interpreter = Interpreter::new(program).with_work(terms);
        let equal = [8, 4, 2].into_iter().flat_map(|n| {
            [n, n - 1, 1, 0, 2].into_iter().flat_map(move |k| [false, true].map(|p| self.equal(n, k, p)))
        });
        let own = [false, true].map(|p| self.of(known, p));
        equal.chain(own).find(|s| interpreter.run(self.def, &self.arguments(s, 1)).is_ok())
    }

    /// A setting, then all sizes doubled up to a factor, then each of them alone.
    pub fn doubled(&self, from: &Setting, most: usize) -> Vec<Setting> {
        let factors: Vec<usize> = (1..).map(|k| 1 << k).take_while(|f| *f <= most).collect();
        let times = |f: usize, only: Option<usize>| {
            let sizes = from.sizes.iter().enumerate();
            let sizes = sizes.map(|(k, n)| if only.is_none_or(|o| o == k) { n * f } else { *n }).collect();
            Setting { sizes, ..from.clone() }
        };
        let mut out = vec![from.clone()];
        out.extend(factors.iter().map(|f| times(*f, None)));
        if self.names.len() > 1 {
            out.extend((0..self.names.len()).flat_map(|k| factors.iter().map(move |f| times(*f, Some(k)))));
        }
        out
    }

    /// Arguments of a setting.
    pub fn arguments(&self, setting: &Setting, seed: i64) -> Vec<Value> {
        let least = setting.sizes.iter().copied().min().unwrap_or(8);
        let mut made = Made { seed, next: 0, least, positive: setting.positive };
        let each = self.def.params.iter().zip(&self.axes).map(|(p, axes)| {
            let sizes: Vec<usize> = axes.iter().map(|k| setting.sizes[*k]).collect();
            match p.ty == Ty::int() {
                true => Value::Scalar(Lit::int(sizes[0] as i64)),
                false => made.value(p.ty, &sizes),
            }
        });
        each.collect()
    }

    /// What a setting is called.
    pub fn told(&self, setting: &Setting) -> String {
        self.names.iter().zip(&setting.sizes).map(|(n, k)| format!("{n}={k}")).collect::<Vec<_>>().join(" ")
    }
}

struct Made {
    seed: i64,
    next: i64,
    least: usize,
    positive: bool,
}

impl Made {
    fn value(&mut self, ty: Ty, sizes: &[usize]) -> Value {
        match ty.kind() {
            TyKind::Scalar(s) => {
                self.next += 1;
                let unit = ranhash(self.seed.wrapping_mul(1_000_003).wrapping_add(self.next));
                let whole = (unit * self.least.max(1) as f64).floor();
                let float = if self.positive { unit } else { 2.0 * unit - 1.0 };
                Value::Scalar(Lit::of(*s, if s.is_float() { float } else { whole }))
            }
            TyKind::String | TyKind::Var(..) => Value::Scalar(Lit::Str("")),
            TyKind::Tuple(parts) => Value::tuple(parts.iter().map(|p| self.value(*p, sizes)).collect()),
            TyKind::Tensor(rank, elem) => {
                let size = |k: usize| sizes.get(k).or(sizes.last()).copied().unwrap_or(self.least);
                let dims: Vec<usize> = (0..*rank).map(size).collect();
                let inner = if sizes.len() > *rank { &sizes[*rank..] } else { &sizes[sizes.len().saturating_sub(1)..] };
                let n = dims.iter().product();
                Value::tensor(dims, (0..n).map(|_| self.value(*elem, inner)).collect())
            }
        }
    }
}
