//! Scans whose steps give more than the next state: what a step makes beside it is a part of the state that no step
//! reads, so that the scan comes to tables of that, too; and loops that make several tables. It must not know what the
//! tables are for.

use super::emit::Val;
use super::walk::Walk;
use crate::ir::{Head, Id, Terms, Ty};

/// A table over the steps of a scan or the indices of a loop: what that gives, or a part of it.
#[derive(Clone, Copy)]
pub struct Table {
    of: Val,
    part: Option<(u32, u32)>,
}

impl Table {
    /// A vector as a table.
    pub fn whole(of: Val) -> Table {
        Table { of, part: None }
    }
}

/// What a step makes beside its state.
pub struct Extra {
    /// It, where the step stands.
    pub value: Val,
    /// Something of its type and sizes, in the scope around the scan: never read.
    pub start: Id,
}

impl Walk<'_, '_> {
    /// What is in a table at indices: a step, or those of loops.
    pub fn row(&mut self, at: &[Val], table: Table) -> Id {
        let index: Vec<Id> = at.iter().chain([&table.of]).map(|v| self.e.now(*v)).collect();
        self.entry_of(at.len(), index, table)
    }

    fn entry_of(&mut self, d: usize, index: Vec<Id>, table: Table) -> Id {
        let row = self.e.put(Head::Index(d), index);
        match table.part {
            Some((k, n)) => self.e.get(k, n, row),
            None => row,
        }
    }

    /// A table over these extents as a tensor.
    pub fn column(&mut self, extents: &[Val], table: Table) -> Id {
        let of = self.e.now(table.of);
        if table.part.is_none() {
            return of;
        }
        let d = extents.len();
        let mut index: Vec<Id> = (0..d).map(|k| self.e.terms.var((d - 1 - k) as u32, Ty::int())).collect();
        index.push(self.e.terms.shift(of, d));
        let each = self.entry_of(d, index, table);
        let extents: Vec<Id> = extents.iter().map(|n| self.e.now(*n)).collect();
        self.e.put(Head::Build(d), extents.into_iter().chain([each]))
    }

    /// A loop that makes several tables, bound by a let: what is made stands below its `d` indices, which were brought into
    /// scope when `outer` variables were. The extents stand in the scope around.
    pub fn tables(&mut self, outer: usize, extents: Vec<Id>, values: Vec<Val>) -> Vec<Table> {
        let (d, n) = (extents.len(), values.len() as u32);
        let values: Vec<Id> = values.into_iter().map(|v| self.e.now(v)).collect();
        let all = self.e.put(Head::Tuple, values);
        let body = self.e.close(outer + d, all);
        self.e.leave(outer);
        let made = self.e.put(Head::Build(d), extents.into_iter().chain([body]));
        let of = self.e.bind_always(made);
        (0..n).map(|k| Table { of, part: Some((k, n)) }).collect()
    }

    /// The last state of `n` steps, bound by a let, whose state and number were brought into scope when `outer` variables
    /// were. Both `init` and `n` stand in the scope around.
    pub fn fold(&mut self, outer: usize, (init, n): (Id, Id), next: Id) -> Table {
        let body = self.e.close(outer + 2, next);
        self.e.leave(outer);
        let k = self.e.terms.var(0, Ty::int());
        let numbers = self.e.put(Head::Build(1), [n, k]);
        let fold = self.e.put(Head::Fold, [init, numbers, body]);
        Table::whole(self.e.bind_always(fold))
    }

    /// A scan of `n` steps, bound by a let, whose state and index were brought into scope when `outer` variables were:
    /// the states after each step, and a table for each of what else the steps give. Both `init` and `n` stand in the scope
    /// around.
    pub fn scan(&mut self, outer: usize, (init, n): (Id, Id), next: Id, extras: Vec<Extra>) -> (Table, Vec<Table>) {
        // What is given already, as the next state say, is not given again.
        let (mut values, mut starts, mut places) = (vec![next], vec![init], vec![]);
        for Extra { value, start } in extras {
            let value = self.e.now(value);
            let known = values.iter().position(|v| *v == value);
            places.push(known.unwrap_or(values.len()));
            if known.is_none() {
                values.push(value);
                starts.push(start);
            }
        }
        let count = values.len() as u32;
        let (next, start) = match count {
            1 => (next, init),
            _ => (self.e.put(Head::Tuple, values), self.e.put(Head::Tuple, starts)),
        };
        let mut body = self.e.close(outer + 2, next);
        self.e.leave(outer);
        if count > 1 {
            body = of_first_part(self.e.terms, body, count, self.e.ty(start));
        }
        let scan = self.e.put(Head::Scan, [start, n, body]);
        let of = if count > 1 { self.e.bind_always(scan) } else { self.e.bind(scan) };
        let part = |k: usize| Table { of, part: (count > 1).then_some((k as u32, count)) };
        (part(0), places.into_iter().map(part).collect())
    }
}

/// The body of a step where the first of `count` parts of its state is what was all of it.
fn of_first_part(terms: &mut Terms, body: Id, count: u32, ty: Ty) -> Id {
    terms.map_free(body, 0, &mut |t, i, own, under| match i {
        1 => {
            let all = t.var(1 + under as u32, ty);
            t.put(Head::Get(0, count), [all])
        }
        i => t.var(i + under as u32, own),
    })
}
