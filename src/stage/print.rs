//! A graph as text: what comes in, and each stage with its dimensions, checks and elements.

use super::body::{Body, DimId, Node, Source};
use super::graph::{Definition, Graph, Output, Slot};
use std::fmt;

impl Graph {
    /// A body as text.
    pub fn show(&self, b: Body) -> String {
        let mut out = String::new();
        self.write(b, usize::MAX, &[], &mut out);
        out
    }

    /// A body as text of so many characters at most, `…` where it goes on: what shares its parts may be long beyond reason.
    /// Some dimensions may have names of their own.
    pub fn brief(&self, b: Body, most: usize, names: &[(String, DimId)]) -> String {
        let mut out = String::new();
        self.write(b, 4 * most, names, &mut out);
        if out.chars().count() > most {
            out = out.chars().take(most.saturating_sub(1)).chain(['…']).collect();
        }
        out
    }

    /// Appends a body as text, and no more once there are so many bytes.
    fn write(&self, b: Body, most: usize, names: &[(String, DimId)], out: &mut String) {
        if out.len() > most {
            return;
        }
        let mut list = |open: &str, each: &[Body], between: &str, close: &str| {
            out.push_str(open);
            for (k, b) in each.iter().enumerate() {
                out.push_str(if k > 0 { between } else { "" });
                self.write(*b, most, names, out);
            }
            out.push_str(close);
        };
        match self.bodies.node(b) {
            Node::Lit(l) => list(&l.to_string(), &[], "", ""),
            Node::Symbol(s) => list(&self.symbols[s.0 as usize].name, &[], "", ""),
            Node::Index(d) => {
                let own = names.iter().find(|(_, of)| of == d).map(|(name, _)| name);
                list(own.unwrap_or(&self.dim(*d).name), &[], "", "");
            }
            Node::Acc(k, _) => list(&format!("acc{k}"), &[], "", ""),
            Node::Load(from, _, at) => list(&format!("{}[", self.source(*from)), at, ", ", "]"),
            Node::Op(op, _, args) => list(&format!("({} ", op.name()), args, " ", ")"),
            Node::Cast(to, b) => list(&format!("(cast {} ", to.name()), &[*b], " ", ")"),
            Node::If(parts) => list("(if ", parts, " ", ")"),
        }
    }

    fn source(&self, from: Source) -> String {
        let name = self.source_name(from);
        match from {
            Source::Stage(s, k) if self.stage(s).tys.len() > 1 => format!("{name}.{k}"),
            Source::Input(_) | Source::Stage(..) => name.to_string(),
        }
    }

    fn dims_text(&self, dims: &[DimId]) -> String {
        let each = dims.iter().map(|d| format!("{} < {}", self.dim(*d).name, self.show(self.dim(*d).extent)));
        each.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().map(|s| match s {
            Slot::Symbol(k) => self.symbols[k.0 as usize].name.clone(),
            Slot::Input(k) => {
                let i = &self.inputs[*k as usize];
                let sizes: Vec<String> = i.sizes.iter().map(|n| self.show(*n)).collect();
                format!("{}[{}]", i.name, sizes.join(", "))
            }
        });
        writeln!(f, "graph {}({})", self.name, slots.collect::<Vec<_>>().join(", "))?;
        for c in &self.entry {
            writeln!(f, "  where {}", self.show(*c))?;
        }
        for id in self.ids() {
            let (s, (before, at_each)) = (self.stage(id), self.checks(id));
            writeln!(f, "  {}[{}]", s.name, self.dims_text(&s.dims))?;
            s.when.iter().try_for_each(|c| writeln!(f, "    when {}", self.show(*c)))?;
            before.iter().try_for_each(|c| writeln!(f, "    check {}", self.show(*c)))?;
            match &s.def {
                Definition::Pure(each) => {
                    each.iter().try_for_each(|b| writeln!(f, "    = {}", self.show(*b)))?;
                }
                Definition::Reduce { over, init, next, .. } => {
                    init.iter().try_for_each(|b| writeln!(f, "    from {}", self.show(*b)))?;
                    writeln!(f, "    over {}", self.dims_text(over))?;
                    at_each.iter().try_for_each(|c| writeln!(f, "    check {}", self.show(*c)))?;
                    next.iter().try_for_each(|b| writeln!(f, "    = {}", self.show(*b)))?;
                }
                Definition::Recur { axis, init, next, each, .. } => {
                    init.iter().try_for_each(|b| writeln!(f, "    from {}", self.show(*b)))?;
                    writeln!(f, "    by {}, after {}", self.dim(s.dims[*axis]).name, self.dim(*each).name)?;
                    at_each.iter().try_for_each(|c| writeln!(f, "    check {}", self.show(*c)))?;
                    next.iter().try_for_each(|b| writeln!(f, "    = {}", self.show(*b)))?;
                }
                Definition::Scatter { over, only, at, value, .. } => {
                    writeln!(f, "    over {}", self.dims_text(over))?;
                    at_each.iter().try_for_each(|c| writeln!(f, "    check {}", self.show(*c)))?;
                    only.iter().try_for_each(|c| writeln!(f, "    only {}", self.show(*c)))?;
                    let at: Vec<String> = at.iter().map(|b| self.show(*b)).collect();
                    value.iter().try_for_each(|b| writeln!(f, "    at {} add {}", at.join(", "), self.show(*b)))?;
                }
            }
        }
        let outputs = self.outputs.iter().map(|o| match o {
            Output::Scalar(b) | Output::Size(b) => self.show(*b),
            Output::Data(from) => self.source(*from),
        });
        writeln!(f, "  result {}", outputs.collect::<Vec<_>>().join(", "))
    }
}
