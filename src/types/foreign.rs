//! What other languages call the things of this one: words become hints.
//!
//! It must not know what is in scope: it only says how something is spelled here.

/// Operators and words for functions, each with what it may mean here.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("+", &["add"]),
    ("-", &["sub", "neg"]),
    ("*", &["mul"]),
    ("/", &["div"]),
    ("//", &["floordiv"]),
    ("%", &["mod", "floormod"]),
    ("**", &["pow"]),
    ("^", &["pow", "bitxor"]),
    ("<", &["lt"]),
    (">", &["gt"]),
    ("<=", &["lte"]),
    (">=", &["gte"]),
    ("le", &["lte"]),
    ("ge", &["gte"]),
    ("==", &["eq"]),
    ("=", &["eq"]),
    ("!=", &["ne"]),
    ("/=", &["ne"]),
    ("<>", &["ne"]),
    ("neq", &["ne"]),
    ("equal", &["eq"]),
    ("&&", &["and"]),
    ("||", &["or"]),
    ("!", &["not"]),
    ("xor", &["ne", "bitxor"]),
    ("&", &["bitand"]),
    ("|", &["bitor"]),
    ("~", &["bitnot"]),
    ("<<", &["shl"]),
    (">>", &["shr"]),
    ("plus", &["add"]),
    ("minus", &["sub"]),
    ("times", &["mul"]),
    ("@", &["matmul"]),
    ("mm", &["matmul"]),
    ("matvec", &["matmul"]),
    ("rem", &["mod"]),
    ("ln", &["log"]),
    ("fabs", &["abs"]),
    ("fmin", &["min"]),
    ("fmax", &["max"]),
    ("minimum", &["min"]),
    ("maximum", &["max"]),
    ("float", &["to_float"]),
    ("double", &["to_float"]),
    ("int", &["truncate"]),
    ("len", &["size"]),
    ("length", &["size"]),
    ("nth", &["index"]),
    ("get", &["index", "get$i$n"]),
    ("at", &["index"]),
    ("lambda", &["lam"]),
    ("fn", &["lam"]),
    ("\\", &["lam"]),
    ("vector", &["Vec_init"]),
    ("array", &["Vec_init"]),
    ("list", &["Vec_init", "tuple"]),
    ("pair", &["tuple"]),
    ("full", &["constVec"]),
    ("zeros", &["constVec"]),
    ("ones", &["constVec"]),
    ("dot", &["ts_dot", "matmul"]),
    ("inner", &["ts_dot"]),
    ("range", &["build"]),
    ("arange", &["build"]),
    ("iota", &["build"]),
    ("tabulate", &["build"]),
    ("for", &["build", "fold", "iterate"]),
    ("loop", &["build", "fold", "iterate"]),
    ("while", &["fold", "iterate"]),
    ("repeat", &["iterate"]),
    ("foldl", &["fold"]),
    ("zipWith", &["map2"]),
    ("where", &["if", "select"]),
    ("let*", &["let"]),
    ("letrec", &["let"]),
    ("case", &["if", "cond"]),
    ("switch", &["cond"]),
    ("clip", &["clamp"]),
    ("take", &["slice"]),
    ("subvec", &["slice"]),
    ("subarray", &["slice"]),
    ("vstack", &["stack"]),
];

/// Words for functions that are an operation of a number and itself here.
const TWICE: &[(&str, &str)] = &[("sqr", "mul"), ("square", "mul"), ("twice", "add")];

/// Words for values.
const VALUES: &[(&str, &str)] = &[
    ("True", "true"),
    ("TRUE", "true"),
    ("False", "false"),
    ("FALSE", "false"),
    ("nil", "(tuple)"),
    ("null", "(tuple)"),
    ("None", "(tuple)"),
    ("PI", "(pi)"),
];

/// Words for types.
const TYPES: &[(&str, &str)] = &[
    ("Double", "Float"),
    ("double", "Float"),
    ("float", "Float"),
    ("Real", "Float"),
    ("Float64", "Float"),
    ("f64", "Float"),
    ("f32", "Float32"),
    ("Single", "Float32"),
    ("Int", "Integer"),
    ("int", "Integer"),
    ("Int64", "Integer"),
    ("i64", "Integer"),
    ("i32", "Int32"),
    ("i16", "Int16"),
    ("i8", "Int8"),
    ("u8", "UInt8"),
    ("Byte", "UInt8"),
    ("u16", "UInt16"),
    ("u32", "UInt32"),
    ("Boolean", "Bool"),
    ("bool", "Bool"),
    ("Text", "String"),
    ("str", "String"),
    ("Array", "Tensor"),
    ("Matrix", "Tensor"),
    ("Vector", "Vec"),
    ("List", "Vec"),
    ("Unit", "Tuple"),
];

/// Words that begin declarations.
const DECLARATIONS: &[&str] = &["define", "defun", "defn", "fun", "func", "function", "fn", "let"];

/// The names that a function of another language may have here; nothing where it is none.
pub fn function(name: &str) -> &'static [&'static str] {
    FUNCTIONS.iter().find(|(n, _)| *n == name).map_or(&[], |(_, here)| here)
}

/// The operation that takes a number twice, of which a function of another language is the name.
pub fn twice(name: &str) -> Option<&'static str> {
    TWICE.iter().find(|(n, _)| *n == name).map(|(_, here)| *here)
}

/// Whether the name is made of the signs of operators alone.
pub fn is_operator(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| !c.is_alphanumeric() && c != '_' && c != ':') && !function(name).is_empty()
}

/// How a value is written here.
pub fn value(name: &str) -> Option<String> {
    VALUES.iter().find(|(n, _)| *n == name).map(|(_, here)| format!("it is written `{here}`"))
}

/// How a type is written here.
pub fn ty(name: &str) -> Option<String> {
    TYPES.iter().find(|(n, _)| *n == name).map(|(_, here)| format!("it is called `{here}`"))
}

/// How a declaration is written here.
pub fn declaration(name: &str) -> Option<String> {
    DECLARATIONS.contains(&name).then(|| "a function is `(def NAME TYPE (PARAM …) BODY)`".to_string())
}
