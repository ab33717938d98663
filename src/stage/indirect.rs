//! Elements that are read where data say, again for each index of other loops, are gathered once: into a table that is read as
//! it lies, and can be packed and tiled as any other. Rows of an embedding in a product, say, or the corners of triangles for
//! each parameter of a derivative.
//!
//! What is checked of the indices is checked where they are gathered.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Stage};
use super::same::{Key, Same};
use crate::ir::Op;
use rustc_hash::FxHashMap;

/// A table is read for each of its elements so often.
const OFTEN: i64 = 8;

impl Graph {
    /// Gathers once what stages read again where data say.
    pub(super) fn gathered_once(&mut self) {
        let mut same = Same::default();
        let all: Vec<StageId> = self.order().into_iter().filter(|s| self.is_alone(*s)).collect();
        for s in &all {
            for b in self.indirect(*s) {
                let Some((table, key)) = self.gather_table(*s, b, &mut same) else { continue };
                if self.is_read_often(*s, &table.dims) && same.find(&key).is_none() {
                    let id = self.add_gathered(table);
                    same.insert(key, id);
                }
            }
        }
        all.into_iter().for_each(|s| self.reads_gathered(s, &mut same));
    }

    /// What a stage reads at indices that data decide.
    fn indirect(&self, s: StageId) -> Vec<Body> {
        let all = self.bodies.reachable(self.stage(s).bodies()).into_iter();
        let by_data = |b: &Body| match self.bodies.node(*b) {
            Node::Load(_, _, at) => at.iter().any(|i| self.bodies.is_data(*i)),
            _ => false,
        };
        all.filter(by_data).collect()
    }

    /// The table of what a stage reads, over the loops that decide where, with the checks that its indices need; nothing where
    /// they are not known to be in range, or lengths are not known.
    fn gather_table(&mut self, s: StageId, b: Body, same: &mut Same) -> Option<(Stage, Key)> {
        let Node::Load(from, ty, at) = self.bodies.node(b).clone() else { return None };
        let stage = self.stage(s).clone();
        let named = self.bodies.dims(b);
        let dims: Vec<DimId> = stage.all_dims().into_iter().filter(|d| named.contains(d)).collect();
        let known = |d: &DimId| self.bodies.as_int(self.dim(*d).extent).is_some();
        let state = |b: &Body| matches!(self.bodies.node(*b), Node::Acc(..));
        let waits = from.stage().is_some_and(|p| self.stage(p).when.is_some() || self.stage(p).steps().is_some());
        if dims.is_empty() || waits || !dims.iter().all(known) || self.bodies.reachable([b]).iter().any(state) {
            return None;
        }
        let mut ranges = Ranges::default();
        for d in &dims {
            let extent = self.dim(*d).extent;
            ranges.push(&mut self.bodies, *d, extent);
        }
        // Indices may be gathered themselves.
        let loads: Vec<Body> = self.bodies.reachable([b]);
        let mut checks = vec![];
        for load in loads {
            let Node::Load(from, _, at) = self.bodies.node(load).clone() else { continue };
            for (i, n) in at.iter().zip(self.extents(from)) {
                let zero = self.bodies.int(0);
                for c in [(Op::Gte, zero), (Op::Lt, n)].map(|(op, end)| self.bodies.test(op, *i, end)) {
                    let holds = self.bodies.as_bool(c) == Some(true)
                        || ranges.hold(&mut self.bodies, c, &[n])
                        || self.is_checked(c, &dims);
                    if !holds && !checks.contains(&c) {
                        stage.checks.contains(&c).then(|| checks.push(c))?;
                    }
                }
            }
        }
        // In the order in which they are checked.
        checks.sort_by_key(|c| stage.checks.iter().position(|k| k == c));
        let body = self.bodies.load(from, ty, at.iter().copied());
        let name = String::new();
        let table = Stage { name, dims, tys: vec![ty], when: None, def: Definition::Pure(vec![body]), checks };
        let key = same.key(self, &table, &[]);
        Some((table, key))
    }

    /// Whether a stage reads each element of a table over some of its loops for many indices of the others.
    fn is_read_often(&self, s: StageId, dims: &[DimId]) -> bool {
        let others = self.stage(s).all_dims().into_iter().filter(|d| !dims.contains(d));
        let each = others.map(|d| self.bodies.as_int(self.dim(d).extent));
        each.product::<Option<i64>>().is_some_and(|n| n >= OFTEN)
    }

    fn add_gathered(&mut self, table: Stage) -> StageId {
        let mut dims = vec![];
        for d in &table.dims {
            dims.push(self.add_dim(self.dim(*d).name.clone(), self.dim(*d).extent));
        }
        let of: FxHashMap<DimId, Body> =
            table.dims.iter().zip(&dims).map(|(d, new)| (*d, self.bodies.index(*new))).collect();
        let name = self.free_name("gathered");
        let mut made = Stage { name, dims, ..table };
        made.bodies_mut().for_each(|b| *b = self.bodies.substitute(*b, &of));
        self.add_stage(made)
    }

    /// Lets a stage read the tables that there are.
    fn reads_gathered(&mut self, s: StageId, same: &mut Same) {
        let (mut of, mut checked) = (FxHashMap::default(), vec![]);
        for b in self.indirect(s) {
            let Some((table, key)) = self.gather_table(s, b, same) else { continue };
            let Some(id) = same.find(&key) else { continue };
            let at: Vec<Body> = table.dims.iter().map(|d| self.bodies.index(*d)).collect();
            let read = self.bodies.load(Source::Stage(id, 0), table.tys[0], at);
            of.insert(b, read);
            checked.extend(table.checks);
        }
        if of.is_empty() {
            return;
        }
        let mut stage = self.stage(s).clone();
        stage.checks.retain(|c| !checked.contains(c));
        stage.bodies_mut().for_each(|b| *b = self.bodies.map(*b, &mut of, &mut |_, _| None));
        self.stages[s.0 as usize] = stage;
    }
}
