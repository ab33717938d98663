//! Counts of a run become lines for people and a member of the JSON object.

use super::World;
use crate::diag::Result;
use crate::eval::Tally;
use crate::eval::tally::{DIVISION, TRANSCENDENTAL};
use serde_json::{Map, Value as Json, json};

/// Shows counts before the result, or adds them to what is printed with it.
pub fn tell(tally: &Tally, as_json: bool, more: &mut Map<String, Json>, world: &mut World<'_>) -> Result<()> {
    if as_json {
        more.insert("count".into(), object(tally));
        return Ok(());
    }
    rows(tally).iter().try_for_each(|(name, n, weight)| {
        let line = format!("{name:<30} {n:>16}{weight}");
        world.say(line.trim_end())
    })
}

fn object(t: &Tally) -> Json {
    let mut object = json!({
        "simple": t.simple,
        "divisions": t.divisions,
        "transcendental": t.transcendental,
        "indices": t.indices,
        "read": t.read,
        "written": t.written,
        "bytes": t.bytes,
        "work": t.work(),
    });
    if let (Some(peak), Some(members)) = (t.peak_bytes, object.as_object_mut()) {
        members.insert("peak_bytes".into(), json!(peak));
    }
    object
}

fn rows(t: &Tally) -> Vec<(&'static str, u64, String)> {
    let times = |weight: u64| format!("  times {weight}");
    let mut rows = vec![
        ("simple operations", t.simple, times(1)),
        ("divisions and roots", t.divisions, times(DIVISION)),
        ("transcendental functions", t.transcendental, times(TRANSCENDENTAL)),
        ("arithmetic of indices", t.indices, times(0)),
        ("elements read", t.read, times(1)),
        ("elements written", t.written, times(1)),
        ("work", t.work(), String::new()),
        ("bytes allocated", t.bytes, String::new()),
    ];
    rows.extend(t.peak_bytes.map(|peak| ("bytes at once at most", peak, String::new())));
    rows
}
