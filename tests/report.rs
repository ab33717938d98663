//! `optimize --report`: one page that loads nothing, and that a browser shows.
#![allow(clippy::unwrap_used, reason = "a test that meets what it does not expect should stop there")]

use std::path::Path;
use std::process::Command;

fn report(dir: &Path) -> String {
    let page = dir.join("r.html");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Command::new(env!("CARGO_BIN_EXE_daedal"))
        .current_dir(root)
        .args(["optimize", "programs/blas.ks", "--def", "axpy", "--def", "softmax", "--def", "vadd"])
        .arg("--report")
        .arg(&page)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    std::fs::read_to_string(page).unwrap()
}

/// Protects: the page stands alone, shows both programs with what was shared and moved, the rules, and
/// plots; what did not change has no section.
#[test]
fn the_page_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let page = report(dir.path());
    for alien in ["<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!page.contains(alien), "the page loads something: {alien}");
    }
    for part in ["<h2 id=\"d2\">softmax</h2>", "as written", "optimized", "class=\"hoisted\"", "<svg", "index-of-build"]
    {
        assert!(page.contains(part), "the page lacks {part}");
    }
    assert!(page.contains("<td>vadd</td>") && !page.contains(">vadd</h2>"));
    assert!(page.contains("<h2>Unchanged</h2>\n<p>vadd</p>"));
}

/// Protects: a browser reads the page as it is meant. Without a browser there is nothing to test.
#[test]
fn a_browser_shows_the_page() {
    let dir = tempfile::tempdir().unwrap();
    report(dir.path());
    let browser = |args: &[&str]| {
        Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1600"])
            .args(args)
            .arg(format!("file://{}", dir.path().join("r.html").display()))
            .current_dir(dir.path())
            .env("HOME", dir.path())
            .output()
    };
    let Ok(dom) = browser(&["--dump-dom"]) else {
        eprintln!("no chromium: the page was not opened");
        return;
    };
    let dom = String::from_utf8_lossy(&dom.stdout).to_string();
    assert_eq!(dom.matches("<h2 ").count(), 2, "{dom}");
    assert!(dom.matches("<svg").count() >= 2 && dom.contains("</circle>"), "the plots are drawn");
    let shot = browser(&["--screenshot=shot.png"]).unwrap();
    assert!(shot.status.success());
    let size = std::fs::metadata(dir.path().join("shot.png")).unwrap().len();
    assert!(size > 20_000, "the page is nearly empty: {size} bytes of picture");
}
