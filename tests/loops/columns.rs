//! Sums over rows, one for each column, keep all columns in registers: with the interpreter's bits at all widths.

use crate::common::scheduled::{check, compare, empty, read, tensor};
use daedal::diag::Source;
use daedal::ir::Scalar;
use daedal::machine::Machine;
use daedal::pipeline::native::scheduled_nest;
use daedal::schedule::{Schedule, default_for, text};
use daedal::tune::example::incoming;

const MACHINE: Machine = Machine { vector_bytes: 64, threads: 1, caches: [32 << 10, 1 << 20, 8 << 20] };

fn product(ty: &str) -> String {
    format!(
        "(def f (Vec {ty}) ((x : (Tensor 2 {ty}) (n d)) (v : (Vec {ty}) n))
           (build d (lam (j : Integer) (sumbuild n (lam (i : Integer) (mul (index i v) (index (tuple i j) x)))))))"
    )
}

/// Protects: rows are read once, in the only loop that there is, whatever is left of a row after whole vectors.
#[test]
fn rows_are_read_once() {
    for (name, ty, columns) in [
        ("Float", Scalar::F64, [9, 10, 15, 20, 63].as_slice()),
        ("Float32", Scalar::F32, &[17, 20, 31, 50]),
        ("Int32", Scalar::I32, &[18, 40]),
    ] {
        let program = read(&product(name));
        let def = program.named("f")[0];
        for d in columns {
            let of = |n: usize| vec![tensor(ty, &[n, *d], 1), tensor(ty, &[n], 2)];
            let schedule = default_for(empty(&program, "f").graph.as_ref().clone(), &incoming(def, &of(40)), &MACHINE);
            let nest = scheduled_nest(def, &schedule, &MACHINE).unwrap().to_string();
            assert_eq!(nest.matches("for ").count(), 1, "{nest}");
            check(&program, "f", &schedule, &[of(40)]);
        }
    }
}

/// Protects: rows that are wider than all registers, and sums of what takes long, have loops over columns; so have columns that
/// threads share.
#[test]
fn wide_rows_are_cut() {
    let costly = product("Float").replace("(index i v)", "(exp (index i v))");
    for (text, d, threads) in [(product("Float"), 300, 1), (costly, 20, 1), (product("Float"), 128, 2)] {
        let program = read(&text);
        let args = [tensor(Scalar::F64, &[40, d], 1), tensor(Scalar::F64, &[40], 2)];
        let machine = Machine { threads, ..MACHINE };
        let graph = empty(&program, "f").graph.as_ref().clone();
        let schedule = default_for(graph, &incoming(program.named("f")[0], &args), &machine);
        let nest = scheduled_nest(program.named("f")[0], &schedule, &machine).unwrap().to_string();
        assert!(nest.matches("for ").count() > 1, "{nest}");
        compare(&program, "f", &schedule, &[args.to_vec()], true);
    }
}

/// Protects: a few rows are added at once to columns that no registers hold, whatever is left of rows, of columns, and of the
/// parts that threads take; each sum in its order.
#[test]
fn a_few_rows_are_added_at_once() {
    let greatest = product("Float").replace("(sumbuild n (lam", "(reduce max n (lam");
    for (text, ty, columns) in [
        (product("Float"), Scalar::F64, [130, 257, 1025, 2100].as_slice()),
        (product("Float32"), Scalar::F32, &[300, 523]),
        (product("Int32"), Scalar::I32, &[311]),
        (greatest, Scalar::F64, &[150]),
    ] {
        let program = read(&text);
        let def = program.named("f")[0];
        for (d, (rows, threads)) in columns.iter().zip([(49, 2), (40, 1), (31, 3), (42, 2)]) {
            let args = vec![tensor(ty, &[rows, *d], 1), tensor(ty, &[rows], 2)];
            let machine = Machine { threads, ..MACHINE };
            let graph = empty(&program, "f").graph.as_ref().clone();
            let schedule = default_for(graph, &incoming(def, &args), &machine);
            let steps: Vec<String> = schedule.steps.iter().map(ToString::to_string).collect();
            let steps = steps.join("\n");
            assert!(steps.contains("split sum i 8") && steps.contains("unroll sum ii"), "{steps}");
            check(&program, "f", &schedule, &[args]);
        }
    }
}

/// Protects: what is left of a row is elementary functions, too, in vectors that processors have, and one by one.
#[test]
fn what_is_left_of_a_row_takes_functions() {
    for (name, ty, left) in [("Float", Scalar::F64, [1, 3, 6].as_slice()), ("Float32", Scalar::F32, &[1, 2, 3, 6, 13])]
    {
        let text = product(name).replace("(mul (index i v) (index (tuple i j) x))", "(exp (index (tuple i j) x))");
        let program = read(&text);
        let lanes = 64 / ty.bytes() as usize;
        for left in left {
            let args = vec![tensor(ty, &[30, lanes + left], 1), tensor(ty, &[30], 2)];
            let steps = format!("split sum j {lanes}\nreorder sum i jo ji\nvectorize sum ji\nunroll sum jo\n");
            let graph = empty(&program, "f").graph.only_for(&incoming(program.named("f")[0], &args));
            let made =
                text::apply(Schedule::new(graph), &Source::new("test.sched", steps)).unwrap_or_else(|d| panic!("{d}"));
            check(&program, "f", &made, &[args]);
        }
    }
}
