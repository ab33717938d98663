//! Derivatives compared with differences, at many points.

use daedal::ad;
use daedal::ad::check::{self, Checked, Point};
use daedal::diag::{Diagnostic, Result};
use daedal::eval::Value;
use daedal::ir::{Def, print};

/// The parameters with floats.
pub fn floats(def: &Def) -> Vec<bool> {
    def.params.iter().map(|p| ad::has_floats(p.ty)).collect()
}

/// Whether a derivative disagrees, where it is a number.
fn wrong(checked: &Checked, p: &Point) -> bool {
    let finite = p.forward.is_finite() && p.reverse.is_finite();
    let off = p.off_difference().is_some_and(|d| d > check::DIFFERENCE);
    finite && (off || p.off_modes() > checked.tolerance())
}

/// A comparison at arguments; nothing where it is refused for one of these reasons, or there is no value.
pub fn point(
    checked: Result<Checked>,
    args: &[Value],
    what: &str,
    refused: &[&str],
) -> std::result::Result<Option<Point>, String> {
    let left_out = |d: &Diagnostic| refused.iter().any(|m| d.message.contains(m));
    let checked = match checked {
        Ok(checked) => checked,
        Err(d) if left_out(&d) => return Ok(None),
        Err(d) => return Err(format!("{what}: {d}")),
    };
    let shown = || {
        let p = checked.program();
        print::def(&p.terms, &p.defs[&checked.derivatives().1])
    };
    match checked.at(args, 7) {
        Err(d) => Err(format!("{what}: {d}\n{}", shown())),
        Ok(Some(p)) if wrong(&checked, &p) => Err(format!("{what}: {p:?}\n{}", shown())),
        Ok(p) => Ok(p),
    }
}

/// The points of several comparisons: how many, and how many of them with differences; a panic where one is wrong.
pub fn compared(found: Vec<std::result::Result<Option<Point>, String>>) -> (usize, usize) {
    let wrong: Vec<&String> = found.iter().filter_map(|r| r.as_ref().err()).collect();
    let shown: Vec<&str> = wrong.iter().take(6).map(|s| s.as_str()).collect();
    assert!(wrong.is_empty(), "{} failures\n{}", wrong.len(), shown.join("\n"));
    let points: Vec<Point> = found.into_iter().flatten().flatten().collect();
    let smooth = points.iter().filter(|p| p.difference.is_some() && p.forward != 0.0).count();
    println!("{} points, {smooth} smooth and not zero", points.len());
    (points.len(), smooth)
}
