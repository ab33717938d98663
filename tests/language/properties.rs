//! Laws of the front end and the interpreter, on random programs and on very deep ones.

use crate::common::generate::{Generated, Knobs, large, program};
use crate::common::{arguments, read};
use daedal::diag::{Kind, Source};
use daedal::eval::Interpreter;
use daedal::ir::lit::intern;
use daedal::ir::{Lit, Program, print};
use daedal::types;
use daedal::types::verify::verify;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::test_runner::RngSeed;

/// How many random programs each law is tried on; `DAEDAL_CASES` gives another number.
fn cases() -> u32 {
    std::env::var("DAEDAL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

/// Nesting that programs made by other programs may have.
const DEEP: usize = 100_000;

const PLAIN: Knobs = Knobs { budget: 40, ..Knobs::PLAIN };

fn checked(text: &str) -> Program {
    let program = read("random.ks", text).unwrap_or_else(|d| panic!("{d}\n{text}"));
    verify(&program).unwrap_or_else(|d| panic!("{d}\n{text}"));
    program
}

/// Panics unless two programs have equal terms.
fn assert_same(a: &Program, b: &Program, texts: &str) {
    let mut terms = a.terms.clone();
    assert_eq!(a.defs.len(), b.defs.len(), "{texts}");
    for (x, y) in a.defs.values().zip(b.defs.values()) {
        assert_eq!(x.fun, y.fun, "{texts}");
        let y = y.term().map(|id| terms.import(&b.terms, id));
        assert!(x.term() == y, "{} differs\n{texts}", x.name());
    }
}

/// Runs `main`: whether it has a value.
fn evaluates(made: &Generated) -> bool {
    let program = checked(&made.text);
    let def = program.named("main")[0];
    let args = arguments(def, &made.args).unwrap_or_else(|e| panic!("{e}\n{}", made.text));
    match Interpreter::new(&program).run(def, &args) {
        Ok(_) => true,
        Err(d) => {
            assert!(d.kind != Kind::Bug, "{d}\n{}\n{:?}", made.text, made.args);
            assert!(!d.places.is_empty(), "a failure without a place: {d}\n{}", made.text);
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Protects: printing loses nothing, and prints the same again.
    #[test]
    fn printing_and_reading_are_inverse(seed in any::<u64>()) {
        stable(&program(seed, &PLAIN).text);
    }

    /// Protects: names of local variables mean nothing, whatever they hide.
    #[test]
    fn renaming_changes_no_term(seed in any::<u64>()) {
        let made = program(seed, &PLAIN);
        let other = program(seed, &Knobs { renamed: true, ..PLAIN });
        let texts = format!("{}\n{}", made.text, other.text);
        assert_same(&checked(&made.text), &checked(&other.text), &texts);
    }

    /// Protects: evaluation ends in a value or in a failure with a place, never in a panic or a bug.
    #[test]
    fn evaluation_never_panics(seed in any::<u64>()) {
        evaluates(&program(seed, &PLAIN));
    }

    /// Protects: programs made without failing operations do not fail, so that tests may rely on it.
    #[test]
    fn nothing_else_fails(seed in any::<u64>(), dyadic in any::<bool>()) {
        let made = program(seed, &Knobs { failing: false, dyadic, ..PLAIN });
        assert!(evaluates(&made), "{}\n{:?}", made.text, made.args);
    }
}

/// Protects: the laws above are tried on programs that matter.
#[test]
fn random_programs_are_varied() {
    let all: Vec<Generated> = (0..400).map(|seed| program(seed, &PLAIN)).collect();
    let words = "(let (if (assert (tuple (get$3$3 (build (sumbuild (reduce (index (fold (scan (map (helper (size (deltaVec (constVec";
    let more = [
        "(cast Float32",
        "(cast Int8",
        "(cast UInt16",
        "(cast Bool",
        "(cast Float",
        "(cast Integer",
        "build -1",
        "build 0",
        "build 1",
        "build (size",
        "build (sub",
        "build (mod",
        "(constVec -1",
        "(assert false",
    ];
    for word in words.split(' ').chain(more) {
        let n = all.iter().filter(|g| g.text.contains(&format!("{word} "))).count();
        assert!(n >= 5, "only {n} of {} programs have `{word}`", all.len());
    }
    let states = all.iter().filter(|g| g.text.contains("(fold (lam ((") && g.text.contains(" : (Tuple ")).count();
    assert!(states >= 10, "only {states} programs have folds and tuples");
    let values = all.iter().filter(|g| evaluates(g)).count();
    assert!(values > 200 && values < 390, "{values} of {} programs have a value", all.len());
    assert!(all.iter().any(|g| g.text.len() > 1000));
}

/// Reads, checks, prints, reads again and evaluates a program of one definition, on the stack that
/// a thread has if nobody asks for more.
fn survives(text: String, want: &'static str) {
    let work = move || {
        let deep = |text: &str| read("deep.ks", text).unwrap_or_else(|d| panic!("{}", d.message));
        let first = deep(&text);
        let printed = print::program(&first);
        let second = deep(&printed);
        let mut terms = first.terms.clone();
        let (a, b) = (&first.defs[0], &second.defs[0]);
        let again = b.term().map(|id| terms.import(&second.terms, id));
        assert!(a.term() == again, "a deep term changes when it is printed");
        let value = Interpreter::new(&first).run(a, &[]).unwrap_or_else(|d| panic!("{}", d.message));
        assert_eq!(value.to_json().to_string(), want);
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}

/// Protects: no stack overflows on chains of lets.
#[test]
fn deep_lets_survive() {
    let lets: String = (1..DEEP).map(|k| format!("(let (v{k} (add v{} 1))\n", k - 1)).collect();
    let text = format!("(def f Integer () (let (v0 1) {lets} v{}{})", DEEP - 1, ")".repeat(DEEP));
    survives(text, "100000");
}

/// Protects: no stack overflows on chains of operations, to the left and to the right.
#[test]
fn deep_operations_survive() {
    survives(format!("(def f Integer () {}1{})", "(add ".repeat(DEEP), " 1)".repeat(DEEP)), "100001");
    survives(format!("(def f Integer () {}1{})", "(add 1 ".repeat(DEEP), ")".repeat(DEEP)), "100001");
}

/// Protects: no stack overflows where every level is another kind of form.
#[test]
fn deep_forms_survive() {
    let open = "(if true (get$1$1 (tuple (assert true (let (x 2) (sum (Vec_init ".repeat(DEEP / 100);
    let close = ")))))) 0)".repeat(DEEP / 100);
    survives(format!("(def f Integer () {open}7{close})"), "7");
}

/// Protects: brackets that make no sense end in an error, however many there are.
#[test]
fn deep_brackets_are_refused() {
    let work = || {
        for (open, close) in [("(", ")"), ("[", "]"), ("(", "")] {
            let text = format!("(def f Integer () {}{})", open.repeat(DEEP), close.repeat(DEEP));
            assert!(read("deep.ks", &text).is_err());
        }
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}

/// Texts with `open` and `close` repeated around a middle, in every place where a type or a name of
/// a function may stand.
fn nested(depth: usize) -> Vec<String> {
    let types =
        [("(Vec ", "Float", ")"), ("Vec ", "Float", ""), ("(Tuple ", "Float", ")"), ("(Tensor 2 ", "Float", ")")]
            .map(|(open, middle, close)| format!("{}{middle}{}", open.repeat(depth), close.repeat(depth)));
    let brackets = ["("].map(|open| format!("{}Float{}", open.repeat(depth), ")".repeat(depth)));
    let name = format!("{}f{}", "[rev ".repeat(depth), "]".repeat(depth));
    let typed = format!("{}f{}", "[rev [".repeat(depth), " Float]]".repeat(depth));
    let of_types = types.into_iter().chain(brackets).flat_map(|ty| {
        [
            format!("(edef f ({ty}) ({ty}))"),
            format!("(edef f Float ({ty}))"),
            format!("(def f Float (x : {ty}) 1.0)"),
            format!("(def f Float () (sumbuild 1 (lam (x : {ty}) 1.0)))"),
            format!("(def f Float (x : Float) x) (gdef rev [f ({ty})])"),
        ]
    });
    let of_names = [name, typed].into_iter().flat_map(|name| {
        [
            format!("(edef {name} Float (Float))"),
            format!("(def {name} Float (x : Float) x)"),
            format!("(def g Float (x : Float) ({name} x))"),
            format!("(gdef rev [{name} Float])"),
        ]
    });
    let of_values =
        [("(tuple ", ")"), ("(Vec_init ", ")"), ("(build 1 (lam (i : Integer) ", "))")].map(|(open, close)| {
            format!("(def f Float () (let (x {}1.0{}) 1.0))", open.repeat(depth), close.repeat(depth))
        });
    of_types.chain(of_names).chain(of_values).collect()
}

/// Protects: types and names that nest without end are a limit with a place, and overflow no stack.
#[test]
fn deep_types_and_names_are_refused() {
    let work = || {
        for text in nested(DEEP) {
            let start: String = text.chars().take(60).collect();
            let Err(d) = read("deep.ks", &text) else { panic!("{start} is accepted") };
            assert!(d.kind == Kind::Limit && d.message.contains("at most 200 deep"), "{start}: {}", d.message);
            assert!(!d.places.is_empty(), "{start}");
        }
        for text in nested(150) {
            let start: String = text.chars().take(60).collect();
            assert!(read("deep.ks", &text).err().is_none_or(|d| d.kind != Kind::Limit), "{start}");
        }
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}

/// Prints a program, reads that, and gives the text; panics unless it prints the same again.
fn stable(text: &str) -> String {
    let first = checked(text);
    let printed = print::program(&first);
    let second = checked(&printed);
    assert_same(&first, &second, &format!("{text}\n{printed}"));
    assert_eq!(printed, print::program(&second), "{text}");
    printed
}

/// Protects: text literals of every character read back, whatever stands behind it.
#[test]
fn texts_of_every_character_read_back() {
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    for chunk in all.chunks(50_000) {
        let text: String = chunk.iter().flat_map(|c| [*c, '7', 'a', '&']).collect();
        let lit = Lit::Str(intern(&text));
        let program = checked(&format!("(def f Integer () (print {lit}))"));
        let body = program.defs[0].term().unwrap();
        let found = program.terms.as_lit(program.terms.kids(body)[0]);
        assert!(found == Some(lit), "a text from {:?} on changes", chunk[0]);
    }
}

/// Protects: a binding of a truth value is no pattern of two names.
#[test]
fn truth_values_are_bound_in_lists() {
    let program = checked("(def f Integer () (let ((x true) (y (neg 7))) (if x y 0)))");
    let value = Interpreter::new(&program).run(&program.defs[0], &[]).unwrap();
    assert_eq!(value.to_json().to_string(), "-7");
}

/// Protects: declared derivatives print with the types that they were declared with.
#[test]
fn derivatives_read_back() {
    let text = "(def f Float ((x : Float) (y : (Vec Float))) x)\n(def g Float (x : Float) x)
        (gdef rev [f (Tuple Float (Vec Float))])\n(gdef fwd [f (Tuple Float (Vec Float))])
        (gdef CL [f (Tuple Float (Vec Float))])\n(gdef CL [g Float])\n(gdef rev [g Float])
        (gdef fwd [[rev g] (Tuple Float Float)])";
    // Derivatives are only declared here: their bodies are not made.
    let only_read = |text: &str| types::program(&Source::new("declared.ks", text)).unwrap();
    let printed = print::program(&only_read(text));
    assert_eq!(printed, print::program(&only_read(&printed)));
    assert!(printed.contains("(gdef fwd [[rev g] (Tuple Float Float)])"), "{printed}");
    assert!(printed.contains("(gdef CL [f (Tuple Float (Vec Float))])"), "{printed}");
}

/// Protects: a term that stands under different names prints the same when it is read back.
#[test]
fn names_in_other_scopes_are_stable() {
    let unnamed = "(let (u (Vec_init 2.0)) (sum (map (lam (y : Float) y) u)))";
    stable(&format!("(def f Float () (add (sumbuild 2 (lam (i : Integer) {unnamed})) {unnamed}))"));
    let mapped = |v: &str| format!("(let (u (Vec_init {v})) (sum (map (lam (y : Float) y) u)))");
    let looped = format!("(sum (build 2 (lam (i : Integer) {})))", mapped("1.0"));
    stable(&format!("(def f Float (x : (Vec Float)) (add {looped} {}))", mapped("2.0")));
    let pair = "(fold (lam (p : (Tuple Float Float)) (get$1$2 p)) 0.0 (Vec_init 1.0))";
    stable(&format!("(def f Float (s : Float) (let (x s) (add {pair} x)))\n(def g Float () {pair})"));
    let table = "(sum (build (tuple 2 2) (lam (ij : (Tuple Integer Integer)) (get$1$2 ij))))";
    stable(&format!("(def f Integer (j : Integer) (add j {table}))\n(def g Integer () {table})"));
    // Names that end in numbers, as printing makes them.
    stable(
        "(def f Integer (a : Integer) (let (a_1_2 (add a 1)) (let (a_1 (mul a_1_2 a)) (let (a_ (neg a_1)) (add a_ a)))))",
    );
    stable("(def f Integer () (let (v_1 (add 1 1)) (let (v (add v_1 1)) (let (v_7 (neg v)) (add v_7 v)))))");
    let chosen =
        stable("(def f Integer (n : Integer) (sumbuild n (lam (row : Integer) (let (twice (add row row)) twice))))");
    assert!(chosen.contains("row") && chosen.contains("twice"), "{chosen}");
}

/// Protects: a chain of binders without chosen names is named in linear time.
#[test]
fn long_chains_of_made_up_names_print() {
    let lets: String = (1..DEEP).map(|_| "(let (v (add v 1))\n").collect();
    let text = format!("(def f Integer (v : Integer) {lets} v{})", ")".repeat(DEEP - 1));
    let work = move || {
        let start = std::time::Instant::now();
        let first = read("deep.ks", &text).unwrap_or_else(|d| panic!("{}", d.message));
        let printed = print::program(&first);
        let second = read("deep.ks", &printed).unwrap_or_else(|d| panic!("{}", d.message));
        assert!(printed == print::program(&second), "a chain prints otherwise when it is read back");
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}

/// Protects: sizes whose product cannot be counted or held end in a limit, not in an abort.
#[test]
fn products_of_sizes_are_checked() {
    let fails = |body: &str, n: &str| {
        let program = checked(&format!("(def f Float (n : Integer) {body})"));
        let def = &program.defs[0];
        let args = arguments(def, &[n.to_string()]).unwrap();
        let Err(d) = Interpreter::new(&program).run(def, &args) else { panic!("{body} has a value at {n}") };
        assert!(d.kind == Kind::Limit && !d.places.is_empty(), "{body} at {n}: {d}");
    };
    for n in ["5000000000", "9000000000000000000"] {
        fails("(sumbuild (tuple n n) (lam ((i : Integer) (j : Integer)) 1.0))", n);
        fails("(reduce max (tuple n n n) (lam ((i : Integer) (j : Integer) (k : Integer)) 1.0))", n);
        fails("(sum (build (tuple n n) (lam ((i : Integer) (j : Integer)) 1.0)))", n);
        fails("(sum (buildFromSparse n 1 (lam (i : Integer) (tuple i 1.0))))", n);
        fails("(sum (buildFromSparse (tuple n n) 1 (lam (i : Integer) (tuple (tuple i i) 1.0))))", n);
        fails("(sum (constVec n 1.0))", n);
        fails("(sum (deltaVec n 0 1.0))", n);
        fails("(index 0 (scan (lam ((s : Float) (i : Integer)) s) 1.0 n))", n);
        fails("(sum (sumbuild 0 (lam (i : Integer) (build n (lam (j : Integer) 1.0)))))", n);
    }
    let program = checked(
        "(def f Integer (n : Integer) (size$1 (build (tuple n n 0) (lam ((i : Integer) (j : Integer) (k : Integer)) 1))))",
    );
    let def = &program.defs[0];
    let value = Interpreter::new(&program).run(def, &arguments(def, &["5000000000".to_string()]).unwrap());
    assert_eq!(value.unwrap().to_json().to_string(), "5000000000");
}

/// Protects: the front end takes linear time in the size of a program (release builds check a
/// million nodes in under 2 seconds).
#[test]
fn large_programs_check() {
    const NODES: usize = 200_000;
    let work = || {
        let text = large(NODES);
        let start = std::time::Instant::now();
        let program = read("large.ks", &text).unwrap_or_else(|d| panic!("{}", d.message));
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        let nodes = program.defs.values().filter_map(|d| Some(program.terms.size(d.term()?))).sum::<u64>() as usize;
        assert!((NODES * 9 / 10..NODES * 11 / 10).contains(&nodes), "{nodes} nodes");
    };
    std::thread::spawn(work).join().unwrap_or_else(|_| panic!("the thread ended early"));
}
