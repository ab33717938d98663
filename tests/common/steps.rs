//! Hand-written derivations become verdicts.

use daedal::derive::record::{self, Header};
use daedal::derive::replay::replay;
use daedal::diag::Source;
use daedal::rules::{Level, Library};

/// What a replay of hand-written lines says: the number of steps, or the refusal.
///
/// # Errors
/// The refusal.
///
/// # Panics
/// The program cannot be read.
pub fn told(program: &str, level: Level, lines: &[&str]) -> Result<usize, String> {
    let library = Library::shipped().unwrap();
    let program = super::read("p.ks", program).unwrap();
    let header = Header {
        program: record::hash(&program.source.text),
        level,
        assume: vec![],
        cost_model: "knossos".into(),
        sizes: vec![],
        rules: record::hash_rules(&library),
        rule_files: vec![],
    };
    let count = lines.iter().filter(|l| l.contains("\"def\"")).count();
    let header = record::write(&header, &[]).replace("\"definitions\":0", &format!("\"definitions\":{count}"));
    let text = header + &lines.join("\n");
    let record = record::read(&Source::new("steps.jsonl", text)).map_err(|d| d.to_string())?;
    let verdicts = replay(&program, &record, &library, "steps.jsonl").map_err(|d| d.to_string())?;
    Ok(verdicts.iter().map(|v| v.steps).sum())
}
