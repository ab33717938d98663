//! Two loops that become one: places and channels of pictures, by default and where a schedule says so.

use crate::common::scheduled::{check, empty, read, tensor};
use daedal::diag::Source;
use daedal::ir::Scalar;
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::schedule::{Schedule, text};

const PICTURES: &str = "
(def spread (Tensor 3 Float32) (x : (Tensor 3 Float32) (h w channels))
  (let ((twice (build (tuple h w channels) (lam ((y : Integer) (z : Integer) (c : Integer))
          (mul 2f32 (exp (index (tuple y z c) x))))))
        (across (build (tuple h w channels) (lam ((y : Integer) (z : Integer) (c : Integer))
          (sub (index (tuple y (max 0 (sub z 1)) c) twice)
               (mul (index (tuple y z c) twice) (index (tuple y (max 0 (min (sub w 1) (add z 2))) c) twice)))))))
    across))
(def running (Vec (Tensor 2 Float32)) (x : (Tensor 3 Float32) (h w channels))
  (scan (lam ((above : (Tensor 2 Float32)) (y : Integer))
      (build (tuple w channels) (lam ((z : Integer) (c : Integer))
        (add (mul 0.5f32 (index (tuple z c) above)) (index (tuple y z c) x)))))
    (constVec (tuple w channels) 0f32) h))
";

/// Protects: places and channels are one loop by default, clamped or not, and over the states of a scan: full vectors, in the
/// middle without a division, with the interpreter's bits at sizes below a vector, prime and empty, and a few channels.
#[test]
fn places_and_channels_run_at_once() {
    let program = read(PICTURES);
    for [h, w, channels] in [[3, 41, 3], [5, 1, 3], [1, 2, 2], [2, 67, 5], [0, 4, 3], [4, 0, 3], [2, 9, 1], [3, 30, 12]]
    {
        for def in ["spread", "running"] {
            let args = vec![tensor(Scalar::F32, &[h, w, channels], 5)];
            let sizes = daedal::tune::example::incoming(program.named(def)[0], &args);
            let machine = Machine { vector_bytes: 32, ..Machine::host() };
            let s = daedal::schedule::default(empty(&program, def).graph.only_for(&sizes), &machine);
            let fused = s.steps.iter().filter(|s| s.to_string().starts_with("fuse ")).count();
            assert_eq!(fused > 0, (1..8).contains(&channels), "{def} {channels}\n{s}");
            check(&program, def, &s, &[args]);
            let nest = native::scheduled_nest(program.named(def)[0], &s, &machine).unwrap().to_string();
            if [h, w, channels] == [3, 41, 3] {
                let (_, middle) = nest.split_once("(ramp").unwrap_or_else(|| panic!("no vectors\n{nest}"));
                assert!(def == "spread" || !middle.contains("(div"), "{nest}");
                assert!(def == "running" || nest.contains("middle."), "{nest}");
            }
        }
    }
}

/// Protects: loops that cannot be one are said to be, with the reason.
#[test]
fn loops_that_cannot_be_fused_are_explained() {
    let program = read(PICTURES);
    let refused = |def: &str, sizes: &[f64], steps: &str| {
        let start = Schedule::new(empty(&program, def).graph.specialized(sizes));
        text::apply(start, &Source::new("test.sched", steps)).map(drop).unwrap_err().render()
    };
    let (sizes, other) = ([2.0, 3.0, 3.0, 0.0], [2.0, 3.0, 3000.0, 0.0]);
    assert!(refused("spread", &other, "fuse across z c").contains("must be a number, at most 1024"));
    assert!(refused("spread", &sizes, "fuse across y c").contains("must come right after `y`"));
    assert!(refused("spread", &sizes, "fuse across c z").contains("must come right after `c`"));
    assert!(refused("spread", &sizes, "split across c 2\nfuse across z co").contains("that were not split"));
    assert!(refused("spread", &sizes, "parallel across z\nfuse across z c").contains("told how to run"));
    assert!(refused("spread", &sizes, "inline twice\nfuse twice z c").contains("has no loops"));
    assert!(
        refused("spread", &sizes, "compute-at twice across z\nfuse across z c").contains("computed in one of them")
    );
    let vector = refused("spread", &[4.0, 4.0, 4.0, 0.0], "vectorize across c\nreorder across c z");
    assert!(vector.contains("`c` is a vector, and stays the innermost loop"), "{vector}");
    assert!(refused("running", &sizes, "fuse z c").contains("expected `fuse STAGE LOOP LOOP`"));
}
