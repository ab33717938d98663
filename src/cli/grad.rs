//! `daedal grad`: a definition becomes its derivative as source, or the derivative is checked.

use super::bounded::{self, Bounded};
use super::optimize::{self, Cost};
use super::{World, derived, input};
use crate::ad::arguments::Arguments;
use crate::ad::check::{self, Checked, Point};
use crate::ad::jacobian::{Layout, jacobian_keeping};
use crate::ad::keeping::Keeping;
use crate::ad::{self, Made, Mode, Wanted, hessian};
use crate::cost::Model;
use crate::data::Output;
use crate::diag::{Diagnostic, Result, nearest};
use crate::eval::Value;
use crate::ir::{Def, Fun, Program, print};
use crate::pipeline::needs::Known;
use crate::pipeline::{self, Row, around};
use crate::report::{self, Derived};
use clap::{ArgGroup, Args, ValueEnum, value_parser};
use rustc_hash::FxHashSet;
use serde_json::{Value as Json, json};
use std::io::{self, Write};
use std::path::PathBuf;

/// Differentiate a definition; prints the derivative as source
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("looking").args(["check", "max_memory", "report"]).multiple(true))]
#[command(group = ArgGroup::new("sized").args(["optimize", "max_memory", "report"]).multiple(true))]
pub struct Grad {
    /// The program
    file: PathBuf,
    /// The definition
    def: String,
    /// Arguments of the definition: to check the derivative at, instead of random ones, or to tell sizes
    #[arg(value_name = "ARG", allow_negative_numbers = true, requires = "looking")]
    args: Vec<String>,
    /// Tangents with the values, adjoints against them, tangents of the gradient, or all derivatives
    #[arg(long, value_enum, default_value_t = Way::Rev)]
    mode: Way,
    /// In which order the numbers of a Jacobian stand
    #[arg(long, value_enum)]
    layout: Option<Order>,
    /// Differentiate by this parameter only; may be given more than once
    #[arg(long, value_name = "PARAM")]
    wrt: Vec<String>,
    /// Give the value too: a tuple of value and derivative; with `--mode hvp`, of gradient and product
    #[arg(long)]
    value: bool,
    /// Keep about the root of the states of a fold, and make the others again on the way back
    #[arg(long)]
    checkpoint: bool,
    /// Take the fastest derivative that holds so many megabytes at once at most, arguments not counted
    #[arg(long, value_name = "MB", value_parser = optimize::positive, conflicts_with_all = ["checkpoint", "check"])]
    max_memory: Option<f64>,
    /// Optimize the derivative
    #[arg(long)]
    optimize: bool,
    /// What the optimizer makes small
    #[arg(long, value_enum, default_value_t = Cost::Analytic)]
    cost: Cost,
    /// A named size or integer parameter: an estimate for the optimizer, or what memory is known from; may be given more
    /// than once
    #[arg(long = "size", value_name = "NAME=N", value_parser = optimize::size, requires = "sized")]
    sizes: Vec<(String, u64)>,
    /// Compare with differences and the modes with each other; exit 1 where they disagree
    #[arg(long, conflicts_with_all = ["optimize", "output", "value"])]
    check: bool,
    /// How many random points are checked
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    samples: u32,
    /// What the random points follow from
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: i64,
    /// The size of random tensors along every axis, where that works
    #[arg(long, value_name = "N", default_value_t = 3)]
    extent: usize,
    /// Write a page that shows the definition and its derivative: both texts, their stages, and what is kept for the way back
    #[arg(long, value_name = "R.html", conflicts_with = "check")]
    report: Option<PathBuf>,
    /// Write the derivative to a file, with what it calls
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Names of the modes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// Forward: the arguments, and a tangent for each
    Fwd,
    /// Reverse: the arguments, and the adjoint of the result
    Rev,
    /// Hessian times vector: the arguments, and a tangent for each; of functions that give one float
    Hvp,
    /// The whole Jacobian: the arguments alone
    Jacobian,
}

/// Names of the layouts.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// For each float of the result the derivatives by the parameters, by reverse mode
    Rows,
    /// For each float of the parameters the derivatives of the result, by forward mode
    Columns,
}

impl Grad {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let program = around::before(&input::program(&self.file)?)?;
        let def = input::definition(&program, &self.def)?;
        let wrt = self.by(def)?;
        if self.check {
            return self.checked(&program, def, &wrt, world);
        }
        let place = self.output.as_deref().map(Output::at).transpose()?;
        let page = self.report.as_deref().map(Output::at).transpose()?;
        self.fits_mode()?;
        let mode = if matches!(self.mode, Way::Fwd) { Mode::Forward } else { Mode::Reverse };
        let wanted = Wanted { fun: def.fun, mode, wrt, value: self.value, checkpoint: self.checkpoint };
        let bounded = self.bounded(&program, def, &wanted)?;
        let (plain, pattern) = match &bounded {
            Some(bounded) => self.made(&program, &wanted, &bounded.best.keeping)?,
            None if self.checkpoint => self.made(&program, &wanted, &Keeping::few())?,
            None => self.made(&program, &wanted, &Keeping::everything())?,
        };
        let fun = plain.fun;
        let (made, row) = self.improved((plain, pattern), bounded.as_ref(), world)?;
        let text = print::program(&made);
        if let Some(place) = &place {
            place.bytes(text.as_bytes())?;
        }
        let told = page.as_ref().map(|_| self.told((&program, def), (&made, fun), &wanted)).transpose()?;
        if let Some((page, told)) = page.as_ref().zip(told.as_ref()) {
            page.bytes(report::derived(told).as_bytes())?;
        }
        if let Some(bounded) = &bounded {
            bounded.tell(&program.source, self.notes(world));
        }
        match (self.json, place) {
            (true, _) => {
                let mut out = object(&fun.sig().name, &text, row.as_ref());
                if let Some(bounded) = &bounded {
                    out["memory"] = bounded.object(&program.source);
                }
                if let Some(told) = &told {
                    out["report"] = derived::object(told);
                }
                world.say(&out.to_string())
            }
            (false, None) => world.say(text.trim_end()),
            (false, Some(_)) => world.say(&input::signature(&made.defs[&fun])),
        }
    }

    /// The derivative as it is printed: what the optimizer makes of it where that is asked for and fits in memory.
    fn improved(
        &self,
        (plain, pattern): (Made, Option<Fun>),
        bound: Option<&Bounded>,
        world: &World<'_>,
    ) -> Result<(Program, Option<Row>)> {
        if !self.optimize {
            return Ok((plain.program, None));
        }
        let faster = self.optimized(&plain.program, plain.fun, world)?;
        let def = &faster.program.defs[&plain.fun];
        if let Some(bound) = bound {
            let held = bound.held(&faster.program, def).ok();
            if held.as_ref().is_none_or(|held| held.bytes > bound.bytes) {
                bounded::stays(plain.fun, held.as_ref(), bound, self.notes(world));
                return Ok((plain.program, None));
            }
        }
        let made = needed(&faster.program, &[Some(plain.fun), pattern]);
        let row = faster.rows.into_iter().next();
        row.iter().filter(|_| !self.json).for_each(|row| tell(row, self.cost.model(), world.look.quiet));
        Ok((made, row))
    }

    /// Whether notes are shown.
    fn notes(&self, world: &World<'_>) -> bool {
        !self.json && !world.look.quiet
    }

    /// Refuses what means nothing in the mode.
    fn fits_mode(&self) -> Result<()> {
        let jacobian = matches!(self.mode, Way::Jacobian);
        let forward = matches!(self.mode, Way::Fwd) || jacobian && matches!(self.layout, Some(Order::Columns));
        let asked = [("--checkpoint", self.checkpoint), ("--max-memory", self.max_memory.is_some())];
        if let Some((name, _)) = asked.iter().find(|(_, asked)| *asked && forward) {
            let d = Diagnostic::user(format!("`{name}` is for reverse mode only"));
            return Err(d.note("forward mode carries tangents with the values, and keeps no states"));
        }
        if self.layout.is_some() && !jacobian {
            return Err(Diagnostic::user("`--layout` is for `--mode jacobian` only"));
        }
        Ok(())
    }

    /// The layout of a Jacobian.
    fn layout(&self) -> Layout {
        match self.layout {
            Some(Order::Columns) => Layout::Columns,
            Some(Order::Rows) | None => Layout::Rows,
        }
    }

    /// A derivative that keeps so much, simplified, with what it calls; and the pattern of a Jacobian that has one.
    fn made(&self, program: &Program, wanted: &Wanted, keeping: &Keeping) -> Result<(Made, Option<Fun>)> {
        let (Made { program: derived, fun, decisions }, pattern) = match self.mode {
            Way::Fwd | Way::Rev => (ad::derive_keeping(program, wanted, keeping)?, None),
            Way::Hvp => {
                let made = hessian::product_keeping(program, wanted, keeping)?;
                (Made { program: made.program, fun: made.product, decisions: made.decisions }, None)
            }
            Way::Jacobian => {
                let made = jacobian_keeping(program, wanted, self.layout(), keeping)?;
                (Made { program: made.program, fun: made.fun, decisions: made.decisions }, made.pattern)
            }
        };
        let by_itself = |def: &Def| !program.defs.contains_key(&def.fun);
        let program = around::after(&needed(&derived, &[Some(fun), pattern]), &by_itself)?;
        Ok((Made { program, fun, decisions }, pattern))
    }

    /// The derivative that fits in memory, where a bound is asked for.
    fn bounded(&self, program: &Program, def: &Def, wanted: &Wanted) -> Result<Option<Bounded>> {
        let Some(megabytes) = self.max_memory else { return Ok(None) };
        let (args, tangents) = (self.told_by(program, def)?, self.tangents(wanted));
        let known = if args.is_empty() { Known::Sizes(&self.sizes) } else { Known::Arguments(&args) };
        let make = |keeping: &Keeping| self.made(program, wanted, keeping).map(|(made, _)| made);
        bounded::chosen((program, def), megabytes, (known, &tangents), &make).map(Some)
    }

    /// The arguments that are given, or sizes by names that there are.
    fn told_by(&self, program: &Program, def: &Def) -> Result<Vec<Value>> {
        optimize::known_sizes(program, &self.sizes)?;
        if self.args.is_empty() { Ok(vec![]) } else { input::arguments(def, &self.args) }
    }

    /// The parameters that have tangents behind the arguments.
    fn tangents(&self, wanted: &Wanted) -> Vec<usize> {
        let moving = wanted.wrt.iter().enumerate().filter(|(_, by)| **by).map(|(k, _)| k);
        moving.filter(|_| matches!(self.mode, Way::Fwd | Way::Hvp)).collect()
    }

    /// What the page is told.
    fn told(&self, source: (&Program, &Def), (made, fun): (&Program, Fun), wanted: &Wanted) -> Result<Derived> {
        let (args, tangents) = (self.told_by(source.0, source.1)?, self.tangents(wanted));
        let known = if args.is_empty() { Known::Assumed(&self.sizes) } else { Known::Arguments(&args) };
        derived::told(source, (made, &made.defs[&fun]), (known, &tangents))
    }

    /// What the optimizer makes of a derivative.
    fn optimized(&self, made: &Program, fun: Fun, world: &World<'_>) -> Result<pipeline::Outcome> {
        optimize::known_sizes(made, &self.sizes)?;
        let (line, interrupt) = (world.progress(self.json), world.interrupt);
        let progress = |told: pipeline::Told<'_>| optimize::tell(&line, told);
        let stop = |_| interrupt.raised().then_some("interrupt");
        let options = pipeline::Options {
            cost: self.cost.model(),
            sizes: self.sizes.clone(),
            defs: vec![fun.sig().name.clone()],
            progress: &progress,
            stop: &stop,
            ..pipeline::Options::standard()
        };
        let outcome = interrupt.during(|| pipeline::optimize(made, &options))?;
        line.clear();
        optimize::stopped(&outcome.rows);
        Ok(outcome)
    }

    /// The parameters to differentiate by.
    fn by(&self, def: &Def) -> Result<Vec<bool>> {
        for name in &self.wrt {
            let Some(p) = def.params.iter().find(|p| p.name == *name) else {
                let hint = nearest(name, def.params.iter().map(|p| p.name.as_str()));
                let d = Diagnostic::user(format!("`{}` has no parameter `{name}`", def.name()));
                return Err(d.note(format!("it is {}", input::signature(def))).hint(hint));
            };
            if !ad::has_floats(p.ty) {
                let message = format!("`{name}` of `{}` is {}, which has no derivative", def.name(), p.ty);
                return Err(Diagnostic::user(message).note("only floats have one, and what contains them"));
            }
        }
        let wanted = |p: &crate::ir::Param| match self.wrt.is_empty() {
            true => ad::has_floats(p.ty),
            false => self.wrt.contains(&p.name),
        };
        Ok(def.params.iter().map(wanted).collect())
    }

    fn checked(&self, program: &Program, def: &Def, wrt: &[bool], world: &mut World<'_>) -> Result<()> {
        let checked = match self.mode {
            Way::Fwd | Way::Rev => Checked::with(program, def, wrt, self.checkpoint)?,
            Way::Hvp => Checked::hessian(program, def, wrt, self.checkpoint)?,
            Way::Jacobian => Checked::jacobian(program, def, wrt, (self.layout(), self.checkpoint))?,
        };
        let mut rows = vec![];
        let count = if self.args.is_empty() { self.samples } else { 1 };
        let progress = world.progress(self.json);
        progress.all(count as usize);
        let (mut tried, interrupt) = (0, world.interrupt);
        let mut found = Arguments::new(program, def, self.extent);
        interrupt.wait(true);
        for k in (0..count).take_while(|_| !interrupt.raised()) {
            progress.doing(def.name());
            tried = k + 1;
            let seed = self.seed.wrapping_add(i64::from(k));
            let args = match self.args.is_empty() {
                true => found.find(seed)?,
                false => input::arguments(def, &self.args)?,
            };
            rows.extend(checked.at(&args, seed)?);
            progress.done();
        }
        interrupt.wait(false);
        drop(progress);
        let cut = || Diagnostic::limit(format!("interrupted after {tried} of {count} points"));
        if rows.is_empty() && tried < count {
            return Err(cut());
        }
        if rows.is_empty() {
            let message = format!("`{}` has no value at these arguments", def.name());
            return Err(Diagnostic::user(message).note("`daedal eval` says why"));
        }
        let bad = rows.iter().filter(|p| disagrees(&checked, p)).count();
        match self.json {
            true => world.say(&self.object(&rows, bad).to_string())?,
            false => self.table(&rows).iter().try_for_each(|line| world.say(line))?,
        }
        if bad > 0 {
            let message = format!("the derivatives of `{}` disagree at {bad} of {} points", def.name(), rows.len());
            return Err(Diagnostic::user(message));
        }
        if tried < count { Err(cut()) } else { Ok(()) }
    }

    fn object(&self, rows: &[Point], bad: usize) -> Json {
        let row = |p: &Point| {
            json!({
                "difference": p.difference,
                (self.compared()[0]): p.forward,
                (self.compared()[1]): p.reverse,
                "off_difference": p.off_difference(),
                "off_modes": p.off_modes(),
                "not_smooth": p.rough,
                "not_finite": p.lost,
            })
        };
        json!({ "def": self.def, "points": rows.iter().map(row).collect::<Vec<Json>>(), "disagree": bad })
    }

    /// What two numbers are compared with the difference.
    fn compared(&self) -> [&'static str; 2] {
        match self.mode {
            Way::Fwd | Way::Rev => ["forward", "reverse"],
            Way::Hvp => ["product", "transposed"],
            Way::Jacobian => ["forward", "jacobian"],
        }
    }

    fn table(&self, rows: &[Point]) -> Vec<String> {
        let [one, other] = self.compared();
        let modes = if matches!(self.mode, Way::Hvp) { "uneven" } else { "modes off" };
        let head = format!("{:>20}  {one:>20}  {other:>20}  {:>10}  {modes:>10}", "difference", "off");
        [head].into_iter().chain(lines(rows)).collect()
    }
}

/// Says on the standard error what the optimizer made of a derivative, and why it did nothing.
fn tell(row: &Row, cost: Model, quiet: bool) {
    let Row { name, cost_before, cost_after, skipped, .. } = row;
    // A note that cannot be shown is not worth an error.
    if let Some(why) = skipped {
        let _ = writeln!(io::stderr(), "note: `{name}` is not optimized: {why}");
    }
    if !quiet {
        let model = cost.name();
        let _ = writeln!(io::stderr(), "note: `{name}` costs {cost_after:.1}, and {cost_before:.1} as made ({model})");
    }
}

/// The derivative, and what the optimizer made of it.
fn object(name: &str, source: &str, row: Option<&Row>) -> Json {
    let mut out = json!({ "name": name, "source": source });
    if let Some(Row { cost_before, cost_after, skipped, .. }) = row {
        out["cost_before"] = json!(cost_before);
        out["cost_after"] = json!(cost_after);
        out["skipped"] = json!(skipped);
    }
    out
}

fn disagrees(checked: &Checked, p: &Point) -> bool {
    // What is no number in all three agrees.
    let finite = p.forward.is_finite() || p.reverse.is_finite();
    let off = |d: f64, most: f64| d.is_nan() || d > most;
    finite && (off(p.off_modes(), checked.tolerance()) || p.off_difference().is_some_and(|d| off(d, check::DIFFERENCE)))
}

fn lines(rows: &[Point]) -> Vec<String> {
    let line = |p: &Point| {
        let difference = p.difference.map_or_else(|| "none".into(), |d| format!("{d:.9}"));
        let off = p.off_difference().map_or_else(|| "-".into(), |d| format!("{d:.1e}"));
        let modes = format!("{:.1e}", p.off_modes());
        format!("{difference:>20}  {:>20.9}  {:>20.9}  {off:>10}  {modes:>10}", p.forward, p.reverse)
    };
    let notes = rows.iter().enumerate().flat_map(|(k, p)| {
        let rough = p.rough.iter().filter(|_| p.lost.is_none());
        let rough = rough.map(move |why| format!("line {}: no difference: {why}", k + 1));
        rough.chain(p.lost.iter().map(move |why| format!("line {}: {why}", k + 1)))
    });
    rows.iter().map(line).chain(notes).collect()
}

/// Definitions with all that they call, in their order.
fn needed(program: &Program, funs: &[Option<Fun>]) -> Program {
    let mut seen = FxHashSet::default();
    let mut todo: Vec<Fun> = funs.iter().flatten().copied().collect();
    while let Some(f) = todo.pop() {
        if seen.insert(f)
            && let Some(body) = program.defs.get(&f).and_then(Def::term)
        {
            todo.extend(program.terms.calls(body));
        }
    }
    let defs = program.defs.iter().filter(|(f, _)| seen.contains(*f)).map(|(f, d)| (*f, d.clone())).collect();
    Program { terms: program.terms.clone(), defs, source: program.source.clone() }
}
