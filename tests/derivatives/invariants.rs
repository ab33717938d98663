//! What is taken away and brought back has no derivative: log-sum-exp, softmax and what is made of them.

use crate::common;
use crate::common::arguments;
use daedal::ad::check::{self, Checked};
use daedal::ir::{Program, print};

const HELPERS: &str = "
(def greatest Float (x : (Vec Float) n) (reduce max n (lam (i : Integer) (index i x))))
(def folded Float (x : (Vec Float) n)
  (fold (lam ((m : Float) (e : Float)) (max m e)) (index 0 x) x))
(def logsumexp Float (x : (Vec Float) n)
  (let (m (greatest x)) (add m (log (sumbuild n (lam (i : Integer) (exp (sub (index i x) m))))))))
(def softmax (Vec Float) (x : (Vec Float) n)
  (let ((m (greatest x)) (e (build n (lam (i : Integer) (exp (sub (index i x) m))))) (s (sum e)))
    (build n (lam (i : Integer) (div (index i e) s)))))
";

/// Functions of a vector and a matrix whose value does not depend on what is taken away.
const INVARIANT: &str = "
(def twice Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (add (greatest x) (log (sumbuild n (lam (i : Integer) (exp (sub (index i x) (greatest x))))))))
(def bound Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n))) (logsumexp x))
(def by_fold Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let ((m (folded x)) (s (fold (lam ((s : Float) (e : Float)) (add s (exp (sub e m)))) 0.0 x))) (add m (log s))))
(def entropy Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (sumbuild n (lam (i : Integer) (sub (logsumexp (index i w)) (mul (index i x) (index i (index i w)))))))
(def weighted Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (sumbuild n (lam (i : Integer) (mul (index i x) (index i (softmax (index i w)))))))
(def masked Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (sumbuild n (lam (i : Integer)
    (let ((row (index i w)) (m (greatest row))
          (e (build n (lam (j : Integer) (if (lte j i) (exp (mul 0.5 (sub (index j row) m))) 0.0)))))
      (div (sumbuild n (lam (j : Integer) (mul (index j e) (index j x)))) (sum e))))))
(def geometric Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let ((m (greatest x)) (e (build n (lam (i : Integer) (exp (sub (index i x) m))))))
    (mul (exp m) (sqrt (sumbuild n (lam (i : Integer) (mul (index i e) (index i e))))))))
";

/// Others, whose value depends on it.
const VARIANT: &str = "
(def doubled Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let (m (greatest x)) (add m (mul 2.0 (log (sumbuild n (lam (i : Integer) (exp (sub (index i x) m)))))))))
(def alone Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let (m (greatest x)) (sumbuild n (lam (i : Integer) (exp (sub (index i x) m))))))
(def itself Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n))) (mul (greatest x) (greatest x)))
(def shifted Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let (m (greatest x)) (add m (log (add 1.0 (sumbuild n (lam (i : Integer) (exp (sub (index i x) m)))))))))
(def compared Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let (m (greatest x)) (sumbuild n (lam (i : Integer) (if (lt (index i x) 0.5) (mul m (index i x)) 1.0)))))
(def crossed Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let ((m (build n (lam (i : Integer) (greatest (index i w))))) (rows (build n (lam (i : Integer) m))))
    (sumbuild n (lam (i : Integer) (sumbuild n (lam (j : Integer)
      (mul (index i x) (sub (index j (index i rows)) (index i m)))))))))
(def filled Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let ((m (build n (lam (i : Integer) (greatest (index i w))))) (rows (Vec_init m m m m)))
    (sumbuild n (lam (i : Integer) (sumbuild n (lam (j : Integer)
      (mul (index i x) (sub (index j (index i rows)) (index i m)))))))))
(def counted Float ((x : (Vec Float) n) (w : (Vec (Vec Float)) (n n)))
  (let (m (greatest x)) (sumbuild n (lam (i : Integer) (sub (index i x) m)))))
";

const ARGUMENTS: [[&str; 2]; 2] = [
    ["[0.3,-1.2,0.9,0.1]", "[[0.1,0.5,-0.4,1.5],[2.0,1.0,0.2,-0.3],[-1.0,-0.2,0.6,0.4],[0.7,0.8,-1.1,0.0]]"],
    ["[-1.5,2.5,0.2,1.1]", "[[1.0,-2.5,0.4,0.5],[0.3,0.1,0.2,1.3],[1.0,3.2,0.6,2.4],[-0.7,-0.8,-1.1,-2.0]]"],
];

/// Both derivatives as text, which agree with differences and with each other.
fn derivatives(program: &Program, name: &str) -> String {
    let def = program.named(name)[0];
    let checked = Checked::new(program, def, &[true, true]).unwrap_or_else(|d| panic!("{name}: {}", d.render()));
    let made = checked.program();
    let (forward, reverse) = checked.derivatives();
    let text = [forward, reverse].map(|f| print::def(&made.terms, &made.defs[&f])).join("\n");
    for (seed, words) in ARGUMENTS.iter().enumerate() {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let args = arguments(def, &words).unwrap();
        let point = checked.at(&args, seed as i64).unwrap_or_else(|d| panic!("{}", d.render())).unwrap();
        let off = point.off_difference().unwrap_or_else(|| panic!("{name} is not smooth"));
        assert!(
            off < check::DIFFERENCE && point.off_modes() < checked.tolerance(),
            "{name} {words:?} {point:?}\n{text}"
        );
    }
    text
}

/// Protects: the value that softmax and log-sum-exp take away has neither adjoint nor tangent: nothing asks which element
/// it was. Derivatives agree with differences.
#[test]
fn what_is_taken_away_and_brought_back_has_no_derivative() {
    let program = common::read("invariant.ks", &format!("{HELPERS}{INVARIANT}")).unwrap_or_else(|d| panic!("{d}"));
    for name in ["twice", "bound", "by_fold", "entropy", "weighted", "masked", "geometric"] {
        let text = derivatives(&program, name);
        assert!(!text.contains("argmax"), "{name}\n{text}");
    }
}

/// Protects: what is not brought back as it was taken keeps its derivative.
#[test]
fn what_is_not_brought_back_keeps_its_derivative() {
    let program = common::read("variant.ks", &format!("{HELPERS}{VARIANT}")).unwrap_or_else(|d| panic!("{d}"));
    for name in ["doubled", "alone", "itself", "shifted", "compared", "crossed", "filled", "counted"] {
        let text = derivatives(&program, name);
        assert!(text.contains("argmax"), "{name}\n{text}");
    }
}
