//! Suite `costs`: linear algebra under the published cost model, beside the best published costs.

use super::suite::{Table, Watching};
use crate::cli::optimize::tell;
use crate::cost::{Costing, Model};
use crate::diag::{Diagnostic, Result, Source};
use crate::pipeline::{self, Options, Told};
use crate::run;
use crate::types;
use serde_json::json;

/// The programs of the suite `costs`.
const PROGRAMS: [(&str, &str); 2] = [
    ("programs/blas_rows.ks", include_str!("../../../programs/blas_rows.ks")),
    ("programs/blas.ks", include_str!("../../../programs/blas.ks")),
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

/// One line of the table.
struct Line {
    what: &'static str,
    def: &'static str,
    before: f64,
    published: f64,
    after: f64,
}

/// The table.
///
/// # Errors
/// A bug, where a shipped program is wrong.
pub fn table(watching: &Watching<'_>) -> Result<Table> {
    let lines = costs(watching)?;
    let head = ["| function | definition | as written | best published | optimized |", "|---|---|---:|---:|---:|"];
    let row =
        |l: &Line| format!("| {} | `{}` | {:.1} | {:.1} | {:.1} |", l.what, l.def, l.before, l.published, l.after);
    let object = |l: &Line| json!({ "name": l.def, "before": l.before, "published": l.published, "after": l.after });
    Ok(Table {
        lines: head.into_iter().map(str::to_string).chain(lines.iter().map(row)).collect(),
        rows: lines.iter().map(object).collect(),
    })
}

fn costs(watching: &Watching<'_>) -> Result<Vec<Line>> {
    let (mut rows, mut written) = (vec![], vec![]);
    watching.line.all(PUBLISHED.len());
    for (name, text) in PROGRAMS {
        let program = types::program(&Source::new(name, text))?;
        let defs: Vec<String> =
            PUBLISHED.iter().filter(|(_, file, _, _)| *file == name).map(|(_, _, def, _)| def.to_string()).collect();
        for def in defs.iter().filter_map(|d| program.named(d).first().copied()) {
            written.push((name, def.name(), Costing::new(&program, Model::Knossos, &[]).written(def)?));
        }
        let progress = |told: Told<'_>| match told {
            Told::All(_) => {}
            Told::Begins(_) | Told::Ends(_) => tell(&watching.line, told),
        };
        let stop = |_| watching.interrupt.raised().then_some("interrupt");
        let (cost, clock) = (Model::Knossos, &run::seconds);
        let options = Options { defs, cost, progress: &progress, stop: &stop, clock, ..Options::standard() };
        rows.extend(pipeline::optimize(&program, &options)?.rows.into_iter().map(|row| (name, row)));
    }
    // What was cut short is no row.
    rows.retain(|(_, row)| row.stopped.is_none());
    let known = |p: &(&str, &str, &str, f64)| rows.iter().any(|(name, row)| *name == p.1 && row.name == p.2);
    let line = |(what, file, def, published): (&'static str, &str, &'static str, f64)| {
        let found = rows.iter().find(|(name, row)| *name == file && row.name == def);
        let (_, row) = found.ok_or_else(|| Diagnostic::bug(format!("`{file}` does not define `{def}`")))?;
        let before = written.iter().find(|(of, name, _)| *of == file && *name == def);
        Ok(Line { what, def, before: before.map_or(row.cost_before, |b| b.2), published, after: row.cost_after })
    };
    PUBLISHED.into_iter().filter(|p| known(p) || !watching.interrupt.raised()).map(line).collect()
}
