//! Wrong programs and the exact messages they end in: `tests/errors/NAME.ks` and `NAME.txt`.
//!
//! A header line `;; eval NAME ARG…` runs a program that checks. `DAEDAL_BLESS=1` writes the texts.

use crate::common::{arguments, files, read, root};
use daedal::diag::Kind;
use daedal::eval::Interpreter;
use std::path::Path;

/// The message of a file, and whose fault it is.
fn message(path: &Path) -> Result<String, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
    let text = std::fs::read_to_string(path).unwrap();
    let call = text.lines().find_map(|l| l.strip_prefix(";; eval "));
    let found = match (read(&name, &text), call) {
        (Err(d), None) => d,
        (Err(d), Some(_)) => return Err(format!("expected a failure at run time, found\n{d}")),
        (Ok(_), None) => return Err("nothing is wrong with it".into()),
        (Ok(program), Some(call)) => {
            let words: Vec<String> = call.split_whitespace().map(str::to_string).collect();
            let defs = program.named(&words[0]);
            let def = defs.first().ok_or_else(|| format!("`{}` is not defined", words[0]))?;
            match Interpreter::new(&program).run(def, &arguments(def, &words[1..])?) {
                Err(d) => d,
                Ok(v) => return Err(format!("it evaluates to {}", v.to_json())),
            }
        }
    };
    if found.kind == Kind::Bug {
        return Err(format!("a user's error is reported as a bug:\n{found}"));
    }
    Ok(format!("exit {}\n{found}\n", found.exit_code()))
}

/// Protects: what a user reads when something is wrong, to the letter.
#[test]
fn messages_are_as_written() {
    let bless = std::env::var_os("DAEDAL_BLESS").is_some_and(|v| v == "1");
    let programs = files(&root("tests/errors"), "ks");
    assert!(programs.len() >= 40, "only {} wrong programs", programs.len());
    let mut failed = vec![];
    for path in &programs {
        let expected = path.with_extension("txt");
        match message(path) {
            Err(what) => failed.push(format!("{}: {what}", path.display())),
            Ok(found) if bless => std::fs::write(&expected, found).unwrap(),
            Ok(found) => {
                let wanted = std::fs::read_to_string(&expected).unwrap_or_default();
                if found != wanted {
                    failed.push(format!("{}\n--- expected\n{wanted}--- found\n{found}", path.display()));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{} failures\n{}", failed.len(), failed.join("\n"));
}

/// Protects: no expected text outlives its program.
#[test]
fn every_expected_text_has_a_program() {
    for path in files(&root("tests/errors"), "txt") {
        assert!(path.with_extension("ks").exists(), "{} belongs to nothing", path.display());
    }
}
