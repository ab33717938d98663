//! Reductions of vectors and matrices, for tests that take them in another order.

/// Reductions of all forms that may be reassociated, and some that may not.
pub const SUMS: &str = "
(def dot Float ((x : (Vec Float) n) (y : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (mul (index i x) (index i y)))))
(def rows (Vec Float32) ((a : (Tensor 2 Float32) (n m)) (x : (Vec Float32) m))
  (build n (lam (i : Integer) (sumbuild m (lam (k : Integer) (mul (index (tuple i k) a) (index k x)))))))
(def whole Float (a : (Tensor 2 Float) (n m))
  (add 3.0 (sumbuild (tuple n m) (lam ((i : Integer) (k : Integer)) (index (tuple i k) a)))))
(def triangle Float (a : (Tensor 2 Float) (n m))
  (sumbuild n (lam (i : Integer) (sumbuild (min i m) (lam (k : Integer) (index (tuple i k) a))))))
(def some Float ((x : (Vec Float) n) (y : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (if (gt (index i x) 0.0) (index i y) 0.0))))
(def from Float ((x : (Vec Float) n) (s : Float))
  (fold (lam ((acc : Float) (v : Float)) (if (lt v s) (sub acc v) (add v acc))) s x))
(def columns (Vec Float) (a : (Tensor 2 Float) (n m))
  (sumbuild n (lam (i : Integer) (build m (lam (j : Integer) (index (tuple i j) a))))))
(def pair (Tuple Float Float) ((x : (Vec Float) n) (y : (Vec Float) n))
  (sumbuild n (lam (i : Integer) (tuple (mul (index i x) (index i y)) (index i x)))))
(def most Float (a : (Tensor 2 Float) (n m))
  (reduce max (tuple n m) (lam ((i : Integer) (k : Integer)) (index (tuple i k) a))))
(def counted Integer ((x : (Vec Float) n) (s : Float))
  (sumbuild n (lam (i : Integer) (if (gt (index i x) s) (mul i 4611686018427387905) 1))))
(def checked Float ((x : (Vec Float) n) (at : (Vec Integer) n))
  (sumbuild n (lam (i : Integer) (index (index i at) x))))";
