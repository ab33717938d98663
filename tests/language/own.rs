//! What a program says itself of names that the language has something to say about, too: derivatives that somebody
//! wrote, derivatives asked for by name, own functions in the place of built-in ones, and the names of the command line.

use crate::common::command::{good, refused};
use crate::common::{arguments, read, value};
use daedal::ad;
use daedal::ad::check::Checked;
use daedal::eval::Interpreter;
use daedal::ir::{Program, print};
use daedal::machine::Machine;
use daedal::pipeline::native;
use daedal::pipeline::{Options, optimize};
use daedal::types;

fn program(text: &str) -> Program {
    read("own", text).unwrap_or_else(|d| panic!("{d}\n{text}"))
}

/// Asserts the value of a call, of the program and of what its printed text is read back as.
fn gives(program: &Program, calls: &[(&str, &[&str], &str)]) {
    let printed = print::program(program);
    let again = read("printed", &printed).unwrap_or_else(|d| panic!("{d}\n{printed}"));
    assert_eq!(print::program(&again), printed);
    for p in [program, &again] {
        for (name, args, want) in calls {
            let words: Vec<String> = args.iter().map(ToString::to_string).collect();
            let meant = types::meant(p, name);
            let [def] = meant.as_slice() else { panic!("{} definitions of `{name}` in\n{printed}", meant.len()) };
            let found = Interpreter::new(p).run(def, &arguments(def, &words).unwrap());
            let found = found.unwrap_or_else(|d| panic!("{name} {words:?}: {d}\n{printed}"));
            assert_eq!(found, value(want, def.fun.sig().ret), "{name} {words:?} in\n{printed}");
        }
    }
}

/// The message of a program that is refused.
fn message(text: &str) -> String {
    match read("own", text) {
        Ok(p) => panic!("nothing is wrong with\n{}", print::program(&p)),
        Err(d) => d.render(),
    }
}

/// Protects: passes that somebody wrote are the derivative of their function, in calls, in loops, under other functions and
/// by some parameters; those here are wrong on purpose, and give what they say.
#[test]
fn passes_by_hand_are_the_derivative() {
    let p = program(
        "
(def h Float ((x : Float) (n : Integer) (y : Float)) (mul x (mul y (to_float n))))
(def [suffwdpass h] (Tuple Float (Tuple Float Float)) ((x : Float) (n : Integer) (y : Float))
  (tuple (h x n y) (tuple y x)))
(def [sufrevpass [h (Tuple Float Integer Float)]] (Tuple Float (Tuple) Float)
    ((d : Float) (kept : (Tuple Float Float)))
  (tuple (mul d (mul 10.0 (get$1$2 kept))) (tuple) (mul d (mul 100.0 (get$2$2 kept)))))
(def g Float ((v : (Vec Float) n) (w : Float)) (sumbuild n (lam (i : Integer) (h (index i v) i w))))
(gdef rev [g (Tuple (Vec Float) Float)])
(gdef sufrev [g (Tuple (Vec Float) Float)])
(gdef suffwdpass [g (Tuple (Vec Float) Float)])
(gdef sufrevpass [g (Tuple (Vec Float) Float)])
(gdef sufrev [h (Tuple Float Integer Float)])
(gdef rev [h (Tuple Float Integer Float)])
(gdef fwd [g (Tuple (Vec Float) Float)])
(def folded Float (v : (Vec Float)) (fold (lam ((s : Float) (x : Float)) (add s (h x 1 2.0))) 0.0 v))
(gdef rev [folded (Vec Float)])",
    );
    let all = "[[70.0,70.0],800.0]";
    let calls: &[(&str, &[&str], &str)] = &[
        ("[rev g]", &["[[3.0,5.0],7.0]", "1.0"], all),
        ("[sufrev g]", &["[[3.0,5.0],7.0]", "1.0"], all),
        ("[sufrevpass g]", &["1.0", "[[3.0,5.0],7.0]"], all),
        ("[sufrev h]", &["[3.0,4,5.0]", "2.0"], "[100.0,[],600.0]"),
        ("[rev h]", &["[3.0,4,5.0]", "2.0"], "[100.0,[],600.0]"),
        // Forward mode has no word from anybody: it is made of the body.
        ("[fwd g]", &["[[3.0,5.0],7.0]", "[[0.0,1.0],0.0]"], "7.0"),
        ("[rev folded]", &["[3.0,5.0]", "1.0"], "[20.0,20.0]"),
    ];
    gives(&p, calls);
    let of = p.named("h")[0].fun;
    for (wrt, want) in [([true, false, false], "50.0"), ([false, false, true], "300.0")] {
        let wanted =
            ad::Wanted { fun: of, mode: ad::Mode::Reverse, wrt: wrt.to_vec(), value: false, checkpoint: false };
        let (made, fun) = ad::derive(&p, &wanted).unwrap();
        gives(&made, &[(&fun.sig().name, &["3.0", "4", "5.0", "1.0"], want)]);
    }
}

/// Protects: passes that say what the body says have the derivatives of differences, at random points and by all
/// parameters, whatever stands around them.
#[test]
fn right_passes_agree_with_differences() {
    let p = program(
        "
(def soft Float ((x : Float) (y : Float)) (mul x (tanh y)))
(def [suffwdpass soft] (Tuple Float (Tuple Float Float)) ((x : Float) (y : Float))
  (let (t (tanh y)) (tuple (mul x t) (tuple x t))))
(def [sufrevpass [soft (Tuple Float Float)]] (Tuple Float Float) ((d : Float) (kept : (Tuple Float Float)))
  (let ((x t) kept) (tuple (mul d t) (mul d (mul x (sub 1.0 (mul t t)))))))
(def all Float ((v : (Vec Float) n) (w : (Vec Float) n) (a : Float))
  (add (sumbuild n (lam (i : Integer) (soft (index i v) (mul a (index i w)))))
       (fold (lam ((s : Float) (x : Float)) (if (gt s 0.0) (soft s x) (soft x a))) a v)))",
    );
    let def = p.named("all")[0];
    let checked = Checked::new(&p, def, &[true, true, true]).unwrap();
    for (seed, words) in
        [["[0.5,-1.25,0.75]", "[1.0,0.5,-0.5]", "0.8"], ["[1.5]", "[0.25]", "-0.3"], ["[]", "[]", "2.0"]]
            .iter()
            .enumerate()
    {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let point = checked.at(&arguments(def, &words).unwrap(), seed as i64).unwrap().unwrap();
        assert!(point.off_modes() < 1e-12 && point.off_difference().is_some_and(|d| d < 1e-6), "{point:?}");
    }
}

/// Protects: where a function has two derivatives by hand, each way uses its own.
#[test]
fn each_way_uses_its_own_derivative() {
    let p = program(
        "
(def h Float (x : Float) (mul x x))
(def [rev h] Float ((x : Float) (d : Float)) (mul d 10.0))
(def [suffwdpass h] (Tuple Float Integer) (x : Float) (tuple (h x) 7))
(def [sufrevpass [h Float]] Float ((d : Float) (kept : Integer)) (mul d (to_float kept)))
(def k Float (x : Float) (sin x))
(def [sufrev k] Float ((x : Float) (d : Float)) (mul d 1000.0))
(def g Float (x : Float) (add (h x) (k x)))
(def f Float (x : Float) (g x))
(gdef rev [f Float])
(gdef sufrev [f Float])
(gdef sufrevpass [f Float])",
    );
    gives(
        &p,
        &[
            ("[rev f]", &["1.0", "1.0"], "1010.0"),
            ("[sufrev f]", &["1.0", "1.0"], "1007.0"),
            ("[sufrevpass f]", &["1.0", "1.0"], "1007.0"),
        ],
    );
}

/// Protects: passes of a function from outside are called; what is not whole or does not fit is refused by name.
#[test]
fn passes_from_outside_are_called_and_half_ones_refused() {
    let text = "
(edef take (Tuple (Vec Float) Float) ((Tuple Integer (Vec Float))))
(edef [suffwdpass take] (Tuple (Tuple (Vec Float) Float) Integer) ((Tuple Integer (Vec Float))))
(edef [sufrevpass [take (Tuple Integer (Vec Float))]] (Tuple (Tuple) (Vec Float))
  ((Tuple (Tuple (Vec Float) Float) Integer)))
(def g Float (v : (Vec Float)) (get$2$2 (take 1 v)))
(gdef sufrev [g (Vec Float)])
(gdef sufrev [take (Tuple Integer (Vec Float))])";
    let printed = print::program(&program(text));
    for pass in ["([suffwdpass take] ", "([sufrevpass [take (Tuple Integer (Vec Float))]] "] {
        assert!(printed.contains(pass), "{pass} in\n{printed}");
    }
    let older = text
        .replace("[suffwdpass take]", "suffwdpass$take")
        .replace("[sufrevpass [take (Tuple Integer (Vec Float))]]", "sufrevpass$take");
    assert!(print::program(&program(&older)).contains("(sufrevpass$take "));
    let lacks = message(&text.replace("(edef [suffwdpass take]", "(edef [suffwdpass other]"));
    assert!(lacks.contains("no `[suffwdpass take]` goes with"), "{lacks}");
    let other = "
(def h Float (x : Float) x)
(def [suffwdpass h] (Tuple Float Integer) (x : Float) (tuple x 1))
(def [sufrevpass [h Float]] Float ((d : Float) (kept : Float)) d)
(gdef rev [h Float])";
    assert!(message(other).contains("no `[sufrevpass h]` goes with"));
    let gives_other = "
(def h Float (x : Float) x)
(def [rev h] Integer ((x : Float) (d : Float)) 1)
(def g Float (x : Float) (h x))
(gdef rev [g Float])";
    assert!(message(gives_other).contains("`[rev h]` gives Integer, and a derivative of `h` Float"));
    let none = "(edef h Float (Float)) (gdef rev [h Float])";
    assert!(message(none).contains("define `[rev h]`, or `[suffwdpass h]` and `[sufrevpass h]`"));
    let twice = format!("{text}\n(gdef sufrevpass [take (Tuple Integer (Vec Float))])");
    assert!(message(&twice).contains("is defined twice"));
}

/// Protects: the type in a name tells functions apart whose parameters do not.
#[test]
fn types_in_names_are_part_of_them() {
    let text = "
(def f Float (x : Float) x)
(def f Float (n : Integer) (to_float n))
(def [suffwdpass f] (Tuple Float Float) (x : Float) (tuple x 1.0))
(def [suffwdpass f] (Tuple Float Float) (n : Integer) (tuple (to_float n) 2.0))
(def [sufrevpass [f Float]] Float ((d : Float) (kept : Float)) (mul d 10.0))
(def [sufrevpass [f Integer]] (Tuple) ((d : Float) (kept : Float)) (tuple))
(def a Float () ([sufrevpass [f Float]] 3.0 1.0))
(def b (Tuple) () ([sufrevpass [f Integer]] 3.0 1.0))
(def g Float (x : Float) (add (f x) (f 3)))
(gdef rev [g Float])
(gdef shape [sufrevpass [f Float]])";
    gives(
        &program(text),
        &[
            ("a", &[], "30.0"),
            ("b", &[], "[]"),
            ("[rev g]", &["1.0", "2.0"], "20.0"),
            ("[sufrevpass [f Integer]]", &["3.0", "1.0"], "[]"),
            ("[shape [sufrevpass [f Float]]]", &["3.0", "1.0"], "[]"),
        ],
    );
    let either = format!("{text}\n(def c Float () ([sufrevpass f] 3.0 1.0))");
    assert!(message(&either).contains("write `[sufrevpass [f Float]]` or `[sufrevpass [f Integer]]`"));
    let again = format!("{text}\n(def [sufrevpass [f Integer]] (Tuple) ((d : Float) (kept : Float)) (tuple))");
    assert!(message(&again).contains("is defined twice"));
}

/// Protects: derivatives that calls name are made, in all spellings of names and arguments; a `gdef` below is no second one.
#[test]
fn derivatives_are_made_where_they_are_called() {
    let p = program(
        "
(def f Float ((x : Float) (y : Float)) (mul x y))
(def s Float (x : Float) (mul x (mul x x)))
(def one_by_one (Tuple Float Float) ((x : Float) (y : Float)) (rev$f x y 1.0))
(def packed (Tuple Float Float) ((x : Float) (y : Float)) (rev$f (tuple x y) 1.0))
(def as_one (Tuple Float Float) (all : (Tuple (Tuple Float Float) Float)) (rev$f all))
(def in_brackets (Tuple Float Float) ((x : Float) (y : Float)) ([rev [f (Tuple Float Float)]] (tuple x y) 1.0))
(def forwards Float ((x : Float) (y : Float)) (add (fwd$f x y 1.0 0.0) ([fwd f] (tuple x y) (tuple 0.0 1.0))))
(def second Float (x : Float) ([fwd [rev s]] (tuple x 1.0) (tuple 1.0 0.0)))
(def mapped (Vec Float) (v : (Vec Float)) (map (lam (x : Float) (rev$s x 1.0)) v))
(def off Float (x : Float) (let (gap ($check s rev$s x 0.0001 1.0)) (if (lt gap 0.01) 1.0 0.0)))
(def passes Float (x : Float) (let ((r kept) ([suffwdpass s] x)) (add r ([sufrevpass [s Float]] 1.0 kept))))
(def built_in Float (x : Float) (add ([rev sin] x 1.0) (fwd$mul x 2.0 1.0 1.0)))
(gdef rev [f (Tuple Float Float)])
(gdef rev [log Float])",
    );
    gives(
        &p,
        &[
            ("one_by_one", &["3.0", "5.0"], "[5.0,3.0]"),
            ("packed", &["3.0", "5.0"], "[5.0,3.0]"),
            ("as_one", &["[[3.0,5.0],2.0]"], "[10.0,6.0]"),
            ("in_brackets", &["3.0", "5.0"], "[5.0,3.0]"),
            ("forwards", &["3.0", "5.0"], "8.0"),
            ("second", &["2.0"], "12.0"),
            ("mapped", &["[1.0,2.0]"], "[3.0,12.0]"),
            ("off", &["2.0"], "1.0"),
            ("passes", &["2.0"], "20.0"),
            ("built_in", &["0.0"], "3.0"),
            ("[rev f]", &["[3.0,5.0]", "1.0"], "[5.0,3.0]"),
            ("[rev log_1]", &["4.0", "1.0"], "0.25"),
        ],
    );
    let refusals = [
        ("(def f Float (x : Float) (if (gt x 0.0) 1.0 (rev$f x 1.0)))", "there is none yet"),
        ("(def f Float (x : Float) x) (def g Float (x : Float) (rev$f x))", "candidate: ([rev f] Float Float)"),
        ("(def f Float (x : Float) x) (def g Float (x : Float) ($check f rev$k x x 1.0))", "unknown function `rev$k`"),
        ("(def f Integer (x : Integer) x) (def g Float (x : Float) (rev$f x 1.0))", "does not take these arguments"),
        ("(edef f Float (Float)) (def g Float (x : Float) (rev$f x 1.0))", "it has no derivative"),
    ];
    for (text, want) in refusals {
        let said = message(text);
        assert!(said.contains(want), "{text}\n{said}");
    }
}

/// Protects: derivatives in the older spelling are those of their functions, with arguments one by one or packed, with and
/// without the parts of those that have no floats; they stand below what needs them, too.
#[test]
fn older_derivatives_by_hand_are_used() {
    let text = "
(def g Float ((x : Float) (y : Float)) (add (two x 3 y) (one x)))";
    let parts = "
(def one Float (x : Float) (log x))
(def two Float ((x : Float) (n : Integer) (y : Float)) (mul x y))";
    let all = "
(def fwd$one Float ((x : Float) (dx : Float)) (mul 7.0 dx))
(def rev$one Float ((x : Float) (dr : Float)) (mul 8.0 dr))
(def rev$two (Tuple Float (Tuple) Float) ((x : Float) (n : Integer) (y : Float) (dr : Float))
  (tuple (mul 50.0 dr) (tuple) 60.0))
(def fwd$two Float ((x : Float) (n : Integer) (y : Float) (dx : Float) (dn : (Tuple)) (dy : Float))
  (add (mul 100.0 dx) (mul 200.0 dy)))";
    let moving = all
        .replace("(Tuple Float (Tuple) Float)", "(Tuple Float Float)")
        .replace("(mul 50.0 dr) (tuple) 60.0", "(mul 50.0 dr) 60.0")
        .replace(" (dn : (Tuple))", "");
    let packed = all
        .replace(
            "((x : Float) (n : Integer) (y : Float) (dr : Float))",
            "((t : (Tuple Float Integer Float)) (dr : Float))",
        )
        .replace(
            "((x : Float) (n : Integer) (y : Float) (dx : Float) (dn : (Tuple)) (dy : Float))",
            "((t : (Tuple Float Integer Float)) (dt : (Tuple Float (Tuple) Float)))",
        )
        .replace("dx) (mul 200.0 dy)", "(get$1$3 dt)) (mul 200.0 (get$3$3 dt))");
    let asked = "\n(gdef rev [g (Tuple Float Float)])\n(gdef fwd [g (Tuple Float Float)])\n(gdef rev [one Float])";
    let calls: &[(&str, &[&str], &str)] = &[
        ("[rev g]", &["[1.0,2.0]", "2.0"], "[116.0,60.0]"),
        ("[fwd g]", &["[1.0,2.0]", "[1.0,1.0]"], "307.0"),
        ("[rev one]", &["1.0", "1.0"], "8.0"),
    ];
    for by_hand in [all, &moving, &packed] {
        gives(&program(&format!("{parts}{by_hand}{text}{asked}")), calls);
        gives(&program(&format!("{parts}{text}{asked}{by_hand}")), calls);
    }
    let bracketed =
        all.replace("$one", " one]").replace("$two", " two]").replace("fwd ", "[fwd ").replace("rev ", "[rev ");
    gives(&program(&format!("{parts}{bracketed}{text}{}", asked.replace("\n(gdef rev [one Float])", ""))), &calls[..2]);
    let circle = "
(def h Float (x : Float) x)
(def g Float (x : Float) (h x))
(gdef rev [g Float])
(def [rev h] Float ((x : Float) (d : Float)) ([rev g] x d))";
    assert!(message(circle).contains("call each other"));
}

/// A program that has its own words for what is built in, each with another meaning.
const SHADOWS: &str = "
(def before Bool (p : Bool) (not p))
(def not Bool (p : Bool) (if p true false))
(def after Bool (p : Bool) (not p))
(def not_1 Float (x : Float) x)
(def add Float ((x : Float) (y : Float)) (mul x y))
(def chain Float ((x : Float) (y : Float) (z : Float)) (add x y z))
(def older Float ((x : Float) (y : Float)) (add@ff x y))
(def of_tuple Float (t : (Tuple Float Float)) (add t))
(def folded Float (v : (Vec Float)) (fold add 1.0 v))
(def reduced Float (v : (Vec Float)) (reduce add (size v) (lam (i : Integer) (index i v))))
(def integers Integer ((x : Integer) (y : Integer)) (add x y))
(def sub (Vec Float) ((a : (Vec Float) n) (b : (Vec Float) n))
  (build n (lam (i : Integer) (mul 10.0 (sub (index i a) (index i b))))))
(def vectors (Vec Float) ((a : (Vec Float) n) (b : (Vec Float) n)) (sub a b))
(def max Float (v : (Vec Float)) 7.0)
(def greatest Float (v : (Vec Float)) (max v))
(def mul Float (t : (Tuple Float Float)) 77.0)
(def tuples Float ((x : Float) (y : Float)) (add (mul x y) (max x y)))
(def [rev add] (Tuple Float Float) ((t : (Tuple Float Float)) (d : Float)) (tuple (get$2$2 t) 6.0))
(def pair Float ((x : Float) (y : Float)) (add x y))
(def slope (Tuple Float Float) ((x : Float) (y : Float)) (rev$pair x y 1.0))";

/// Protects: an own function in the place of an operation is what calls below it mean, and nothing else; in printed text, after
/// rewriting, in native code and in derivatives too.
#[test]
fn own_functions_go_before_built_in_ones() {
    let p = program(SHADOWS);
    let calls: &[(&str, &[&str], &str)] = &[
        ("before", &["true"], "false"),
        ("after", &["true"], "true"),
        ("chain", &["3.0", "5.0", "2.0"], "30.0"),
        ("older", &["3.0", "5.0"], "15.0"),
        ("of_tuple", &["[3.0,5.0]"], "15.0"),
        ("folded", &["[3.0,5.0]"], "15.0"),
        ("reduced", &["[3.0,5.0]"], "8.0"),
        ("integers", &["3", "5"], "8"),
        ("vectors", &["[3.0,5.0]", "[1.0,1.0]"], "[20.0,40.0]"),
        ("greatest", &["[9.0]"], "7.0"),
        ("tuples", &["3.0", "5.0"], "385.0"),
        ("slope", &["3.0", "5.0"], "[5.0,6.0]"),
        ("not_1", &["3.0"], "3.0"),
    ];
    gives(&p, calls);
    let better = optimize(&p, &Options::standard()).unwrap().program;
    gives(&better, calls);
    for (name, args, want) in calls {
        let def = p.named(name)[0];
        let words: Vec<String> = args.iter().map(ToString::to_string).collect();
        let nest = native::nest(&p, def, &Machine::host()).unwrap_or_else(|d| panic!("{name}: {d}"));
        let found = daedal::nest::interpret(&nest, &arguments(def, &words).unwrap(), &mut String::new()).unwrap();
        assert_eq!(found, value(want, def.fun.sig().ret), "{name}");
    }
    assert!(message("(def build Float (x : Float) x)").contains("is a form of the language"));
    assert!(message("(def not Bool (p : Bool) (not p))").contains("calls itself on every path"));
    assert!(message("(edef not Float (Bool))").contains("built-in operation"));
}

/// Protects: commands take the names that programs have for functions.
#[test]
fn commands_take_names_with_types() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f.ks");
    let text = "
(def f Float ((x : Float) (y : Float)) (mul x y))
(def f Float (x : Float) (mul x (mul x x)))";
    std::fs::write(&file, text).unwrap();
    let d = dir.path();
    let says = |words: &[&str]| good(d, words);
    assert_eq!(says(&["eval", "f.ks", "[f (Tuple Float Float)]", "3", "5"]), "15.0\n");
    assert_eq!(says(&["eval", "f.ks", "[f Float]", "2"]), "8.0\n");
    assert_eq!(says(&["eval", "f.ks", "[rev [f Float]]", "2", "1"]), "12.0\n");
    assert_eq!(says(&["eval", "f.ks", "[rev [f (Tuple Float Float)]]", "[3,5]", "1"]), "[5.0,3.0]\n");
    assert_eq!(says(&["run", "f.ks", "[f Float]", "2"]), "8.0\n");
    assert!(says(&["grad", "f.ks", "[f Float]"]).starts_with("(def rev$f Float"));
    assert!(says(&["optimize", "f.ks", "--def", "[f Float]", "--json"]).contains("\"f\""));
    let many = refused(d, &["eval", "f.ks", "f", "2"]);
    assert!(many.contains("as in `[f (Tuple Float Float)]`"), "{many}");
    let none = refused(d, &["eval", "f.ks", "[f Integer]", "2"]);
    assert!(none.contains("does not define `[f Integer]`"), "{none}");
}
