//! `(reduce fma n (lam (i : I) (tuple a b)))`: a contracted sum of products becomes folds, one a size, each step of which is
//! `fma a b acc`, from 0.

use super::Elab;
use crate::diag::Result;
use crate::ir::{Head, Id, Lit, Op, Scalar, Ty};

impl Elab<'_> {
    pub(super) fn form_contracted(&mut self, at: usize, args: &[usize]) -> Result<Id> {
        let mark = self.opened();
        let mut sizes = vec![];
        let each = self.components(args[0])?;
        for n in &each {
            // Only an inner size is evaluated in more than one round.
            let now = self.now(*n);
            sizes.push(if each.len() > 1 { self.bind(now) } else { self.val(now) });
        }
        let (lam, rank) = (self.lambda(args[1])?, sizes.len());
        let names = lam.names(rank).unwrap_or_else(|| vec!["i".to_string(); rank]);
        let pair = self.binder(&lam, &vec![Ty::int(); rank])?;
        let ty = match self.terms.ty(pair).as_tuple() {
            Some([a, b]) if a == b && a.as_scalar().is_some_and(Scalar::is_float) => *a,
            _ => {
                let label = format!("expected two floats of one type, found {}", self.terms.ty(pair));
                return Err(self.error(lam.body, "`reduce fma` takes pairs of factors", &label));
            }
        };
        // Each loop binds a sum beside its index.
        let pair = self.terms.map_free(pair, 0, &mut |t, i, ty, depth| {
            let i = i as usize;
            let own = if i < rank { 2 * i } else { i + rank };
            t.var((own + depth) as u32, ty)
        });
        let from = self.scope.len();
        (0..rank).for_each(|_| self.scope.extend([ty, Ty::int()]));
        let mut out = self.contracted_step(pair, ty);
        for (k, n) in sizes.into_iter().enumerate().rev() {
            self.scope.truncate(from + 2 * k);
            let first = if k == 0 {
                self.terms.lit(Lit::zero(ty.as_scalar().unwrap_or(Scalar::F64)))
            } else {
                self.terms.var(1, ty)
            };
            let (n, i) = (self.now(n), self.terms.var(0, Ty::int()));
            let steps = self.node(at, Head::Build(1), &[n, i], &[args[0]])?;
            out = self.node(at, Head::Fold, &[first, steps, out], &[at, args[0], lam.body])?;
            let each = vec!["acc".to_string(), names[k].clone()];
            let chosen = self.chosen(Head::Fold, &each);
            self.terms.name(out, each, chosen);
        }
        Ok(self.close(mark, out))
    }

    /// `fma a b acc` of a pair, where the sum is the last variable but one.
    fn contracted_step(&mut self, pair: Id, ty: Ty) -> Id {
        if let (Head::Tuple, [a, b]) = (self.terms.head(pair), self.terms.kids(pair)) {
            let (a, b) = (*a, *b);
            let acc = self.terms.var(1, ty);
            return self.terms.op(Op::Fma, [a, b, acc]);
        }
        let both = self.terms.ty(pair);
        let of = self.terms.var(0, both);
        let [a, b] = [0, 1].map(|k| self.terms.put(Head::Get(k, 2), [of]));
        let acc = self.terms.var(2, ty);
        let sum = self.terms.op(Op::Fma, [a, b, acc]);
        self.terms.put(Head::Let, [pair, sum])
    }
}
