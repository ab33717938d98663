//! Elements that are read where data say, again for each index of other loops, are gathered once: into a table that is read as
//! it lies, and can be packed and tiled as any other. Rows of an embedding in a product, say, or the corners of triangles for
//! each parameter of a derivative.
//!
//! What is checked of the indices is checked where they are gathered.

use super::body::{Body, DimId, Node, Source, StageId};
use super::bounds::Ranges;
use super::graph::{Definition, Graph, Stage};
use super::same::{Key, Same};
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
        let (stage, named) = (self.stage(s).clone(), self.bodies.dims(b));
        let dims: Vec<DimId> = stage.all_dims().into_iter().filter(|d| named.contains(d)).collect();
        let known = |d: &DimId| self.bodies.as_int(self.dim(*d).extent).is_some();
        (!dims.is_empty() && dims.iter().all(known)).then_some(())?;
        let mut ranges = Ranges::default();
        for d in &dims {
            let extent = self.dim(*d).extent;
            ranges.push(&mut self.bodies, *d, extent);
        }
        // All that decides where is evaluated for the table as it is for the stage: indices that are gathered themselves, too.
        let mut checks = vec![];
        for part in self.bodies.reachable([b]) {
            let left = match self.bodies.node(part).clone() {
                Node::Acc(..) => return None,
                Node::Load(Source::Stage(p, _), ..) if self.stage(p).steps().is_some() => return None,
                Node::Load(from, _, at) => self.in_doubt((from, &at), &ranges, &dims)?,
                node => self.is_total(&node, &ranges, &dims).then(Vec::new)?,
            };
            left.iter().all(|c| stage.checks.contains(c)).then_some(())?;
            checks.extend(left);
        }
        // In the order in which they are checked.
        checks.sort_by_key(|c| stage.checks.iter().position(|k| k == c));
        checks.dedup();
        let (name, tys, def) = (String::new(), vec![self.bodies.ty(b)], Definition::Pure(vec![b]));
        let table = Stage { name, dims, tys, when: None, def, checks };
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
        stage.bodies_mut().for_each(|b| *b = self.bodies.map(*b, &mut of, &mut |_, _| None));
        let checks = stage.checks.clone();
        stage.checks.retain(|c| !checked.iter().any(|k| of.get(k).unwrap_or(k) == c));
        self.stages[s.0 as usize] = stage;
        // What is still read where data say may need them before a table is there.
        if !self.indirect(s).is_empty() {
            self.stages[s.0 as usize].checks = checks;
        }
    }
}
