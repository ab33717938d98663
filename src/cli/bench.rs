//! `daedal bench SUITE`: published comparisons are run again, and become a table.
//!
//! A suite is a function from nothing to a table. With `--write` the table replaces that suite's
//! section of a page, which stands between two comments.

use super::{World, optimize::show};
use crate::cost::Model;
use crate::data::{self, Output};
use crate::diag::{Diagnostic, Result, Source};
use crate::pipeline::{self, Options};
use crate::run;
use crate::types;
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;

/// Rerun a published comparison; prints its table
#[derive(Args, Debug)]
pub struct Bench {
    /// What to compare
    #[arg(value_enum)]
    suite: Suite,
    /// Write the table into its section of a page, such as docs/results.md
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Suite {
    /// Costs of linear algebra under the published cost model, beside the best that were published
    Costs,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Suite::Costs => "costs",
        }
    }
}

/// The programs of the suite `costs`.
const PROGRAMS: [(&str, &str); 2] = [
    ("programs/blas_rows.ks", include_str!("../../programs/blas_rows.ks")),
    ("programs/blas.ks", include_str!("../../programs/blas.ks")),
];

/// The best cost that the reference implementation's experts or its trained agent found.
const PUBLISHED: [(&str, &str, &str, f64); 13] = [
    ("matrix scaling", "programs/blas_rows.ks", "mat_scale", 822.7),
    ("matrix sum", "programs/blas_rows.ks", "mat_sum", 868.4),
    ("outer product", "programs/blas_rows.ks", "outer_product", 821.7),
    ("outer product with a scaled vector", "programs/blas_rows.ks", "avxvy", 869.1),
    ("matrix product", "programs/blas_rows.ks", "mat_product", 24376.0),
    ("vector divided by its sum", "programs/blas_rows.ks", "rscl", 66.1),
    ("norm, with an external power", "programs/blas_rows.ks", "nrm2", 77.8),
    ("vector divided by its norm", "programs/blas_rows.ks", "rscl_nrm2", 405.2),
    ("inner product", "programs/blas_rows.ks", "dot", 80.0),
    ("reverse derivative of gelu", "programs/blas_rows.ks", "rev_gelu", 41.6),
    ("scaled sum of vectors", "programs/blas.ks", "axpy", 83.1),
    ("softmax", "programs/blas.ks", "softmax", 181.2),
    ("general matrix product", "programs/blas.ks", "gemm", 27556.0),
];

/// One line of the suite `costs`.
struct Line {
    what: &'static str,
    def: &'static str,
    before: f64,
    published: f64,
    after: f64,
}

impl Bench {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let from = run::seconds();
        let lines = costs(world.terminal)?;
        show(world.terminal, "");
        let seconds = run::seconds() - from;
        if let Some(path) = &self.write {
            self.page(path, &markdown(&lines))?;
        }
        if self.json {
            let row =
                |l: &Line| json!({ "name": l.def, "before": l.before, "published": l.published, "after": l.after });
            return world.say(&json!({ "suite": self.suite.name(), "rows": lines.iter().map(row).collect::<Vec<_>>(), "seconds": seconds }).to_string());
        }
        markdown(&lines).iter().try_for_each(|line| world.say(line))?;
        world.say(&format!("\n{} functions in {seconds:.1} s", lines.len()))
    }

    /// Replaces the section of the suite in a page.
    fn page(&self, path: &std::path::Path, lines: &[String]) -> Result<()> {
        let source = data::source(path)?;
        let (begin, end) =
            (format!("<!-- {}: begin -->", self.suite.name()), format!("<!-- {}: end -->", self.suite.name()));
        let place = |mark: &str| {
            source.text.find(mark).ok_or_else(|| {
                Diagnostic::user(format!("`{}` has no line `{mark}`", source.name))
                    .note("a section of the page stands between two such comments, and is replaced")
            })
        };
        let (from, to) = (place(&begin)? + begin.len(), place(&end)?);
        if to < from {
            return Err(Diagnostic::user(format!("in `{}` the section ends before it begins", source.name)));
        }
        let text = format!("{}\n{}\n{}", &source.text[..from], lines.join("\n"), &source.text[to..]);
        Output::at(path)?.bytes(text.as_bytes())
    }
}

fn costs(terminal: bool) -> Result<Vec<Line>> {
    let mut rows = vec![];
    for (name, text) in PROGRAMS {
        let program = types::program(&Source::new(name, text))?;
        let defs: Vec<String> =
            PUBLISHED.iter().filter(|(_, file, _, _)| *file == name).map(|(_, _, def, _)| def.to_string()).collect();
        let progress = move |def: &str| show(terminal, def);
        let options =
            Options { defs, cost: Model::Knossos, progress: &progress, clock: &run::seconds, ..Options::standard() };
        rows.extend(pipeline::optimize(&program, &options)?.rows.into_iter().map(|row| (name, row)));
    }
    let line = |(what, file, def, published): (&'static str, &str, &'static str, f64)| {
        let found = rows.iter().find(|(name, row)| *name == file && row.name == def);
        let (_, row) = found.ok_or_else(|| Diagnostic::bug(format!("`{file}` does not define `{def}`")))?;
        Ok(Line { what, def, before: row.cost_before, published, after: row.cost_after })
    };
    PUBLISHED.into_iter().map(line).collect()
}

fn markdown(lines: &[Line]) -> Vec<String> {
    let head = ["| function | definition | as written | best published | optimized |", "|---|---|---:|---:|---:|"];
    let row =
        |l: &Line| format!("| {} | `{}` | {:.1} | {:.1} | {:.1} |", l.what, l.def, l.before, l.published, l.after);
    head.into_iter().map(str::to_string).chain(lines.iter().map(row)).collect()
}
