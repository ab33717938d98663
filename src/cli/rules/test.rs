//! `daedal rules test`: programs become the list of rules that fire in them.

use super::chosen::library;
use crate::cli::World;
use crate::data;
use crate::diag::{Diagnostic, Result, Source};
use crate::ir::Program;
use crate::pipeline::{Options, optimize_with, prepare};
use crate::rules::Level;
use crate::types;
use clap::Args;
use include_dir::{Dir, include_dir};
use rayon::prelude::*;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show in which programs each rule fires
#[derive(Args, Debug)]
pub struct Test {
    /// Files of rules, beside the shipped ones
    files: Vec<PathBuf>,
    /// Programs, or directories of them, instead of the test programs of daedal
    #[arg(long, value_name = "PATH")]
    programs: Vec<PathBuf>,
    /// The greatest number of nodes that each search may make
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    max_nodes: usize,
    /// Fail where a rule fires nowhere
    #[arg(long)]
    strict: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The test programs, which are part of the binary: rules are tried wherever it runs.
static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/programs");

/// The programs of a folder of the binary.
fn corpus(dir: &Dir<'_>, out: &mut Vec<Arc<Source>>) {
    dir.dirs().for_each(|d| corpus(d, out));
    let programs = dir.files().filter(|f| f.path().extension().is_some_and(|e| e == "ks"));
    out.extend(
        programs.filter_map(|f| Some(Source::new(format!("programs/{}", f.path().display()), f.contents_utf8()?))),
    );
}

/// Where a rule fired, and how often.
type Places = Vec<(String, usize)>;

impl Test {
    /// Carries it out.
    pub fn run(&self, world: &mut World<'_>) -> Result<()> {
        let library = library(&self.files)?;
        let mut sources = vec![];
        for path in &self.programs {
            let mut paths = vec![];
            find(path, &mut paths)?;
            sources.extend(paths.iter().map(|p| data::source(p)).collect::<Result<Vec<_>>>()?);
        }
        if self.programs.is_empty() {
            corpus(&CORPUS, &mut sources);
            sources.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let programs = sources.iter().map(types::program).collect::<Result<Vec<Program>>>()?;
        let rules = prepare(&library, Level::Real)?;
        let line = world.progress(self.json);
        line.all(programs.len());
        let one = |p: &Program| {
            line.doing(&p.source.name);
            let options = Options { max_nodes: self.max_nodes, ..Options::standard() };
            let outcome = optimize_with(p, &rules, &options).map(|o| (p.source.name.clone(), o.rows));
            line.done();
            outcome
        };
        let interrupt = world.interrupt;
        let wanted = |p| (!interrupt.raised()).then_some(p);
        let results = interrupt.during(|| programs.par_iter().filter_map(wanted).map(one).collect::<Result<Vec<_>>>());
        line.clear();
        let results = results?;
        let mut fired: BTreeMap<&str, Places> = library.rules.iter().map(|r| (r.name.as_str(), vec![])).collect();
        for (file, rows) in &results {
            for row in rows {
                for (name, n) in &row.fired {
                    if let Some(places) = fired.get_mut(name.as_str()) {
                        places.push((format!("{file} {}", row.name), *n));
                    }
                }
            }
        }
        let silent = fired.values().filter(|p| p.is_empty()).count();
        self.tell(
            &library.rules.iter().map(|r| (r.name.as_str(), &fired[r.name.as_str()])).collect::<Vec<_>>(),
            world,
        )?;
        match silent {
            _ if results.len() < programs.len() => {
                let (done, all) = (results.len(), programs.len());
                Err(Diagnostic::limit(format!("interrupted: the rules were tried in {done} of {all} programs")))
            }
            0 => Ok(()),
            n if self.strict => Err(Diagnostic::user(format!("{n} rules fire nowhere"))),
            _ => Ok(()),
        }
    }

    fn tell(&self, rules: &[(&str, &Places)], world: &mut World<'_>) -> Result<()> {
        if self.json {
            let place = |(at, n): &(String, usize)| json!({ "program": at, "times": n });
            let each: Vec<Json> = rules
                .iter()
                .map(|(name, places)| json!({ "name": name, "fires": places.iter().map(place).collect::<Vec<_>>() }))
                .collect();
            return world.say(&json!({ "rules": each }).to_string());
        }
        let width = rules.iter().map(|(n, _)| n.chars().count()).max().unwrap_or_default();
        for (name, places) in rules {
            let total: usize = places.iter().map(|(_, n)| n).sum();
            let what = match places.iter().max_by_key(|(_, n)| *n) {
                Some((at, _)) => format!("{total:>6} times in {} definitions, most in {at}", places.len()),
                None => "     - fires nowhere".into(),
            };
            world.say(&format!("{name:width$} {what}"))?;
        }
        let silent = rules.iter().filter(|(_, p)| p.is_empty()).count();
        world.say(&format!("{} rules, {silent} of which fire nowhere", rules.len()))
    }
}

/// All programs at a path, in order.
fn find(path: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        out.push(path.to_path_buf());
        return Ok(());
    }
    let bad = |e: std::io::Error| Diagnostic::user(format!("`{}` cannot be read: {e}", path.display()));
    let mut each =
        std::fs::read_dir(path).map_err(bad)?.map(|e| e.map(|e| e.path()).map_err(bad)).collect::<Result<Vec<_>>>()?;
    each.sort();
    for path in each {
        if path.is_dir() {
            find(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "ks") {
            out.push(path);
        }
    }
    Ok(())
}
