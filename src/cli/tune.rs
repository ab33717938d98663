//! `daedal tune`: a definition becomes the fastest equivalent program that is found, and the schedule of it.

use super::case::Case;
use super::how::staged;
use super::judging::Judging;
use super::measuring::{Before, Measuring, measured, time};
use super::optimize::Float;
use super::{World, input};
use crate::data::Output;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, print};
use crate::pipeline::joint::{self, Bench, Contender, Options, Played};
use crate::pipeline::lab::{self, Book, Lab, Told};
use crate::pipeline::variants::{Variant, variants};
use crate::tune::record::Outcome;
use crate::tune::{example, tree};
use clap::Args;
use serde_json::json;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Find the fastest program that means the same, and its schedule
///
/// The optimizer makes several equivalent programs, each is scheduled, and what is measured decides. Every schedule has the
/// bits of its program as it stands, and every program the values of the source, with `--float real` but for rounding.
#[derive(Args, Debug)]
pub struct Tune {
    #[command(flatten)]
    case: Case,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    measuring: Measuring,
    /// What programs and schedules keep
    #[arg(long, value_enum, default_value = "real")]
    float: Float,
    /// Write the program to a file, and its schedule beside it, with the ending `.sched`
    #[arg(short, long, value_name = "OUT.ks")]
    output: Option<PathBuf>,
    /// Print one object
    #[arg(long)]
    json: bool,
}

/// Schedules that are measured where nobody says how many.
const MEASUREMENTS: usize = 64;
/// The share of the time that making the programs may take.
const MAKING: f64 = 0.3;

/// One place to measure for each program.
struct Labs<'a> {
    each: Vec<Lab<'a>>,
    source: PathBuf,
}

impl Bench for Labs<'_> {
    fn refused(&mut self, k: usize) -> Result<Option<String>> {
        self.each[k].refused(Some(self.source.as_path()).filter(|_| k > 0))
    }

    fn measure(&mut self, k: usize, steps: &[String]) -> Result<Vec<Outcome>> {
        self.each[k].measure(steps)
    }
}

/// A program, its definition, the words that another process is told, and the key of its records.
struct Ready<'a> {
    names: &'a [&'static str],
    text: String,
    def: &'a Def,
    case: Case,
    key: String,
}

impl Tune {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = input::program_for(&self.case.file, &self.case.def)?;
        let def = input::definition(&program, &self.case.def)?;
        let ks = self.output.as_deref().map(Output::at).transpose()?;
        let sched = self.output.as_deref().map(|p| Output::at(&p.with_extension("sched"))).transpose()?;
        let (args, machine) = (self.case.arguments(&program, def)?, self.measuring.machine());
        let (interrupt, line, watch) = (world.interrupt, world.progress(self.json), self.measuring.watch(world));
        let stop = || watch.spent(1.0).is_some();
        let measurements = self.measuring.measurements.map_or(MEASUREMENTS, |n| n as usize);
        line.all(measurements);
        line.doing("making programs");
        let making = |share: f64| watch.spent(MAKING * share);
        let level = (self.float.level(), self.case.sizes.as_slice());
        let made = interrupt.during(|| variants(&program, self.case.def.as_str(), level, &making))?;
        let folder = tempfile::tempdir().map_err(|e| Diagnostic::user(format!("no temporary folder: {e}")))?;
        let (case, before) =
            (format!("{:?}{machine:?}{:?}", example::incoming(def, &args), self.float), self.measuring.before()?);
        let (ready, contenders) = self.contenders(&made, folder.path(), (&case, &before))?;
        // Records of one program are those of another one beside it.
        contenders
            .iter()
            .map(|c| &c.known)
            .max_by_key(|k| k.outcomes.len())
            .iter()
            .for_each(|k| self.measuring.unused(k));
        let best = Cell::new(f64::INFINITY);
        let mut tolds: Vec<Box<Told<'_>>> = vec![];
        for one in &ready {
            let (name, best, line) = (one.names.join(", "), &best, &line);
            tolds.push(Box::new(move |outcome| {
                outcome.iter().for_each(|_| line.done());
                best.set(outcome.map_or(best.get(), |o| best.get().min(o.seconds())));
                line.doing(&format!("{name}; best so far {}", time(best.get())));
            }));
        }
        let mut labs = Labs { each: vec![], source: self.case.file.clone() };
        for (one, told) in ready.iter().zip(&mut tolds) {
            let setup = self.measuring.setup((world, one.case.words(), self.float == Float::Real), &stop)?;
            let path = self.measuring.records.as_deref();
            let book = path.map(|path| Book { path, case: &one.key, cut: before.cut() });
            labs.each.push(Lab::new(setup, book, told.as_mut())?);
        }
        let search = self.judging.settings(self.case.seed, measurements)?;
        let options = Options { model: self.judging.model()?, search, measurements, stop: &stop };
        let chosen = interrupt.during(|| joint::choose(contenders, (&args, &machine), &options, &mut labs));
        line.clear();
        let (best, played) = chosen?;
        let steps = tree::steps(&played[best].tuned.schedule);
        let head = format!(
            "; a schedule for `{}` of the program beside, found for {} threads\n",
            self.case.def, machine.threads
        );
        ks.iter().try_for_each(|place| place.bytes(ready[best].text.as_bytes()))?;
        sched.iter().try_for_each(|place| place.bytes(format!("{head}{steps}").as_bytes()))?;
        self.say((&ready, &played, best), &steps, world)
    }

    /// Says what was found.
    fn say(
        &self,
        (ready, played, best): (&[Ready<'_>], &[Played], usize),
        steps: &str,
        world: &mut World<'_>,
    ) -> Result<()> {
        let winner = &ready[best];
        if self.json {
            let each = ready.iter().zip(played).map(|(r, p)| object(r, p)).collect::<Vec<_>>();
            let object = json!({ "def": self.case.def, "program": winner.text, "steps": steps.lines().collect::<Vec<_>>(),
                "chosen": winner.names, "outcome": played[best].tuned.outcome, "programs": each });
            return world.say(&object.to_string());
        }
        for (k, (r, p)) in ready.iter().zip(played).enumerate() {
            world.say(&row(r, p, k == best))?;
        }
        if self.output.is_none() { world.say(&format!("{}\n{steps}", winner.text)) } else { Ok(()) }
    }

    /// The programs that can be staged, with what is known of each; `case` says what is measured of them.
    fn contenders<'a>(
        &self,
        made: &'a [Variant],
        folder: &Path,
        (case, before): (&str, &Before),
    ) -> Result<(Vec<Ready<'a>>, Vec<Contender<'a>>)> {
        let (mut ready, mut contenders) = (vec![], vec![]);
        for (k, v) in made.iter().enumerate() {
            let def = input::definition(&v.program, &self.case.def)?;
            // What cannot be staged cannot win; of the source, by which all are judged, that is an error.
            let graph = match staged(&v.program, def, self.float) {
                Ok(graph) => graph,
                Err(_) if k > 0 => continue,
                Err(d) => return Err(d),
            };
            let one = self.ready(v, def, folder, case)?;
            contenders.push(Contender { def, graph, known: before.known(&one.key) });
            ready.push(one);
        }
        Ok((ready, contenders))
    }

    /// A program as another process finds it: the source where it is, others in a folder.
    fn ready<'a>(&self, v: &'a Variant, def: &'a Def, folder: &Path, more: &str) -> Result<Ready<'a>> {
        let is_source = v.names[0] == "source";
        let text = if is_source { v.program.source.text.clone() } else { print::program(&v.program) };
        let file = match is_source {
            true => self.case.file.clone(),
            false => folder.join(format!("{}.ks", v.names[0])),
        };
        if !is_source {
            let wrong = |e: std::io::Error| Diagnostic::user(format!("cannot write {}: {e}", file.display()));
            std::fs::write(&file, &text).map_err(wrong)?;
        }
        let (name, args, sizes) = (self.case.def.clone(), self.case.args.clone(), self.case.sizes.clone());
        let case = Case { file, def: name, args, sizes, seed: self.case.seed };
        let key = lab::key(&[&text, def.name(), more]);
        Ok(Ready { names: &v.names, text, def, case, key })
    }
}

/// What became of a program, in a line.
fn row(r: &Ready<'_>, p: &Played, best: bool) -> String {
    let names = r.names.join(", ");
    let mark = if best { "; * " } else { ";   " };
    match &p.refused {
        Some(why) => format!("{mark}{names}: refused: {why}"),
        None => format!(
            "{mark}{names}: {}, default schedule {}, expected {}, {} measured",
            measured(p.tuned.outcome.as_ref()),
            measured(p.tuned.default.outcome.as_ref()),
            time(p.tuned.expected),
            p.measured()
        ),
    }
}

fn object(r: &Ready<'_>, p: &Played) -> serde_json::Value {
    json!({ "made": r.names, "program": r.text, "def": r.def.name(), "refused": p.refused, "measured": p.measured(),
        "outcome": p.tuned.outcome, "default": p.tuned.default.outcome, "expected": p.tuned.expected,
        "steps": tree::steps(&p.tuned.schedule).lines().collect::<Vec<_>>() })
}
