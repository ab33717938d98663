//! The schedules by hand that stand beside programs: at sizes that their tiles do not divide, and at those smaller than a tile,
//! they have the interpreter's bits.

use crate::common::root;
use crate::common::scheduled::{compare, empty, read};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Def, Lit, Scalar};
use daedal::schedule::text;
use daedal::tune::example::{arguments, incoming};

/// A schedule by hand: its program, its definition, and calls by the sizes and numbers of their parameters.
struct Hand {
    program: &'static str,
    def: &'static str,
    calls: &'static [&'static [(&'static str, f64)]],
}

const PICTURES: &[&[(&str, f64)]] = &[
    &[("h", 7.0), ("w", 7.0), ("channels", 3.0)],
    &[("h", 67.0), ("w", 301.0), ("channels", 3.0)],
    &[("h", 1.0), ("w", 1.0), ("channels", 3.0)],
    &[("h", 33.0), ("w", 17.0), ("channels", 3.0)],
];

const ALL: &[Hand] = &[
    Hand { program: "programs/imaging/harris.ks", def: "harris", calls: PICTURES },
    Hand { program: "programs/imaging/unsharp.ks", def: "unsharp", calls: PICTURES },
    Hand { program: "programs/imaging/blur.ks", def: "blur", calls: PICTURES },
    Hand {
        program: "programs/imaging/stencil_chain.ks",
        def: "stencil_chain",
        calls: &[
            &[("h", 1.0), ("w", 1.0), ("times", 2.0)],
            &[("h", 7.0), ("w", 41.0), ("times", 0.0)],
            &[("h", 5.0), ("w", 67.0), ("times", 3.0)],
        ],
    },
    Hand {
        program: "programs/array/matmul.ks",
        def: "product",
        calls: &[
            &[("n", 1.0), ("m", 1.0), ("p", 1.0)],
            &[("n", 7.0), ("m", 13.0), ("p", 5.0)],
            &[("n", 13.0), ("m", 31.0), ("p", 67.0)],
        ],
    },
    Hand { program: "programs/imaging/iir_blur.ks", def: "iir_blur", calls: PICTURES },
    Hand {
        program: "programs/tensor/attention.ks",
        def: "attention",
        calls: &[
            &[("query_length", 1.0), ("key_length", 1.0), ("depth", 1.0), ("width", 1.0)],
            &[("query_length", 21.0), ("key_length", 37.0), ("depth", 5.0), ("width", 9.0)],
            &[("query_length", 37.0), ("key_length", 131.0), ("depth", 16.0), ("width", 67.0)],
        ],
    },
    Hand { program: "programs/tensor/conv_layer.ks", def: "conv_layer", calls: LAYERS },
    Hand { program: "programs/tensor/depthwise_separable.ks", def: "depthwise_separable", calls: LAYERS },
];

const LAYERS: &[&[(&str, f64)]] = &[
    &layer([1.0, 1.0, 1.0, 1.0, 1.0], 1.0),
    &layer([2.0, 5.0, 11.0, 7.0, 3.0], 1.0),
    &layer([1.0, 17.0, 23.0, 17.0, 67.0], 2.0),
];

/// The sizes of a layer: images, height, width, channels and filters; and its stride.
const fn layer(of: [f64; 5], stride: f64) -> [(&'static str, f64); 10] {
    let [batch, height, width, channels, filters] = of;
    [
        ("batch", batch),
        ("height", height),
        ("width", width),
        ("channels", channels),
        ("filters", filters),
        ("kernel_height", 3.0),
        ("kernel_width", 3.0),
        ("multiplier", 1.0),
        ("stride", stride),
        ("padding", 1.0),
    ]
}

/// Arguments of the sizes and numbers of a call.
fn made(def: &Def, call: &[(&str, f64)]) -> Vec<Value> {
    let sizes: Vec<(String, u64)> = call.iter().map(|(n, v)| ((*n).to_string(), *v as u64)).collect();
    let number = |name: &str| call.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let each = def.params.iter().zip(arguments(def, &sizes, 3).unwrap());
    each.map(|(p, a)| match (p.ty.as_scalar(), number(&p.name)) {
        (Some(ty @ (Scalar::F32 | Scalar::F64)), Some(v)) => Value::Scalar(Lit::of(ty, v)),
        _ => a,
    })
    .collect()
}

/// Protects: every schedule by hand, for the sizes of a call, interpreted and compiled, on one thread and two; and that none
/// stands beside a program without being tested.
#[test]
fn schedules_by_hand_change_no_bit() {
    for hand in ALL {
        let program = read(&std::fs::read_to_string(root(hand.program)).unwrap());
        let def = program.named(hand.def)[0];
        let path = root(hand.program).with_file_name(format!("{}.sched", hand.def));
        let source = Source::new(format!("{}.sched", hand.def), std::fs::read_to_string(path).unwrap());
        for call in hand.calls {
            let args = made(def, call);
            let graph = empty(&program, hand.def).graph.as_ref().clone();
            let applied = text::apply_for(graph, &incoming(def, &args), &source);
            let schedule = applied.unwrap_or_else(|d| panic!("{} at {call:?}: {}", hand.def, d.render()));
            compare(&program, hand.def, &schedule, &[args], true);
        }
    }
    let tested: Vec<String> = ALL.iter().map(|h| format!("{}.sched", h.def)).collect();
    for folder in ["programs/imaging", "programs/tensor", "programs/array", "programs/apps"] {
        for entry in std::fs::read_dir(root(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.ends_with(".sched") || tested.contains(&name), "{folder}/{name} is not tested");
        }
    }
}

/// Protects: where a schedule is legal neither for the sizes of a call nor for all sizes, the step that is refused for those of
/// the call is told: an earlier one may be legal for stated sizes alone.
#[test]
fn the_step_that_is_refused_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let steps = folder.path().join("wrong.sched");
    std::fs::write(&steps, "fuse vertical x c\nfuse horizontal x c\ncompute-at vertical horizontal y\n").unwrap();
    let program = root("programs/imaging/max_filter.ks");
    // A table so small that it checks its indices itself.
    let sizes = ["h=32", "w=32", "channels=3", "radius=3"].map(|n| ["--size", n]);
    let words = ["schedule", program.to_str().unwrap(), "max_filter"].into_iter().chain(sizes.into_iter().flatten());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_daedal"));
    let out = command.args(words).arg("--apply").arg(&steps).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("`vertical` may fail") && said.contains("wrong.sched:3:1"), "{said}");
}
