//! Lanes that lie at a small stride in memory, as the channels of a picture do, are parts of vectors next to each other: at
//! every stride, type and number of lanes, up to the very last element.

use crate::common::scheduled::{check, empty, read};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::schedule::text;
use daedal::tune::example::incoming;

/// Protects: loads at the strides 2 to 5 of all types that are shuffled, and of some that are not, in vectors of less than a
/// register up to several, have the interpreter's bits, the last element of the last channel included.
#[test]
fn strided_lanes_are_what_lies_there() {
    for (name, ty) in
        [("Float", Scalar::F64), ("Float32", Scalar::F32), ("Int32", Scalar::I32), ("UInt16", Scalar::U16)]
    {
        let program = read(&format!(
            "(def channels (Vec {name}) (x : (Tensor 2 {name}) (n c))
               (build n (lam (i : Integer)
                 (sub (index (tuple i (sub c 1)) x) (index (tuple i 0) x)))))"
        ));
        let def = program.named("channels")[0];
        for c in 2..=5 {
            for lanes in [4, 16, 64] {
                for n in [lanes, 2 * lanes + 1] {
                    // All different, and no two at one distance.
                    let numbers = (0..n * c).map(|k| Value::Scalar(Lit::of(ty, (k * k + 3 * k) as f64)));
                    let args = vec![Value::tensor(vec![n, c], numbers.collect())];
                    let graph = empty(&program, "channels").graph.as_ref().clone();
                    let stage = graph.stages[0].name.clone();
                    let steps = format!("split {stage} i {lanes}\nvectorize {stage} ii");
                    let made =
                        text::apply_for(graph, &incoming(def, &args), &Source::new("test.sched", steps)).unwrap();
                    check(&program, "channels", &made, &[args]);
                }
            }
        }
    }
}
