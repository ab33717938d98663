//! The published cost of a program, from its printed text alone: a second opinion.
//!
//! A reader of its own, shapes of its own, and the table of `rlo/costs.py` written down again. It
//! must not use any part of the crate: that is what it checks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// A form: an atom, or forms in brackets.
#[derive(Clone, PartialEq, Debug)]
enum Form {
    Atom(String),
    List(Vec<Form>),
}

use Form::{Atom, List};

/// What a value is made of, as far as costs depend on it.
#[derive(Clone, PartialEq, Debug)]
enum Shape {
    One,
    Parts(Vec<Shape>),
    Tensor(i32, Box<Shape>),
}

use Shape::{One, Parts, Tensor};

/// Every size, where the model does not know it: it never does.
const SIZE: f64 = 16.0;

impl Shape {
    fn of(form: &Form) -> Shape {
        let List(words) = form else { return One };
        match (word(&words[0]), &words[1..]) {
            ("Tuple", parts) => Parts(parts.iter().map(Shape::of).collect()),
            ("Vec", [elem]) => Tensor(1, Box::new(Shape::of(elem))),
            ("Tensor", [rank, elem]) => Tensor(word(rank).parse().unwrap(), Box::new(Shape::of(elem))),
            _ => panic!("no type: {form:?}"),
        }
    }

    fn scalars(&self) -> f64 {
        match self {
            One => 1.0,
            Parts(parts) => parts.iter().map(Shape::scalars).sum(),
            Tensor(rank, elem) => SIZE.powi(*rank) * elem.scalars(),
        }
    }

    fn has_tensor(&self) -> bool {
        match self {
            One => false,
            Parts(parts) => parts.iter().any(Shape::has_tensor),
            Tensor(..) => true,
        }
    }

    fn element(&self) -> Shape {
        match self {
            Tensor(_, elem) => (**elem).clone(),
            One | Parts(_) => panic!("no tensor: {self:?}"),
        }
    }
}

fn word(form: &Form) -> &str {
    match form {
        Atom(text) => text,
        List(_) => "",
    }
}

fn read(text: &str) -> Vec<Form> {
    let mut stack = vec![vec![]];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ';' => while chars.next_if(|c| *c != '\n').is_some() {},
            '(' => stack.push(vec![]),
            ')' => {
                let list = List(stack.pop().unwrap());
                stack.last_mut().unwrap().push(list);
            }
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                stack.last_mut().unwrap().push(Atom("\"\"".into()));
            }
            c if c.is_whitespace() => {}
            c => {
                let mut atom = c.to_string();
                while let Some(c) = chars.next_if(|c| !c.is_whitespace() && !"();\"".contains(*c)) {
                    atom.push(c);
                }
                stack.last_mut().unwrap().push(Atom(atom));
            }
        }
    }
    assert_eq!(stack.len(), 1, "brackets do not match");
    stack.pop().unwrap()
}

/// What a name means.
#[derive(Clone)]
enum Meaning {
    Value(Shape),
    /// The name of a size: `(size v)`, spelled short.
    Size,
}

type Scope = Vec<(String, Meaning)>;

/// A function: the shape of its result, and what its body costs.
struct Function {
    params: Vec<Shape>,
    ret: Shape,
    cost: f64,
    /// Its name and parameters, and those of the functions that it needs.
    needs: BTreeSet<String>,
}

/// The cost of each definition of a printed program, by name, in order.
///
/// # Panics
/// If the text is none that daedal prints.
pub fn costs(text: &str) -> Vec<(String, f64)> {
    let mut costing = Costing {
        functions: BTreeMap::new(),
        sizes: RefCell::default(),
        loops: Cell::new(0),
        needs: RefCell::default(),
    };
    let mut out = vec![];
    for form in read(text) {
        let List(parts) = &form else { panic!("no declaration: {form:?}") };
        if let ("def", [name, ret, params, body]) = (word(&parts[0]), &parts[1..]) {
            let name = word(name).to_string();
            let (mut scope, mut shapes) = (Scope::new(), vec![]);
            for (param, shape, sizes) in parameters(params) {
                scope.extend(sizes.into_iter().map(|s| (s, Meaning::Size)));
                scope.push((param, Meaning::Value(shape.clone())));
                shapes.push(shape);
            }
            let (cost, _) = costing.cost(body, &mut scope);
            // A name of a size is one value of the definition, wherever it is used.
            let sizes = costing.sizes.take();
            let cost = cost + sizes.values().map(|uses| if *uses == 1 { 1.0 } else { 1.1 }).sum::<f64>();
            // What it calls is bound around it, and so is it around what calls it.
            let mut needs = costing.needs.take();
            let whole = cost + 0.1 * needs.len() as f64;
            needs.insert(format!("{name} {shapes:?}"));
            let function = Function { params: shapes, ret: Shape::of(ret), cost, needs };
            costing.functions.entry(name.clone()).or_default().push(function);
            out.push((name, whole));
        }
    }
    out
}

/// Names, shapes, and names of sizes.
fn parameters(form: &Form) -> Vec<(String, Shape, Vec<String>)> {
    let List(list) = form else { panic!("no parameters: {form:?}") };
    let one = |p: &[Form]| {
        assert_eq!(word(&p[1]), ":");
        let sizes = p[3..].iter().flat_map(|s| match s {
            Atom(name) => vec![name.clone()],
            List(names) => names.iter().map(|n| word(n).to_string()).collect(),
        });
        (word(&p[0]).to_string(), Shape::of(&p[2]), sizes.collect())
    };
    match list.as_slice() {
        [Atom(_), ..] => vec![one(list)],
        _ => list.iter().map(|p| if let List(p) = p { one(p) } else { panic!("no parameter: {p:?}") }).collect(),
    }
}

struct Costing {
    functions: BTreeMap<String, Vec<Function>>,
    /// How often names of sizes are used, twice in a loop.
    sizes: RefCell<BTreeMap<String, usize>>,
    loops: Cell<usize>,
    /// The functions that the body needs.
    needs: RefCell<BTreeSet<String>>,
}

impl Costing {
    fn cost(&self, form: &Form, scope: &mut Scope) -> (f64, Shape) {
        let List(list) = form else { return self.atom(word(form), scope) };
        let (name, args) = (word(&list[0]), &list[1..]);
        match (name, args) {
            ("let", [bindings, body]) => self.bindings(bindings, body, scope),
            ("build" | "sumbuild" | "argmin" | "argmax", [size, lambda]) => self.looped(name, size, lambda, scope),
            ("reduce", [op, size, lambda]) => self.looped(word(op), size, lambda, scope),
            ("fold" | "scan", [lambda, init, over]) => {
                let (body, _) = self.body(lambda, scope);
                let ((a, state), (b, _)) = (self.cost(init, scope), self.cost(over, scope));
                match name {
                    "fold" => (a + b + SIZE * body, state),
                    _ => (2.0 + a + b + SIZE * body, Tensor(1, Box::new(state))),
                }
            }
            ("index", [at, tensor]) => {
                let ((a, _), (b, shape)) = (self.index(at, scope), self.cost(tensor, scope));
                (1.0 + a + b, shape.element())
            }
            ("constVec", [size, elem]) => {
                let ((a, rank), (b, shape)) = (self.index(size, scope), self.cost(elem, scope));
                (2.0 + a + b, Tensor(rank, Box::new(shape)))
            }
            ("deltaVec", [size, at, elem]) => {
                let ((a, rank), (b, _)) = (self.index(size, scope), self.index(at, scope));
                let (c, shape) = self.cost(elem, scope);
                (2.0 + a + b + c, Tensor(rank, Box::new(shape)))
            }
            ("buildFromSparse", [size, rounds, lambda]) => {
                let ((a, rank), (b, _)) = (self.index(size, scope), self.cost(rounds, scope));
                let (c, shape) = self.body(lambda, scope);
                let Parts(pair) = &shape else { panic!("no pair: {shape:?}") };
                (2.0 + SIZE * shape.scalars() + a + b + SIZE * c, Tensor(rank, Box::new(pair[1].clone())))
            }
            ("cast", [_, value]) => (1.0 + self.cost(value, scope).0, One),
            _ => {
                let (costs, shapes): (Vec<f64>, Vec<Shape>) = args.iter().map(|a| self.cost(a, scope)).unzip();
                let (own, shape) = self.applied(name, &costs, &shapes);
                (own, shape)
            }
        }
    }

    /// A form whose arguments are all evaluated once, or an `if`.
    fn applied(&self, name: &str, costs: &[f64], shapes: &[Shape]) -> (f64, Shape) {
        let sum: f64 = costs.iter().sum();
        match name {
            "if" => (1.0 + costs[0] + costs[1].max(costs[2]) + 0.0001 * costs[1].min(costs[2]), shapes[1].clone()),
            "assert" => (1.0 + sum, shapes[1].clone()),
            "tuple" => (0.1 * shapes.len() as f64 + sum, Parts(shapes.to_vec())),
            "sum" => {
                let Tensor(rank, elem) = &shapes[0] else { panic!("a sum of no tensor") };
                ((SIZE.powi(*rank) - 1.0) * elem.scalars() + sum, (**elem).clone())
            }
            "Vec_init" => (2.0 + sum, Tensor(1, Box::new(shapes[0].clone()))),
            "print" => (1.0 + sum, One),
            _ if name == "size" || name.starts_with("size$") => (1.0 + sum, One),
            _ if name.starts_with("get$") => {
                let at: usize = name.split('$').nth(1).unwrap().parse().unwrap();
                let Parts(parts) = &shapes[0] else { panic!("a part of no tuple") };
                (sum, parts[at - 1].clone())
            }
            _ => match self.functions.get(name).and_then(|f| f.iter().find(|f| f.params == shapes)) {
                Some(f) => {
                    self.needs.borrow_mut().extend(f.needs.iter().cloned());
                    // A tuple of the arguments, and a let for each that unpacks it.
                    let tuple = if shapes.len() > 1 { 0.2 * shapes.len() as f64 } else { 0.0 };
                    (2.0 + tuple + f.cost + sum, f.ret.clone())
                }
                None => {
                    let shape = result(name, shapes);
                    let tensor = if shape.has_tensor() { 2.0 } else { 0.0 };
                    (operation(name) * shape.scalars() + tensor + sum, shape)
                }
            },
        }
    }

    fn bindings(&self, bindings: &Form, body: &Form, scope: &mut Scope) -> (f64, Shape) {
        let List(list) = bindings else { panic!("no bindings") };
        let depth = scope.len();
        let single = matches!(list.as_slice(), [Atom(_), _]).then(|| list.as_slice());
        let pairs: Vec<&[Form]> = match single {
            Some(one) => vec![one],
            None => list.iter().map(|b| if let List(b) = b { b.as_slice() } else { panic!("no binding") }).collect(),
        };
        let mut total = 0.0;
        for pair in pairs {
            let (cost, shape) = self.cost(&pair[1], scope);
            total += 0.1 + cost;
            scope.push((word(&pair[0]).to_string(), Meaning::Value(shape)));
        }
        let (cost, shape) = self.cost(body, scope);
        scope.truncate(depth);
        (total + cost, shape)
    }

    /// An index or a size with its number of axes: a tuple of them is none that is made.
    fn index(&self, form: &Form, scope: &mut Scope) -> (f64, i32) {
        match form {
            List(list) if word(&list[0]) == "tuple" => {
                (list[1..].iter().map(|p| self.cost(p, scope).0).sum(), list.len() as i32 - 1)
            }
            _ => (self.cost(form, scope).0, 1),
        }
    }

    fn body(&self, lambda: &Form, scope: &mut Scope) -> (f64, Shape) {
        let List(parts) = lambda else { panic!("no lambda") };
        let depth = scope.len();
        for (name, shape, _) in parameters(&parts[1]) {
            scope.push((name, Meaning::Value(shape)));
        }
        self.loops.set(self.loops.get() + 1);
        let out = self.cost(&parts[2], scope);
        self.loops.set(self.loops.get() - 1);
        scope.truncate(depth);
        out
    }

    fn atom(&self, name: &str, scope: &Scope) -> (f64, Shape) {
        let known = scope.iter().rev().find(|(n, _)| n == name);
        if let Some((_, Meaning::Size)) = known {
            *self.sizes.borrow_mut().entry(name.to_string()).or_default() += if self.loops.get() > 0 { 2 } else { 1 };
        }
        atom(name, known.map(|(_, meaning)| meaning))
    }

    fn looped(&self, name: &str, size: &Form, lambda: &Form, scope: &mut Scope) -> (f64, Shape) {
        let (sizes, rank) = self.index(size, scope);
        let (body, shape) = self.body(lambda, scope);
        let rounds = SIZE.powi(rank);
        let all = sizes + rounds * body;
        match name {
            "build" => (2.0 + all, Tensor(rank, Box::new(shape))),
            "argmin" | "argmax" => (rounds - 1.0 + all, One),
            "sumbuild" => ((rounds - 1.0) * shape.scalars() + all, shape),
            // A fold over the numbers of its steps, which makes no pair of the factors.
            "fma" => (2.0 + sizes + rounds * (body - 0.2 + operation("fma")), One),
            op => ((rounds - 1.0) * operation(op) * shape.scalars() + all, shape),
        }
    }
}

fn atom(name: &str, known: Option<&Meaning>) -> (f64, Shape) {
    match known {
        Some(Meaning::Value(shape)) => (0.0, shape.clone()),
        Some(Meaning::Size) => (0.0, One),
        None => {
            assert!(
                is_number(name) || name.starts_with('"') || name == "true" || name == "false",
                "unknown name `{name}`"
            );
            (0.0, One)
        }
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// The shape that an operation gives.
fn result(name: &str, args: &[Shape]) -> Shape {
    match name {
        "lt" | "gt" | "lte" | "gte" | "eq" | "ne" => One,
        _ => args.iter().find(|a| **a != One).cloned().unwrap_or(One),
    }
}

/// What an operation on scalars costs.
fn operation(name: &str) -> f64 {
    match name {
        "pi" => 0.0,
        "add" | "sub" | "neg" | "abs" | "min" | "max" | "minimum" | "maximum" | "precedes" | "lt" | "gt" | "lte"
        | "gte" | "eq" | "ne" | "and" | "or" | "not" | "bitand" | "bitor" | "bitxor" | "bitnot" | "shl" | "shr"
        | "select" | "floor" | "ceil" | "to_float" | "bool_to_float" | "truncate" | "$ranhashdoub" => 1.0,
        "mul" | "div" | "mod" | "floordiv" | "floormod" | "sqrt" | "fma" => 2.0,
        "exp" | "log" | "sin" | "cos" | "tan" | "tanh" | "sinh" | "cosh" | "asin" | "acos" | "atan" | "erf"
        | "lgamma" | "pow" | "atan2" | "hypot" => 4.0,
        _ => panic!("no operation `{name}`"),
    }
}
