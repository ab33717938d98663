//! Tensors in typed storage behave as lists of values would: random nested tensors of every element type beside a
//! model, which keeps every element by itself.
//!
//! Floats have any bits, payloads of NaNs and signed zeros among them; any size may be 0.

use crate::common::native::difference;
use daedal::data::{Output, argument};
use daedal::diag::Source;
use daedal::eval::{Elements, Interpreter, Numbers, Value};
use daedal::ir::lit::intern;
use daedal::ir::{Def, Lit, Scalar, Ty};
use daedal::nest::interpret;
use daedal::pipeline::native;
use daedal::run::Toolchain;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::test_runner::RngSeed;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::Value as Json;

/// A type with the sizes of all its tensors: elements of one tensor have one shape.
#[derive(Clone, PartialEq, Debug)]
enum Shape {
    Scalar(Scalar),
    Text,
    Tuple(Vec<Shape>),
    Tensor(Vec<usize>, Box<Shape>),
}

/// A value as plainly as can be.
#[derive(Clone, PartialEq, Debug)]
enum Model {
    Scalar(Lit),
    Tuple(Vec<Model>),
    Tensor(Vec<usize>, Vec<Model>),
}

impl Shape {
    /// A random one; without tuples and texts where `plain`.
    fn random(rng: &mut StdRng, depth: usize, plain: bool) -> Shape {
        match rng.random_range(0..10) {
            0..5 if depth > 0 => {
                let dims = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..4)).collect();
                Shape::Tensor(dims, Box::new(Shape::random(rng, depth - 1, plain)))
            }
            5 | 6 if depth > 0 && !plain => {
                Shape::Tuple((0..rng.random_range(0..4)).map(|_| Shape::random(rng, depth - 1, plain)).collect())
            }
            7 if !plain => Shape::Text,
            _ => Shape::Scalar(Scalar::NAMES[rng.random_range(0..Scalar::NAMES.len())].0),
        }
    }

    /// A tensor for sure.
    fn tensor(rng: &mut StdRng, plain: bool) -> Shape {
        let dims = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..4)).collect();
        Shape::Tensor(dims, Box::new(Shape::random(rng, 2, plain)))
    }

    fn ty(&self) -> Ty {
        match self {
            Shape::Scalar(s) => Ty::scalar(*s),
            Shape::Text => Ty::string(),
            Shape::Tuple(parts) => Ty::tuple(parts.iter().map(Shape::ty).collect::<Vec<_>>()),
            Shape::Tensor(dims, elem) => Ty::tensor(dims.len(), elem.ty()),
        }
    }

    fn model(&self, rng: &mut StdRng) -> Model {
        match self {
            Shape::Scalar(s) => Model::Scalar(scalar(rng, *s)),
            Shape::Text => Model::Scalar(Lit::Str(intern(["", "a", "text"][rng.random_range(0..3)]))),
            Shape::Tuple(parts) => Model::Tuple(parts.iter().map(|p| p.model(rng)).collect()),
            Shape::Tensor(dims, elem) => {
                let n = dims.iter().product();
                Model::Tensor(dims.clone(), (0..n).map(|_| elem.model(rng)).collect())
            }
        }
    }

    /// The same type with some sizes that may differ.
    fn resized(&self, rng: &mut StdRng) -> Shape {
        match self {
            Shape::Scalar(_) | Shape::Text => self.clone(),
            Shape::Tuple(parts) => Shape::Tuple(parts.iter().map(|p| p.resized(rng)).collect()),
            Shape::Tensor(dims, elem) => {
                let size = |n: &usize, rng: &mut StdRng| if rng.random_bool(0.8) { *n } else { rng.random_range(0..4) };
                let dims = dims.iter().map(|n| size(n, rng)).collect();
                Shape::Tensor(dims, Box::new(elem.resized(rng)))
            }
        }
    }
}

/// Any bits of a type, the corners often.
fn scalar(rng: &mut StdRng, s: Scalar) -> Lit {
    let corner = rng.random_range(0..8);
    match s {
        Scalar::F64 => Lit::F64(match corner {
            0 => 1 << 63,
            1 => 0x7ff8_0000_0000_1234,
            2 => 0xfff0_0000_0000_0001,
            3 => f64::INFINITY.to_bits(),
            4 => 0,
            _ => rng.random(),
        }),
        Scalar::F32 => Lit::F32(match corner {
            0 => 1 << 31,
            1 => 0x7fc0_1234,
            2 => 0xff80_0001,
            3 => f32::NEG_INFINITY.to_bits(),
            4 => 0,
            _ => rng.random(),
        }),
        Scalar::Bool => Lit::Bool(rng.random()),
        s => {
            let (lo, hi) = s.range();
            Lit::Int(s, [lo, hi, 0, 1, s.wrap(-1)].get(corner).copied().unwrap_or_else(|| s.wrap(rng.random())))
        }
    }
}

impl Model {
    fn value(&self) -> Value {
        match self {
            Model::Scalar(l) => Value::Scalar(*l),
            Model::Tuple(parts) => Value::tuple(parts.iter().map(Model::value).collect()),
            Model::Tensor(dims, all) => Value::tensor(dims.clone(), all.iter().map(Model::value).collect()),
        }
    }

    /// What a value is, element by element.
    fn of(v: &Value) -> Model {
        match v {
            Value::Scalar(l) => Model::Scalar(*l),
            Value::Tuple(parts) => Model::Tuple(parts.iter().map(Model::of).collect()),
            Value::Tensor(t) => Model::Tensor(t.dims.to_vec(), (0..t.len()).map(|k| Model::of(&t.get(k))).collect()),
        }
    }

    fn size(&self, axis: usize) -> Option<usize> {
        match self {
            Model::Scalar(_) | Model::Tuple(_) => None,
            Model::Tensor(dims, _) if axis < dims.len() => Some(dims[axis]),
            Model::Tensor(dims, all) => all.first().map_or(Some(0), |e| e.size(axis - dims.len())),
        }
    }

    fn same_shape(&self, other: &Model) -> bool {
        match (self, other) {
            (Model::Tuple(a), Model::Tuple(b)) => a.iter().zip(b).all(|(x, y)| x.same_shape(y)),
            (Model::Tensor(m, a), Model::Tensor(n, b)) => {
                m == n && (a.is_empty() || b.is_empty() || a[0].same_shape(&b[0]))
            }
            _ => true,
        }
    }

    fn zeros(&self) -> Model {
        match self {
            Model::Scalar(Lit::Str(s)) => Model::Scalar(Lit::Str(s)),
            Model::Scalar(l) => Model::Scalar(Lit::zero(l.ty().as_scalar().unwrap())),
            Model::Tuple(parts) => Model::Tuple(parts.iter().map(Model::zeros).collect()),
            Model::Tensor(dims, all) => Model::Tensor(dims.clone(), all.iter().map(Model::zeros).collect()),
        }
    }

    fn leaves(&mut self) -> Vec<&mut Lit> {
        match self {
            Model::Scalar(l) => vec![l],
            Model::Tuple(all) | Model::Tensor(_, all) => all.iter_mut().flat_map(Model::leaves).collect(),
        }
    }

    /// With one NaN for all, as texts have.
    fn read_back(&self) -> Model {
        let mut out = self.clone();
        for l in out.leaves() {
            match l.as_f64() {
                Some(v) if v.is_nan() => *l = Lit::float(f64::NAN).cast(l.ty().as_scalar().unwrap()).unwrap(),
                _ => {}
            }
        }
        out
    }

    fn json(&self) -> Json {
        match self {
            Model::Scalar(Lit::Str(s)) => Json::from(*s),
            Model::Scalar(Lit::Bool(b)) => Json::from(*b),
            Model::Scalar(l) => match (l.as_int(), l.as_f64()) {
                (Some(n), _) => Json::from(n),
                (_, Some(v)) if v.is_finite() => Json::from(v),
                (_, v) => Json::from(v.unwrap().to_string()),
            },
            Model::Tuple(parts) => parts.iter().map(Model::json).collect(),
            Model::Tensor(dims, all) => {
                // Every axis from the last one on puts what it has in lists.
                let mut rows: Vec<Json> = all.iter().map(Model::json).collect();
                for axis in (0..dims.len()).rev() {
                    let lists = dims[..axis].iter().product();
                    rows = (0..lists)
                        .map(|k| rows[k * dims[axis]..(k + 1) * dims[axis]].iter().cloned().collect())
                        .collect();
                }
                rows.remove(0)
            }
        }
    }
}

fn made(seed: u64, plain: bool) -> (Shape, Model, StdRng) {
    let mut rng = StdRng::seed_from_u64(seed);
    let shape = Shape::tensor(&mut rng, plain);
    let model = shape.model(&mut rng);
    (shape, model, rng)
}

/// A text of a random value for what fails.
fn show(shape: &Shape, model: &Model) -> String {
    format!("{}\n{model:?}", shape.ty())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// Protects: however elements get there, the same elements come out, with all their bits.
    #[test]
    fn elements_are_what_was_put_in(seed in any::<u64>()) {
        let (shape, model, mut rng) = made(seed, false);
        let (Shape::Tensor(_, elem), Model::Tensor(dims, all)) = (&shape, &model) else { panic!("no tensor") };
        let text = show(&shape, &model);
        let whole = model.value();
        assert_eq!(Model::of(&whole), model, "{text}");
        let tensor = |elements: Elements| Value::tensor(dims.clone(), elements);
        let mut pushed = Elements::default();
        let mut roomy = Elements::room(elem.ty(), all.len()).unwrap();
        let mut set = Elements::filled(&elem.model(&mut rng).value(), all.len()).unwrap();
        for (k, one) in all.iter().enumerate() {
            pushed.push(one.value());
            roomy.push(one.value());
            set.set(k, one.value());
        }
        for (how, elements) in [("pushed", pushed), ("into room", roomy), ("set", set)] {
            assert_eq!(elements.len(), all.len(), "{how}: {text}");
            let one = tensor(elements);
            assert_eq!(Model::of(&one), model, "{how}: {text}");
            assert_eq!(one, whole, "{how}: {text}");
        }
        if let Some(one) = all.first() {
            let same = Elements::filled(&one.value(), 3).unwrap();
            assert!(same.len() == 3 && same.iter().all(|v| Model::of(&v) == *one), "{text}");
        }
        assert_eq!(Model::of(&whole.zero_like()), model.zeros(), "{text}");
    }

    /// Protects: elements of any types stand beside each other, as they do in lists.
    #[test]
    fn mixed_elements_stay_what_they_are(seed in any::<u64>()) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut each = || {
            let shape = Shape::random(&mut rng, 2, false);
            shape.model(&mut rng)
        };
        let mut all: Vec<Model> = (0..4).map(|_| each()).collect();
        let mut elements: Elements = all.iter().map(Model::value).collect();
        let kept = |elements: &Elements, all: &[Model]| {
            assert!(elements.iter().map(|v| Model::of(&v)).eq(all.iter().cloned()), "{all:?}");
        };
        kept(&elements, &all);
        for k in [2, 0] {
            all[k] = each();
            elements.set(k, all[k].value());
            kept(&elements, &all);
        }
        // A number that its type does not have is kept, too.
        all.push(Model::Scalar(Lit::Int(Scalar::U8, 300)));
        elements.push(Value::Scalar(Lit::Int(Scalar::U8, 300)));
        kept(&elements, &all);
    }

    /// Protects: sizes, also those inside of empty tensors, and which shapes are the same.
    #[test]
    fn sizes_and_shapes_are_those_of_lists(seed in any::<u64>()) {
        let (shape, model, mut rng) = made(seed, false);
        let (value, text) = (model.value(), show(&shape, &model));
        for axis in 0..shape.ty().axes() {
            assert_eq!(value.size(axis), model.size(axis), "axis {axis}: {text}");
        }
        for _ in 0..4 {
            let other = shape.resized(&mut rng).model(&mut rng);
            assert_eq!(value.same_shape(&other.value()), model.same_shape(&other), "{text}\n{other:?}");
            let pair: Elements = [&model, &other].into_iter().map(Model::value).collect();
            assert_eq!(pair.same_shapes(), model.same_shape(&other), "{text}\n{other:?}");
        }
    }

    /// Protects: values are equal where all bits are, and only there.
    #[test]
    fn one_bit_makes_a_difference(seed in any::<u64>()) {
        let (shape, model, mut rng) = made(seed, false);
        assert_eq!(model.value(), model.clone().value(), "{}", show(&shape, &model));
        let mut other = model.clone();
        let mut leaves = other.leaves();
        if !leaves.is_empty() {
            let k = rng.random_range(0..leaves.len());
            *leaves[k] = match *leaves[k] {
                Lit::F64(bits) => Lit::F64(bits ^ 1 << rng.random_range(0..64)),
                Lit::F32(bits) => Lit::F32(bits ^ 1 << rng.random_range(0..32)),
                Lit::Int(s, v) => Lit::Int(s, s.wrap(v ^ 1)),
                Lit::Bool(b) => Lit::Bool(!b),
                Lit::Str(s) => Lit::Str(intern(&format!("{s}more"))),
            };
            assert_ne!(model.value(), other.value(), "{}", show(&shape, &model));
        }
        let resized = shape.resized(&mut rng).model(&mut rng);
        assert_eq!(model.value() == resized.value(), model == resized, "{}\n{resized:?}", show(&shape, &model));
    }

    /// Protects: JSON is that of lists, and reads back: all but the payloads of NaNs, and sizes beside a size of 0.
    #[test]
    fn json_reads_back(seed in any::<u64>()) {
        let (shape, model, _) = made(seed, false);
        let text = show(&shape, &model);
        let json = model.value().to_json();
        assert_eq!(json, model.json(), "{text}");
        let back = Value::from_json(&serde_json::from_str(&json.to_string()).unwrap(), shape.ty()).unwrap();
        assert_eq!(back.to_json(), json, "{text}");
        if !json.to_string().contains("[]") {
            assert_eq!(Model::of(&back).read_back(), model.read_back(), "{text}");
        }
    }
}

/// Protects: arrays in files hold the numbers of lists, in order and to the bit, and read back.
#[test]
fn arrays_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.npy");
    let mut numbers = 0;
    for seed in 0..300 {
        let (shape, mut model, _) = made(seed, true);
        let (ty, value, text) = (shape.ty(), model.value(), show(&shape, &model));
        Output::for_value(&path, ty).unwrap().value(&value, ty).unwrap();
        let file = std::fs::read(&path).unwrap();
        let mut want = vec![];
        for l in model.leaves() {
            match *l {
                Lit::F64(bits) => want.extend(bits.to_le_bytes()),
                Lit::F32(bits) => want.extend(bits.to_le_bytes()),
                Lit::Int(s, v) => want.extend(&v.to_le_bytes()[..s.bytes() as usize]),
                Lit::Bool(b) => want.push(b.into()),
                Lit::Str(_) => panic!("a text in {text}"),
            }
        }
        assert!(file.ends_with(&want) && (file.len() - want.len()).is_multiple_of(64), "{text}");
        assert_eq!(argument(&format!("@{}", path.display()), ty).unwrap(), value, "{text}");
        numbers += want.len();
    }
    assert!(numbers > 5000, "only {numbers} bytes were written");
}

/// Protects: numbers go into memory and out of it in their own width.
#[test]
fn numbers_have_their_own_width() {
    let mut rng = StdRng::seed_from_u64(1);
    for (s, name) in Scalar::NAMES {
        let all: Vec<Lit> = (0..50).map(|_| scalar(&mut rng, s)).collect();
        let elements: Elements = all.iter().map(|l| Value::Scalar(*l)).collect();
        let numbers = elements.numbers().unwrap();
        assert_eq!((numbers.scalar(), numbers.len()), (s, 50), "{name}");
        assert_eq!(numbers.bytes().len(), 50 * s.bytes() as usize, "{name}");
        let back = Numbers::from_bytes(s, numbers.bytes());
        assert!(back == *numbers && back.iter().eq(all.iter().copied()), "{name}");
        assert!(numbers.slice(7..11).iter().eq(all[7..11].iter().copied()), "{name}");
        let mut twice = numbers.slice(0..3);
        assert!(twice.append(numbers) && twice.len() == 53 && twice.get(52) == all[49], "{name}");
        for (other, _) in Scalar::NAMES.into_iter().filter(|(other, _)| *other != s) {
            let mut others = Numbers::new(other);
            assert!(!others.append(numbers) && !others.push(all[0]) && others.is_empty(), "{name}");
        }
    }
}

/// Protects: programs see what lists would give: elements at every index, sizes, and what is made again of elements.
#[test]
fn programs_index_and_measure() {
    let mut tried = 0;
    for seed in 0..400 {
        let (shape, model, _) = made(seed, false);
        let (Shape::Tensor(dims, elem), Model::Tensor(_, all)) = (&shape, &model) else { panic!("no tensor") };
        let names: Vec<String> = (0..dims.len()).map(|k| format!("i{k}")).collect();
        let params: Vec<String> = names.iter().map(|n| format!("({n} : Integer)")).collect();
        let (many, sizes) =
            (dims.len() > 1, (0..dims.len()).map(|k| format!("(get${}${} (size t))", k + 1, dims.len())));
        let tuple = |each: &[String]| if many { format!("(tuple {})", each.join(" ")) } else { each.concat() };
        let sizes: Vec<String> = if many { sizes.collect() } else { vec!["(size t)".into()] };
        let (index, size, ty) = (tuple(&names), tuple(&sizes), shape.ty());
        let text = format!(
            "(def at {} ((t : {ty}) {}) (index {index} t))
             (def again {ty} (t : {ty}) (build {size} (lam ({}) (index {index} t))))",
            elem.ty(),
            params.join(" "),
            params.join(" "),
        );
        let program = daedal::types::program(&Source::new("test", text)).unwrap_or_else(|d| panic!("{}", d.render()));
        let interpreter = Interpreter::new(&program);
        let run = |def: &str, args: &[Value]| interpreter.run(program.named(def)[0], args);
        let value = model.value();
        assert_eq!(run("again", std::slice::from_ref(&value)).unwrap(), value, "{}", show(&shape, &model));
        for (k, want) in all.iter().enumerate() {
            let mut index = vec![value.clone()];
            let place = |axis: usize| k / dims[axis + 1..].iter().product::<usize>() % dims[axis];
            index.extend((0..dims.len()).map(|axis| Value::Scalar(Lit::int(place(axis) as i64))));
            assert_eq!(Model::of(&run("at", &index).unwrap()), *want, "{}", show(&shape, &model));
            tried += 1;
        }
        let beyond: Vec<Value> = dims.iter().map(|n| Value::Scalar(Lit::int(*n as i64))).collect();
        run("at", &[vec![value], beyond].concat()).unwrap_err();
    }
    assert!(tried > 800, "only {tried} elements were asked for");
}

/// Protects: compiled code and nests take every kind of element as an argument and give it back, in bulk or one by one.
#[test]
fn compiled_code_gives_back_what_it_takes() {
    let all: Vec<(Shape, Value)> = (0..60)
        .map(|seed| {
            let (shape, model, _) = made(1000 + seed, false);
            (shape, model.value())
        })
        .collect();
    let text: Vec<String> =
        all.iter().enumerate().map(|(k, (shape, _))| format!("(def f{k} {0} (t : {0}) t)", shape.ty())).collect();
    let program = daedal::types::program(&Source::new("test", text.join("\n"))).unwrap_or_else(|d| panic!("{d}"));
    let defs: Vec<&Def> = (0..all.len()).map(|k| program.named(&format!("f{k}"))[0]).collect();
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tensors");
    let tools = Toolchain::discover(std::env::var("CXX").ok(), Some(cache));
    let compiled = native::compile_all(&program, &defs, &tools).unwrap_or_else(|d| panic!("{}", d.render()));
    for ((def, one), (shape, value)) in defs.iter().zip(&compiled).zip(all) {
        let one = one.as_ref().unwrap_or_else(|d| panic!("{}", d.render()));
        let (args, want) = ([value.clone()], Ok(value));
        assert_eq!(difference(&want, &one.call(&args)), None, "{}", shape.ty());
        let nest = native::reference(&program, def).unwrap();
        assert_eq!(difference(&want, &interpret(&nest, &args, &mut String::new())), None, "{}", shape.ty());
    }
}
