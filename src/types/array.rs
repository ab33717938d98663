//! Array forms: indices and sizes are taken apart, maps become builds.

use super::Elab;
use super::lambda::Lambda;
use super::scope::Val;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Monoid, Op, Ty, TyKind};

impl Elab<'_> {
    /// An index or size as its components. They are right at the depth they carry: lets may open.
    pub(super) fn components(&mut self, at: usize) -> Result<Vec<Val>> {
        if let Some(parts) = self.tree.headed(at, "tuple").map(<[usize]>::to_vec) {
            let mut out = vec![];
            for p in parts {
                let id = self.expr(p)?;
                if self.terms.ty(id) != Ty::int() {
                    let label = format!("expected Integer, found {}", self.terms.ty(id));
                    return Err(self.error(p, "indices and sizes are integers", &label));
                }
                out.push(self.val(id));
            }
            return Ok(out);
        }
        if let Some([of]) = self.tree.headed(at, "size") {
            let of = self.expr(*of)?;
            if let Some((rank, _)) = self.terms.ty(of).as_tensor() {
                let of = if rank > 1 { self.bind(of) } else { self.val(of) };
                let sizes = self.asked_sizes(of, rank);
                return Ok(sizes.into_iter().map(|s| self.val(s)).collect());
            }
        }
        let id = self.expr(at)?;
        let ty = self.terms.ty(id);
        if ty == Ty::int() {
            return Ok(vec![self.val(id)]);
        }
        match ty.as_tuple() {
            Some(parts) if !parts.is_empty() && parts.iter().all(|p| *p == Ty::int()) => {
                if self.terms.head(id) == Head::Tuple {
                    let kids = self.terms.kids(id).to_vec();
                    return Ok(kids.into_iter().map(|k| self.val(k)).collect());
                }
                let whole = self.bind(id);
                let n = parts.len();
                let parts: Vec<Id> = (0..n).map(|k| self.part(whole, k, n)).collect();
                Ok(parts.into_iter().map(|p| self.val(p)).collect())
            }
            _ => {
                let label = format!("expected Integer or a tuple of Integers, found {ty}");
                Err(self.error(at, "indices and sizes are integers", &label))
            }
        }
    }

    pub(super) fn all_now(&mut self, vals: &[Val]) -> Vec<Id> {
        vals.iter().map(|v| self.now(*v)).collect()
    }

    fn size_and_lambda(&mut self, at: usize, args: &[usize], head: impl Fn(usize) -> Head) -> Result<Id> {
        let mark = self.opened();
        let sizes = self.components(args[0])?;
        let kids = self.all_now(&sizes);
        let lam = self.lambda(args[1])?;
        let id = self.looped(at, head(sizes.len()), kids, &lam)?;
        Ok(self.close(mark, id))
    }

    pub(super) fn form_build(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        self.size_and_lambda(at, args, Head::Build)
    }

    pub(super) fn form_sumbuild(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        self.size_and_lambda(at, args, |d| Head::Reduce(Monoid::Add, d))
    }

    pub(super) fn form_reduce(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let name = self.tree.name(args[0]).unwrap_or_default();
        if name == Op::Fma.name() {
            return self.form_contracted(at, &args[1..]);
        }
        let Some(monoid) = Monoid::ALL.into_iter().find(|m| m.name() == name) else {
            let label = "expected `add`, `mul`, `min`, `max`, `and`, `or` or `fma`";
            return Err(self.error(args[0], "unknown reduction", label).hint(self.reduction(args)));
        };
        self.size_and_lambda(at, &args[1..], move |d| Head::Reduce(monoid, d))
    }

    pub(super) fn form_arg(&mut self, at: usize, args: &[usize], monoid: Monoid) -> Result<Id> {
        let size = self.expr(args[0])?;
        let lam = self.lambda(args[1])?;
        self.looped(at, Head::Arg(monoid), vec![size], &lam)
    }

    pub(super) fn form_index(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let indices = self.components(args[0]).map_err(|d| d.hint(self.swapped(args)))?;
        let of = self.expr(args[1])?;
        let mut kids = self.all_now(&indices);
        kids.push(of);
        let mut places = vec![args[0]; kids.len()];
        places[kids.len() - 1] = args[1];
        let id = self.node(at, Head::Index(indices.len()), &kids, &places)?;
        Ok(self.close(mark, id))
    }

    pub(super) fn form_size(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let of = self.expr(args[0])?;
        let Some((rank, _)) = self.terms.ty(of).as_tensor() else {
            let label = format!("expected a tensor, found {}", self.terms.ty(of));
            return Err(self.error(args[0], "only tensors have a size", &label));
        };
        if rank == 1 {
            return self.node(at, Head::Size(0), &[of], args);
        }
        let mark = self.opened();
        let of = self.bind(of);
        let sizes = self.asked_sizes(of, rank);
        let id = self.terms.put(Head::Tuple, sizes);
        Ok(self.close(mark, id))
    }

    pub(super) fn form_shape(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let of = self.one(at, args)?;
        let of = self.bind(of);
        let ty = self.terms.ty(of.id);
        if ty.has_tensor() {
            self.spell("shape", &[], &[ty], |e, args| Ok(e.shape_of(args[0])))?;
        }
        let id = self.shape_of(of);
        Ok(self.close(mark, id))
    }

    /// The shape: unit of scalars, the shapes of the components, a tensor of shapes.
    pub(super) fn shape_of(&mut self, v: Val) -> Id {
        let ty = self.terms.ty(v.id);
        match *ty.kind() {
            TyKind::Scalar(_) | TyKind::String | TyKind::Var(..) => self.shape_of_scalars(ty),
            TyKind::Tuple(ref parts) => {
                let parts: Vec<Id> = (0..parts.len())
                    .map(|k| {
                        let part = self.part(v, k, parts.len());
                        let part = self.val(part);
                        self.shape_of(part)
                    })
                    .collect();
                self.terms.put(Head::Tuple, parts)
            }
            TyKind::Tensor(rank, elem) if elem.has_tensor() => self.like(v, rank, |e, levels| {
                let x = e.element(levels, v);
                let x = e.val(x);
                e.shape_of(x)
            }),
            // All elements have one shape, which no element is read for.
            TyKind::Tensor(rank, elem) => {
                let mut kids = self.sizes(v, rank);
                kids.push(self.shape_of_scalars(elem));
                self.terms.put(Head::ConstVec(rank), kids)
            }
        }
    }

    /// The shape of what has no tensors.
    fn shape_of_scalars(&mut self, ty: Ty) -> Id {
        let parts: Vec<Id> = ty.as_tuple().unwrap_or_default().iter().map(|t| self.shape_of_scalars(*t)).collect();
        self.terms.put(Head::Tuple, parts)
    }

    fn tensor_rank(&mut self, at: usize, v: Val) -> Result<usize> {
        match self.terms.ty(v.id).as_tensor() {
            Some((rank, _)) => Ok(rank),
            None => {
                let label = format!("expected a tensor, found {}", self.terms.ty(v.id));
                Err(self.error(at, "type mismatch", &label))
            }
        }
    }

    pub(super) fn form_map(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let lam = self.lambda(args[0])?;
        let of = self.expr(args[1])?;
        let of = self.bind(of);
        let rank = self.tensor_rank(args[1], of)?;
        let mut kids = self.sizes(of, rank);
        let from = self.depth();
        self.scope.extend(vec![Ty::int(); rank]);
        let levels: Vec<usize> = (from..self.depth()).collect();
        let x = self.element(&levels, of);
        let body = self.over(&lam, &[x])?;
        self.scope.truncate(from);
        kids.push(body);
        let id = self.node(at, Head::Build(rank), &kids, &[])?;
        self.terms.says("map");
        self.called(id, &lam, &[of]);
        Ok(self.close(mark, id))
    }

    pub(super) fn form_map2(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let lam = self.lambda(args[0])?;
        let (a, b) = (self.expr(args[1])?, args[2]);
        let a = self.bind(a);
        let b_id = self.expr(b)?;
        let b = self.bind(b_id);
        let rank = self.tensor_rank(args[1], a)?;
        if self.tensor_rank(args[2], b)? != rank {
            return Err(self.error(
                args[2],
                "type mismatch",
                &format!("expected a tensor of rank {rank}, found {}", self.terms.ty(b.id)),
            ));
        }
        let sizes = self.bound_sizes(a, rank);
        let (fits, pairs) = self.same_sizes(&sizes, b);
        let mut kids = self.all_now(&sizes);
        let from = self.depth();
        self.scope.extend(vec![Ty::int(); rank]);
        let levels: Vec<usize> = (from..self.depth()).collect();
        let elements = [self.element(&levels, a), self.element(&levels, b)];
        let body = self.over(&lam, &elements)?;
        self.scope.truncate(from);
        kids.push(body);
        let mut id = self.node(at, Head::Build(rank), &kids, &[])?;
        self.called(id, &lam, &[a, b]);
        if let Some(fits) = fits {
            id = self.node(at, Head::Assert, &[fits, id], &[])?;
            self.fits.insert(id, pairs);
        }
        self.terms.says("map2");
        Ok(self.close(mark, id))
    }

    /// Remembers what the parameters of a function are called that a loop is made of: that of the outermost tensor first.
    fn called(&mut self, id: Id, lam: &Lambda, tensors: &[Val]) {
        let Some(names) = lam.names(tensors.len()) else { return };
        let mut each: Vec<(Id, String)> = tensors.iter().map(|t| self.now(*t)).zip(names).collect();
        each.sort_by_key(|(t, _)| match self.terms.head(*t) {
            Head::Var(i, _) => std::cmp::Reverse(i),
            _ => std::cmp::Reverse(0),
        });
        self.terms.made_of(id, each.into_iter().map(|(_, name)| name).collect());
    }

    /// Whether another tensor has these outer sizes, and which pairs of sizes have to be equal for that: those that
    /// share a name are.
    pub(super) fn same_sizes(&mut self, sizes: &[Val], b: Val) -> (Option<Id>, Vec<(Id, Id)>) {
        let sizes = self.all_now(sizes);
        let theirs = self.sizes(b, sizes.len());
        let pairs: Vec<(Id, Id)> = sizes.into_iter().zip(theirs).filter(|(x, y)| !self.share_name(*x, *y)).collect();
        let each: Vec<Id> = pairs.iter().map(|(x, y)| self.op(Op::Eq, &[*x, *y])).collect();
        ((!each.is_empty()).then(|| self.all(&each)), pairs)
    }

    /// The conjunction of truth values; there is at least one.
    pub(super) fn all(&mut self, each: &[Id]) -> Id {
        let mut out = each[0];
        for e in &each[1..] {
            out = self.op(Op::And, &[out, *e]);
        }
        out
    }

    pub(super) fn form_fold(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let lam = self.lambda(args[0])?;
        let kids = vec![self.expr(args[1])?, self.expr(args[2])?];
        if self.terms.ty(kids[1]).as_tensor().is_none_or(|(r, _)| r != 1) {
            let label = format!("expected a vector, found {}", self.terms.ty(kids[1]));
            return Err(self.error(args[2], "type mismatch", &label));
        }
        self.looped(at, Head::Fold, kids, &lam)
    }

    pub(super) fn form_scan(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let lam = self.lambda(args[0])?;
        let kids = vec![self.expr(args[1])?, self.expr(args[2])?];
        self.looped(at, Head::Scan, kids, &lam)
    }

    /// `(iterate n f x)`: a fold over the numbers of the steps. The function takes the state, or the
    /// state and the number.
    pub(super) fn form_iterate(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let lam = self.lambda(args[1])?;
        let ends = self.each(&[args[0], args[2]], Self::expr)?;
        let (count, init) = (ends[0], ends[1]);
        let number = self.under(&[Ty::int()], |e, levels| e.level(levels[0]));
        let steps = self.node(at, Head::Build(1), &[count, number], &[args[0]])?;
        let state = self.terms.ty(init);
        let bound = [state, Ty::int()];
        let used = if self.takes(&lam, &bound[..1]) || !self.takes(&lam, &bound) { 1 } else { 2 };
        let mut names = self.remembered(Head::Fold, &lam, used);
        if used == 1 {
            names.extend(self, Head::Fold);
        }
        let body = self.binder_of(&lam, &bound, used)?;
        let id = self.node(at, Head::Fold, &[init, steps, body], &[args[2], args[0], lam.body])?;
        self.remember(id, names);
        let older = self.tree.headed(at, "ifold").is_some();
        self.terms.says(if older { "ifold" } else { "iterate" });
        Ok(id)
    }

    pub(super) fn form_const_vec(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let sizes = self.components(args[0])?;
        let value = self.expr(args[1])?;
        let mut kids = self.all_now(&sizes);
        kids.push(value);
        let id = self.node(at, Head::ConstVec(sizes.len()), &kids, &[])?;
        Ok(self.close(mark, id))
    }

    /// A tensor with another element at an index, which has to be in range.
    pub(super) fn with_element(&mut self, at: usize, args: [Val; 3]) -> Result<Id> {
        let [place, tensor, new] = args.map(|v| {
            let id = self.now(v);
            self.bind(id)
        });
        let tys = [place, tensor, new].map(|v| self.terms.ty(v.id));
        self.spell("setAt", &[], &tys, |e, args| e.changed(at, args))?;
        self.changed(at, &[place, tensor, new])
    }

    fn changed(&mut self, at: usize, args: &[Val]) -> Result<Id> {
        let [place, tensor, new] = *args else { return Err(Diagnostic::consequence()) };
        let rank = self.tensor_rank(at, tensor)?;
        let parts: Vec<Val> = (0..rank)
            .map(|k| {
                let part = if rank == 1 { self.now(place) } else { self.part(place, k, rank) };
                self.val(part)
            })
            .collect();
        // Reading the old element says whether the index is in range.
        let mut kids = self.all_now(&parts);
        kids.push(self.now(tensor));
        let old = self.node(at, Head::Index(rank), &kids, &[])?;
        let mark = self.opened();
        self.open(old, None);
        let changed = self.like(tensor, rank, |e, levels| {
            let mut same = vec![];
            for (level, part) in levels.iter().zip(&parts) {
                let pair = [e.level(*level), e.now(*part)];
                same.push(e.op(Op::Eq, &pair));
            }
            let (here, kept, new) = (e.all(&same), e.element(levels, tensor), e.now(new));
            e.terms.put(Head::If, [here, new, kept])
        });
        Ok(self.close(mark, changed))
    }

    pub(super) fn form_delta_vec(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let sizes = self.components(args[0])?;
        let index = self.components(args[1])?;
        if index.len() != sizes.len() {
            let label = format!("expected rank {}, found rank {}", sizes.len(), index.len());
            return Err(self.error(args[1], "the index has another rank than the size", &label));
        }
        let value = self.expr(args[2])?;
        let mut kids = self.all_now(&sizes);
        kids.extend(self.all_now(&index));
        kids.push(value);
        let mut places = vec![at; kids.len()];
        places[kids.len() - 1] = args[2];
        let id = self.node(at, Head::DeltaVec(sizes.len()), &kids, &places)?;
        Ok(self.close(mark, id))
    }

    pub(super) fn form_diag(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let rows = self.expr(args[0])?;
        let rows = self.val(rows);
        let columns = self.expr(args[1])?;
        let (rows, columns) = self.one_then_other(rows, columns);
        let lam = self.lambda(args[2])?;
        let outer = self.now(rows);
        let names = self.remembered(Head::Build(1), &lam, 1);
        let value = self.binder(&lam, &[Ty::int()])?;
        let from = self.depth();
        self.scope.push(Ty::int());
        let kids = [self.now(columns), self.level(from), value];
        let row = self.node(at, Head::DeltaVec(1), &kids, &[args[1], args[2], args[2]])?;
        self.scope.truncate(from);
        let id = self.node(at, Head::Build(1), &[outer, row], args)?;
        self.remember(id, names);
        self.terms.says("diag");
        Ok(self.close(mark, id))
    }

    pub(super) fn form_unzip(&mut self, _at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let of = self.expr(args[0])?;
        let of = self.bind(of);
        let Some((rank, parts)) = self.terms.ty(of.id).as_tensor().and_then(|(r, e)| Some((r, e.as_tuple()?))) else {
            let label = format!("expected a tensor of tuples, found {}", self.terms.ty(of.id));
            return Err(self.error(args[0], "type mismatch", &label));
        };
        let n = parts.len();
        let id = self.spell_as("unzip", &[of], |e, args| {
            let (of, inner) = (args[0], e.opened());
            let sizes = e.bound_sizes(of, rank);
            let tensors: Vec<Id> = (0..n)
                .map(|k| {
                    let mut kids = e.all_now(&sizes);
                    kids.push(e.under(&vec![Ty::int(); rank], |e, levels| {
                        let x = e.element(levels, of);
                        e.terms.put(Head::Get(k as u32, n as u32), [x])
                    }));
                    e.terms.put(Head::Build(rank), kids)
                })
                .collect();
            let id = e.terms.put(Head::Tuple, tensors);
            Ok(e.close(inner, id))
        })?;
        Ok(self.close(mark, id))
    }
}
