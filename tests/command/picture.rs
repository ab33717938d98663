//! `schedule --picture`: a schedule as a drawing that stands alone, says what the loops and boxes are, and is legible.

use crate::common;
use crate::common::{Want, arguments, everything, read, root};
use daedal::diag::Source;
use daedal::ir::{Def, Program};
use daedal::machine::Machine;
use daedal::nest::{Expr, Nest, Stmt};
use daedal::report::picture;
use daedal::schedule::outline::{Loop, Stage};
use daedal::schedule::{Outline, Schedule, lower, text};
use daedal::stage::extract;
use daedal::tune::example::incoming;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

const MACHINE: Machine = Machine { vector_bytes: 32, threads: 4, caches: [32 << 10, 512 << 10, 8 << 20] };

const PRODUCT: &str = "
(def product (Tensor 2 Float32) ((a : (Tensor 2 Float32) (n m)) (b : (Tensor 2 Float32) (m p)))
  (build (tuple n p) (lam ((i : Integer) (j : Integer))
    (iterate m (lam ((acc : Float32) (k : Integer)) (fma (index (tuple i k) a) (index (tuple k j) b) acc)) 0f32))))
";

const PANELS: &str = "
split sum j 64
split sum ji 16
split sum i 6
reorder sum jo io k ii jio jii
vectorize sum jii
unroll sum ii
unroll sum jio
cache-read sum b at jo as panel
parallel sum jo
";

const BLUR: &str = "
(def blur (Tensor 2 Float32) (image : (Tensor 2 Float32) (h w))
  (let ((half (build (tuple h w) (lam ((y : Integer) (x : Integer)) (mul 0.5f32 (index (tuple y x) image)))))
        (across (build (tuple h (sub w 2)) (lam ((y : Integer) (x : Integer))
          (add (index (tuple y x) half) (index (tuple y (add x 2)) half))))))
    (build (tuple (sub h 2) (sub w 2)) (lam ((y : Integer) (x : Integer))
      (add (index (tuple y x) across) (index (tuple (add y 2) x) across))))))
";

fn scheduled(program: &str, def: &str, steps: &str, sizes: Option<&[f64]>) -> Schedule {
    let program = read("p.ks", program).unwrap();
    let graph = extract(&program, program.named(def)[0]).map_err(|u| u.diagnostic(&program)).unwrap();
    let made = text::apply(Schedule::new(graph), &Source::new("p.sched", steps)).unwrap();
    sizes.map_or(made.clone(), |sizes| made.specialized(sizes))
}

fn drawn(s: &Schedule, sizes: Option<&[f64]>) -> String {
    picture(&Outline::of(s, sizes).unwrap())
}

/// The words of a class, in order.
fn words(svg: &str, class: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|n| n.has_tag_name("text") && n.attribute("class") == Some(class));
    texts.map(|n| n.text().unwrap_or_default().to_string()).collect()
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Area {
    fn holds(self, other: Area) -> bool {
        let slack = 0.2;
        self.left <= other.left + slack
            && self.top <= other.top + slack
            && other.right <= self.right + slack
            && other.bottom <= self.bottom + slack
    }

    fn meets(self, other: Area) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

fn number(n: Node<'_, '_>, name: &str) -> f64 {
    n.attribute(name).unwrap().parse().unwrap()
}

/// The rectangle of a group.
fn area(group: Node<'_, '_>) -> Option<Area> {
    let r = group.children().find(|n| n.has_tag_name("rect"))?;
    let [x, y, w, h] = ["x", "y", "width", "height"].map(|name| number(r, name));
    Some(Area { left: x, top: y, right: x + w, bottom: y + h })
}

/// Where a text is, in a font whose characters are 0.602 of its size wide.
fn place(text: Node<'_, '_>) -> Area {
    let [x, y, size] = ["x", "y", "font-size"].map(|name| number(text, name));
    let w = 0.602 * size * text.text().unwrap_or_default().chars().count() as f64;
    let left = if text.attribute("text-anchor") == Some("end") { x - w } else { x };
    Area { left, top: y - 0.78 * size, right: left + w, bottom: y + 0.22 * size }
}

/// What is wrong with a drawing: rectangles and texts that leave what they stand in, and texts over each other.
fn faults(svg: &str) -> Vec<String> {
    let document = match Document::parse(svg) {
        Ok(document) => document,
        Err(e) => return vec![format!("no XML: {e}")],
    };
    let mut out = vec![];
    let within = |n: Node<'_, '_>| n.ancestors().skip(1).find_map(area);
    let page = document.root_element();
    let page = Area { left: 0.0, top: 0.0, right: number(page, "width"), bottom: number(page, "height") };
    for group in document.descendants().filter(|n| n.has_tag_name("g")) {
        let Some(own) = area(group) else { continue };
        if !within(group).unwrap_or(page).holds(own) {
            out.push(format!("{own:?} leaves what it is in"));
        }
        let class = group.attribute("class").unwrap_or_default();
        let beside = |n: &Node<'_, '_>| *n != group && n.has_tag_name("g");
        for other in group.parent().into_iter().flat_map(|p| p.children()).filter(beside).filter_map(area) {
            if class != "paper" && own.meets(other) && !other.holds(own) {
                out.push(format!("{own:?} and {other:?} meet"));
            }
        }
    }
    let texts: Vec<Node<'_, '_>> = document.descendants().filter(|n| n.has_tag_name("text")).collect();
    let mut places: Vec<(Area, &str)> = texts.iter().map(|t| (place(*t), t.text().unwrap_or_default())).collect();
    for (t, (at, words)) in texts.iter().zip(&places) {
        if !within(*t).unwrap_or(page).holds(*at) {
            out.push(format!("`{words}` leaves what it is in"));
        }
    }
    places.sort_by(|a, b| a.0.top.total_cmp(&b.0.top));
    for (k, (at, words)) in places.iter().enumerate() {
        for (other, more) in places[k + 1..].iter().take_while(|(other, _)| other.top < at.bottom) {
            if at.meets(*other) {
                out.push(format!("`{words}` and `{more}` are over each other"));
            }
        }
    }
    out
}

/// The stages and loops of the tree of text, and those that are computed where they are read.
fn tree(s: &Schedule) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut stages, mut loops, mut inlined) = (vec![], vec![], vec![]);
    for line in s.to_string().lines().map(str::trim) {
        match (line.strip_prefix("for "), line.strip_suffix(" where it is read")) {
            (Some(l), _) => loops.push(l.split([' ', ',']).next().unwrap_or_default().to_string()),
            (_, Some(name)) => inlined.push(name.to_string()),
            _ => stages.push(line.split('[').next().unwrap_or_default().to_string()),
        }
    }
    (stages, loops, inlined)
}

fn sorted(mut each: Vec<String>) -> Vec<String> {
    each.sort();
    each
}

/// What a drawing lacks of the tree of text.
fn missing(s: &Schedule, svg: &str) -> Option<String> {
    let (mut stages, loops, inlined) = tree(s);
    stages.push(s.graph.name.clone());
    stages.extend(s.graph.inputs.iter().map(|i| i.name.clone()));
    // Long names are cut off.
    let cut = |each: Vec<String>| sorted(each.iter().map(|n| n.chars().take(30).collect()).collect());
    let first = |w: String| w.split(' ').next().unwrap_or_default().to_string();
    let have = (cut(words(svg, "name")), cut(words(svg, "loop").into_iter().map(first).collect()));
    let want = (cut(stages), cut(loops));
    if have != want {
        return Some(format!("{have:?} are not {want:?}"));
    }
    inlined.into_iter().find(|n| !svg.contains(n.as_str()))
}

/// Protects: each stage and loop of the tree stands in the drawing with the numbers that lowering decides, and what comes in
/// and is inlined as well.
#[test]
fn a_product_in_panels() {
    // A buffer is a number that is not looked at.
    let sizes = [500.0, 512.0, 0.0, 512.0, 512.0, 0.0];
    let s = scheduled(PRODUCT, "product", PANELS, Some(&sizes));
    let svg = drawn(&s, Some(&sizes));
    assert_eq!(faults(&svg), Vec::<String>::new());
    assert_eq!(missing(&s, &svg), None);
    let loops = ["jo < 8", "panel0 < 512", "panel1 < 64", "io < 84", "k < 512", "ii < 6", "jio < 4", "jii < 16"];
    assert_eq!(words(&svg, "loop"), loops);
    let boxes = [
        "Float32 500 × 512 · 1000 KiB",
        "Float32 512 × 512 · 1 MiB",
        "Float32 500 × 512 · 1000 KiB",
        "Float32 512 × 64 · 128 KiB",
    ];
    assert_eq!(words(&svg, "box"), boxes);
    let all = words(&svg, "quiet").join("\n");
    for part in ["parallel", "last overlaps", "reduced", "accumulators: Float32 6 × 4 × 16 · 1.5 KiB", "reads panel, a"]
    {
        assert!(all.contains(part), "{part} is not in\n{all}");
    }
    assert!(all.contains("for a_size0 = 500, a_size1 = 512, b_size0 = 512, b_size1 = 512"), "{all}");
}

/// Protects: what is computed in tiles has boxes of one tile, and what is inlined stands at its reader, which reads for it;
/// without sizes, what is not known is left out.
#[test]
fn a_blur_in_tiles() {
    let steps =
        "inline half\nsplit tensor y 32\nsplit tensor x 64\nreorder tensor yo xo yi xi\ncompute-at across tensor xo";
    let s = scheduled(BLUR, "blur", steps, Some(&[1026.0, 770.0, 0.0]));
    let svg = drawn(&s, Some(&[1026.0, 770.0, 0.0]));
    assert_eq!((faults(&svg), missing(&s, &svg)), (vec![], None));
    let boxes = ["Float32 1026 × 770 · 3.01 MiB", "Float32 1024 × 768 · 3 MiB", "Float32 34 × 64 · 8.5 KiB"];
    assert_eq!(words(&svg, "box"), boxes);
    assert_eq!(words(&svg, "loop"), ["yo < 32", "xo < 12", "y < 34", "x < 64", "yi < 32", "xi < 64"]);
    let quiet = words(&svg, "quiet");
    assert!(quiet.contains(&"inlined: half".into()) && quiet.contains(&"reads image".into()), "{quiet:?}");
    let general = scheduled(BLUR, "blur", steps, None);
    let svg = drawn(&general, None);
    assert_eq!((faults(&svg), missing(&general, &svg)), (vec![], None));
    let boxes = words(&svg, "box");
    assert_eq!(boxes[0], "Float32 image_size0 × image_size1");
    assert_eq!(boxes[2], "Float32 34 × 64 · 8.5 KiB", "a tile is as large whatever the sizes");
    assert!(words(&svg, "loop").contains(&"yo".into()), "how many parts there are is not known");
    assert!(words(&svg, "quiet").contains(&"for all sizes".into()));
}

/// Protects: loops over what a tile needs have as many iterations as in a whole tile, and are said to have fewer in the last
/// one where that is shorter.
#[test]
fn the_last_tile_is_shorter() {
    let steps = "split tensor y 32\nparallel tensor yo\ncompute-at across tensor yo\ninline half";
    let sizes = [102.0, 66.0, 0.0];
    let s = scheduled(BLUR, "blur", steps, Some(&sizes));
    let svg = drawn(&s, Some(&sizes));
    assert_eq!(words(&svg, "loop"), ["yo < 4", "y < 34", "x < 64", "yi < 32", "x < 64"]);
    let quiet = words(&svg, "quiet");
    assert!(quiet.contains(&"parallel · last part 4".into()) && quiet.contains(&"or fewer".into()), "{quiet:?}");
    assert_eq!(words(&svg, "box")[2], "Float32 34 × 64 · 8.5 KiB");
}

/// Protects: states of which only the last one is read are said to be a ring, or to be changed in place where a step keeps
/// some elements, and what reads a state in the next step has a dot of its own.
#[test]
fn a_recurrence() {
    let text = std::fs::read_to_string(root("programs/apps/lstm.ks")).unwrap();
    let svg = drawn(&scheduled(&text, "loss", "", None), None);
    assert_eq!(faults(&svg), Vec::<String>::new());
    let boxes = words(&svg, "box");
    assert!(boxes.iter().any(|b| b.ends_with("a ring of 2")), "{boxes:?}");
    let part = "(def f (Vec Float) ((s : (Vec Float) n) (k : Integer))
        (fold (lam ((s : (Vec Float)) (i : Integer)) (setAt i s (mul 0.5 (index i s))))
              s (build k (lam (i : Integer) i))))";
    let boxes = words(&drawn(&scheduled(part, "f", "", None), None), "box");
    assert!(boxes.iter().any(|b| b.ends_with("changed in place")), "{boxes:?}");
    assert!(words(&svg, "quiet").contains(&"steps".into()));
    assert!(svg.matches("circle class=\"before\"").count() > 1, "one is in the legend");
}

/// Protects: the checks of this file find what they look for.
#[test]
fn planted_faults_are_found() {
    let group = |x: i32, inner: &str| format!("<g><rect x=\"{x}\" y=\"0\" width=\"50\" height=\"50\"/>{inner}</g>");
    let text = |x: i32| format!("<text x=\"{x}\" y=\"20\" font-size=\"10\">abc</text>");
    let page = |inner: &str| faults(&format!("<svg width=\"100\" height=\"100\">{inner}</svg>")).len();
    assert_eq!(page(&group(0, &(text(5) + &text(25)))), 0);
    assert_eq!(page(&group(0, &(text(5) + &text(22)))), 1, "texts over each other");
    assert_eq!(page(&group(0, &text(45))), 1, "a text that leaves");
    assert_eq!(page(&group(0, &group(5, ""))), 1, "a rectangle that leaves");
    assert_eq!(page(&(group(0, "") + &group(40, ""))), 2, "rectangles that meet");
    assert_eq!(page("<g>"), 1, "no XML");
}

/// Protects: names and texts are escaped, and control characters are left out.
#[test]
fn names_are_escaped() {
    let mut s = scheduled(BLUR, "blur", "", None);
    let graph = std::sync::Arc::make_mut(&mut s.graph);
    graph.name = "<&\"'>\u{1}".into();
    graph.stages.iter_mut().for_each(|s| s.name = format!("<&\"'>{}", s.name));
    graph.inputs[0].name = "]]></text>".into();
    let svg = drawn(&s, None);
    assert_eq!(faults(&svg), Vec::<String>::new());
    let names = words(&svg, "name");
    assert!(names.contains(&"<&\"'>across".into()) && names.contains(&"]]></text>".into()), "{names:?}");
}

/// Protects: a drawing loads nothing and runs nothing, and is the same whenever it is made.
#[test]
fn a_drawing_stands_alone() {
    let s = scheduled(BLUR, "blur", "", None);
    let svg = drawn(&s, None);
    for alien in ["<script", "href", "@import", "url(", "<image", "<foreignObject"] {
        assert!(!svg.contains(alien), "the drawing loads something: {alien}");
    }
    assert_eq!(svg, drawn(&scheduled(BLUR, "blur", "", None), None));
}

/// The schedules that a definition is drawn with: by default for all sizes and for those of its runs, and without steps.
fn schedules(program: &Program, def: &Def, runs: &[Vec<String>]) -> Vec<(Schedule, Option<Vec<f64>>)> {
    let Ok(graph) = extract(program, def) else { return vec![] };
    let default = daedal::schedule::default(graph.clone(), &MACHINE);
    let mut out = vec![(Schedule::new(graph.clone()), None), (default.clone(), None)];
    for args in runs {
        let sizes = incoming(def, &arguments(def, args).unwrap());
        out.push((default.specialized(&sizes), Some(sizes.clone())));
        out.push((daedal::schedule::default(graph.only_for(&sizes), &MACHINE), Some(sizes)));
    }
    out
}

/// The bytes of each buffer of a nest whose extents are numbers, by its name.
fn taken(nest: &Nest) -> BTreeMap<String, Vec<u64>> {
    let mut out: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut each = |s: &Stmt| {
        let Stmt::Alloc(b, dims) = s else { return };
        let n: Option<u64> =
            dims.iter().map(|d| if let Expr::Lit(l) = d { l.to_f64().map(|n| n as u64) } else { None }).product();
        let info = nest.entry.buf(*b);
        out.entry(info.name.clone()).or_default().extend(n.map(|n| n * u64::from(info.ty.bytes())));
    };
    nest.entry.body.iter().for_each(|s| s.visit(&mut each));
    out
}

/// The stages of an outline, and the stages in their loops.
fn stages<'a>(all: &'a [Stage], out: &mut Vec<&'a Stage>) {
    for s in all {
        out.push(s);
        let mut next: Option<&Loop> = s.outer.as_deref();
        while let Some(l) = next {
            stages(&l.hosted, out);
            next = l.inner.as_deref();
        }
    }
}

/// Protects: whatever can be staged is drawn, legibly and whole, and each box is one that the nest takes memory for.
#[test]
fn the_corpus_is_drawn() {
    let (mut drawings, mut boxes) = (0, 0);
    for case in everything() {
        for def in case.program.defs.values() {
            let of_def = |r: &&common::Run| r.def == def.name() && matches!(r.want, Want::Value(_));
            let runs: Vec<Vec<String>> = case.runs.iter().filter(of_def).take(1).map(|r| r.args.clone()).collect();
            for (s, sizes) in schedules(&case.program, def, &runs) {
                let shown = || format!("{}: {}\n{s}", case.name, def.name());
                let outline = Outline::of(&s, sizes.as_deref()).unwrap_or_else(|d| panic!("{d}: {}", shown()));
                let svg = picture(&outline);
                let wrong = faults(&svg);
                assert!(wrong.is_empty(), "{wrong:#?}\n{}", shown());
                assert_eq!(missing(&s, &svg), None, "{}", shown());
                drawings += 1;
                let taken = taken(&lower(&s, def).unwrap());
                let mut all = vec![];
                stages(&outline.stages, &mut all);
                for (stage, memory) in all.iter().map(|s| (s, &s.memory)) {
                    let single = s.graph.stages[stage.id].tys.len() == 1 && memory.text.contains(' ');
                    if let Some(n) = memory.bytes.filter(|_| single) {
                        assert!(taken[&stage.name].contains(&n), "{} has no {n} bytes: {}", stage.name, shown());
                        boxes += 1;
                    }
                }
            }
        }
    }
    assert!(drawings > 600 && boxes > 300, "{drawings} drawings with {boxes} boxes");
}

fn daedal(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_daedal")).current_dir(dir).args(args).output().unwrap()
}

/// Protects: the option goes with all that the command prints, and with searches; other endings are refused before anything
/// is done, and what stands in the file stays where there is nothing to draw.
#[test]
fn the_command_draws() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("p.ks"), PRODUCT).unwrap();
    std::fs::write(d.join("p.sched"), PANELS).unwrap();
    let start = ["schedule", "p.ks", "product"];
    let ways: [&[&str]; 5] = [
        &["--apply", "p.sched"],
        &["--apply", "p.sched", "--size", "n=8", "--size", "m=8", "--size", "p=8", "--json"],
        &["--apply", "default", "--steps"],
        &["--apply", "none"],
        &["--mode", "one-shot", "--size", "n=8", "--size", "m=8", "--size", "p=8", "--evaluations", "20"],
    ];
    for more in ways {
        let _ = std::fs::remove_file(d.join("p.svg"));
        let plain = daedal(d, &[&start[..], more].concat());
        let both = daedal(d, &[&start[..], more, &["--picture", "p.svg"]].concat());
        assert!(both.status.success(), "{more:?}: {}", String::from_utf8_lossy(&both.stderr));
        assert_eq!(plain.stdout, both.stdout, "{more:?}");
        let svg = std::fs::read_to_string(d.join("p.svg")).unwrap();
        assert_eq!(faults(&svg), Vec::<String>::new(), "{more:?}");
        assert!(words(&svg, "name").contains(&"sum".into()));
    }
    let before = std::fs::read(d.join("p.svg")).unwrap();
    let refused = daedal(d, &[&start[..], &["--picture", "p.png"]].concat());
    let message = String::from_utf8_lossy(&refused.stderr).to_string();
    assert_eq!(refused.status.code(), Some(1));
    assert!(message.contains("`p.png`") && message.contains("`.svg`") && !d.join("p.png").exists(), "{message}");
    assert_eq!(daedal(d, &["schedule", "p.ks", "other", "--picture", "p.svg"]).status.code(), Some(1));
    assert_eq!(std::fs::read(d.join("p.svg")).unwrap(), before);
}

/// Protects: the drawing in the documents is what the command beside it draws. `DAEDAL_BLESS=1` writes it.
#[test]
fn the_drawing_of_the_documents_holds() {
    let page = std::fs::read_to_string(root("docs/schedules.md")).unwrap();
    let (_, steps) = page.split_once("; harris.sched\n").unwrap();
    let command = page.lines().find_map(|l| l.strip_prefix("daedal ").filter(|l| l.contains("--picture harris.svg")));
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("programs/imaging");
    std::fs::create_dir_all(&program).unwrap();
    std::fs::copy(root("programs/imaging/harris.ks"), program.join("harris.ks")).unwrap();
    std::fs::write(dir.path().join("harris.sched"), steps.split("```").next().unwrap()).unwrap();
    let words: Vec<&str> = command.unwrap().split_whitespace().collect();
    let made = daedal(dir.path(), &words);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let svg = std::fs::read_to_string(dir.path().join("harris.svg")).unwrap();
    assert_eq!(faults(&svg), Vec::<String>::new());
    let kept = root("docs/schedules/harris.svg");
    if std::env::var_os("DAEDAL_BLESS").is_some() {
        std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
        std::fs::write(&kept, &svg).unwrap();
    }
    assert!(
        std::fs::read_to_string(kept).unwrap() == svg,
        "DAEDAL_BLESS=1 cargo test --test command picture:: writes it"
    );
}
