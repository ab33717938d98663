//! Accumulators of the elements of a tile: those whose loops stand inside of loops over what is reduced, or over the steps of
//! a recurrence, have one each, in a small buffer. It must not know what is accumulated.

use super::Lower;
use super::loops::Run;
use crate::ir::Scalar;
use crate::nest::{Buf, Expr, Info, Stmt, Var};
use crate::schedule::plan::Loop;
use crate::stage::Body;

/// Accumulators by the loops over their elements.
pub(super) struct Tile {
    /// The loops, outermost first.
    pub(super) loops: Vec<Loop>,
    /// How many iterations of each there is room for.
    room: Vec<Body>,
    /// A buffer a component.
    bufs: Vec<Buf>,
}

impl Lower<'_> {
    /// Memory for a tile of the stage that runs.
    pub(super) fn tile(&mut self, run: &Run, loops: &[Loop]) -> Tile {
        let room: Vec<Body> = loops.iter().map(|l| self.tile_room(run, &l.name)).collect();
        self.see_tile(run.stage, &room);
        let dims = self.element(&room);
        let known = self.g.stage(run.stage).clone();
        let mut bufs = vec![];
        for ty in &known.tys {
            let b = self.f.fresh_buf(Info::scalar(format!("{}_acc", known.name), *ty));
            self.push(Stmt::Alloc(b, dims.clone()));
            bufs.push(b);
        }
        Tile { loops: loops.to_vec(), room, bufs }
    }

    /// Room for the iterations of a loop of a tile.
    fn tile_room(&mut self, run: &Run, name: &str) -> Body {
        let n = self.most(run, name);
        self.room(n)
    }

    /// The place of the element at the loops that are open.
    pub(super) fn place_in(&mut self, tile: &Tile, run: &Run) -> Expr {
        let zero = self.g.bodies.int(0);
        let at: Vec<Body> = tile.loops.iter().map(|t| run.values.get(&t.name).copied().unwrap_or(zero)).collect();
        let at = self.offset(&at, &tile.room);
        self.element(&[at])[0].clone()
    }

    /// Sets the accumulators of the element at a place.
    pub(super) fn accumulated(&mut self, tile: &Tile, at: &Expr, values: Vec<Expr>) {
        for (b, e) in tile.bufs.iter().zip(values) {
            self.push(Stmt::Store(*b, at.clone(), e));
        }
    }

    /// Constants for some values.
    pub(super) fn constants(&mut self, name: &str, values: Vec<Expr>) -> Vec<Var> {
        let each = values.into_iter().map(|e| {
            let ty: Scalar = self.f.ty(&e);
            let v = self.f.fresh(name, ty);
            self.push(Stmt::Let(v, e));
            v
        });
        each.collect()
    }
}

impl Tile {
    /// The accumulators of the element at a place.
    pub(super) fn load(&self, at: &Expr) -> Vec<Expr> {
        self.bufs.iter().map(|b| Expr::Load(*b, Box::new(at.clone()))).collect()
    }
}
