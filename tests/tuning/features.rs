//! Features of schedules: numbers worked out by hand, and laws of random ones.

use crate::common;
use crate::common::arguments;
use crate::common::schedules::{generated, random};
use daedal::diag::Source;
use daedal::ir::Program;
use daedal::machine::Machine;
use daedal::schedule::{Schedule, text};
use daedal::stage::extract;
use daedal::tune::features::{Features, names};
use daedal::tune::work::Work;
use daedal::tune::{Tree, example};

fn machine() -> Machine {
    Machine { vector_bytes: 32, threads: 2, caches: [32 << 10, 1 << 20, 8 << 20] }
}

fn read(text: &str) -> Program {
    daedal::types::program(&Source::new("main", text)).unwrap_or_else(|d| panic!("{}", d.render()))
}

fn kernels() -> Program {
    read(&std::fs::read_to_string(common::root("benches/schedules/kernels.ks")).unwrap())
}

/// The features of the stages of a definition under steps.
fn features(program: &Program, name: &str, sizes: &[(&str, u64)], steps: &str) -> Vec<Features> {
    let def = program.named(name)[0];
    let sizes: Vec<(String, u64)> = sizes.iter().map(|(n, v)| ((*n).to_string(), *v)).collect();
    let args = example::arguments(def, &sizes, 1).unwrap();
    let graph = extract(program, def).unwrap();
    let tree = Tree::new(def, Schedule::new(graph.clone()), example::incoming(def, &args), machine());
    let s = text::apply(Schedule::new(graph), &Source::new("s", steps)).unwrap_or_else(|d| panic!("{}", d.render()));
    tree.features(&s).unwrap().0
}

/// Compares the features of a stage that are named with numbers.
fn compare(all: &[Features], stage: &str, want: &[(&str, f64)]) {
    let of = all.iter().find(|f| f.stage == stage).unwrap_or_else(|| panic!("no stage {stage}"));
    let have: Vec<(&str, f64)> = want.iter().map(|(name, _)| (*name, of.get(name).unwrap())).collect();
    assert_eq!(have, want, "{stage}");
}

/// Protects: the features of a product in tiles of registers. 32 by 64 elements of sums over 16 are 32,768 steps; a tile has 4
/// rows of 2 vectors of 8; a task has 16 columns, for which it reads the whole left matrix and 16 columns of the right one.
#[test]
fn a_product_in_tiles() {
    let tiled = "split sum j 16\nsplit sum ji 8\nsplit sum i 4\nreorder sum jo io k ii jio jii\nvectorize sum jii\n\
                 unroll sum jio\nunroll sum ii\nparallel sum jo\n";
    let all = features(&kernels(), "product", &[("n", 32), ("m", 16), ("p", 64)], tiled);
    compare(
        &all,
        "sum",
        &[
            ("cheap_f32", 1.0),
            ("multiply_f32", 1.0),
            // Two vectors share the number of a row, which four rows have each; a vector of a row of the right matrix is
            // loaded for each use in the text, which is eight.
            ("load_input_broadcast", 0.5),
            ("load_input_unit", 1.0),
            ("store_unit", 1.0 / 16.0),
            ("num_realizations", 1.0),
            ("num_productions", 1.0),
            ("points_computed_total", 32768.0),
            ("points_computed_minimum", 32768.0),
            ("innermost_loop_extent", 8.0),
            ("innermost_pure_loop_extent", 8.0),
            ("unrolled_loop_extent", 8.0),
            ("inner_parallelism", 4.0),
            ("outer_parallelism", 1.0),
            ("bytes_at_realization", 4.0 * 32.0 * 64.0),
            ("bytes_at_production", 4.0 * 32.0 * 64.0),
            ("bytes_at_root", 4.0 * 32.0 * 64.0),
            ("bytes_at_task", 4.0 * 32.0 * 16.0),
            ("innermost_bytes_at_root", 256.0),
            ("unique_bytes_read_per_realization", 4.0 * (32.0 * 16.0 + 16.0 * 64.0)),
            ("unique_bytes_read_per_task", 4.0 * (32.0 * 16.0 + 16.0 * 16.0)),
            ("allocation_bytes_read_per_realization", 4.0 * (32.0 * 16.0 + 16.0 * 64.0)),
            // Of four rows a number, and two vectors of eight.
            ("unique_bytes_read_per_vector", 4.0 * (4.0 + 16.0)),
            ("vector_size", 8.0),
            ("native_vector_size", 8.0),
            ("num_vectors", 4096.0),
            ("num_scalars", 0.0),
            ("scalar_loads_per_vector", 0.5),
            ("vector_loads_per_vector", 1.0),
        ],
    );
}

/// Protects: the features of a stage that is computed in strips of its reader. Of 34 rows each of 4 strips of 8 needs 10, and so
/// a quarter of the rows twice.
#[test]
fn a_blur_in_strips() {
    let strips = "split tensor y 8\ncompute-at across tensor yo\nparallel tensor yo\n";
    let all = features(&kernels(), "blur", &[("h", 34), ("w", 66)], strips);
    compare(
        &all,
        "across",
        &[
            ("cheap_f32", 2.0),
            ("divide_f32", 1.0),
            ("load_input_unit", 3.0),
            ("store_unit", 1.0),
            ("num_realizations", 4.0),
            ("num_productions", 4.0),
            ("points_computed_per_production", 640.0),
            ("points_computed_per_realization", 640.0),
            ("points_computed_total", 2560.0),
            ("points_computed_minimum", 34.0 * 64.0),
            ("inner_parallelism", 1.0),
            ("outer_parallelism", 4.0),
            ("bytes_at_realization", 4.0 * 640.0),
            ("bytes_at_production", 4.0 * 640.0),
            ("bytes_at_root", 4.0 * 34.0 * 64.0),
            // Ten rows of 66 numbers.
            ("unique_bytes_read_per_realization", 4.0 * 10.0 * 66.0),
            ("unique_bytes_read_per_task", 4.0 * 10.0 * 66.0),
            ("num_vectors", 320.0),
            ("vector_loads_per_vector", 3.0),
            ("scalar_loads_per_vector", 0.0),
        ],
    );
    compare(
        &all,
        "tensor",
        &[
            ("load_stage_unit", 3.0),
            ("num_productions", 1.0),
            ("points_computed_total", 2048.0),
            ("inner_parallelism", 4.0),
            ("unique_bytes_read_per_task", 4.0 * 10.0 * 64.0),
            ("bytes_at_task", 4.0 * 8.0 * 64.0),
            ("num_vectors", 256.0),
        ],
    );
}

/// Protects: the features of running sums: 20 steps of 8 rows, and a first state of each.
#[test]
fn a_scan() {
    let scan = read(
        "(def run (Vec (Vec Float32)) ((x : (Tensor 2 Float32) (h w))) (build h (lam (i : Integer)
           (scan (lam ((s : Float32) (a : Integer)) (add s (mul 0.5f32 (index (tuple i a) x)))) 0.0f32 w))))",
    );
    let all = features(&scan, "run", &[("h", 8), ("w", 20)], "");
    let points = 8.0 * 21.0;
    compare(
        &all,
        "state",
        &[
            ("cheap_f32", 160.0 / points),
            ("multiply_f32", 160.0 / points),
            ("num_realizations", 1.0),
            ("num_productions", 1.0),
            ("points_computed_total", points),
            ("points_computed_minimum", points),
            ("bytes_at_realization", 4.0 * points),
            ("bytes_at_root", 4.0 * points),
        ],
    );
}

/// Protects: laws of the features of random schedules of random programs: vectors and what is beside them are all points, no point
/// is computed less than once, each line that is read holds a byte that is read, what is touched in a part is touched in the
/// whole, and the work of all stages is that of the program.
#[test]
fn features_of_random_schedules_keep_their_laws() {
    let (mut stages, mut vectors) = (0, 0);
    for seed in 0..1200 {
        let (program, made) = generated(seed);
        let def = program.named("main")[0];
        let args = arguments(def, &made.args).unwrap();
        let Ok(graph) = extract(&program, def) else { continue };
        let tree = Tree::new(def, Schedule::new(graph.clone()), example::incoming(def, &args), machine());
        let (schedule, ..) = random(&graph, seed);
        let Some((all, work)) = tree.features(&schedule) else { continue };
        let mut sum = Work::default();
        for f in &all {
            sum.0.iter_mut().zip(f.work.0).for_each(|(sum, n)| *sum += n);
            let of = |name: &str| f.get(name).unwrap();
            let told = || {
                format!(
                    "seed {seed}, {}\n{}\n{:?}",
                    f.stage,
                    made.text,
                    names().iter().zip(&f.values).collect::<Vec<_>>()
                )
            };
            assert!(f.values.iter().all(|v| v.is_finite() && *v >= 0.0), "{}", told());
            if of("vector_size") == 0.0 {
                continue;
            }
            stages += 1;
            vectors += usize::from(of("num_vectors") > 0.0);
            let points = of("points_computed_total");
            let lanes = of("num_vectors") * of("vector_size") + of("num_scalars");
            assert!((lanes - points).abs() <= 1e-6 * points.max(1.0), "{lanes} of {points}: {}", told());
            assert!(points >= of("points_computed_minimum"), "{}", told());
            for per in ["realization", "task", "vector"] {
                let (bytes, lines) =
                    (of(&format!("unique_bytes_read_per_{per}")), of(&format!("unique_lines_read_per_{per}")));
                assert!(bytes >= lines, "{per}: {}", told());
            }
            let whole = of("working_set_at_root") * (1.0 + 1e-9);
            assert!(whole >= of("working_set_at_production"), "{}", told());
        }
        for (a, b) in sum.0.iter().zip(work.0) {
            assert!((a - b).abs() <= 1e-9 * b.max(1.0), "seed {seed}: {sum:?} is not {work:?}");
        }
    }
    assert!(stages > 200 && vectors > 20, "only {stages} stages, {vectors} in vectors");
}
