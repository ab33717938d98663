//! The corpus of programs, each `run` line in each mode: one answer.

use crate::common;
use crate::common::{Mode, check_all, everything, interpreted};

/// Every way to run a program. A new one is one line.
const MODES: &[Mode] = &[Mode { name: "interpreter", prepare: interpreted }];

/// Protects: the meaning of every construct, as `docs/language.md` gives it.
#[test]
fn every_run_line_holds_in_every_mode() {
    let cases = everything();
    let mut all = vec![];
    for mode in MODES {
        let (lines, failed) = check_all(&cases, mode);
        assert!(lines >= 500, "only {lines} lines were run in mode {}", mode.name);
        all.extend(failed);
    }
    assert!(all.is_empty(), "{} failures\n{}", all.len(), all.join("\n"));
}

/// Protects: what the corpus prints reads back to the same terms, and prints the same again.
#[test]
fn the_corpus_prints_and_reads_back() {
    for case in everything() {
        let printed = daedal::ir::print::program(&case.program);
        let again = common::read(&case.name, &printed).unwrap_or_else(|d| panic!("{d}\n{printed}"));
        let mut terms = case.program.terms.clone();
        for (a, b) in case.program.defs.values().zip(again.defs.values()) {
            assert_eq!(a.fun, b.fun, "{}", case.name);
            assert_eq!(a.term(), b.term().map(|t| terms.import(&again.terms, t)), "{} {}", case.name, a.name());
        }
        assert_eq!(printed, daedal::ir::print::program(&again), "{}", case.name);
    }
}
