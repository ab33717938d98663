//! Suite `cost-model`: what `analytic` says that programs cost, beside the time that their native code takes.
//!
//! Each definition becomes the equivalent ones that the optimizer makes of it; each of them has a cost, as it is written, and a
//! time, of its compiled loops without a schedule on one thread. What counts is how well the costs order the times.

use super::suite::{Table, Watching};
use crate::cost::{Costing, Model};
use crate::diag::{Diagnostic, Result, Source};
use crate::eval::Value;
use crate::ir::{Def, Program};
use crate::pipeline::{native, variants};
use crate::rules::Level;
use crate::run::{Native, Toolchain};
use crate::tune::{example, ranking};
use crate::types;
use serde_json::{Value as Json, json};

/// Seconds that the calls of one variant take about.
const SECONDS: f64 = 0.05;
/// Calls of one at least, and at most.
const CALLS: [f64; 2] = [5.0, 500.0];

/// Definitions of a file, each at sizes.
struct File {
    name: &'static str,
    text: &'static str,
    defs: &'static [(&'static str, &'static [(&'static str, u64)])],
}

/// A file of `programs/`.
macro_rules! file {
    ($name:literal, $defs:expr) => {
        File {
            name: concat!("programs/", $name),
            text: include_str!(concat!("../../../programs/", $name)),
            defs: $defs,
        }
    };
}

const VECTOR: &[(&str, u64)] = &[("n", 2000)];
const UNNAMED: &[(&str, u64)] = &[("x.1", 20000)];
const GRID: &[(&str, u64)] = &[("n", 200), ("m", 300), ("steps", 5)];
const BATCH: &[(&str, u64)] = &[("b", 4), ("n", 48), ("k", 48), ("m", 48), ("d", 48)];
const CLUSTERS: &[(&str, u64)] = &[("n", 500), ("d", 8), ("k", 10)];
const MATRIX: &[(&str, u64)] = &[("n", 200), ("m", 300)];
const GRAPH: &[(&str, u64)] = &[("n", 1000), ("h", 16), ("e", 4000)];

const FILES: &[File] = &[
    file!(
        "apps/logsumexp.ks",
        &[
            ("logsumexp", VECTOR),
            ("log_softmax", VECTOR),
            ("softmax", &[("n", 500)]),
            ("cross_entropy", &[("n", 2000), ("label", 7)]),
            ("row_losses", &[("n", 100), ("m", 200)]),
            ("entropy", &[("n", 500)]),
        ]
    ),
    file!(
        "apps/gelu.ks",
        &[
            ("gelu", UNNAMED),
            ("gelu_tanh", UNNAMED),
            ("gelu_sigmoid", UNNAMED),
            ("swish", UNNAMED),
            ("softplus", UNNAMED),
            ("elu", UNNAMED),
            ("gelu_slope", UNNAMED),
            ("largest_gap", VECTOR),
        ]
    ),
    file!("apps/kmeans.ks", &[("objective", CLUSTERS), ("assign", CLUSTERS)]),
    file!("apps/gmm.ks", &[("gmm_objective", &[("n", 200), ("d", 6), ("k", 5)])]),
    file!(
        "apps/conv1d.ks",
        &[("valid", &[("taps", 9), ("n", 5000)]), ("moving_average", &[("width", 9), ("n", 5000)])]
    ),
    file!("apps/bmm.ks", &[("bmm", BATCH), ("bmm_slices", BATCH), ("softmax_last", BATCH), ("attention", BATCH)]),
    file!(
        "apps/convnet.ks",
        &[("max_pool", &[("c", 8), ("h", 64), ("w", 64)]), ("dense", MATRIX), ("log_softmax", VECTOR)]
    ),
    file!(
        "apps/stencil.ks",
        &[("step", GRID), ("diffuse", GRID), ("residual_history", GRID), ("wrapped", GRID), ("change", GRID)]
    ),
    file!("apps/graph.ks", &[("received", GRAPH), ("energy", GRAPH), ("ring", VECTOR)]),
    file!("apps/lstm.ks", &[("matvec", MATRIX), ("affine", MATRIX)]),
    file!(
        "blas.ks",
        &[
            ("axpy", VECTOR),
            ("dot", VECTOR),
            ("asum", VECTOR),
            ("rscl", VECTOR),
            ("rot", VECTOR),
            ("vnormalize", VECTOR),
            ("normalize", &[("n", 500)]),
            ("softmax", &[("n", 500)]),
            ("nested_matvec", MATRIX),
            ("gemv", MATRIX),
            ("trmv", &[("n", 200)]),
            ("outer", MATRIX),
            ("transpose_twice", MATRIX),
            ("madd", MATRIX),
        ]
    ),
];

/// What was found of a definition: of each variant its names, its cost, and its seconds.
struct Found {
    def: &'static str,
    sizes: String,
    each: Vec<(String, f64, f64)>,
}

/// The table, of some definitions or of all.
///
/// # Errors
/// A name of no definition, what the toolchain says; a bug, where a shipped program is wrong.
pub fn table(only: &[String], watching: &Watching<'_>, tools: &Toolchain) -> Result<Table> {
    let all = || FILES.iter().flat_map(|f| f.defs.iter().map(move |d| (f, *d)));
    if let Some(unknown) = only.iter().find(|o| !all().any(|(_, (def, _))| def == **o)) {
        let known = all().map(|(_, (def, _))| def).collect::<Vec<_>>().join(", ");
        return Err(
            Diagnostic::user(format!("the suite has no definition `{unknown}`")).note(format!("it has {known}"))
        );
    }
    let chosen = || all().filter(|(_, (def, _))| only.is_empty() || only.iter().any(|o| o == def));
    watching.line.all(chosen().count());
    let mut found = vec![];
    for (file, (def, sizes)) in chosen() {
        if watching.interrupt.raised() {
            break;
        }
        watching.line.doing(def);
        let one = of_definition(file, def, sizes, (watching, tools))?;
        // What was cut short is no row.
        found.extend((!watching.interrupt.raised()).then_some(one));
        watching.line.done();
    }
    let groups: Vec<(Vec<f64>, Vec<f64>)> = found.iter().map(Found::numbers).collect();
    let all: (Vec<f64>, Vec<f64>) = found.iter().flat_map(|f| &f.each).map(|(_, cost, time)| (*cost, *time)).unzip();
    let count = all.0.len();
    let (within, across) = (ranking::ranking(&groups), ranking::ranking(&[all]));
    let head = [
        "| definition | sizes | variants | costs | microseconds | the cheapest to the fastest |",
        "|---|---|---:|---:|---:|---:|",
    ];
    let last = [
        format!("| pairs of one definition in order | | | | | {:.0}% |", 100.0 * within.pairs),
        format!("| correlation of ranks, all together | | {count} | | | {:.3} |", across.ranks),
    ];
    let rows = found.iter().map(Found::line);
    Ok(Table {
        lines: head.map(String::from).into_iter().chain(rows).chain(last).collect(),
        rows: found.iter().flat_map(Found::objects).collect(),
    })
}

impl Found {
    fn numbers(&self) -> (Vec<f64>, Vec<f64>) {
        self.each.iter().map(|(_, cost, time)| (*cost, *time)).unzip()
    }

    fn line(&self) -> String {
        let (costs, times) = self.numbers();
        let ends = |all: &[f64], by: f64| {
            let (least, most) = all.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
            if all.len() > 1 { format!("{:.1} to {:.1}", by * least, by * most) } else { format!("{:.1}", by * least) }
        };
        let first = ranking::ranking(&[(costs.clone(), times.clone())]).first;
        let (costs, times) = (ends(&costs, 1.0), ends(&times, 1e6));
        format!("| `{}` | {} | {} | {costs} | {times} | {first:.2} |", self.def, self.sizes, self.each.len())
    }

    fn objects(&self) -> impl Iterator<Item = Json> + '_ {
        let one = |(variant, cost, seconds): &(String, f64, f64)| {
            let (def, sizes) = (self.def, &self.sizes);
            json!({ "definition": def, "sizes": sizes, "variant": variant, "cost": cost, "seconds": seconds })
        };
        self.each.iter().map(one)
    }
}

/// What is found of one definition.
fn of_definition(
    file: &File,
    def: &'static str,
    sizes: &[(&str, u64)],
    (watching, tools): (&Watching<'_>, &Toolchain),
) -> Result<Found> {
    let program = types::program(&Source::new(file.name, file.text))?;
    let sizes: Vec<(String, u64)> = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let known = definition(&program, def)?;
    let args = example::arguments(known, &sizes, 1)?;
    let stop = |_| watching.interrupt.raised().then_some("interrupt");
    let mut each = vec![];
    for v in variants::variants(&program, def, (Level::Real, &sizes), &stop)? {
        let own = definition(&v.program, def)?;
        let cost = Costing::new(&v.program, Model::Analytic, &sizes).def(own)?;
        each.push((v.names.join(", "), cost, seconds(&native::compile(&v.program, own, tools)?, &args)?));
    }
    let named = |n: &str| known.params.iter().any(|p| &*p.name == n || (0..p.ty.axes()).any(|k| p.size(k) == n));
    let told = sizes.iter().filter(|(n, _)| named(n)).map(|(n, v)| format!("{n}={v}"));
    Ok(Found { def, sizes: told.collect::<Vec<_>>().join(" "), each })
}

fn definition<'a>(program: &'a Program, name: &str) -> Result<&'a Def> {
    program.named(name).first().copied().ok_or_else(|| Diagnostic::bug(format!("no definition `{name}`")))
}

/// Seconds of the fastest call.
fn seconds(native: &Native, args: &[Value]) -> Result<f64> {
    let once = native.time(args, 2)?.min_seconds;
    let calls = (SECONDS / once.max(1e-9)).clamp(CALLS[0], CALLS[1]);
    Ok(native.time(args, calls as usize)?.min_seconds.min(once))
}
