//! A seed becomes a random well-typed program as text, with arguments for its `main`.
//!
//! Equal seeds and knobs give equal texts. It must not know what the program means: the
//! interpreter says that.

pub mod census;
mod forms;
mod large;

#[allow(unused_imports, reason = "every test crate uses its own part")]
pub use large::large;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// What may occur in a generated program.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// Roughly how many forms `main` has.
    pub budget: usize,
    /// Float literals are small multiples of 1/8, and operations occur that keep such numbers short:
    /// results do not depend on the order of additions, unless loops make them very large.
    pub dyadic: bool,
    /// Indices out of range, failed assertions, negative sizes and divisions by zero may occur.
    pub failing: bool,
    /// Local names are all distinct, and spelled in another way: the same program up to renaming.
    pub renamed: bool,
    /// Numbers of all types occur, and casts between them. Those round and wrap, so that differences say nothing
    /// of derivatives.
    pub casts: bool,
    /// Corners are looked for: sizes that are computed, 0 or (where failures may occur) below it, sums of vectors,
    /// states that are tuples, triangles, arms that fail. Derivatives are wrong in some of them: of an empty tensor
    /// that is bound no inner sizes are known, and what only an arm or loop that is not taken computes may fail.
    pub corners: bool,
    /// Folds whose state is a vector.
    pub states: bool,
    /// Sums of vectors, computed sizes and triangles more often.
    pub sums: bool,
}

impl Knobs {
    /// Programs of a moderate size that may fail: all that every pass of the project takes.
    pub const PLAIN: Knobs = Knobs {
        budget: 24,
        dyadic: false,
        failing: true,
        renamed: false,
        casts: true,
        corners: true,
        states: false,
        sums: false,
    };
}

/// A program and a call of it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The definitions; the last one is `main`.
    pub text: String,
    /// JSON words for the parameters of `main`.
    pub args: Vec<String>,
}

#[derive(Clone, PartialEq, Debug)]
enum T {
    F,
    I,
    B,
    V,
    /// A number of few bits.
    N(&'static str),
    P(Vec<T>),
}

use T::*;

impl T {
    fn text(&self) -> String {
        match self {
            F => "Float".into(),
            I => "Integer".into(),
            B => "Bool".into(),
            V => "(Vec Float)".into(),
            N(name) => (*name).into(),
            P(parts) => format!("(Tuple{})", parts.iter().map(|p| " ".to_string() + &p.text()).collect::<String>()),
        }
    }
}

/// A name in scope.
#[derive(Clone)]
struct Name {
    /// As the text has it.
    shown: String,
    /// As the text has it without renaming: it decides what hides what.
    plain: String,
    unique: usize,
    ty: T,
    /// The vector over whose indices this variable runs; [`NONE`] where it counts something else.
    over: Option<usize>,
}

/// The vector of indices that are those of none.
const NONE: usize = 0;

/// The types of few bits.
const SMALL: [&str; 7] = ["Float32", "Int32", "Int16", "Int8", "UInt8", "UInt16", "UInt32"];

/// What a binder binds: a type, and the vector over whose indices it runs.
type Bound<'a> = (&'a T, Option<usize>);

struct Maker {
    rng: StdRng,
    knobs: Knobs,
    scope: Vec<Name>,
    count: usize,
    loops: usize,
    helper: Option<(Vec<T>, T)>,
}

/// The program of a seed.
pub fn program(seed: u64, knobs: &Knobs) -> Generated {
    let rng = StdRng::seed_from_u64(seed);
    let mut maker = Maker { rng, knobs: *knobs, scope: vec![], count: 0, loops: 0, helper: None };
    let mut text = String::new();
    let sizes = maker.rng.random_bool(0.5);
    if maker.rng.random_bool(0.6) {
        let params: Vec<T> = (0..maker.rng.random_range(1..=3)).map(|_| maker.ty(1)).collect();
        let ret = maker.ty(1);
        text += &maker.def("helper", &params, &ret, knobs.budget / 3, false);
        maker.helper = Some((params, ret));
    }
    let params: Vec<T> = (0..maker.rng.random_range(1..=4)).map(|_| maker.ty(1)).collect();
    let ret = maker.ty(1);
    text += &maker.def("main", &params, &ret, knobs.budget, sizes);
    let n = maker.rng.random_range(0..=4);
    let args = params.iter().map(|t| maker.json(t, if sizes { Some(n) } else { None })).collect();
    Generated { text, args }
}

impl Maker {
    fn ty(&mut self, depth: usize) -> T {
        if self.knobs.casts && self.rng.random_bool(0.1) {
            return N(self.small());
        }
        match self.rng.random_range(0..if depth == 0 { 9 } else { 11 }) {
            0..4 => F,
            4..6 => I,
            6 => B,
            7..9 => V,
            _ => P((0..self.rng.random_range(1..=3)).map(|_| self.ty(depth - 1)).collect()),
        }
    }

    fn json(&mut self, ty: &T, size: Option<usize>) -> String {
        let list = |each: Vec<String>| format!("[{}]", each.join(","));
        match ty {
            F => self.float(),
            I => self.integer(),
            N("Float32") => format!("{:?}", f64::from(self.rng.random_range(-16..=16)) / 8.0),
            N(name) => self.rng.random_range(if name.starts_with('U') { 0 } else { -3 }..9).to_string(),
            B => self.rng.random_bool(0.5).to_string(),
            V => {
                let n = size.unwrap_or_else(|| self.rng.random_range(0..=4));
                list((0..n).map(|_| self.float()).collect())
            }
            // Sizes in tuples are not named, so they are free.
            P(parts) => list(parts.iter().map(|p| self.json(p, None)).collect()),
        }
    }

    fn small(&mut self) -> &'static str {
        SMALL[self.rng.random_range(0..SMALL.len())]
    }

    /// Around 0 more often than not: sizes of nothing and of less are where programs go wrong.
    fn integer(&mut self) -> String {
        let few = self.knobs.corners && self.rng.random_bool(0.5);
        if few { self.rng.random_range(-1..2).to_string() } else { self.rng.random_range(-2..6).to_string() }
    }

    fn float(&mut self) -> String {
        if self.knobs.dyadic {
            return format!("{:?}", f64::from(self.rng.random_range(-16..=16)) / 8.0);
        }
        match self.rng.random_range(0..8) {
            0 => "0.0".into(),
            1 => "-0.0".into(),
            2 => "1.0".into(),
            3 => format!("{:?}", self.rng.random_range(-1e6..1e6)),
            _ => format!("{:?}", self.rng.random_range(-3.0..3.0)),
        }
    }

    fn def(&mut self, name: &str, params: &[T], ret: &T, budget: usize, sizes: bool) -> String {
        self.scope.clear();
        let mut heads = vec![];
        self.name(&I, None, &[], false);
        let size = self.scope[0].shown.clone();
        for p in params {
            self.name(p, None, &[], false);
            let shown = self.scope.last().map_or("", |n| &n.shown);
            let named = if *p == V && sizes { format!(" {size}") } else { String::new() };
            heads.push(format!("({shown} : {}{named})", p.text()));
        }
        if !sizes || !params.contains(&V) {
            self.scope.remove(0);
        }
        let body = self.expr(ret, budget);
        format!("(def {name} {} ({})\n  {body})\n", ret.text(), heads.join(" "))
    }

    /// Brings a name into scope: a new one, or one that hides another but none of `apart`.
    fn name(&mut self, ty: &T, over: Option<usize>, apart: &[String], may_hide: bool) {
        self.count += 1;
        let (hide, at) = (self.rng.random_bool(0.2), self.rng.random_range(0..self.scope.len().max(1)));
        let hidden = self.scope.get(at).map(|n| n.plain.clone()).filter(|n| hide && may_hide && !apart.contains(n));
        let plain = hidden.unwrap_or_else(|| format!("x{}", self.count));
        let shown = if self.knobs.renamed { format!("other_name{}", self.count) } else { plain.clone() };
        self.scope.push(Name { shown, plain, unique: self.count, ty: ty.clone(), over });
    }

    /// The names that can be seen.
    fn visible(&self, fits: impl Fn(&Name) -> bool) -> Vec<Name> {
        let seen = |k: usize| !self.scope[k + 1..].iter().any(|n| n.plain == self.scope[k].plain);
        (0..self.scope.len()).filter(|k| seen(*k)).map(|k| self.scope[k].clone()).filter(fits).collect()
    }

    fn pick(&mut self, fits: impl Fn(&Name) -> bool) -> Option<Name> {
        let all = self.visible(fits);
        let at = self.rng.random_range(0..all.len().max(1));
        all.get(at).cloned()
    }

    /// An expression in which new names can be seen, and how the text spells those.
    fn under(&mut self, bound: &[Bound<'_>], ret: &T, fuel: usize) -> (Vec<String>, String) {
        let depth = self.scope.len();
        for (ty, over) in bound {
            let apart: Vec<String> = self.scope[depth..].iter().map(|n| n.plain.clone()).collect();
            self.name(ty, *over, &apart, true);
        }
        let shown = self.scope[depth..].iter().map(|n| n.shown.clone()).collect();
        let body = self.expr(ret, fuel);
        self.scope.truncate(depth);
        (shown, body)
    }

    /// A loop: as [`Maker::under`], with less to do the deeper loops are nested.
    fn repeated(&mut self, bound: &[Bound<'_>], ret: &T, fuel: usize) -> (Vec<String>, String) {
        self.loops += 1;
        let out = self.under(bound, ret, if self.loops > 3 { 0 } else { fuel });
        self.loops -= 1;
        out
    }

    fn expr(&mut self, ty: &T, fuel: usize) -> String {
        if fuel == 0 {
            return self.leaf(ty);
        }
        let fuel = fuel - 1;
        if self.knobs.sums && self.loops < 3 && self.rng.random_bool(0.15) {
            match ty {
                V => return self.vector_sum(fuel),
                F => return format!("(sum {})", self.vector_sum(fuel)),
                I => return format!("(size {})", self.vector_sum(fuel)),
                B | N(_) | P(_) => {}
            }
        }
        match self.rng.random_range(0..14) {
            0..2 => return self.leaf(ty),
            2..4 => return self.binding(ty, fuel),
            4 => {
                let (c, mut t, mut e) = (self.expr(&B, fuel / 3), self.expr(ty, fuel / 3), self.expr(ty, fuel / 3));
                if self.knobs.failing
                    && self.knobs.corners
                    && self.rng.random_bool(if self.knobs.sums { 0.15 } else { 0.06 })
                {
                    let failing = self.failure(ty);
                    *(if self.rng.random_bool(0.5) { &mut t } else { &mut e }) = failing;
                }
                return format!("(if {c} {t} {e})");
            }
            5 => {
                let parts = [F, I, ty.clone()];
                let made: Vec<String> = parts.iter().map(|p| self.expr(p, fuel / 3)).collect();
                return format!("(get$3$3 (tuple {}))", made.join(" "));
            }
            6 if self.helper.as_ref().is_some_and(|(_, ret)| ret == ty) => {
                let params = self.helper.clone().map_or(vec![], |(params, _)| params);
                let args: Vec<String> = params.iter().map(|p| self.expr(p, fuel / params.len())).collect();
                return format!("(helper {})", args.join(" "));
            }
            7 if self.knobs.failing => {
                let (c, e) = (self.expr(&B, fuel / 2), self.expr(ty, fuel / 2));
                return format!("(assert {c} {e})");
            }
            _ => {}
        }
        match ty {
            F => self.float_expr(fuel),
            I => self.int_expr(fuel),
            B => self.bool_expr(fuel),
            V => self.vec_expr(fuel),
            N(name) => self.small_expr(name, fuel),
            // The state of a fold keeps its shape, which only numbers are sure to do.
            P(_) if self.knobs.corners
                && (self.knobs.failing || !ty.text().contains("Vec"))
                && self.loops < 3
                && self.rng.random_bool(0.4) =>
            {
                self.folded(ty, fuel)
            }
            P(parts) => {
                let made: Vec<String> = parts.iter().map(|p| self.expr(p, fuel / parts.len())).collect();
                format!("(tuple {})", made.join(" "))
            }
        }
    }

    fn leaf(&mut self, ty: &T) -> String {
        if self.rng.random_bool(0.75)
            && let Some(name) = self.pick(|n| n.ty == *ty)
        {
            return name.shown;
        }
        match ty {
            F => self.float(),
            I => self.integer(),
            N(name) => format!("(cast {name} {})", self.integer()),
            B => self.rng.random_bool(0.5).to_string(),
            V => {
                let each: Vec<String> = (0..self.rng.random_range(1..=3)).map(|_| self.leaf(&F)).collect();
                format!("(Vec_init {})", each.join(" "))
            }
            P(parts) => {
                let made: Vec<String> = parts.iter().map(|p| self.leaf(p)).collect();
                format!("(tuple {})", made.join(" "))
            }
        }
    }

    fn binding(&mut self, ret: &T, fuel: usize) -> String {
        let (a, b) = (self.ty(1), self.ty(0));
        let first = self.expr(&a, fuel / 3);
        if self.rng.random_bool(0.3) {
            let second = self.expr(&b, fuel / 3);
            let (names, body) = self.under(&[(&a, None), (&b, None)], ret, fuel / 3);
            return format!("(let (({} {}) (tuple {first} {second})) {body})", names[0], names[1]);
        }
        let depth = self.scope.len();
        self.name(&a, None, &[], true);
        let x = self.scope[depth].shown.clone();
        // `((x y) (z w))` would take a tuple apart, so a name on the right gets a let of its own.
        let two = self.rng.random_bool(0.4) && first.starts_with('(');
        let out = if two {
            let second = self.expr(&b, fuel / 3);
            let (names, body) = self.under(&[(&b, None)], ret, fuel / 3);
            format!("(let (({x} {first}) ({} {second})) {body})", names[0])
        } else {
            format!("(let ({x} {first}) {})", self.expr(ret, fuel * 2 / 3))
        };
        self.scope.truncate(depth);
        out
    }

    /// What fails, with the type of something.
    fn failure(&mut self, ty: &T) -> String {
        let e = self.leaf(ty);
        match self.rng.random_range(0..4) {
            0 => format!("(assert false {e})"),
            1 => format!("(get$2$2 (tuple (div {} 0) {e}))", self.leaf(&I)),
            2 => format!("(get$2$2 (tuple (index {} (Vec_init {})) {e}))", self.rng.random_range(1..3), self.leaf(&F)),
            _ => format!("(get$2$2 (tuple (sum (constVec -1 {})) {e}))", self.leaf(&F)),
        }
    }

    /// A size that is small, and negative only where failures may occur; and the vector that has it.
    fn size(&mut self, fuel: usize) -> (String, Option<usize>) {
        if !self.knobs.corners {
            return self.plain_size(fuel);
        }
        let vector = self.pick(|n| n.ty == V);
        let counter = self.pick(|n| n.over.is_some());
        // The ways that say more than a size of something.
        let most = if self.knobs.sums && self.rng.random_bool(0.4) { 4..12 } else { 0..24 };
        let size = match (self.rng.random_range(most), vector, counter) {
            (0..3 | 12..18 | 20..24, Some(v), _) => return (format!("(size {})", v.shown), Some(v.unique)),
            (3 | 19, Some(v), _) if self.knobs.failing => {
                format!("(sub (size {}) {})", v.shown, self.rng.random_range(1..3))
            }
            (3, Some(v), _) => format!("(max 0 (sub (size {}) 1))", v.shown),
            // Triangles: as many rounds as the loop around has had.
            (4, _, Some(i)) => i.shown,
            (5, _, Some(i)) => format!("(add {} 1)", i.shown),
            (6, _, Some(i)) if self.knobs.failing => format!("(sub 1 {})", i.shown),
            (7, _, _) if self.knobs.failing => format!("(mod {} 4)", self.expr(&I, fuel)),
            (8, _, _) if self.knobs.failing => format!("(div 3 {})", self.expr(&I, fuel)),
            (9, _, _) => format!("(min 3 (max 0 {}))", self.expr(&I, fuel)),
            (10 | 18, _, _) if self.knobs.failing => self.rng.random_range(-1..2).to_string(),
            _ => self.rng.random_range(0..4).to_string(),
        };
        (size, None)
    }

    fn plain_size(&mut self, fuel: usize) -> (String, Option<usize>) {
        match self.rng.random_range(0..6) {
            0..3 => {
                if let Some(v) = self.pick(|n| n.ty == V) {
                    return (format!("(size {})", v.shown), Some(v.unique));
                }
            }
            3 if self.knobs.failing => return (format!("(mod {} 4)", self.expr(&I, fuel)), None),
            4 => return (format!("(min 3 (max 0 {}))", self.expr(&I, fuel)), None),
            _ => {}
        }
        (self.rng.random_range(0..4).to_string(), None)
    }

    fn looped(&mut self, form: &str, elem: &T, fuel: usize) -> String {
        let (size, over) = self.size(fuel / 4);
        let (names, body) = self.repeated(&[(&I, over.or(Some(NONE)))], elem, fuel * 3 / 4);
        format!("({form} {size} (lam ({} : Integer) {body}))", names[0])
    }

    /// An element of a vector: by a variable that runs over it, guarded, or blindly.
    fn element(&mut self, fuel: usize) -> String {
        let vectors = self.visible(|n| n.ty == V);
        let of = |n: &Name| vectors.iter().find(|v| n.over == Some(v.unique)).map(|v| v.shown.clone());
        if let Some(i) = self.pick(|n| of(n).is_some()) {
            return format!("(index {} {})", i.shown, of(&i).unwrap_or_default());
        }
        let Some(v) = self.pick(|n| n.ty == V) else { return self.leaf(&F) };
        let index = self.expr(&I, fuel);
        if self.knobs.failing && self.rng.random_bool(0.5) {
            return format!("(index {index} {})", v.shown);
        }
        let other = self.leaf(&F);
        let depth = self.scope.len();
        self.name(&I, None, &[], false);
        let k = self.scope[depth].shown.clone();
        self.scope.truncate(depth);
        let v = v.shown;
        format!("(let ({k} {index}) (if (and (gte {k} 0) (lt {k} (size {v}))) (index {k} {v}) {other}))")
    }

    fn folded(&mut self, ty: &T, fuel: usize) -> String {
        let (init, of) = (self.expr(ty, fuel / 4), self.expr(&V, fuel / 4));
        let (names, body) = self.repeated(&[(ty, None), (&F, None)], ty, fuel / 2);
        format!("(fold (lam (({} : {}) ({} : Float)) {body}) {init} {of})", names[0], ty.text(), names[1])
    }
}
