//! Where sizes are known, the default schedule computes pictures in strips of whole rows.

use crate::common::scheduled::{check, empty, read, tensor};
use daedal::eval::Value;
use daedal::ir::{Lit, Program, Scalar};
use daedal::machine::Machine;
use daedal::schedule::Schedule;

const MACHINE: Machine = Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 512 << 10, 8 << 20] };

const PICTURES: &str = "
(def corners (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let ((a (build (tuple (sub h 1) (sub w 1)) (lam ((y : Integer) (c : Integer))
          (div (index (tuple (add y 1) (add c 1)) x) (index (tuple y c) x)))))
        (b (build (tuple (sub h 1) (sub w 1)) (lam ((y : Integer) (c : Integer))
          (div (index (tuple (add y 1) c) x) (index (tuple y (add c 1)) x)))))
        (s (build (tuple (sub h 3) (sub w 3)) (lam ((y : Integer) (c : Integer))
          (sumbuild (tuple 3 3) (lam ((i : Integer) (j : Integer)) (index (tuple (add y i) (add c j)) a))))))
        (t (build (tuple (sub h 3) (sub w 3)) (lam ((y : Integer) (c : Integer))
          (sumbuild (tuple 3 3) (lam ((i : Integer) (j : Integer)) (index (tuple (add y i) (add c j)) b)))))))
    (build (tuple (sub h 4) (sub w 4)) (lam ((y : Integer) (c : Integer))
      (let ((u (index (tuple (add y 1) (add c 1)) s)) (v (index (tuple (add y 1) (add c 1)) t)))
        (sub (mul u (index (tuple y c) a)) (mul v (index (tuple y c) b))))))))
(def sharper (Tensor 3 Float32) (x : (Tensor 3 Float32) (h w channels))
  (let ((gray (build (tuple h w) (lam ((y : Integer) (z : Integer))
          (add (index (tuple y z 0) x) (mul 2f32 (index (tuple y z 1) x)) (mul 3f32 (index (tuple y z 2) x))))))
        (down (build (tuple h w) (lam ((y : Integer) (z : Integer))
          (sumbuild 5 (lam (k : Integer) (index (tuple (max 0 (min (sub h 1) (add y (sub k 2)))) z) gray))))))
        (across (build (tuple h w) (lam ((y : Integer) (z : Integer))
          (sumbuild 5 (lam (k : Integer) (index (tuple y (max 0 (min (sub w 1) (add z (sub k 2))))) down))))))
        (ratio (build (tuple h w) (lam ((y : Integer) (z : Integer))
          (div (index (tuple y z) across) (index (tuple y z) gray))))))
    (build (tuple h w channels) (lam ((y : Integer) (z : Integer) (c : Integer))
      (mul (index (tuple y z) ratio) (index (tuple y z c) x))))))
(def halved (Tensor 3 Float32) (x : (Tensor 3 Float32) (h w channels))
  (let (down (build (tuple (div h 2) w channels) (lam ((y : Integer) (z : Integer) (c : Integer))
      (exp (add (index (tuple (mul 2 y) z c) x) (index (tuple (add 1 (mul 2 y)) z c) x))))))
    (build (tuple (div h 2) (div w 2) channels) (lam ((y : Integer) (z : Integer) (c : Integer))
      (add (index (tuple y (mul 2 z) c) down) (index (tuple y (add 1 (mul 2 z)) c) down))))))
(def windows (Tensor 2 Float32) (x : (Tensor 2 Float32) (h w))
  (let (a (build (tuple h w) (lam ((y : Integer) (z : Integer)) (exp (index (tuple y z) x)))))
    (build (tuple (sub h 4) (sub w 4)) (lam ((y : Integer) (z : Integer))
      (sumbuild (tuple 5 5) (lam ((i : Integer) (j : Integer)) (index (tuple (add y i) (add z j)) a)))))))
(def mosaic (Tensor 2 UInt16) ((a : (Tensor 2 UInt16) (p q)) (b : (Tensor 2 UInt16) (p q)))
  (build (tuple (mul 2 p) (mul 2 q)) (lam ((y : Integer) (x : Integer))
    (let (mean (div (add (index (tuple (div y 2) (div x 2)) a)
                         (index (tuple (div y 2) (max 0 (sub (div x 2) 1))) a)
                         (index (tuple (div y 2) (min (sub q 1) (div (add x 1) 2))) a)) 3u16))
      (if (eq (mod x 2) 0) mean (index (tuple (div y 2) (div x 2)) b))))))
";

fn by_default(program: &Program, def: &str, args: &[Value], machine: &Machine) -> Schedule {
    let sizes = daedal::tune::example::incoming(program.named(def)[0], args);
    daedal::schedule::default(empty(program, def).graph.only_for(&sizes), machine)
}

/// Pixels of a sensor.
fn pixels([h, w]: [usize; 2], seed: usize) -> Value {
    let each = (0..h * w).map(|k| Value::Scalar(Lit::of(Scalar::U16, ((k * 7919 + seed * 104_729) % 20_011) as f64)));
    Value::tensor(vec![h, w], each.collect())
}

/// The loops of a schedule around a stage: of which stages they are, and their names.
fn around(s: &Schedule, stage: &str) -> String {
    let text = s.to_string();
    let lines: Vec<&str> = text.lines().collect();
    let indent = |l: &str| l.len() - l.trim_start().len();
    let at = lines.iter().position(|l| l.trim_start().starts_with(&format!("{stage}[")));
    let at = at.unwrap_or_else(|| panic!("no {stage}\n{text}"));
    let (mut depth, mut out) = (indent(lines[at]), vec![]);
    for l in lines[..at].iter().rev().filter(|l| !l.is_empty()) {
        if indent(l) < depth {
            depth = indent(l);
            out.push(l.trim().split(['[', ',', ' ']).find(|w| *w != "for").unwrap_or(""));
        }
    }
    out.reverse();
    out.join(" ")
}

/// Protects: sums that are read at one place stay in registers, whatever is read around a place is computed for a strip of
/// whole rows, and what one row alone needs row by row; in parts of rows where these are longer than the nearest cache.
#[test]
fn pictures_are_computed_in_strips_of_rows() {
    let program = read(PICTURES);
    let small = Machine { caches: [8 << 10, 512 << 10, 8 << 20], ..MACHINE };
    let picture = |dims: &[usize]| vec![tensor(Scalar::F32, dims, 3)];
    let corners = by_default(&program, "corners", &picture(&[300, 500]), &MACHINE);
    for (stage, loops) in [("a", "tensor yo"), ("b", "tensor yo"), ("s", "tensor yo yi co"), ("t", "tensor yo yi co")] {
        assert_eq!(around(&corners, stage), loops, "{stage}\n{corners}");
    }
    let sharper = by_default(&program, "sharper", &picture(&[300, 500, 3]), &MACHINE);
    for (stage, loops) in
        [("gray", "tensor yo"), ("down", "tensor yo yi"), ("across", "tensor yo yi"), ("ratio", "tensor yo yi")]
    {
        assert_eq!(around(&sharper, stage), loops, "{stage}\n{sharper}");
    }
    let halved = by_default(&program, "halved", &picture(&[300, 500, 4]), &small);
    assert_eq!(around(&halved, "down"), "tensor y zo", "{halved}");
}

/// Protects: strips, rows and parts have the interpreter's bits, at sizes below a strip, prime, and empty.
#[test]
fn strips_of_rows_have_the_same_bits() {
    let program = read(PICTURES);
    let small = Machine { caches: [3 << 10, 4 << 10, 8 << 20], ..MACHINE };
    for [h, w] in [[5, 6], [67, 131], [131, 300], [4, 7], [1, 1], [70, 0]] {
        let picture =
            |channels: usize| vec![tensor(Scalar::F32, &[&[h, w], &vec![channels; channels.min(1)][..]].concat(), 3)];
        let cases = [
            ("corners", picture(0), &MACHINE),
            ("sharper", picture(3), &MACHINE),
            ("halved", picture(4), &small),
            ("halved", picture(2), &small),
            ("mosaic", vec![pixels([h, w], 1), pixels([h, w], 2)], &MACHINE),
        ];
        for (def, args, machine) in cases {
            let s = by_default(&program, def, &args, machine);
            check(&program, def, &s, &[args]);
        }
    }
}

/// Protects: what takes long is computed once, not for each window that it is in.
#[test]
fn elements_of_windows_are_computed_once() {
    let program = read(PICTURES);
    let args = [tensor(Scalar::F32, &[40, 90], 3)];
    let s = by_default(&program, "windows", &args, &MACHINE);
    assert!(!s.to_string().contains("where it is read"), "{s}");
    check(&program, "windows", &s, &[args.to_vec()]);
}

/// Protects: what asks whether it is at an end of its row is cut into ends and a middle that asks nothing, in strips of rows
/// and alone; what asks elsewhere, or of short rows, stays as it is.
#[test]
fn rows_that_ask_for_their_ends_have_a_middle() {
    let text = "
(def f (Tensor 2 Float32) ((x : (Tensor 2 Float32) (h w)))
  (build (tuple h w) (lam ((i : Integer) (j : Integer))
    (add (if (lt j (sub w 1)) (sub (index (tuple i (add j 1)) x) (index (tuple i j) x)) 0f32)
         (if (ASK) (index (tuple i (sub j 1)) x) 0f32)))))";
    let machine = Machine { vector_bytes: 64, threads: 1, ..Machine::host() };
    for (ask, width, holds) in [("gte (sub j 1) 0", 100, true), ("gt j 40", 100, false), ("gte (sub j 1) 0", 40, false)]
    {
        let program = read(&text.replace("ASK", ask));
        let args = vec![tensor(Scalar::F32, &[5, width], 3)];
        let s = by_default(&program, "f", &args, &machine);
        let nest = daedal::pipeline::native::scheduled_nest(program.named("f")[0], &s, &machine).unwrap().to_string();
        assert_eq!(nest.contains("for middle."), holds, "{ask} {width}\n{nest}");
        check(&program, "f", &s, &[args, vec![tensor(Scalar::F32, &[5, width], 7)]]);
    }
}

/// Protects: pixels that take turns, and are read at half their index, clamped or not, are vectors whose lanes are woven.
#[test]
fn pixels_that_take_turns_are_vectors() {
    let program = read(PICTURES);
    let args = [1, 2].map(|seed| pixels([40, 90], seed));
    let s = by_default(&program, "mosaic", &args, &MACHINE);
    let nest = daedal::pipeline::native::scheduled_nest(program.named("mosaic")[0], &s, &MACHINE).unwrap().to_string();
    let (_, middle) = nest.split_once("middle").unwrap_or_else(|| panic!("no middle\n{nest}"));
    assert!(middle.contains("(div (ramp ") && middle.contains("(select "), "{nest}");
    assert!(!middle.split_once("end").unwrap_or_default().0.contains("(max "), "{nest}");
}
