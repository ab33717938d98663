//! What stages of a random pipeline pass on: tensors of sizes that are texts, estimates and small numbers at once.

/// A size: as the program writes it, where it is measured, and where it is compared with the interpreter.
#[derive(Clone, PartialEq, Debug)]
pub struct Size {
    /// As the program writes it.
    pub text: String,
    /// Where time is measured.
    pub large: u64,
    /// Where bits are compared.
    pub small: u64,
}

impl Size {
    /// A number of the program.
    pub fn number(n: u64) -> Size {
        Size { text: n.to_string(), large: n, small: n }
    }

    /// So much less.
    pub fn less(&self, by: u64) -> Size {
        Size { text: format!("(sub {} {by})", self.text), large: self.large - by, small: self.small.saturating_sub(by) }
    }

    /// Half of it, rounded down.
    pub fn half(&self) -> Size {
        Size { text: format!("(div {} 2)", self.text), large: self.large / 2, small: self.small / 2 }
    }

    /// Twice as much.
    pub fn twice(&self) -> Size {
        Size { text: format!("(mul 2 {})", self.text), large: 2 * self.large, small: 2 * self.small }
    }
}

/// The type of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// Bytes.
    U8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
}

impl Element {
    /// The type, as the program writes it.
    pub fn ty(self) -> &'static str {
        match self {
            Element::F32 => "Float32",
            Element::U8 => "UInt8",
            Element::I16 => "Int16",
            Element::I32 => "Int32",
        }
    }

    /// A small whole number.
    pub fn whole(self, n: u32) -> String {
        match self {
            Element::F32 => format!("{n}.0f32"),
            Element::U8 => format!("{n}u8"),
            Element::I16 => format!("{n}i16"),
            Element::I32 => format!("{n}i32"),
        }
    }

    /// The type in which elements are added up.
    pub fn wide(self) -> Element {
        match self {
            Element::F32 => Element::F32,
            _ => Element::I32,
        }
    }

    /// A number of this type as one of another.
    pub fn cast(self, to: Element, e: &str) -> String {
        match (self, to) {
            (a, b) if a == b => e.to_string(),
            // A float that no byte is near becomes the nearest one.
            (_, Element::U8) => format!("(saturate UInt8 {e})"),
            _ => format!("(cast {} {e})", to.ty()),
        }
    }
}

/// What a stage gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub element: Element,
    /// Its sizes, outermost first.
    pub sizes: Vec<Size>,
    /// Whether it is a vector of vectors, as scans in loops are.
    pub nested: bool,
}

impl Tensor {
    /// An element.
    pub fn at(&self, index: &[String]) -> String {
        if self.nested {
            return index.iter().fold(self.name.clone(), |of, i| format!("(index {i} {of})"));
        }
        match index {
            [one] => format!("(index {one} {})", self.name),
            many => format!("(index (tuple {}) {})", many.join(" "), self.name),
        }
    }

    /// Its type.
    pub fn ty(&self) -> String {
        match (self.nested, self.sizes.len()) {
            (true, n) => (0..n).fold(self.element.ty().to_string(), |of, _| format!("(Vec {of})")),
            (false, n) => format!("(Tensor {n} {})", self.element.ty()),
        }
    }

    /// How many elements it has where time is measured.
    pub fn elements(&self) -> f64 {
        self.sizes.iter().map(|s| s.large as f64).product()
    }
}
