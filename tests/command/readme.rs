//! The documents say the truth: their commands are run, and print what the documents show.
//!
//! A block of `sh` is run line by line in a fresh directory; the block of `text` after it is what
//! its lines print. A block of `lisp` starts with the name of its file as a comment: it is written
//! to that file, or, where the repository has the file, must stand in it. Times are not compared, nor
//! is what commands print that are for people.
//! `DAEDAL_BLESS=1` writes what is printed into the documents.

use crate::common::root;
use std::path::Path;
use std::process::Command;

/// Lines that are for people: they run all tests, or change the machine.
const SKIPPED: &[&str] = &[
    "cargo test",
    "cargo bench --bench compile",
    "cargo bench --bench kernels",
    "cargo run --release --example adbench -- gmm examples/data/gmm.txt .",
];

/// What stands for the binary.
const NAMES: &[&str] = &["cargo run --release -- ", "daedal "];

/// A fenced block: its language and the lines between the fences.
struct Block {
    lang: String,
    first: usize,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut out: Vec<Block> = vec![];
    let mut open = false;
    for (k, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(lang) => {
                out.push(Block { lang: lang.to_string(), first: k + 1, lines: vec![] });
                open = true;
            }
            None if open => out.last_mut().unwrap().lines.push(line.to_string()),
            None => {}
        }
    }
    assert!(!open, "a block is never closed");
    out
}

/// What a line of a shell block prints, on both streams.
fn printed(line: &str, dir: &Path) -> String {
    let rest = NAMES.iter().find_map(|n| line.strip_prefix(n));
    let rest = rest.unwrap_or_else(|| panic!("`{line}` is no command of daedal and is not skipped"));
    let command = format!("'{}' {rest} 2>&1", env!("CARGO_BIN_EXE_daedal"));
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    let shell = Command::new("sh").arg("-c").arg(command).current_dir(dir).env("DAEDAL_CACHE", cache).output();
    let shell = shell.unwrap();
    let text = String::from_utf8(shell.stdout).unwrap();
    // A document may show how an error looks, but not a bug.
    let code = shell.status.code();
    let wanted = if text.contains("error: ") { Some(1) } else { Some(0) };
    assert_eq!(code, wanted, "`{line}`: {text}");
    text
}

/// Without times: the last column of a table of costs, and all that is followed by `s`. Of a peak of memory two digits
/// count: strips are as long as the vectors of the machine are wide.
fn timeless(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |w: &str| w.parse::<f64>().is_ok();
    if let [_, before, after, _, seconds] = words.as_slice()
        && [before, after, seconds].iter().all(|w| number(w))
    {
        return words[..4].join(" ");
    }
    if let ["min", _, "s,", "median", _, "s,", "peak", bytes, "bytes"] = words.as_slice() {
        return format!("min TIME median TIME peak {:.1e} bytes", bytes.parse::<f64>().unwrap());
    }
    line.trim_end().to_string()
}

fn write(block: &Block, dir: &Path, document: &str) {
    let name = block.lines[0].strip_prefix("; ").unwrap_or_else(|| panic!("{document}:{}: no name", block.first));
    let body = block.lines[1..].join("\n");
    let Ok(known) = std::fs::read_to_string(root(name)) else {
        return std::fs::write(dir.join(name), body).unwrap();
    };
    for part in body.split("\n\n") {
        assert!(known.contains(part.trim()), "{document}: {name} does not hold\n{part}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

fn holds(document: &str) {
    let text = std::fs::read_to_string(root(document)).unwrap();
    let all = blocks(&text);
    let dir = tempfile::tempdir().unwrap();
    copy(&root("programs"), &dir.path().join("programs"));
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let mut wrong = vec![];
    // What replaces the lines of a block, last block first when it is written.
    let mut replaced = vec![];
    let mut shown: Option<String> = None;
    for block in &all {
        match block.lang.as_str() {
            "lisp" if block.lines[0].starts_with("; ") => write(block, dir.path(), document),
            "sh" => {
                let run: Vec<_> = block.lines.iter().filter(|l| !SKIPPED.contains(&l.as_str())).collect();
                shown = (!run.is_empty()).then(|| run.iter().map(|l| printed(l, dir.path())).collect());
            }
            "text" => {
                let Some(shown) = &shown else { continue };
                let same = |(a, b): (&str, &str)| timeless(a) == timeless(b);
                let have: Vec<&str> = shown.lines().collect();
                let agree = have.len() == block.lines.len()
                    && block.lines.iter().map(String::as_str).zip(have.iter().copied()).all(same);
                if !agree {
                    wrong.push(format!("{document}:{}: the output is\n{shown}", block.first + 1));
                    replaced.push((block.first, block.lines.len(), shown.clone()));
                }
            }
            _ => {}
        }
    }
    assert!(all.iter().any(|b| b.lang == "sh") && all.iter().any(|b| b.lang == "text"), "{document} shows nothing");
    if std::env::var_os("DAEDAL_BLESS").is_some() {
        for (first, n, shown) in replaced.into_iter().rev() {
            lines.splice(first..first + n, shown.lines().map(str::to_string));
        }
        return std::fs::write(root(document), lines.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "{}\nDAEDAL_BLESS=1 cargo test --test command readme:: writes it", wrong.join("\n"));
}

/// Protects: whoever types what the first page says gets what it shows.
#[test]
fn the_readme_holds() {
    holds("README.md");
}

/// Protects: the page on rules shows rules that work, and messages as they are.
#[test]
fn the_page_on_rules_holds() {
    holds("docs/rules.md");
}

/// Protects: the page on derivatives shows commands that work.
#[test]
fn the_page_on_derivatives_holds() {
    holds("docs/derivatives.md");
}

/// Protects: schedules are what their page says.
#[test]
fn the_page_of_schedules_holds() {
    holds("docs/schedules.md");
}

/// Protects: no link of the documents leads nowhere.
#[test]
fn links_lead_somewhere() {
    for document in [
        "README.md",
        "docs/rules.md",
        "docs/derivatives.md",
        "docs/schedules.md",
        "docs/architecture.md",
        "docs/language.md",
    ] {
        let text = std::fs::read_to_string(root(document)).unwrap();
        let folder = Path::new(document).parent().unwrap();
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            let there = target.contains("://") || root("").join(folder).join(target).exists();
            assert!(there, "{document} links to {target}");
        }
    }
}
