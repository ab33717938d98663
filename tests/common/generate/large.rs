//! A number becomes a program of about so many nodes: input for measuring how the front end scales.

/// Nodes of one small definition.
const SMALL: usize = 40;

/// A program of about `nodes` nodes: a tenth of them levels of one deep nesting, and the rest in
/// many small definitions that call each other. Equal numbers give equal texts.
pub fn large(nodes: usize) -> String {
    let depth = nodes / 10;
    let mut out = String::with_capacity(nodes * 12);
    out += "(def f0 Float ((x : (Vec Float) n) (a : Float)) (mul a (sum x)))\n";
    // Two levels of the deep definition are five nodes: two operations, a literal, a variable, a let.
    for k in 1..nodes.saturating_sub(depth * 5 / 2) / SMALL {
        out += &format!(
            "(def f{k} Float ((x : (Vec Float) n) (a : Float))
  (let ((s (sumbuild n (lam (i : Integer) (mul (index i x) (add a {k}.5)))))
        (y (build n (lam (i : Integer) (exp (sub (index i x) s))))))
    (if (gt s {k}.0)
      (f{} y (add s a))
      (fold (lam ((acc : Float) (v : Float)) (max acc (mul v s))) {k}.25 y))))\n",
            k - 1
        );
    }
    out += "(def deep Float (v0 : Float)\n";
    for k in 1..=depth / 2 {
        out += &format!("(let (v{k} (mul v{} {k}.5)) (add v{k} ", k - 1);
    }
    out += "v0";
    out += &"))".repeat(depth / 2);
    out += ")\n";
    out
}
