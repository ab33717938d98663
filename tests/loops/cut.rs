//! Floats that are cut to integers, as indices and by themselves.

use crate::common::scheduled::{stages, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};

/// Reads a table at what is cut of a float `v`.
const TABLE: &str = "
(def f (Vec Float) ((x : (Vec Float) n) (t : (Vec Float) m))
  (build n (lam (i : Integer)
    (let ((v (index i x)) (last (to_float (sub m 1))))
      (index AT t)))))
";

/// Numbers at the ends of what can be cut, and between: none, infinite ones, zeros of both signs, and those around which
/// floats are whole, or no integer has them.
pub fn edges() -> Vec<f64> {
    let mut out = vec![f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e300, -1e300];
    for power in [0, 7, 8, 15, 16, 23, 24, 31, 32, 50, 51, 52, 53, 62, 63, 64] {
        let x = 2f64.powi(power);
        for y in [x, x.next_down(), x.next_up(), x - 0.5, x + 0.5, x - 1.0, x + 1.0, f64::from(x as f32)] {
            out.extend([y, -y]);
        }
    }
    out.extend([0.25, 0.999, 1.5, 2.5, 3.999, 6.0, 6.5].iter().flat_map(|x| [*x, -*x]));
    out
}

fn floats(all: &[f64]) -> Value {
    Value::tensor(vec![all.len()], all.iter().map(|x| Value::Scalar(Lit::float(*x))).collect())
}

fn table(at: &str, m: usize) -> String {
    stages(&TABLE.replace("AT", at), &[floats(&edges()), tensor(Scalar::F64, &[m], 3)])
}

/// Protects: an index of which clamps, arithmetic of clamped floats and functions with bounds say that it is in range is not
/// checked, and no float reads beside the table, whatever the order of operands says of what is no number.
#[test]
fn clamped_floats_are_indices_in_range() {
    let proved = [
        "(truncate (clamp v 0.0 last))",
        "(truncate (min (max 0.0 v) last))",
        "(truncate (min last (max v 0.0)))",
        "(truncate (max 0.0 (min v last)))",
        "(truncate (minimum last (maximum v 0.0)))",
        "(truncate (floor (clamp v 0.0 last)))",
        "(truncate (sub (to_float m) 1.0))",
        "(truncate (add 0.5 (mul 5.0 (clamp v 0.0 1.0))))",
        "(truncate (div (clamp v -1.0 1.0) 1.5))",
        "(truncate (add 1.0 (mul 0.9 (sin v))))",
        "(truncate (select (gt v 0.5) 1.5 6.5))",
        "(truncate (if (gt v 0.5) (clamp v 0.0 1.0) last))",
        "(cast Integer (cast Float (clamp (cast Float32 v) 0f32 6.5f32)))",
        "(cast Integer (clamp (cast Float32 v) 0f32 (cast Float32 (sub m 1))))",
        "(sub (truncate (clamp v 2.0 5.0)) 2)",
    ];
    for at in proved {
        let shown = table(at, 7);
        assert!(!shown.contains("    check "), "{at}\n{shown}");
    }
}

/// Protects: floats that a table keeps, or a step of a program, are as bounded where they are read as where they are made.
#[test]
fn kept_floats_are_bounded_where_they_are_read() {
    let text = "
(def f (Vec Float) ((x : (Vec Float) n) (t : (Vec Float) m))
  (let ((at (build n (lam (i : Integer) (clamp (index i x) 0.0 TOP)))) (low (reduce min n (lam (i : Integer) (index i at)))))
    (build n (lam (i : Integer)
      (add (mul low (sub (index i at) (to_float (truncate (index i at)))))
           (index (truncate (index (sub (sub n 1) i) at)) t))))))";
    for (top, holds) in [("(to_float (sub m 1))", true), ("6.5", true), ("7.0", false), ("(to_float m)", false)] {
        let shown = stages(&text.replace("TOP", top), &[floats(&edges()), tensor(Scalar::F64, &[7], 3)]);
        assert_eq!(shown.contains("    check "), !holds, "{top}\n{shown}");
    }
}

/// Protects: what is nearly in range is checked: one end only, the size itself, a negative end, data, and what is no number,
/// which is cut to 0 where the order of operands lets it through.
#[test]
fn nearly_clamped_floats_are_checked() {
    let open = [
        "(truncate (max v 0.0))",
        "(truncate (min v last))",
        "(truncate (clamp v 0.0 (to_float m)))",
        "(truncate (clamp v -1.0 last))",
        "(truncate (mul (clamp v 0.0 1.0) (index 0 t)))",
        "(truncate (div 1.0 (clamp v 0.0 1.0)))",
        "(truncate (add 1.0 (mul 8.0 (clamp v 0.0 1.0))))",
        "(sub (truncate (min 5.0 (max 2.0 v))) 2)",
        "(sub (truncate (minimum 5.0 (maximum v 2.0))) 2)",
        "(truncate (select (gt v 0.5) 1.5 7.5))",
    ];
    for at in open {
        let shown = table(at, 7);
        assert!(shown.contains("    check "), "{at}\n{shown}");
    }
}

/// Protects: floats of both widths are cut to integers of all types a vector at a time as one by one: ends stand for all
/// beyond them, and 0 for what is no number.
#[test]
fn lanes_are_cut_as_numbers_are() {
    for from in ["v", "(cast Float32 v)"] {
        for to in ["Integer", "Int32", "Int16", "Int8", "UInt32", "UInt16", "UInt8"] {
            let text = format!(
                "(def f (Vec {to}) (x : (Vec Float) n) (build n (lam (i : Integer) (let (v (index i x)) (cast {to} {from})))))"
            );
            stages(&text, &[floats(&edges())]);
        }
    }
    let small: Vec<f64> = edges().into_iter().filter(|x| x.abs() < 2f64.powi(50)).collect();
    stages(
        "(def f (Vec Integer) (x : (Vec Float) n) (build n (lam (i : Integer) (truncate (index i x)))))",
        &[floats(&small)],
    );
}
