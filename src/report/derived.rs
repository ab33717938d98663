//! A definition and its derivative become one HTML page that loads nothing: both texts, a drawing of the derivative's
//! stages, what is kept for the way back, and what each stage of both does.

use super::flow::{Box, DRAWN, flow};
use super::frame::framed;
use super::text::{bytes, count, escape};
use std::fmt::Write;

/// What the page is told.
#[derive(Clone, Debug, Default)]
pub struct Derived {
    /// The name of the derivative.
    pub name: String,
    /// What is said first, in lines.
    pub about: Vec<String>,
    /// The definition and its derivative.
    pub sides: [Side; 2],
    /// What both do in all: of what, and how much.
    pub totals: Vec<(String, u64, u64)>,
    /// What is kept for the way back.
    pub kept: Vec<Kept>,
}

/// A definition.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Its text.
    pub text: String,
    /// Its stages, producers before those that read them.
    pub stages: Vec<Stage>,
    /// Why it has none.
    pub unstaged: Option<String>,
}

/// A stage.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its sizes, outermost first.
    pub sizes: Vec<u64>,
    /// The bytes of its elements.
    pub bytes: u64,
    /// Simple operations, divisions, transcendental functions, arithmetic of indices.
    pub operations: [u64; 4],
    /// Elements read and written.
    pub moved: u64,
    /// The stages that it reads, by their places.
    pub reads: Vec<usize>,
    /// Whether it is on the way back.
    pub back: bool,
}

/// A table that is kept for the way back.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The stage that makes it.
    pub made_in: String,
    /// The stages of the way back that read it.
    pub read_in: Vec<String>,
    /// Its bytes.
    pub bytes: u64,
}

/// The page.
pub fn derived(of: &Derived) -> String {
    let mut out = String::new();
    for line in &of.about {
        let _ = writeln!(out, "<p>{}</p>", escape(line));
    }
    out += &picture(of);
    let [before, after] = &of.sides;
    let _ = writeln!(
        out,
        "<h2>Source</h2>\n<div class=\"sides\">\n<div><h3>the definition</h3><pre>{}</pre></div>\n<div><h3>its derivative</h3><pre>{}</pre></div>\n</div>",
        escape(before.text.trim_end()),
        escape(after.text.trim_end())
    );
    out += &totals(of);
    out += &kept(of);
    out += &stages("Stages of the definition", before);
    out += &stages("Stages of the derivative", after);
    framed(&format!("{}: a derivative", of.name), &out)
}

fn sizes(of: &[u64]) -> String {
    if of.is_empty() { "number".into() } else { of.iter().map(u64::to_string).collect::<Vec<_>>().join("×") }
}

fn picture(of: &Derived) -> String {
    let stages = &of.sides[1].stages;
    if stages.is_empty() {
        return String::new();
    }
    let drawn = |s: &Stage| Box {
        name: s.name.clone(),
        sizes: sizes(&s.sizes),
        bytes: s.bytes,
        reads: s.reads.clone(),
        back: s.back,
    };
    let boxes: Vec<Box> = stages.iter().map(drawn).collect();
    let left = stages.len().saturating_sub(DRAWN);
    let less = if left > 0 { format!(" {left} stages of few bytes are left out.") } else { String::new() };
    format!(
        "<h2>The way forth and back</h2>\n<p>Each stage stands right of those that it reads: blue on the way forth, orange on the way back; dashed lines are what is kept between them.{less}</p>\n<div style=\"overflow:auto\">{}</div>\n",
        flow(&of.name, &boxes)
    )
}

fn totals(of: &Derived) -> String {
    let mut out = String::from(
        "<h2>In all</h2>\n<table>\n<tr><th></th><th class=\"n\">definition</th><th class=\"n\">derivative</th><th class=\"n\">times</th></tr>\n",
    );
    for (what, before, after) in &of.totals {
        let times = if *before > 0 { format!("{:.2}", *after as f64 / *before as f64) } else { "–".into() };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{times}</td></tr>",
            escape(what),
            count(*before as f64),
            count(*after as f64)
        );
    }
    out + "</table>\n"
}

fn kept(of: &Derived) -> String {
    if of.kept.is_empty() {
        return "<h2>Kept for the way back</h2>\n<p>No stage of the way forth is read on the way back.</p>\n".into();
    }
    let mut out = String::from(
        "<h2>Kept for the way back</h2>\n<table>\n<tr><th>made in</th><th class=\"n\">bytes</th><th>read in</th></tr>\n",
    );
    for k in &of.kept {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&k.made_in),
            bytes(k.bytes),
            escape(&k.read_in.join(", "))
        );
    }
    out + "</table>\n"
}

fn stages(title: &str, side: &Side) -> String {
    let mut out = format!("<h2>{title}</h2>\n");
    if let Some(why) = &side.unstaged {
        let _ = writeln!(out, "<p>There are none: {}.</p>", escape(why));
        return out;
    }
    out += "<table>\n<tr><th>stage</th><th>way</th><th>sizes</th><th class=\"n\">bytes</th><th class=\"n\">simple</th><th class=\"n\">divisions</th><th class=\"n\">transcendental</th><th class=\"n\">indices</th><th class=\"n\">elements moved</th><th>reads</th></tr>\n";
    for s in &side.stages {
        let operations: String =
            s.operations.iter().map(|n| format!("<td class=\"n\">{}</td>", count(*n as f64))).collect();
        let reads: Vec<&str> = s.reads.iter().filter_map(|k| Some(side.stages.get(*k)?.name.as_str())).collect();
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td>{operations}<td class=\"n\">{}</td><td>{}</td></tr>",
            escape(&s.name),
            if s.back { "back" } else { "forth" },
            sizes(&s.sizes),
            bytes(s.bytes),
            count(s.moved as f64),
            escape(&reads.join(", "))
        );
    }
    out + "</table>\n"
}
