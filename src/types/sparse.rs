//! `buildFromSparse` and its tupled kin: elements of scalars are a node; elements with tensors are
//! spelled out, as scattered scalars for each place in an element, put together again at the end.

use super::Elab;
use super::lambda::{Lambda, Remembered};
use super::scope::Val;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Op, Ty, TyKind};

/// The way from an element to one of its parts.
#[derive(Clone, Copy)]
enum Step {
    /// Component `k` of a tuple of `n`.
    Part(u32, u32),
    /// Through a tensor of this rank, whose sizes begin at this one.
    Axes(usize, usize),
}

/// The loop that makes what is scattered.
#[derive(Clone, Copy)]
enum Steps {
    /// So many steps of the lambda.
    Counted(Val),
    /// One step for each element of a tensor of this rank, the last axis fastest.
    Over(Val, usize),
}

/// What is scattered: a table of pairs of index and element.
struct Pairs {
    table: Val,
    outer: Vec<Val>,
}

impl Elab<'_> {
    /// The size that a `buildFromSparse` shape means.
    fn sparse_size(&mut self, at: usize) -> Result<Vec<Val>> {
        let tree = self.tree;
        let tuple_or_size = tree.headed(at, "tuple").is_some() || tree.headed(at, "size").is_some();
        if !tuple_or_size {
            let mark = self.mark();
            let id = self.expr(at)?;
            if let Some((rank, _)) = self.terms.ty(id).as_tensor() {
                let of = self.bind(id);
                let sizes = self.sizes(of, rank);
                return Ok(sizes.into_iter().map(|s| self.val(s)).collect());
            }
            self.restore(&mark);
        }
        self.components(at)
    }

    pub(super) fn form_sparse(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let sizes = self.sparse_size(args[0])?;
        let (lam, steps) = self.steps(at, args)?;
        let (count, body, names) = self.step(at, &lam, steps, sizes.len())?;
        let id = self.scattered((at, lam.body), &sizes, count, body, names)?;
        Ok(self.close(mark, id))
    }

    pub(super) fn form_sparse_tupled(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let Some(shapes) = self.tree.headed(args[0], "tuple").map(<[usize]>::to_vec) else {
            return Err(self.error(args[0], "expected a tuple of shapes", "such as `(tuple n m)`"));
        };
        let sizes = shapes.iter().map(|s| self.sparse_size(*s)).collect::<Result<Vec<_>>>()?;
        let (lam, mut steps) = self.steps(at, args)?;
        if let Steps::Counted(count) = steps {
            let count = self.now(count);
            steps = Steps::Counted(self.bind(count));
        }
        let mut out = vec![];
        for (k, size) in sizes.iter().enumerate() {
            let (count, body, names) = self.step(at, &lam, steps, size.len())?;
            let Some(parts) = self.terms.ty(body).as_tuple().filter(|p| p.len() == sizes.len()) else {
                let label = format!("expected a tuple of {} pairs of index and value", sizes.len());
                return Err(self.error(lam.body, "type mismatch", &label));
            };
            let part = self.terms.put(Head::Get(k as u32, parts.len() as u32), [body]);
            let id = self.scattered((at, lam.body), size, count, part, names)?;
            let id = self.val(id);
            out.push(id);
        }
        let parts: Vec<Id> = out.into_iter().map(|v| self.now(v)).collect();
        let id = self.terms.put(Head::Tuple, parts);
        Ok(self.close(mark, id))
    }

    /// The loop of the last two arguments. One over indices of several parts becomes a tensor first, so that its
    /// sizes are checked as those of any tensor.
    fn steps(&mut self, at: usize, args: &[usize]) -> Result<(Lambda, Steps)> {
        let counts = self.components(args[1])?;
        let lam = self.lambda(args[2])?;
        if let [count] = counts.as_slice() {
            return Ok((lam, Steps::Counted(*count)));
        }
        let kids: Vec<Id> = counts.iter().map(|n| self.now(*n)).collect();
        let table = self.looped(at, Head::Build(counts.len()), kids, &lam)?;
        let table = self.bind(table);
        Ok((lam, Steps::Over(table, counts.len())))
    }

    /// How many steps a loop has, and what one of them makes under one binder.
    fn step(&mut self, at: usize, lam: &Lambda, steps: Steps, rank: usize) -> Result<(Val, Id, Remembered)> {
        let (table, axes) = match steps {
            Steps::Counted(count) => {
                let names = self.remembered(Head::Scatter(rank), lam, 1);
                return Ok((count, self.binder(lam, &[Ty::int()])?, names));
            }
            Steps::Over(table, axes) => (table, axes),
        };
        let count = self.sizes(table, axes).into_iter().reduce(|a, b| self.op(Op::Mul, &[a, b]));
        let count = count.ok_or_else(|| Diagnostic::bug("a loop over no axes"))?;
        let count = self.bind(count);
        let from = self.depth();
        self.scope.push(Ty::int());
        let sizes = self.sizes(table, axes);
        let mut rest = self.level(from);
        let mut kids = vec![self.now(table)];
        for size in sizes[1..].iter().rev() {
            kids.push(self.op(Op::Mod, &[rest, *size]));
            rest = self.op(Op::Div, &[rest, *size]);
        }
        kids.push(rest);
        kids.reverse();
        let element = self.node(at, Head::Index(axes), &kids, &[])?;
        self.scope.truncate(from);
        Ok((count, element, Remembered::default()))
    }

    /// Zeros of these sizes with the elements of a body, a pair of index and element under one
    /// binder, added at their indices.
    fn scattered(
        &mut self,
        (at, place): (usize, usize),
        sizes: &[Val],
        count: Val,
        body: Id,
        names: Remembered,
    ) -> Result<Id> {
        let d = sizes.len();
        let element = match self.terms.ty(body).as_tuple() {
            Some([index, e]) if *index == Ty::index(d) && e.is_additive() && e.has_tensor() => *e,
            _ => {
                let mut kids: Vec<Id> = sizes.iter().map(|s| self.now(*s)).collect();
                kids.push(self.now(count));
                kids.push(body);
                let places = vec![place; kids.len()];
                let id = self.node(at, Head::Scatter(d), &kids, &places)?;
                self.remember(id, names);
                return Ok(id);
            }
        };
        let mark = self.opened();
        let kids = [self.now(count), body];
        let table = self.node(at, Head::Build(1), &kids, &[])?;
        self.remember(table, names);
        let table = self.bind(table);
        let pairs = Pairs { table, outer: sizes.to_vec() };
        let mut axes = vec![];
        let mut leaves = vec![];
        self.leaves(at, &pairs, element, &mut vec![], &mut axes, &mut leaves)?;
        let outer: Vec<Id> = sizes.iter().map(|s| self.now(*s)).collect();
        let from = self.depth();
        self.scope.extend(vec![Ty::int(); d]);
        let levels: Vec<usize> = (from..self.depth()).collect();
        let (mut leaves, mut axes) = (leaves.into_iter(), axes.into_iter());
        let element = self.gathered((at, d), element, &levels, &mut leaves, &mut axes)?;
        self.scope.truncate(from);
        let id = self.node(at, Head::Build(d), &[outer.as_slice(), &[element]].concat(), &[])?;
        Ok(self.close(mark, id))
    }

    /// Scatters each scalar part of an element; lets for the sizes and tensors open. `axes` gets the
    /// sizes of all tensors in the order in which they are met.
    fn leaves(
        &mut self,
        at: usize,
        pairs: &Pairs,
        ty: Ty,
        path: &mut Vec<Step>,
        axes: &mut Vec<Vec<Val>>,
        out: &mut Vec<Val>,
    ) -> Result<()> {
        if !ty.has_tensor() {
            let id = self.scattered_part(at, pairs, path, axes)?;
            let tensor = self.bind(id);
            out.push(tensor);
            return Ok(());
        }
        match ty.kind() {
            TyKind::Tuple(parts) => {
                for (k, part) in parts.iter().enumerate() {
                    path.push(Step::Part(k as u32, parts.len() as u32));
                    self.leaves(at, pairs, *part, path, axes, out)?;
                    path.pop();
                }
                Ok(())
            }
            TyKind::Tensor(rank, elem) => {
                let mut sizes = vec![];
                for k in 0..*rank {
                    let n = self.inner_size(at, pairs, path, axes, k)?;
                    sizes.push(self.bind(n));
                }
                axes.push(sizes);
                path.push(Step::Axes(*rank, axes.len() - 1));
                self.leaves(at, pairs, *elem, path, axes, out)?;
                path.pop();
                Ok(())
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Err(Diagnostic::bug("a scalar that has a tensor")),
        }
    }

    /// A part of an element: `indices` are those of the tensors on the way.
    fn part_of(&mut self, at: usize, element: Id, path: &[Step], mut indices: &[Id]) -> Result<Id> {
        let mut id = element;
        for step in path {
            id = match *step {
                Step::Part(k, n) => self.terms.put(Head::Get(k, n), [id]),
                Step::Axes(rank, _) => {
                    let (here, rest) = indices.split_at(rank);
                    indices = rest;
                    self.node(at, Head::Index(rank), &[here, &[id]].concat(), &[])?
                }
            };
        }
        Ok(id)
    }

    /// The size of axis `k` of the tensor at a path, as the first pair has it; 0 where there is none
    /// or a tensor around it has no elements.
    fn inner_size(&mut self, at: usize, pairs: &Pairs, path: &[Step], axes: &[Vec<Val>], k: usize) -> Result<Id> {
        let zero = self.int(0);
        let around = path.iter().filter_map(|s| if let Step::Axes(_, at) = s { Some(*at) } else { None });
        let mut sizes = self.sizes(pairs.table, 1);
        for n in around.flat_map(|at| axes[at].clone()).collect::<Vec<_>>() {
            sizes.push(self.now(n));
        }
        let empty: Vec<Id> = sizes.iter().map(|n| self.op(Op::Lte, &[*n, zero])).collect();
        let mut any = empty[0];
        for e in &empty[1..] {
            any = self.op(Op::Or, &[any, *e]);
        }
        let table = self.now(pairs.table);
        let pair = self.node(at, Head::Index(1), &[zero, table], &[])?;
        let element = self.terms.put(Head::Get(1, 2), [pair]);
        let indices = vec![zero; sizes.len() - 1];
        let tensor = self.part_of(at, element, path, &indices)?;
        let size = self.terms.put(Head::Size(k), [tensor]);
        self.node(at, Head::If, &[any, zero, size], &[])
    }

    /// One scalar part of all elements: for each place in the tensors around it, the parts there
    /// added at the indices of their elements.
    fn scattered_part(&mut self, at: usize, pairs: &Pairs, path: &[Step], axes: &[Vec<Val>]) -> Result<Id> {
        let around = path.iter().filter_map(|s| if let Step::Axes(_, at) = s { Some(*at) } else { None });
        let inner: Vec<Val> = around.flat_map(|at| axes[at].clone()).collect();
        let mut places: Vec<Id> = inner.iter().map(|n| self.now(*n)).collect();
        let from = self.depth();
        self.scope.extend(vec![Ty::int(); inner.len()]);
        let mut sizes: Vec<Id> = pairs.outer.iter().map(|n| self.now(*n)).collect();
        let d = sizes.len();
        sizes.push(self.sizes(pairs.table, 1)[0]);
        let step = self.depth();
        self.scope.push(Ty::int());
        let pair = self.element(&[step], pairs.table);
        let index = self.terms.put(Head::Get(0, 2), [pair]);
        let element = self.terms.put(Head::Get(1, 2), [pair]);
        let indices: Vec<Id> = (from..step).map(|level| self.level(level)).collect();
        let value = self.part_of(at, element, path, &indices)?;
        sizes.push(self.terms.put(Head::Tuple, [index, value]));
        self.scope.truncate(step);
        let scattered = self.node(at, Head::Scatter(d), &sizes, &[])?;
        self.scope.truncate(from);
        if inner.is_empty() {
            return Ok(scattered);
        }
        places.push(scattered);
        self.node(at, Head::Build(inner.len()), &places, &[])
    }

    /// An element of the result from its scattered parts, at the indices bound at these levels: first
    /// those of the result, so many as its rank, then those of the tensors in the element.
    fn gathered(
        &mut self,
        (at, rank): (usize, usize),
        ty: Ty,
        levels: &[usize],
        leaves: &mut impl Iterator<Item = Val>,
        axes: &mut impl Iterator<Item = Vec<Val>>,
    ) -> Result<Id> {
        if !ty.has_tensor() {
            let leaf = leaves.next().ok_or_else(|| Diagnostic::bug("a part of an element was not scattered"))?;
            let (outer, inner) = levels.split_at(rank);
            let tensor = if inner.is_empty() { self.now(leaf) } else { self.element(inner, leaf) };
            let mut kids: Vec<Id> = outer.iter().map(|level| self.level(*level)).collect();
            kids.push(tensor);
            return self.node(at, Head::Index(rank), &kids, &[]);
        }
        match ty.kind() {
            TyKind::Tuple(parts) => {
                let mut out = vec![];
                for part in parts {
                    out.push(self.gathered((at, rank), *part, levels, leaves, axes)?);
                }
                Ok(self.terms.put(Head::Tuple, out))
            }
            TyKind::Tensor(own, elem) => {
                let sizes = axes.next().unwrap_or_default();
                let mut kids: Vec<Id> = sizes.iter().map(|n| self.now(*n)).collect();
                let from = self.depth();
                self.scope.extend(vec![Ty::int(); *own]);
                let inner: Vec<usize> = levels.iter().copied().chain(from..self.depth()).collect();
                kids.push(self.gathered((at, rank), *elem, &inner, leaves, axes)?);
                self.scope.truncate(from);
                self.node(at, Head::Build(*own), &kids, &[])
            }
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => Err(Diagnostic::bug("a scalar that has a tensor")),
        }
    }
}
