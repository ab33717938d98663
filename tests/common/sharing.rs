//! Expressions in which one part stands twice and another once, in differing contexts: those on which a
//! search is trained, and others, in other contexts, on which it is tested.

/// The parts that are repeated, or stand once.
const PARTS: [&str; 6] = ["(add a b)", "(mul a c)", "(sub b d)", "(exp c)", "(div a 3.0)", "(mul (add a d) c)"];

/// Contexts of the expressions for training; `R` is the repeated part, and `S` the single one.
const TRAINING: [&str; 3] = ["(add (mul R R) S)", "(mul (sub R S) R)", "(add (exp (mul R S)) R)"];

/// Contexts of the expressions for the test.
const TEST: [&str; 2] = ["(mul (exp R) (add S R))", "(sub (mul R S) (exp R))"];

/// Names and bodies: `train1` to `train36`, every pair of parts once; `test1` to `test12`.
pub fn expressions() -> Vec<(String, String)> {
    let filled = |context: &str, r: usize, s: usize| context.replace('R', PARTS[r]).replace('S', PARTS[s]);
    let mut out = vec![];
    for k in 0..36 {
        let (r, s) = (k / 6, k % 6);
        out.push((format!("train{}", k + 1), filled(TRAINING[(r + s) % 3], r, s)));
    }
    for k in 0..12 {
        let r = k % 6;
        out.push((format!("test{}", k + 1), filled(TEST[k / 6], r, (r + 1 + k / 6) % 6)));
    }
    out
}

/// The file, with what each expression costs at the least.
pub fn text(least: &[f64]) -> String {
    let mut out = String::from(
        "; Generated (tests/common/sharing.rs): a part that stands twice and one that stands once, of six, in\n\
         ; differing contexts: 36 expressions to learn from, 12 in other contexts to be tested on. The costs are the\n\
         ; least known: equality saturation and A* agree on them.\n",
    );
    out += ";; run train1 1.0 2.0 3.0 4.0 => 12.0\n";
    let all = expressions();
    for ((name, _), cost) in all.iter().zip(least) {
        out += &format!(";; cost knossos {name} <= {cost}\n");
    }
    for (name, body) in &all {
        out += &format!("\n(def {name} Float ((a : Float) (b : Float) (c : Float) (d : Float))\n  {body})\n");
    }
    out
}
