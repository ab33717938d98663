//! Vectors of any number of lanes, from a part of a register up to several of them: converted, compared and chosen from as numbers
//! are; and how many lanes the default schedule takes.

use super::cut::edges;
use crate::common::scheduled::{check, empty, read};
use daedal::diag::Source;
use daedal::eval::Value;
use daedal::ir::{Lit, Scalar};
use daedal::machine::Machine;
use daedal::schedule::text;
use daedal::tune::example::incoming;

const TYPES: [(&str, Scalar); 9] = [
    ("Float", Scalar::F64),
    ("Float32", Scalar::F32),
    ("Integer", Scalar::I64),
    ("Int32", Scalar::I32),
    ("Int16", Scalar::I16),
    ("Int8", Scalar::I8),
    ("UInt32", Scalar::U32),
    ("UInt16", Scalar::U16),
    ("UInt8", Scalar::U8),
];

/// The least and the greatest number of a type, but for floats and 64 bits: these have all that are asked for.
fn ends(ty: Scalar) -> (f64, f64) {
    match ty {
        Scalar::I32 => (i32::MIN.into(), i32::MAX.into()),
        Scalar::I16 => (i16::MIN.into(), i16::MAX.into()),
        Scalar::I8 => (i8::MIN.into(), i8::MAX.into()),
        Scalar::U32 => (0.0, u32::MAX.into()),
        Scalar::U16 => (0.0, u16::MAX.into()),
        Scalar::U8 => (0.0, u8::MAX.into()),
        Scalar::F64 | Scalar::F32 | Scalar::I64 | Scalar::Bool => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// Numbers at the ends of all types, and between, as near as a type has them: several vectors of 64.
fn numbers(ty: Scalar, seed: usize) -> Value {
    let (all, (least, most)) = (edges(), ends(ty));
    let fits = |x: f64| match ty {
        Scalar::F64 => x,
        Scalar::F32 => f64::from(x as f32),
        _ => x.trunc().clamp(least, most),
    };
    // In another order for each seed, so that one array is compared with another.
    let n = all.len();
    let picked = (0..n).map(|k| Value::Scalar(Lit::of(ty, fits(all[k * (2 * seed + 1) % n]))));
    Value::tensor(vec![n], picked.collect())
}

/// A program of many results, each of one loop, runs as numbers and in vectors of several lengths.
fn in_lanes(params: &[(String, Value)], results: &[(String, String)], lanes: &[u32]) {
    let types: Vec<String> = results.iter().map(|(ty, _)| format!("(Vec {ty})")).collect();
    let texts: Vec<String> = results.iter().map(|(_, e)| format!("(build n (lam (i : Integer) {e}))")).collect();
    let head: Vec<&str> = params.iter().map(|(p, _)| p.as_str()).collect();
    let program =
        read(&format!("(def f (Tuple {}) ({}) (tuple {}))", types.join(" "), head.join(" "), texts.join("\n  ")));
    let args: Vec<Value> = params.iter().map(|(_, v)| v.clone()).collect();
    let graph = empty(&program, "f").graph.as_ref().clone();
    for lanes in lanes {
        let mut steps = String::new();
        for stage in &graph.stages {
            let of = &graph.dim(stage.dims[0]).name;
            steps += &format!("split {0} {of} {lanes}\nvectorize {0} {of}i\n", stage.name);
        }
        let sizes = incoming(program.named("f")[0], &args);
        let made = text::apply_for(graph.clone(), &sizes, &Source::new("test.sched", &steps));
        let made = made.unwrap_or_else(|d| panic!("{}", d.render()));
        check(&program, "f", &made, std::slice::from_ref(&args));
    }
}

fn params() -> Vec<(String, Value)> {
    let two = |(k, (name, ty)): (usize, &(&str, Scalar))| {
        [("a", 3), ("b", 4)].map(|(p, seed)| (format!("({p}{k} : (Vec {name}) n)"), numbers(*ty, seed)))
    };
    TYPES.iter().enumerate().flat_map(two).collect()
}

/// Protects: numbers of each type become numbers of each other type in vectors of any length, ends and what has no value there
/// included.
#[test]
fn lanes_are_converted_as_numbers_are() {
    let mut results = vec![];
    for k in 0..TYPES.len() {
        for (to, _) in TYPES.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, t)| t) {
            results.push((to.to_string(), format!("(cast {to} (index i a{k}))")));
        }
    }
    in_lanes(&params(), &results, &[16, 64]);
}

/// Protects: numbers of each type are compared, chosen, and the least and greatest of two found in vectors of any length, those of
/// floats that are none or zero included.
#[test]
fn lanes_are_compared_and_chosen_as_numbers_are() {
    let mut results = vec![];
    for (k, (name, ty)) in TYPES.iter().enumerate() {
        let (a, b) = (format!("(index i a{k})"), format!("(index i b{k})"));
        for op in ["min", "max", "minimum", "maximum"] {
            results.push((name.to_string(), format!("({op} {a} {b})")));
        }
        for op in ["lt", "lte", "gt", "gte", "eq", "ne"] {
            results.push((name.to_string(), format!("(select ({op} {a} {b}) {b} {a})")));
        }
        if !matches!(ty, Scalar::U32 | Scalar::U16 | Scalar::U8) {
            results.push((name.to_string(), format!("(abs {a})")));
        }
        // A narrow choice by a wide comparison, and the other way round.
        results.push(("UInt8".into(), format!("(select (lt {a} {b}) (index i a8) (index i b8))")));
        results.push((name.to_string(), format!("(select (lt (index i a8) (index i b8)) {a} {b})")));
    }
    in_lanes(&params(), &results, &[16, 64]);
}

/// Protects: vectors have as many lanes as a register has of the floats that elements are made of, wherever these are made, and
/// of the results where there are only integers.
#[test]
fn floats_decide_how_many_lanes_there_are() {
    let lanes = |from: &str, to: &str, element: &str| {
        let program = read(&format!(
            "(def f (Vec {to}) (x : (Vec {from}) n)
               (let (y (build n (lam (i : Integer) {element})))
                 (build n (lam (i : Integer) (cast {to} (index i y))))))"
        ));
        let graph = empty(&program, "f").graph.only_for(&[100_000.0, 0.0]);
        let s = daedal::schedule::default(graph, &Machine { vector_bytes: 64, threads: 1, ..Machine::host() });
        let split = s.steps.iter().map(ToString::to_string).find(|step| step.starts_with("split"));
        split.unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(lanes("Float32", "UInt8", "(mul 2f32 (index i x))"), 16);
    assert_eq!(lanes("Float", "UInt8", "(mul 2.0 (index i x))"), 8);
    assert_eq!(lanes("Float", "Float32", "(mul 2.0 (index i x))"), 8);
    assert_eq!(lanes("UInt8", "Int16", "(add 3u8 (index i x))"), 32);
    assert_eq!(lanes("UInt8", "UInt8", "(shr (mul 3i32 (cast Int32 (index i x))) 2i32)"), 64);
}
