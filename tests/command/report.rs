//! `optimize --report`: one page that loads nothing, and that a browser shows.

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

const LOSS: &str = "
(def loss Float ((w : (Vec Float) d) (xs : (Vec Float) n))
  (sum (fold (lam ((s : (Vec Float)) (x : Float))
               (build d (lam (i : Integer) (tanh (add (mul (index i w) (index i s)) x)))))
             w xs)))
(def power Float ((x : Float) (n : Integer)) (if (lt n 1) 1.0 (mul x (power x (sub n 1)))))
";

/// What `grad` says and prints in a folder with losses.
fn grad(dir: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    std::fs::write(dir.join("loss.ks"), LOSS).unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir).args(["grad", "loss.ks"]).args(args).output();
    let out = out.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// Protects: the page of a derivative stands alone, its drawing is an SVG that tells both ways apart, and what stands in it is
/// what machines get: stages with their sizes, what is kept, where that is made and read, and sums.
#[test]
fn derivatives_have_pages() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["loss", "--report", "r.html", "--size", "d=10", "--size", "n=50", "--json"];
    let (code, out, said) = grad(dir.path(), &args);
    assert_eq!(code, Some(0), "{said}");
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    for alien in ["<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!page.contains(alien), "the page loads something: {alien}");
    }
    for part in ["<h1>rev$loss: a derivative</h1>", "(def loss Float", "(def rev$loss ", "d = 10, n = 50"] {
        assert!(page.contains(part), "the page lacks {part}");
    }
    let svg = page.find("<svg").and_then(|from| Some(&page[from..from + page[from..].find("</svg>")? + 6])).unwrap();
    let drawn = roxmltree::Document::parse(svg).unwrap();
    let ways = |way: &str| drawn.descendants().filter(|n| n.attribute("class") == Some(way)).count();
    let report = &serde_json::from_str::<serde_json::Value>(&out).unwrap()["report"];
    let stages = report["derivative"]["stages"].as_array().unwrap();
    let of_way = |way: &str| stages.iter().filter(|s| s["way"] == way).count();
    assert!(of_way("forth") > 0 && of_way("back") > 0, "{report}");
    assert_eq!((ways("forth"), ways("back")), (of_way("forth"), of_way("back")));
    // All states are kept: as many as there are elements, and the first.
    let kept = report["kept"].as_array().unwrap();
    let states = kept.iter().filter(|k| k["bytes"].as_u64() >= Some(50 * 10 * 8)).count();
    assert!(states > 0 && ways("held") > 0, "{report}");
    for k in kept {
        let way = |name: &serde_json::Value| stages.iter().find(|s| s["name"] == *name).unwrap()["way"].clone();
        assert_eq!(way(&k["made_in"]), "forth");
        let readers = k["read_in"].as_array().unwrap();
        assert!(!readers.is_empty() && readers.iter().all(|r| way(r) == "back"), "{k}");
    }
    let total = |what: &str, of: &str| {
        let row = report["totals"].as_array().unwrap().iter().find(|t| t["what"] == what).unwrap();
        row[of].as_u64().unwrap()
    };
    // A tangent for each element of each state, and the sum of the last one.
    assert_eq!(total("transcendental functions", "definition"), 500);
    assert!(total("work", "derivative") > total("work", "definition"));
    let sum: u64 = stages.iter().map(|s| s["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, total("bytes of stages", "derivative"));
}

/// Protects: what has no stages says why, and shows what there is; pages that cannot be written are refused before the work;
/// what does not go together, too.
#[test]
fn pages_of_derivatives_say_what_they_lack() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, said) = grad(dir.path(), &["power", "--report", "r.html", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("There are none: ") && page.contains("(def power Float"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(json["report"]["definition"]["unstaged"].is_string(), "{json}");
    for (args, part) in [
        (&["loss", "--report", "none/r.html"][..], "its directory does not exist"),
        (&["loss", "--report", "r.html", "--check"], "cannot be used with"),
        (&["loss", "--report", "r.html", "--size", "q=3"], "names a size `q`"),
        (&["loss", "--report", "r.html", "[1.0]"], "takes 2 arguments"),
    ] {
        let (code, _, said) = grad(dir.path(), args);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

/// What `daedal` prints in a folder, where it succeeds.
fn said(dir: &Path, args: &[&str]) -> String {
    let mut daedal = Command::new(env!("CARGO_BIN_EXE_daedal"));
    let out = daedal.current_dir(dir).env("DAEDAL_CACHE", dir.join("cache")).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

const BLUR: &str = "
(def blur (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (across (build (tuple h (sub w 2)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) x) (index (tuple y (add c 1)) x)) (index (tuple y (add c 2)) x)))))
    (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (c : Integer))
      (add (add (index (tuple y c) across) (index (tuple (add y 1) c) across)) (index (tuple (add y 2) c) across))))))
";

/// Protects: timers stand around the loops of stages: each begins as often as the schedule says, on one thread and on two, and
/// together they are the time of a call, that of a stage inside of another one not counted twice.
#[test]
fn stages_are_timed_by_timers() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("blur.ks"), BLUR).unwrap();
    let steps = "split tensor y 32\ncompute-at across tensor yo\nparallel tensor yo\n";
    std::fs::write(d.join("s.sched"), steps).unwrap();
    for threads in ["1", "2"] {
        let words = ["measure", "blur.ks", "blur", "--stages", "--schedule", "s.sched", "--threads", threads];
        let sizes = ["--size", "h=1026", "--size", "w=1026", "--seconds", "0.2"];
        let all: Vec<&str> = words.into_iter().chain(sizes).collect();
        let object: serde_json::Value = serde_json::from_str(said(d, &all).trim()).unwrap();
        let stages = object["stages"].as_array().unwrap();
        let of = |name: &str, what: &str| {
            stages
                .iter()
                .find(|s| s["stage"] == name)
                .and_then(|s| s[what].as_f64())
                .unwrap_or_else(|| panic!("{object}"))
        };
        // 1024 rows in parts of 32.
        assert_eq!((of("across", "times"), of("tensor", "times")), (32.0, 1.0), "{object}");
        let (call, sum) = (object["min"].as_f64().unwrap(), of("across", "seconds") + of("tensor", "seconds"));
        assert!(of("across", "seconds") > 0.1 * sum && of("tensor", "seconds") > 0.1 * sum, "{object}");
        assert!(sum > 0.8 * call && (threads == "2" || sum < 20.0 * call), "{object}");
    }
}

/// Protects: the page of a schedule has measured times of its stages beside what the machine could do, and loads nothing; each
/// step of the file says what the model gains by it, and the file is a schedule that reads back as the same steps.
#[test]
fn schedules_that_were_found_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("blur.ks"), BLUR).unwrap();
    let sized = ["schedule", "blur.ks", "blur", "--size", "h=600", "--size", "w=900"];
    let with = |more: &[&'static str]| -> Vec<&str> { sized.iter().copied().chain(more.iter().copied()).collect() };
    said(d, &with(&["--mode", "top-k", "--measurements", "4", "--report", "r.html", "-o", "s.sched"]));
    let page = std::fs::read_to_string(d.join("r.html")).unwrap();
    for alien in ["<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!page.contains(alien), "the page loads something: {alien}");
    }
    let from = page.find("<h2>Time by stage</h2>").unwrap();
    let table = &page[from..from + page[from..].find("</table>").unwrap()];
    assert!(table.contains("Measured by timers") && table.contains("GB a second"), "{table}");
    let row = table.lines().find(|l| l.contains("<td>tensor</td>")).unwrap_or_else(|| panic!("{table}"));
    assert!(row.contains(" ms</td>") && (row.contains(">memory<") || row.contains(">operations<")), "{row}");
    assert!(page.contains("least cost in the search") && page.contains("what became of it"), "{page}");
    let file = std::fs::read_to_string(d.join("s.sched")).unwrap();
    let steps: Vec<&str> = file.lines().filter(|l| !l.starts_with(';')).collect();
    assert!(steps.iter().all(|l| l.contains("; ")), "{file}");
    assert!(steps.iter().any(|l| l.contains(" less: ")), "{file}");
    let bare: Vec<&str> = steps.iter().map(|l| l.split(';').next().unwrap().trim()).collect();
    assert_eq!(said(d, &with(&["--apply", "s.sched", "--steps"])).trim().lines().collect::<Vec<_>>(), bare);
}
