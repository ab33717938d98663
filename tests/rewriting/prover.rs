//! What the checker of derivations proves, each beside what is nearly that and false.

use crate::common::steps::told;
use daedal::rules::Level;

/// Of a function of a vector and an integer: from a body by one step to another.
fn tried(level: Level, from: &str, step: &str, to: &str) -> Result<usize, String> {
    let def = |body: &str| format!("(def f Float ((v : (Vec Float)) (k : Integer)) {body})");
    let head = r#"{"def":"f","params":["(Vec Float)","Integer"],"cost":1,"unfolded":1}"#;
    let step = format!(r#"{{"step":1,"cost":1,{step}}}"#);
    let result = format!(r#"{{"result":"{}","cost":1}}"#, def(to));
    told(&def(from), level, &[head, &step, &result])
}

/// Brings back a sum that is taken away again, at a place.
fn brought(from: &str, at: &str, to: &str, whole: &str) -> Result<usize, String> {
    tried(Level::Real, from, &format!(r#""by":"add-sub-cancel-left","at":[[{at}]],"to":"{to}""#), whole)
}

/// Protects: an index is in range where each number that it may be is, and what it is by an element made on the
/// spot; never because some are.
#[test]
fn indices_are_in_range_case_by_case() {
    let (n, always) = ("(size v)", "(gt k 3)");
    let made = |index: &str| format!("(get$1$2 (index 0 (build 2 (lam (q : Integer) (tuple {index} 1.0)))))");
    let clamped = "(max 0 (min (sub (size v) 1) (add i k)))";
    for (extent, index, good) in [
        (n, clamped.to_string(), true),
        // The vector may be empty.
        ("k", clamped.to_string(), false),
        (n, "(max 1 (min (sub (size v) 1) i))".into(), false),
        (n, "(max 0 (min (size v) (add i k)))".into(), false),
        (n, "(max 0 (min i k))".into(), true),
        (n, "(min i k)".into(), true),
        (n, "(min i (sub k 9))".into(), false),
        (n, made("i"), true),
        (n, made("(add i 1)"), false),
        (n, format!("(sub (sub (size v) 1) {})", made("i")), true),
        (n, format!("(sub (size v) {})", made("i")), false),
        (n, "(if (gt k 3) i (size v))".into(), true),
        (n, "(if (gt k 4) i (size v))".into(), false),
        (n, "(if (gt i 0) (sub i 1) i)".into(), true),
        (n, "(if (gte i 0) (sub i 1) i)".into(), false),
    ] {
        let back = format!("(sub (add (index {index} v) 1.0) (index {index} v))");
        let there = back.replace(" i ", " _1 ").replace(" i)", " _1)");
        let looped = |x: &str| format!("(sumbuild {extent} (lam (i : Integer) (if {always} {x} 2.0)))");
        let verdict = brought(&looped("1.0"), "1,1", &there, &looped(&back));
        assert_eq!(verdict.is_ok(), good, "{extent} {index}: {verdict:?}");
    }
}

/// Brings back a number in a loop over an extent, under a condition that is nothing to it.
fn brought_in(extent: &str, number: &str) -> Result<usize, String> {
    let back = format!("(sub (add {number} 1.0) {number})");
    let there = back.replace(" i ", " _1 ").replace(" i)", " _1)");
    let looped = |x: &str| format!("(sumbuild {extent} (lam (i : Integer) (if (gt k 3) {x} 2.0)))");
    brought(&looped("1.0"), "1,1", &there, &looped(&back))
}

/// Protects: a sum of positive numbers is not 0 where it has one; an element of a tensor that is made on the spot is within
/// the bounds that all of them have; sums that may be empty, or of numbers that may be negative, say nothing.
#[test]
fn sums_and_elements_have_bounds() {
    let sum = |n: &str, element: &str| format!("(sumbuild {n} (lam (q : Integer) {element}))");
    let one = |other: &str| {
        format!(
            "(index i (if (gt k 4) (build (size v) (lam (q : Integer) (exp (index q v)))) (constVec (size v) {other})))"
        )
    };
    let n = "(size v)";
    for (extent, divisor, good) in [
        (n, sum(n, "(exp (index q v))"), true),
        (n, sum("(add (size v) 1)", "(exp 2.0)"), true),
        // There may be none.
        ("k", sum(n, "(exp (index q v))"), false),
        (n, sum("(sub (size v) 1)", "(exp 2.0)"), false),
        (n, sum(n, "(abs (index q v))"), false),
        (n, sum(n, "(sub (exp (index q v)) 1.0)"), false),
        (n, one("2.0"), true),
        (n, one("0.0"), false),
        (n, one("-1.0"), true),
    ] {
        let verdict = brought_in(extent, &format!("(div 1.0 {divisor})"));
        assert_eq!(verdict.is_ok(), good, "{extent} {divisor}: {verdict:?}");
    }
}

/// Protects: what holds under one condition is not taken to hold under another one, or under none, whichever is looked at first.
#[test]
fn conditions_are_kept_apart() {
    let under = |cond: &str, x: &str| format!("(if {cond} {x} 0.0)");
    let (some, other) = (under("(gt (size v) 0)", "(index 0 v)"), under("(gt k 0)", "(index 0 v)"));
    let not = "(if (gt (size v) 0) 0.0 (index 0 v))";
    let again = under("(gt (size v) 0)", "(mul 2.0 (index 0 v))");
    for (a, b, good) in [
        (&some, &again, true),
        (&again, &some, true),
        (&some, &other, false),
        (&other, &some, false),
        (&some, &not.to_string(), false),
        (&some, &"(index 0 v)".to_string(), false),
        (&under("(gt k 0)", &some), &under("(gt k 0)", &again), true),
        (&under("(gt k 0)", &some), &other, false),
        (&under("(gt (size v) 0)", &other), &other, false),
        (&under("(gt (size v) 0)", &other), &some, true),
    ] {
        let verdict = brought_in("k", &format!("(mul {a} {b})"));
        assert_eq!(verdict.is_ok(), good, "{a} {b}: {verdict:?}");
    }
}

/// Protects: the state of a fold has the sizes that it began with where every step keeps them, and only there; that
/// of one fold says nothing of another.
#[test]
fn states_keep_their_sizes() {
    let copied = |state: &str, n: u32| format!("(build {n} (lam (q : Integer) (index q {state})))");
    let fold = |n: u32, step: &str| format!("(fold (lam ((t : (Vec Float)) (x : Float)) {step}) (constVec {n} 0.0) v)");
    let inner = |index: &str| {
        let fold = fold(2, &copied("t", 2));
        format!("(build 3 (lam (q : Integer) (add (index q s) (index {index} {fold}))))")
    };
    let scan = |step: &str| {
        let scan = format!("(scan (lam ((s : (Vec Float)) (j : Integer)) {step}) (constVec 3 0.0) 2)");
        format!("(index 0 (index 1 {scan}))")
    };
    for (read, good) in [
        (scan(&copied("s", 3)), true),
        (scan("(build 3 (lam (q : Integer) (index (add q 1) s)))"), false),
        (scan(&copied("s", 4)), false),
        (scan(&copied("s", 2)), false),
        (format!("(index 1 {})", fold(2, &copied("t", 2))), true),
        (format!("(index 2 {})", fold(2, &copied("t", 2))), false),
        (scan(&inner("1")), true),
        (scan(&inner("2")), false),
        (scan(&format!("(build 3 (lam (r : Integer) (index r {})))", fold(2, &copied("s", 3)))), false),
    ] {
        let back = format!("(if (gt {read} 0.0) 1.0 1.0)");
        let verdict = tried(Level::Exact, "1.0", &format!(r#""by":"if-same","at":[[]],"to":"{back}""#), &back);
        assert_eq!(verdict.is_ok(), good, "{read}: {verdict:?}");
    }
}

/// Protects: an extent is not negative where that of a loop that is certain to run is no greater.
#[test]
fn extents_are_compared_as_sums() {
    for (extent, good) in [
        ("(sub (sub (size v) 1) 1)", true),
        ("(add 1 (sub (size v) 2))", true),
        ("(sub (size v) 3)", false),
        ("(sub k 2)", false),
    ] {
        let sum = |extent: &str| format!("(sumbuild {extent} (lam (j : Integer) (to_float j)))");
        let back = format!("(sub (add {0} 1.0) {0})", sum(extent));
        let whole = |x: &str| format!("(add {x} {})", sum("(sub (size v) 2)"));
        let verdict = brought(&whole("1.0"), "0", &back, &whole(&back));
        assert_eq!(verdict.is_ok(), good, "{extent}: {verdict:?}");
    }
}

/// Protects: a quotient of integers is no further from 0 than what is divided, however it is rounded, and no nearer than
/// that for certain.
#[test]
fn quotients_have_the_bounds_of_what_is_divided() {
    for (quotient, least, good) in [
        ("(div (floormod k 50) 7)", 0, true),
        ("(div (floormod k 50) 7)", -1, false),
        ("(floordiv (sub (floormod k 50) 49) 3)", 49, true),
        // By 1 it is -49.
        ("(floordiv (sub (floormod k 50) 49) 1)", 49, true),
        ("(floordiv (sub (floormod k 50) 49) 1)", 48, false),
        ("(div (sub (floormod k 50) 49) -1)", 49, true),
        ("(div (floormod k 50) -1)", 49, true),
        ("(div (floormod k 50) -1)", 48, false),
        ("(div k 2)", 1000000, false),
    ] {
        let sum = format!("(sumbuild (add {quotient} {least}) (lam (j : Integer) (to_float j)))");
        let back = format!("(sub (add {sum} 1.0) {sum})");
        let verdict = brought("1.0", "", &back, &back);
        assert_eq!(verdict.is_ok(), good, "{quotient} {least}: {verdict:?}");
    }
}

/// Protects: a step within parts changes those alone, wherever they stand, and asks what it asks at each place.
#[test]
fn steps_are_taken_within_parts() {
    let zero = "(add (to_float k) 0.0)";
    let whole = |a: &str, b: &str, c: &str| format!("(add (mul {a} 2.0) (add (exp (mul {b} 2.0)) {c}))");
    let x = "(to_float k)";
    let step = |rest: &str| format!(r#""by":"add-zero","at":[[0,0]]{rest}"#);
    let from = whole(zero, zero, zero);
    let of = |rest: &str, to: &str| tried(Level::Real, &from, &step(rest), to);
    assert_eq!(of(r#","within":1"#, &whole(x, x, zero)), Ok(1));
    assert_eq!(of(r#","within":0"#, &whole(x, x, x)), Ok(1));
    assert_eq!(of("", &whole(x, zero, zero)), Ok(1));
    for (rest, to) in [
        (r#","within":1"#, whole(x, x, x)),
        (r#","within":1"#, whole(x, zero, zero)),
        (r#","within":0"#, whole(x, x, zero)),
        (r#","within":2"#, whole(x, x, zero)),
        (r#","within":-1"#, whole(x, x, zero)),
        (r#","within":1,"everywhere":true"#, whole(x, x, zero)),
    ] {
        assert!(of(rest, &to).is_err(), "{rest} {to}");
    }
    // Conditions around the first place are none around the others.
    let back = "(sub (add (index 0 v) 1.0) (index 0 v))";
    let arm = |x: &str| format!("(if (gt (size v) 0) {x} 2.0)");
    let by = |rest: &str| {
        let step = format!(r#""by":"add-sub-cancel-left","at":[[1]],"to":"{back}"{rest}"#);
        tried(Level::Real, &arm("1.0"), &step, &arm(back))
    };
    assert_eq!(by(""), Ok(1));
    let refused = by(r#","within":0"#).unwrap_err();
    assert!(refused.contains("is not proved here"), "{refused}");
}

/// Protects: lets in a term that is brought back name what stands there more than once, and mean no more.
#[test]
fn terms_that_are_brought_back_may_have_lets() {
    let back = "(sub (add (cos x) 1.0) (cos x))".replace('x', "(to_float k)");
    let of = |to: &str| brought("1.0", "", to, &back);
    assert_eq!(of(&back), Ok(1));
    assert_eq!(of("(let (c (cos (to_float k))) (sub (add c 1.0) c))"), Ok(1));
    assert_eq!(of("(let ((x (to_float k)) (c (cos x)) (d (index 0 v))) (sub (add c 1.0) (cos x)))"), Ok(1));
    assert!(of("(let (c (cos (to_float k))) (sub (add c 1.0) (sin (to_float k))))").is_err());
    assert!(of("(let (c (index 0 v)) (sub (add c 1.0) c))").is_err());
}

/// Protects: what a let of the result evaluates early and might fail is named.
#[test]
fn an_early_let_is_named() {
    let def = |body: &str| format!("(def f Float ((v : (Vec Float)) (k : Integer)) {body})");
    let head = r#"{"def":"f","params":["(Vec Float)","Integer"],"cost":1,"unfolded":1}"#;
    let read = |let_outside: bool| match let_outside {
        true => "(let (x (index k v)) (if (gt k 3) (mul x x) 0.0))",
        false => "(if (gt k 3) (let (x (index k v)) (mul x x)) 0.0)",
    };
    let of = |outside: bool| {
        let result = format!(r#"{{"result":"{}","cost":1}}"#, def(read(outside)));
        told(&def("(if (gt k 3) (mul (index k v) (index k v)) 0.0)"), Level::Exact, &[head, &result])
    };
    assert_eq!(of(false), Ok(0));
    let refused = of(true).unwrap_err();
    assert!(refused.contains("a let of the result evaluates early what might fail: `(index k v)`"), "{refused}");
}

/// Protects: what is said of a float by the conditions around keeps a quotient, a root or a logarithm defined over the
/// reals, there and nowhere else; an index that is made of such a float may still be anything, since it may be no number.
#[test]
fn conditions_on_floats_hold_over_the_reals() {
    for (condition, part, good) in [
        ("(eq X 0.0)", "(div 1.0 X)", true),
        ("(eq X 1.0)", "(div 1.0 X)", false),
        ("(eq Y 0.0)", "(div 1.0 X)", false),
        ("(ne X 0.0)", "(div 1.0 X)", false),
        ("(eq X 0.0)", "(div 1.0 (sqrt (mul X X)))", true),
        ("(eq (mul X X) 0.0)", "(div 1.0 (sqrt (mul X X)))", true),
        ("(not (gt X 0.0))", "(log X)", true),
        ("(not (gte X 0.0))", "(log X)", false),
        ("(not (gte X 0.0))", "(sqrt X)", true),
        ("(lte X 0.0)", "(log X)", true),
        ("(lt X 0.0)", "(sqrt X)", true),
        ("(or (lte Y 0.0) (lt X 0.0))", "(sqrt (mul X (log Y)))", false),
        ("(or (lte Y 1.0) (lt X 0.0))", "(sqrt (mul X (sub Y 1.0)))", true),
        ("(lt X 0.0)", "(index (min 0 (cast Integer X)) v)", false),
    ] {
        let given = |text: &str| text.replace('X', "(index 0 v)").replace('Y', "(index 1 v)");
        let back = given(&format!("(sub (add {part} 1.0) {part})"));
        let whole = |arm: &str| {
            let known = given("(add X Y)");
            format!("(add {known} (if {} 2.0 {arm}))", given(condition))
        };
        let verdict = brought(&whole("1.0"), "1,2", &back, &whole(&back));
        assert_eq!(verdict.is_ok(), good, "{condition} {part}: {verdict:?}");
    }
}

/// Protects: an assertion cannot fail where it says that sizes are equal which are, or that a tensor is empty or its
/// parts are so long; and nothing else is taken for equal.
#[test]
fn assertions_of_sizes_hold() {
    let rows = |n: &str| format!("(size$2 (build (size v) (lam (a : Integer) (build {n} (lam (b : Integer) 1.0)))))");
    for (condition, good) in [
        (format!("(or (eq (size v) 0) (eq (size v) {}))", rows("(size v)")), true),
        (format!("(or (eq (size v) 0) (eq 7 {}))", rows("7")), true),
        (format!("(or (eq {} (size v)) (eq (size v) 0))", rows("(size v)")), true),
        (format!("(or (eq (size v) 0) (eq 7 {}))", rows("8")), false),
        (format!("(or (eq k 0) (eq 7 {}))", rows("7")), false),
        (format!("(eq 7 {})", rows("7")), false),
        ("(eq (size v) (size (build (size v) (lam (a : Integer) 1.0))))".into(), true),
        ("(and (eq (size v) (size v)) (eq (size v) k))".into(), false),
        ("(and true (eq (size v) (size (build (size v) (lam (a : Integer) 1.0)))))".into(), true),
    ] {
        let part = format!("(assert {condition} (to_float k))");
        let back = format!("(sub (add {part} 1.0) {part})");
        let verdict =
            tried(Level::Real, "1.0", &format!(r#""by":"add-sub-cancel-left","at":[[]],"to":"{back}""#), &back);
        assert_eq!(verdict.is_ok(), good, "{condition}: {verdict:?}");
    }
}

/// Protects: what is evaluated anyway may be spelled in another way; what only looks like it may not, nor what might
/// fail beside it.
#[test]
fn what_is_evaluated_anyway_may_be_spelled_otherwise() {
    let fails = "(div k (sub k k))";
    for (known, other, good) in [
        ("(index (add k 1) v)", "(index (add 1 k) v)".to_string(), true),
        ("(index (add k 1) v)", "(index (sub (add 2 k) 1) v)".into(), true),
        ("(index (add k 1) v)", "(index (add k 2) v)".into(), false),
        ("(index (mul k (add k 1)) v)", "(index (add (mul k k) k) v)".into(), true),
        ("(index (mul k (add k 1)) v)", "(index (add (mul k k) 1) v)".into(), false),
        ("(index (add k 1) v)", "(index (add (sub k k) (add k 1)) v)".into(), true),
        // A part that cancels is evaluated all the same.
        ("(index (add k 1) v)", format!("(index (add (sub {fails} {fails}) (add k 1)) v)"), false),
        ("(index (add k 1) v)", format!("(index (add (mul 0 {fails}) (add k 1)) v)"), false),
        ("(index (min k 3) v)", "(index (min 3 k) v)".into(), true),
        // Which of two floats is returned depends on their order where one is no number.
        (
            "(index (cast Integer (min 1.0 (to_float k))) v)",
            "(index (cast Integer (min (to_float k) 1.0)) v)".into(),
            false,
        ),
        (
            "(index (cast Integer (mul 2.0 (to_float k))) v)",
            "(index (cast Integer (mul (to_float k) 2.0)) v)".into(),
            true,
        ),
        ("(if (gt k 2) (index 2 v) 1.0)", "(if (lt 2 k) (index 2 v) 1.0)".into(), true),
        ("(if (gt k 2) (index 2 v) 1.0)", "(if (lte 2 k) (index 2 v) 1.0)".into(), false),
        ("(if (gt k 2) (index 2 v) 1.0)", "(if (lt k 2) (index 2 v) 1.0)".into(), false),
    ] {
        let back = format!("(sub (add {other} 1.0) {other})");
        let whole = |x: &str| format!("(mul {known} {x})");
        let verdict = brought(&whole("1.0"), "1", &back, &whole(&back));
        assert_eq!(verdict.is_ok(), good, "{known} {other}: {verdict:?}");
    }
}

/// Protects: a tensor of which a loop reads an element in each round has as many, if the loop is certain to run through.
#[test]
fn loops_read_what_is_there() {
    let (all, last) = ("(index i v)", "(index (sub (sub k 1) i) v)");
    for (read, other, good) in [
        (all.to_string(), last.to_string(), true),
        (all.into(), "(index (sub k i) v)".into(), false),
        (all.into(), "(index (if (gt i 0) (sub i 1) i) v)".into(), true),
        ("(if (gt i 3) (index i v) 2.0)".into(), last.into(), false),
        ("(sumbuild k (lam (q : Integer) (index q v)))".into(), last.into(), true),
        ("(sumbuild (sub k 1) (lam (q : Integer) (index q v)))".into(), last.into(), false),
        // A loop in one that does not run reads nothing.
        (format!("(sumbuild (size v) (lam (q : Integer) {all}))"), last.into(), false),
    ] {
        let back = format!("(sub (add {other} 1.0) {other})");
        let there = back.replace(" i ", " _1 ").replace(" i)", " _1)");
        let looped = |x: &str| format!("(sumbuild k (lam (i : Integer) (mul {read} {x})))");
        let verdict = brought(&looped("1.0"), "1,1", &there, &looped(&back));
        assert_eq!(verdict.is_ok(), good, "{read} {other}: {verdict:?}");
    }
}

/// Protects: what is evaluated beside a place is evaluated whenever that is: in the same arm and the same loops, or
/// around them; never in another arm, nor in a loop that may not run.
#[test]
fn what_stands_beside_a_place_is_evaluated_with_it() {
    let read = "(index k v)";
    let back = format!("(sub (add {read} 1.0) {read})");
    let there = |from: &str, at: &str| brought(&from.replace("HERE", "1.0"), at, &back, &from.replace("HERE", &back));
    for (from, at, good) in [
        ("(if (gt k 5) (mul (index k v) HERE) 2.0)", "1,1", true),
        ("(if (gt k 5) (mul HERE (index k v)) 2.0)", "1,0", true),
        ("(if (gt k 5) (mul (index k v) (if (gt k 7) HERE 3.0)) 2.0)", "1,1,1", true),
        ("(if (gt k 5) (mul (index k v) (sumbuild k (lam (i : Integer) HERE))) 2.0)", "1,1,1", true),
        ("(if (gt k 5) (if (gt (index k v) 0.0) HERE 1.5) 2.0)", "1,1", true),
        ("(if (gt k 5) (index k v) HERE)", "2", false),
        ("(if (gt k 5) (mul (if (gt k 7) (index k v) 3.0) HERE) 2.0)", "1,1", false),
        ("(if (gt k 5) (mul (sumbuild k (lam (i : Integer) (index k v))) HERE) 2.0)", "1,1", false),
        ("(if (gt k 5) (mul (sumbuild 2 (lam (i : Integer) (index k v))) HERE) 2.0)", "1,1", true),
        ("(if (gt k 5) (mul (index (add k 1) v) HERE) 2.0)", "1,1", false),
        ("(if (gt HERE 0.5) (index k v) 2.0)", "0,0", false),
    ] {
        let verdict = there(from, at);
        assert_eq!(verdict.is_ok(), good, "{from}: {verdict:?}");
    }
}
