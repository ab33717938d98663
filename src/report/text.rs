//! Text becomes what may stand in a page or drawing: escaped, and short enough for its place.

/// Text as it stands between tags, or in an attribute.
pub fn escape(text: &str) -> String {
    // Characters that no XML may have are not shown at all.
    let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How wide a character of a fixed-width font is, for each unit of its size; the widest such fonts in use have 0.602.
const ADVANCE: f64 = 0.61;

/// How many columns of a fixed-width font a character takes: those of East Asian scripts and pictographs take two.
fn columns(c: char) -> usize {
    if u32::from(c) >= 0x1100 && !('\u{2000}'..='\u{2bff}').contains(&c) { 2 } else { 1 }
}

/// How wide a text of a fixed-width font is at most.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().map(columns).sum::<usize>() as f64 * size * ADVANCE
}

/// As much of a text as fits, `…` for the rest.
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room + 1e-6 {
        return text.to_string();
    }
    let most = (room / (size * ADVANCE)) as usize;
    let mut left = most.saturating_sub(1);
    let mut out = String::new();
    for c in text.chars() {
        if columns(c) > left {
            break;
        }
        left -= columns(c);
        out.push(c);
    }
    if most > 0 { out + "…" } else { out }
}

/// Bytes for people.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return if n == 1 { "1 byte".into() } else { format!("{n} bytes") };
    }
    let mut v = n as f64 / 1024.0;
    let mut unit = 0;
    while v >= 1024.0 && unit + 1 < UNITS.len() {
        v /= 1024.0;
        unit += 1;
    }
    // Three digits that count, without zeros at the end.
    let digits = if v < 10.0 { 2 } else { usize::from(v < 100.0) };
    let text = format!("{v:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {}", UNITS[unit])
}

/// A number of things for people.
pub fn count(n: f64) -> String {
    match n {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}
