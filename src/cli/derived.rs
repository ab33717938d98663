//! `daedal grad --report`: a definition and its derivative become what their page is told, and the same for machines.

use crate::diag::Result;
use crate::eval::Tally;
use crate::eval::tally::{DIVISION, TRANSCENDENTAL};
use crate::ir::{Def, Program, print};
use crate::pipeline::needs::{Known, after_arguments, named_sizes};
use crate::pipeline::stages::{Stages, stages};
use crate::report::{Derived, Kept, Side, Stage};
use serde_json::{Value as Json, json};

/// What the page of a derivative is told, by what is known of the arguments of its source; behind these it takes
/// tangents of some parameters, or the adjoint of the result.
pub fn told(
    (program, def): (&Program, &Def),
    (derived, of): (&Program, &Def),
    (known, tangents): (Known<'_>, &[usize]),
) -> Result<Derived> {
    let (own, sizes) = (known.incoming(def)?, named_sizes(def, &known)?);
    let before = stages(program, def, &own, own.len());
    let result = before.as_ref().map_or(vec![], |s| s.sizes.clone());
    let incoming = after_arguments((def, &own), &result, of, tangents);
    let after = stages(derived, of, &incoming, own.len());
    let nothing = Stages::default();
    let (a, b) = (before.as_ref().unwrap_or(&nothing), after.as_ref().unwrap_or(&nothing));
    let sizes: Vec<String> = sizes.iter().map(|(name, n)| format!("{name} = {n}")).collect();
    let about = [
        format!("At {}.", if sizes.is_empty() { "sizes as they come".into() } else { sizes.join(", ") }),
        format!(
            "Counted by stage, before a schedule computes stages where they are read: of conditions both arms, a division as {DIVISION} operations and a transcendental function as {TRANSCENDENTAL}."
        ),
    ];
    let kept = (0..b.rows.len()).map(|k| (k, b.kept_for(k))).filter(|(_, readers)| !readers.is_empty());
    let name = |k: usize| b.rows[k].name.clone();
    Ok(Derived {
        name: of.name().to_string(),
        about: about.to_vec(),
        sides: [side(print::def(&program.terms, def), &before), side(print::def(&derived.terms, of), &after)],
        totals: if before.is_ok() && after.is_ok() { totals(a.total(), b.total()) } else { vec![] },
        kept: kept
            .map(|(k, readers)| Kept {
                made_in: name(k),
                read_in: readers.into_iter().map(name).collect(),
                bytes: b.rows[k].tally.bytes,
            })
            .collect(),
    })
}

fn side(text: String, of: &std::result::Result<Stages, String>) -> Side {
    let rows = of.iter().flat_map(|s| &s.rows).map(|row| Stage {
        name: row.name.clone(),
        sizes: row.sizes.clone(),
        bytes: row.tally.bytes,
        operations: [row.tally.simple, row.tally.divisions, row.tally.transcendental, row.tally.indices],
        moved: row.tally.moved(),
        reads: row.reads.clone(),
        back: row.back,
    });
    Side { text, stages: rows.collect(), unstaged: of.as_ref().err().cloned() }
}

fn totals(before: Tally, after: Tally) -> Vec<(String, u64, u64)> {
    let row = |what: &str, of: fn(&Tally) -> u64| (what.to_string(), of(&before), of(&after));
    vec![
        row("simple operations", |t| t.simple),
        row("divisions and roots", |t| t.divisions),
        row("transcendental functions", |t| t.transcendental),
        row("operations by weight", Tally::weighted),
        row("elements moved", Tally::moved),
        row("work", Tally::work),
        row("bytes of stages", |t| t.bytes),
    ]
}

/// The same numbers for machines.
pub fn object(of: &Derived) -> Json {
    let stage = |side: &Side, s: &Stage| {
        let [simple, divisions, transcendental, indices] = s.operations;
        json!({
            "name": s.name,
            "sizes": s.sizes,
            "bytes": s.bytes,
            "simple": simple,
            "divisions": divisions,
            "transcendental": transcendental,
            "indices": indices,
            "moved": s.moved,
            "reads": s.reads.iter().filter_map(|k| side.stages.get(*k)).map(|s| s.name.as_str()).collect::<Vec<_>>(),
            "way": if s.back { "back" } else { "forth" },
        })
    };
    let side = |s: &Side| {
        json!({
            "stages": s.stages.iter().map(|one| stage(s, one)).collect::<Vec<Json>>(),
            "unstaged": s.unstaged,
        })
    };
    let kept = |k: &Kept| json!({ "made_in": k.made_in, "read_in": k.read_in, "bytes": k.bytes });
    let total =
        |(what, before, after): &(String, u64, u64)| json!({ "what": what, "definition": before, "derivative": after });
    json!({
        "definition": side(&of.sides[0]),
        "derivative": side(&of.sides[1]),
        "kept": of.kept.iter().map(kept).collect::<Vec<Json>>(),
        "totals": of.totals.iter().map(total).collect::<Vec<Json>>(),
    })
}
