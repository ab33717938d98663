//! Replay computes again what a record states: whatever is changed in one is refused, on its line.

use crate::common;
use daedal::cost::Model;
use daedal::derive::record;
use daedal::diag::Source;
use daedal::ir::Program;
use daedal::pipeline::replay::{record as record_text, replayed};
use daedal::pipeline::{Options, optimize};
use daedal::rules::Library;
use serde_json::{Value as Json, json};
use std::sync::Arc;

const PROGRAM: &str = "
(def doubled Float (x : (Vec Float) n) (sumbuild n (lam (i : Integer) (mul 2.0 (index i x)))))
(def same Float (y : Float) y)
(def twice (Tuple Float Float) (x : (Vec Float) n) (tuple (doubled x) (doubled x)))
";
const MORE: &str = "(rule \"halved\" (a : Float) (mul 0.5 a) (div a 2.0))\n";

struct Made {
    program: Program,
    library: Library,
    lines: Vec<Json>,
}

impl Made {
    fn new(model: Model) -> Made {
        let program = common::read("p.ks", PROGRAM).unwrap();
        let more = Source::new("/some/where/more.rules", MORE);
        let mut library = Library::shipped().unwrap();
        library.extend(&more).unwrap();
        let sizes = vec![("n".to_string(), 1000)];
        let some = Options::standard();
        let options =
            Options { cost: model, sizes, rules: vec![Arc::clone(&more)], derive: true, max_nodes: 1000, ..some };
        let outcome = optimize(&program, &options).unwrap_or_else(|d| panic!("{d}"));
        let text = record_text(&program, &outcome, &library, &options);
        let lines = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        Made { program, library, lines }
    }

    /// What a replay of other lines says.
    fn told(&self, lines: &[Json]) -> Result<usize, String> {
        let text: String = lines.iter().map(|l| l.to_string() + "\n").collect();
        let record = record::read(&Source::new("d.jsonl", text)).map_err(|d| d.to_string())?;
        let verdicts =
            replayed(&self.program, &record, &self.library, "d.jsonl", |_| true).map_err(|d| d.to_string())?;
        Ok(verdicts.iter().map(|v| v.steps).sum())
    }

    fn refused(&self, lines: &[Json], want: &str) {
        let found = self.told(lines).err().unwrap_or_else(|| panic!("accepted, where expected: {want}"));
        assert!(found.contains(want), "expected {want}\nfound {found}");
    }

    /// With one value of one line replaced.
    fn with(&self, line: usize, key: &str, to: Json) -> Vec<Json> {
        let mut lines = self.lines.clone();
        lines[line][key] = to;
        lines
    }
}

/// Protects: every cost that a record states, under both models; the line that is wrong is named.
#[test]
fn every_cost_is_computed_again() {
    for model in [Model::Knossos, Model::Analytic] {
        let made = Made::new(model);
        let steps = made.told(&made.lines).unwrap_or_else(|d| panic!("{d}"));
        assert!(steps > 0, "nothing was derived");
        let mut changed = 0;
        for (k, line) in made.lines.iter().enumerate() {
            for key in ["cost", "unfolded"] {
                let Some(cost) = line[key].as_f64() else { continue };
                for other in [cost + 1.0, cost * 1.0001 + 1e-6, 0.5 * cost - 1.0, -cost - 1.0] {
                    made.refused(&made.with(k, key, json!(other)), &format!("d.jsonl:{}: ", k + 1));
                    changed += 1;
                }
            }
        }
        assert!(changed >= 4 * (2 * 3 + steps), "only {changed} costs were changed");
    }
}

/// Protects: what the header says is compared with what the replay was given.
#[test]
fn every_part_of_a_header_is_compared() {
    let made = Made::new(Model::Analytic);
    let file = made.lines[0]["rule_files"][0].clone();
    assert_eq!(file[0], json!("more.rules"), "the folder of a rule file is nobody's matter");
    let cases = [
        ("cost_model", json!("knossos"), "under the cost model `knossos`"),
        ("cost_model", json!("luck"), "there is no cost model `luck`"),
        ("sizes", json!([]), "costs"),
        ("sizes", json!([["n", 10]]), "costs"),
        ("sizes", json!([["m", 1000]]), "no definition of the program names a size `m`"),
        ("sizes", json!([["n"]]), "the list `sizes`"),
        ("rule_files", json!([]), "made with other rules"),
        ("rule_files", json!([["less.rules", file[1]]]), "made with other rules"),
        ("rule_files", json!([["more.rules", "00"]]), "made with other rules"),
        ("rule_files", json!([file, file]), "made with other rules"),
        ("rules", json!("00"), "made with other rules"),
        ("program", json!("00"), "made for another text"),
        ("level", json!("exact"), "is a rule for `real`"),
        ("level", json!("near"), "the level `exact` or `real`"),
        ("definitions", json!(2), "says that it derives 2 definitions"),
        ("definitions", json!("3"), "the number `definitions`"),
        ("format", json!("daedal derivation 1"), "the format"),
        ("author", json!("me"), "no `author` in a line with `format`"),
    ];
    for (key, to, want) in cases {
        made.refused(&made.with(0, key, to), want);
    }
    let mut alone = made.with(0, "definitions", json!(0));
    alone.truncate(1);
    made.refused(&alone, "derives nothing");
    let mut cut = made.lines.clone();
    cut.truncate(made.lines.iter().rposition(|l| l["def"].is_string()).unwrap());
    made.refused(&cut, "says that it derives 3 definitions");
}

/// Protects: lines that say more than is checked, or say it twice.
#[test]
fn what_is_not_understood_is_refused() {
    let made = Made::new(Model::Knossos);
    let step = made.lines.iter().position(|l| l["step"] == json!(1)).unwrap();
    made.refused(&made.with(step, "everywhere", json!("yes")), "`everywhere` as true or false");
    made.refused(&made.with(step, "why", json!("luck")), "no `why` in a line with `step`");
    let same = made.lines.iter().position(|l| l["def"] == json!("same")).unwrap();
    let mut twice = made.with(0, "definitions", json!(4));
    twice.extend(made.lines[same..same + 2].to_vec());
    made.refused(&twice, "`same` was derived before");
}

/// Protects: a size that is guessed by the loops that read there stands in the header, so that the same costs are computed
/// again, and it is refused where no parameter has such an axis.
#[test]
fn guessed_sizes_are_written_down() {
    let text = "(def f Float ((x : (Vec Float) n) (y : (Vec Float)))
      (sumbuild (size y) (lam (i : Integer) (if (lt i n) (mul 1.0 (mul (index i x) (sumbuild n (lam (j : Integer) (index j y))))) 0.0))))";
    let program = common::read("q.ks", text).unwrap();
    let library = Library::shipped().unwrap();
    let sizes = vec![("n".to_string(), 1000)];
    let options = Options { cost: Model::Analytic, sizes, derive: true, max_nodes: 1000, ..Options::standard() };
    let outcome = optimize(&program, &options).unwrap_or_else(|d| panic!("{d}"));
    let text = record_text(&program, &outcome, &library, &options);
    assert!(text.contains(r#"["y.1",1000]"#), "{text}");
    let told = |text: &str| {
        let record = record::read(&Source::new("d.jsonl", text)).map_err(|d| d.to_string())?;
        replayed(&program, &record, &library, "d.jsonl", |_| true).map(|v| v.len()).map_err(|d| d.to_string())
    };
    assert_eq!(told(&text), Ok(1));
    let other = told(&text.replace("y.1", "y.2"));
    assert!(
        other.as_ref().is_err_and(|why| why.contains("no definition of the program names a size `y.2`")),
        "{other:?}"
    );
    assert!(told(&text.replace("[\"y.1\",1000]", "[\"y.1\",10]")).is_err_and(|why| why.contains("cost")));
}
