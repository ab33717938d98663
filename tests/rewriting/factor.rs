//! Factors leave sums: what all rounds multiply by is multiplied by once, also in sums within sums. Values stay those over the
//! reals, at all sizes, and work becomes less by an order where it should.

use crate::common;
use crate::common::random::compare;
use crate::common::{arguments, read};
use daedal::ad::{self, Mode, Wanted};
use daedal::eval::{Interpreter, Value};
use daedal::ir::{Def, Fun, Program, print};
use daedal::pipeline::factored::factored;
use daedal::rules::Level;
use proptest::prelude::*;

/// A definition `f` of points, parts and a matrix for each part.
fn program(body: &str) -> Program {
    let text = format!(
        "(def f (Vec (Vec Float)) ((x : (Vec (Vec Float)) (n d)) (q : (Vec (Vec (Vec Float))) (k d d)) (w : (Vec (Vec Float)) (n k)))
           {body})"
    );
    read("f.ks", &text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// The program after factors have left its sums; whether any has.
fn after(program: &Program) -> (Program, bool) {
    let out = factored(program, &|_| true).unwrap_or_else(|d| panic!("{}", d.render()));
    let changed = print::program(&out) != print::program(program);
    (out, changed)
}

/// Numbers that say little, in rows.
fn rows(seed: u64, dims: &[usize]) -> String {
    let Some((n, rest)) = dims.split_first() else {
        return format!("{}", f64::from(u32::try_from(seed * 7_919 % 1_009).unwrap()) / 251.0 - 2.0);
    };
    let each: Vec<String> = (0..*n).map(|i| rows(seed * 31 + i as u64 + 1, rest)).collect();
    format!("[{}]", each.join(","))
}

fn args(def: &Def, [n, d, k]: [usize; 3]) -> Vec<Value> {
    let words = [rows(1, &[n, d]), rows(2, &[k, d, d]), rows(3, &[n, k])];
    arguments(def, &words).unwrap()
}

fn multiplications(program: &Program, def: &Def, args: &[Value]) -> u64 {
    let interpreter = Interpreter::new(program).counted();
    interpreter.run(def, args).unwrap_or_else(|d| panic!("{}", d.render()));
    interpreter.tally().simple
}

const SIZES: [[usize; 3]; 6] = [[3, 4, 2], [1, 1, 1], [0, 0, 2], [4, 2, 1], [2, 5, 3], [7, 0, 0]];

fn check(body: &str, changes: bool) -> (Program, Program) {
    let before = program(body);
    let (out, changed) = after(&before);
    assert_eq!(changed, changes, "{body}\n{}", print::program(&out));
    for sizes in SIZES {
        let args = args(before.named("f")[0], sizes);
        compare(&before, &out, "f", &args, Level::Real).unwrap_or_else(|e| panic!("{body}\n{sizes:?}: {e}"));
    }
    (before, out)
}

/// For each part and coordinate, a sum over all points.
fn each(element: &str) -> String {
    format!("(build k (lam (c : Integer) (build d (lam (j : Integer) (sumbuild n (lam (i : Integer) {element}))))))")
}

/// Protects: a matrix leaves the sum over points, by rows that are shifted too, with other factors and addends beside, and
/// from the table of all products that only the sum reads. What is left is linear in points times coordinates.
#[test]
fn matrices_leave_sums_over_points() {
    let product = "(sumbuild d (lam (m : Integer) (mul (index m (index j (index c q))) (index m (index i x)))))";
    let weighted = format!("(mul (index c (index i w)) {product})");
    let below = "(sumbuild (sub (sub d 1) j) (lam (m : Integer) (mul (index (add (add m j) 1) (index j (index c q))) (index (add (add m j) 1) (index i x)))))";
    let table = format!(
        "(let (t (build n (lam (i : Integer) (build k (lam (c : Integer) (build d (lam (j : Integer) {weighted})))))))
           {})",
        each("(neg (index j (index c (index i t))))")
    );
    for body in [
        each(product),
        each(&weighted),
        each(&format!("(neg {weighted})")),
        each(&format!("(sub {weighted} (mul 3.0 (index j (index i x))))")),
        each(&format!("(add (mul (index j (index i x)) (index 0 (index 0 (index c q)))) {below})")),
        table,
    ] {
        let (before, out) = check(&body, true);
        let args = args(before.named("f")[0], [24, 16, 3]);
        let [was, is] = [&before, &out].map(|p| multiplications(p, p.named("f")[0], &args));
        assert!(is * 3 < was, "{body}\n{was} -> {is}\n{}", print::program(&out));
    }
}

/// Protects: what would not become less stays: where each addend is asked for once, where nothing leaves, and where how many
/// there are depends on the point.
#[test]
fn what_gains_nothing_stays() {
    for element in [
        // The table would be as large as what is summed.
        "(sumbuild d (lam (m : Integer) (mul (index m (index j (index c q))) (exp (mul (index m (index i x)) (mul (index c (index i w)) (index j (index i x))))))))",
        "(sumbuild d (lam (m : Integer) (mul (index m (index i x)) (index j (index i x)))))",
        "(sumbuild (min i d) (lam (m : Integer) (mul (index m (index j (index c q))) (index m (index i x)))))",
        "(mul (index j (index i x)) (index c (index i w)))",
    ] {
        check(&each(element), false);
    }
}

/// Protects: a shift that all points share gets its adjoint by the matrix once for each part, not for each point.
#[test]
fn adjoints_of_shared_shifts_are_summed_first() {
    let text = "(def f Float ((x : (Vec (Vec Float)) (n d)) (q : (Vec (Vec Float)) (d d)) (m : (Vec Float) d))
      (sumbuild n (lam (i : Integer)
        (let ((v (build d (lam (j : Integer) (sub (index j (index i x)) (index j m)))))
              (y (build d (lam (j : Integer) (sumbuild d (lam (l : Integer) (mul (index l (index j q)) (index l v))))))))
          (exp (neg (sumbuild d (lam (j : Integer) (mul (index j y) (index j y))))))))))";
    let program = read("f.ks", text).unwrap();
    let def = program.named("f")[0];
    let wanted =
        Wanted { fun: def.fun, mode: Mode::Reverse, wrt: vec![false, false, true], value: false, checkpoint: false };
    let (derived, fun): (Program, Fun) = ad::derive(&program, &wanted).unwrap();
    let out = factored(&derived, &|d| d.fun == fun).unwrap();
    let gradient = |p: &Program, [n, d]: [usize; 2]| {
        let def = &p.defs[&fun];
        let words = [rows(1, &[n, d]), rows(2, &[d, d]), rows(3, &[d]), "1.0".to_string()];
        let args = arguments(def, &words).unwrap();
        let interpreter = Interpreter::new(p).counted();
        let value = interpreter.run(def, &args).unwrap();
        (value, interpreter.tally().simple)
    };
    for sizes in [[1, 1], [5, 3], [0, 0], [30, 12]] {
        let (was, is) = (gradient(&derived, sizes), gradient(&out, sizes));
        assert!(common::agree(&was.0, &is.0, 1e-9), "{:?} {:?}", was.0, is.0);
    }
    let (was, is) = (gradient(&derived, [60, 24]).1, gradient(&out, [60, 24]).1);
    // One of two products of a matrix and each point is left.
    assert!(is as f64 <= 0.7 * was as f64, "{was} -> {is}\n{}", print::program(&out));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Protects: sums of random products keep their values.
    #[test]
    fn random_sums_keep_their_values(
        factors in prop::collection::vec(0usize..7, 1..4), inner in prop::collection::vec(0usize..7, 1..4),
        negated in any::<bool>(), beside in any::<bool>(), shifted in any::<bool>(), n in 1usize..4, d in 1usize..4, k in 1usize..3,
    ) {
        let at = if shifted { "(min (add m 1) (sub d 1))" } else { "m" };
        let all = [
            "(index j (index i x))", "(index c (index i w))", "2.5", "(index j (index j (index c q)))",
            "(index AT (index i x))", "(index AT (index j (index c q)))", "(exp (mul 0.1 (index AT (index i x))))",
        ];
        let text = |k: &usize| all[*k].replace("AT", at);
        let product = |of: Vec<String>| of.into_iter().reduce(|a, b| format!("(mul {a} {b})")).unwrap();
        let within = format!("(sumbuild d (lam (m : Integer) {}))", product(inner.iter().map(text).collect()));
        let own = factors.iter().filter(|k| **k < 4).map(text).chain([within]).collect();
        let mut element = product(own);
        if negated { element = format!("(neg {element})"); }
        if beside { element = format!("(sub (index j (index i x)) {element})"); }
        let before = program(&each(&element));
        let (out, _) = after(&before);
        let args = args(before.named("f")[0], [n, d, k]);
        compare(&before, &out, "f", &args, Level::Real).map_err(TestCaseError::fail)?;
    }
}
