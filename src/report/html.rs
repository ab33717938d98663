//! Stories become one HTML page that loads nothing: style, plots and texts stand in it.

use super::frame::framed;
use super::marks::{Kind, marks};
use super::plot::{Series, lines};
use super::story::{About, Story};
use super::text::escape;
use crate::diag::Result;
use std::fmt::Write;

/// So many rules are listed for each definition.
const RULES: usize = 25;

/// The page.
///
/// # Errors
/// A bug, where a plot cannot be drawn.
pub fn page(about: &About, stories: &[Story]) -> Result<String> {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<p>Cost model <b>{}</b>; rules keep values at level <b>{}</b>. Marked in the optimized text: <mark class=\"shared\">shared work</mark>, <mark class=\"hoisted\">work moved out of a loop</mark>.</p>",
        escape(&about.model),
        escape(&about.level)
    );
    out += &summary(stories);
    for (k, story) in stories.iter().enumerate().filter(|(_, s)| s.changed()) {
        out += &section(k, story)?;
    }
    let same: Vec<String> = stories.iter().filter(|s| !s.changed()).map(|s| escape(&s.name)).collect();
    if !same.is_empty() {
        let _ = writeln!(out, "<h2>Unchanged</h2>\n<p>{}</p>", same.join(", "));
    }
    Ok(framed(&format!("{}: optimized", about.file), &out))
}

fn summary(stories: &[Story]) -> String {
    let mut out = String::from(
        "<table class=\"summary\">\n<tr><th>definition</th><th class=\"n\">before</th><th class=\"n\">after</th><th class=\"n\">times cheaper</th><th>what is left</th></tr>\n",
    );
    for (k, s) in stories.iter().enumerate() {
        let (before, after) = s.cost;
        let left = if before > 0.0 { 100.0 * after / before } else { 100.0 };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{before:.1}</td><td class=\"n\">{after:.1}</td><td class=\"n\">{}</td><td class=\"bar\"><i style=\"width:{left:.1}%\"></i></td></tr>",
            if s.changed() { format!("<a href=\"#d{k}\">{}</a>", escape(&s.name)) } else { escape(&s.name) },
            ratio(before, after)
        );
    }
    out + "</table>\n"
}

fn ratio(before: f64, after: f64) -> String {
    if after > 0.0 { format!("{:.2}", before / after) } else { "-".into() }
}

fn section(k: usize, s: &Story) -> Result<String> {
    let mut out = format!("<h2 id=\"d{k}\">{}</h2>\n", escape(&s.name));
    let (before, after) = s.cost;
    let _ = writeln!(
        out,
        "<p>Cost {before:.1} as written, {after:.1} optimized: {} times cheaper.</p>",
        ratio(before, after)
    );
    if let Some(unproved) = &s.unproved {
        let _ = writeln!(out, "<p>{}.</p>", escape(unproved));
    }
    let _ = writeln!(
        out,
        "<div class=\"sides\">\n<div><h3>as written</h3><pre>{}</pre></div>\n<div><h3>optimized</h3><pre>{}</pre></div>\n</div>",
        escape(s.text.0.trim_end()),
        marked(s.text.1.trim_end())?
    );
    out += &plots(s)?;
    out += &steps(s);
    out += &rules(s);
    Ok(out)
}

fn plots(s: &Story) -> Result<String> {
    let mut plots = vec![];
    if !s.steps.is_empty() {
        let said = s.steps.iter().map(|(_, cost)| *cost).filter(|cost| !cost.is_nan());
        let values = std::iter::once(s.cost.0).chain(said).collect();
        let series = Series { name: String::new(), values };
        plots.push(("cost along the derivation", lines(&[series], "step", "cost")?));
    }
    if s.growth.iter().any(|g| g.len() > 1) {
        let values = |g: &Vec<usize>| g.iter().map(|n| *n as f64).collect();
        let name = |k: usize| if s.growth.len() > 1 { format!("search {}", k + 1) } else { String::new() };
        let series: Vec<Series> =
            s.growth.iter().enumerate().map(|(k, g)| Series { name: name(k), values: values(g) }).collect();
        plots.push(("nodes of the e-graph", lines(&series, "round", "nodes")?));
    }
    let each = plots.iter().map(|(title, svg)| format!("<div><h3>{title}</h3>{svg}</div>\n"));
    Ok(if plots.is_empty() {
        String::new()
    } else {
        format!("<div class=\"plots\">\n{}</div>\n", each.collect::<String>())
    })
}

fn steps(s: &Story) -> String {
    if s.steps.is_empty() {
        return String::new();
    }
    let mut out = format!("<h3>derivation: {} steps</h3>\n<ol class=\"steps\">\n", s.steps.len());
    let mut last = s.cost.0;
    for (what, cost) in &s.steps {
        if cost.is_nan() {
            let _ = writeln!(out, "<li>{}</li>", escape(what));
            continue;
        }
        let class = if *cost < last - 1e-9 {
            "down"
        } else if *cost > last + 1e-9 {
            "up"
        } else {
            ""
        };
        let _ = writeln!(out, "<li>{} <b class=\"{class}\">{cost:.1}</b></li>", escape(what));
        last = *cost;
    }
    out + "</ol>\n"
}

fn rules(s: &Story) -> String {
    if s.fired.is_empty() {
        return String::new();
    }
    let most = s.fired.iter().map(|(_, n)| *n).max().unwrap_or(1).max(1);
    let mut out = String::from("<h3>rules that fired in the search</h3>\n<table>\n");
    for (rule, n) in s.fired.iter().take(RULES) {
        let width = 100.0 * *n as f64 / most as f64;
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{n}</td><td class=\"bar\"><i style=\"width:{width:.1}%\"></i></td></tr>",
            escape(rule)
        );
    }
    if s.fired.len() > RULES {
        let _ = writeln!(out, "<tr><td>and {} more</td></tr>", s.fired.len() - RULES);
    }
    out + "</table>\n"
}

/// A text with its shared and moved lets marked.
fn marked(text: &str) -> Result<String> {
    let mut spots: Vec<(usize, usize, String)> = vec![];
    for m in marks(text)?.iter().filter(|m| m.kind != Kind::Named) {
        let (class, why) = match m.kind {
            Kind::Hoisted => ("hoisted", "computed before the loop that uses it"),
            Kind::Shared | Kind::Named => ("shared", "computed once"),
        };
        let open = format!("<mark class=\"{class}\" title=\"{why}; uses: {}\">", m.uses);
        spots.push((m.span.start as usize, m.span.end as usize, open));
        spots.extend(m.at.iter().map(|s| (s.start as usize, s.end as usize, format!("<span class=\"use {class}\">"))));
    }
    spots.sort();
    let (mut out, mut at) = (String::new(), 0);
    for (from, to, open) in spots {
        let close = if open.starts_with("<mark") { "</mark>" } else { "</span>" };
        let _ = write!(out, "{}{open}{}{close}", escape(&text[at..from]), escape(&text[from..to]));
        at = to;
    }
    Ok(out + &escape(&text[at..]))
}
