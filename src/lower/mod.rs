//! A typed definition becomes a loop nest, destination first: a tensor is written where it is wanted.
//!
//! The state here is one function in the making: blocks of statements, variables, and facts about
//! them. What each kind of term becomes is in the files beside this one. Calls are inlined while
//! lowering; only functions that call themselves stay functions.
//!
//! It must not know of rewriting (fusion is not done here) or of C++.

mod call;
mod calls;
mod choice;
mod copy;
mod lift;
mod make;
mod mask;
mod print;
mod prove;
mod shape;
mod sum;
mod term;
mod value;

use crate::diag::{Diagnostic, Result};
use crate::ir::{Def, Fun, Id, Op, Program, Scalar, Terms, Ty};
use crate::nest::{Buf, Expr, Failing, Func, Info, Loop, Nest, Site, SiteId, Stmt, Var, walk};
use crate::types;
use indexmap::IndexSet;
use rustc_hash::{FxHashMap, FxHashSet};
use value::{Val, compare};

/// Blocks may nest so deep: compilers walk them recursively.
const MAX_BLOCKS: usize = 200;
/// Inlined bodies may have so many nodes.
const MAX_NODES: u64 = 2_000_000;
/// Expressions have at most about so many nodes; larger ones are cut by constants.
const MAX_EXPR: usize = 16;

/// Lowers a definition.
///
/// # Errors
/// Limits: calls that become too large when inlined, blocks that nest too deep.
pub fn lower<'a>(program: &'a Program, def: &'a Def) -> Result<Nest> {
    let (terms, empty) = types::shape::empty_sums(program);
    Lower::new(program, &terms, &empty).run(def).map_err(|d| d.within(&program.source))
}

/// What an index of the environment stands for.
#[derive(Clone)]
enum Slot {
    /// A value.
    Val(Val),
    /// A term that only its shape is wanted of, in the environment of so many outer slots; and its
    /// value, where it was needed after all, with the block that holds it.
    Lazy(Id, usize, Option<(Val, u64)>),
    /// A loop variable while a shape is taken: reading it says that the shape depends on it.
    Probe(usize),
}

#[derive(Default)]
struct Block {
    serial: u64,
    /// Blocks whose statements became statements of this one.
    spliced: Vec<u64>,
    stmts: Vec<Stmt>,
    /// Constants by their value, so that equal sizes are one variable.
    known: FxHashMap<Expr, Var>,
    /// Variables that were checked to be sizes that fit in memory.
    small: FxHashSet<Expr>,
    /// Whether memory was taken that the block itself does not give back.
    takes: bool,
}

/// The parts of the state that belong to one function.
#[derive(Default)]
struct Frame {
    blocks: Vec<Block>,
    env: Vec<Slot>,
    vars: Vec<Info>,
    bufs: Vec<Info>,
    /// Extents of loop variables, given that the loop runs.
    extents: FxHashMap<Var, Expr>,
    /// The same as the loops have them.
    loops: FxHashMap<Var, Expr>,
    /// Variables that are not negative.
    sizes: FxHashSet<Var>,
    /// The integer constants' values, for proofs.
    values: FxHashMap<Var, Expr>,
    /// Sizes inside parameters, 0 already where the outer sizes have a 0.
    inner: FxHashMap<Var, Vec<Expr>>,
    depth: Option<Var>,
    /// How many inlined calls are open.
    open: i64,
    /// Buffers that are names of others.
    pointed: FxHashSet<Buf>,
}

struct Lower<'a> {
    program: &'a Program,
    /// The program's terms and those for the sizes of sums over nothing.
    terms: &'a Terms,
    /// Sizes of a sum's element where the sum has nothing to take them from.
    empty: &'a FxHashMap<Id, Vec<Id>>,
    recursive: FxHashSet<Fun>,
    funcs: Vec<Option<Func>>,
    made: FxHashMap<Fun, usize>,
    sites: Vec<Site>,
    site_ids: FxHashMap<Site, SiteId>,
    f: Frame,
    serial: u64,
    marks: u32,
    /// Loop variables that a shape was found to depend on.
    touched: Vec<bool>,
    /// Whether terms cannot fail, as far as that was asked.
    total: FxHashMap<Id, bool>,
    /// Texts by their numbers.
    texts: IndexSet<&'static str>,
    /// Types of what the places that print write.
    prints: Vec<Vec<Ty>>,
    /// Functions that print, or call such functions.
    printing: FxHashSet<Fun>,
    /// Whether terms print, as far as that was asked.
    printed: FxHashMap<Id, bool>,
    /// Whether terms call functions that call themselves, as far as that was asked.
    calling: FxHashMap<Id, bool>,
}

impl<'a> Lower<'a> {
    fn new(program: &'a Program, terms: &'a Terms, empty: &'a FxHashMap<Id, Vec<Id>>) -> Lower<'a> {
        let recursive = calls::recursive(program);
        Lower {
            program,
            terms,
            empty,
            recursive,
            funcs: vec![],
            made: FxHashMap::default(),
            sites: vec![],
            site_ids: FxHashMap::default(),
            f: Frame::default(),
            serial: 0,
            marks: 0,
            touched: vec![],
            total: FxHashMap::default(),
            texts: IndexSet::new(),
            prints: vec![],
            printing: program.printing(),
            printed: FxHashMap::default(),
            calling: FxHashMap::default(),
        }
    }

    fn run(mut self, def: &'a Def) -> Result<Nest> {
        let sig = def.fun.sig();
        if calls::inlined_size(self.program, &self.recursive, def) > MAX_NODES {
            let message = format!("the function has more than {MAX_NODES} nodes when its calls are inlined");
            return Err(Diagnostic::limit(message).at(def.span, "this function"));
        }
        let entry = self.function(def, false)?;
        let funcs: Vec<Func> = self.funcs.into_iter().flatten().collect();
        let texts = self.texts.into_iter().collect();
        Ok(Nest {
            entry,
            funcs,
            sites: self.sites,
            texts,
            prints: self.prints,
            params: sig.params.clone(),
            ret: sig.ret,
        })
    }

    fn bug<T>(&self, what: &str) -> Result<T> {
        Err(Diagnostic::bug(format!("lowering expected {what}")))
    }

    // Blocks and statements.

    fn block(&mut self) -> Result<&mut Block> {
        match self.f.blocks.last_mut() {
            Some(b) => Ok(b),
            None => Err(Diagnostic::bug("lowering has no open block")),
        }
    }

    fn push(&mut self, s: Stmt) {
        if let Some(b) = self.f.blocks.last_mut() {
            b.stmts.push(s);
        }
    }

    fn open_block(&mut self) -> Result<()> {
        if self.f.blocks.len() >= MAX_BLOCKS {
            let message = format!("loops and conditions nest deeper than {MAX_BLOCKS} blocks");
            return Err(Diagnostic::limit(message).note("only the interpreter runs such programs"));
        }
        self.serial += 1;
        self.f.blocks.push(Block { serial: self.serial, ..Block::default() });
        Ok(())
    }

    fn close_block(&mut self) -> Block {
        self.f.blocks.pop().unwrap_or_default()
    }

    /// Makes the statements of a closed block ones of the open block.
    fn splice(&mut self, block: Block) {
        if let Some(outer) = self.f.blocks.last_mut() {
            outer.spliced.push(block.serial);
            outer.spliced.extend(block.spliced);
            outer.stmts.extend(block.stmts);
            outer.known.extend(block.known);
            outer.takes |= block.takes;
        }
    }

    /// Closes a block of which memory outlives the end: the block around takes it, too.
    fn close_arm(&mut self) -> Vec<Stmt> {
        let block = self.close_block();
        if let Some(outer) = self.f.blocks.last_mut() {
            outer.takes |= block.takes;
        }
        block.stmts
    }

    fn open_loop(&mut self, extent: &Expr, name: &str) -> Result<Var> {
        self.open_block()?;
        let var = self.fresh(name, Scalar::I64);
        let most = self.positive(extent);
        self.f.extents.insert(var, most);
        self.f.loops.insert(var, extent.clone());
        Ok(var)
    }

    fn close_loop(&mut self, var: Var, extent: Expr, independent: bool) {
        let block = self.close_block();
        let (body, takes) = (block.stmts, block.takes);
        let mut prints = false;
        walk::visit(&body, &mut |s| prints |= matches!(s, Stmt::Print(..) | Stmt::Call(..)));
        // What is printed comes in the order of the iterations.
        let independent = independent && (!prints || self.printing.is_empty());
        self.push(Stmt::For(Box::new(Loop { takes, independent, ..Loop::new(var, extent, body) })));
    }

    /// Remembers the top of the arena; `release` gives back what was taken since.
    fn mark(&mut self) -> (u32, bool) {
        self.marks += 1;
        let mark = self.marks;
        self.push(Stmt::Mark(mark));
        let takes = self.f.blocks.last_mut().is_some_and(|b| std::mem::take(&mut b.takes));
        (mark, takes)
    }

    fn release(&mut self, (mark, before): (u32, bool)) {
        let Some(block) = self.f.blocks.last_mut() else { return };
        if block.takes {
            block.stmts.push(Stmt::Reset(mark));
        } else if let Some(at) = block.stmts.iter().rposition(|s| *s == Stmt::Mark(mark)) {
            block.stmts.remove(at);
        }
        block.takes = before;
    }

    // Variables.

    fn fresh(&mut self, name: &str, ty: Scalar) -> Var {
        self.f.vars.push(Info::scalar(name, ty));
        Var(self.f.vars.len() as u32 - 1)
    }

    fn fresh_buf(&mut self, name: &str, ty: Scalar) -> Buf {
        self.f.bufs.push(Info::scalar(name, ty));
        Buf(self.f.bufs.len() as u32 - 1)
    }

    fn mutable(&mut self, name: &str, first: Expr) -> Var {
        let var = self.fresh(name, self.expr_ty(&first));
        self.push(Stmt::Mut(var, first));
        var
    }

    fn expr_ty(&self, e: &Expr) -> Scalar {
        match e {
            Expr::Var(v) => self.f.vars[v.0 as usize].ty,
            Expr::Load(b, _) => self.f.bufs[b.0 as usize].ty,
            Expr::Op(_, s, _) | Expr::Cast(s, _) => *s,
            Expr::Cond(parts) => self.expr_ty(&parts[1]),
            // Lowering makes no vectors.
            _ => e.literal_ty(),
        }
    }

    /// The expression as a literal or a constant.
    fn atom(&mut self, e: Expr, name: &str) -> Expr {
        if e.is_atom() {
            return e;
        }
        let stays = stays(&e);
        if stays && let Some(v) = self.f.blocks.iter().rev().find_map(|b| b.known.get(&e)) {
            return Expr::Var(*v);
        }
        let ty = self.expr_ty(&e);
        let var = self.fresh(name, ty);
        self.push(Stmt::Let(var, e.clone()));
        if stays {
            if let Some(b) = self.f.blocks.last_mut() {
                b.known.insert(e.clone(), var);
            }
            if ty == Scalar::I64 {
                self.f.values.insert(var, e);
            }
        }
        Expr::Var(var)
    }

    /// An operation on expressions; large operands, and those that the text repeats, become constants.
    fn apply(&mut self, op: Op, ty: Scalar, args: Vec<Expr>) -> Expr {
        let twice = matches!(op, Op::Min | Op::Max);
        let mut out = Vec::with_capacity(args.len());
        let mut total: usize = args.iter().map(weight).sum();
        for a in args {
            let cut = !a.is_atom() && (twice || total > MAX_EXPR);
            total -= if cut { weight(&a) } else { 0 };
            out.push(if cut { self.atom(a, "t") } else { a });
        }
        Expr::folded(op, ty, out)
    }

    // Failures.

    fn site(&mut self, failing: Failing, places: Vec<(crate::diag::Span, &'static str)>) -> SiteId {
        let site = Site { failing, places };
        if let Some(id) = self.site_ids.get(&site) {
            return *id;
        }
        let id = SiteId(self.sites.len() as u32);
        self.sites.push(site.clone());
        self.site_ids.insert(site, id);
        id
    }

    fn check(&mut self, ok: Expr, failing: Failing, at: Id, values: Vec<Expr>) {
        if ok == Expr::Lit(crate::ir::Lit::Bool(true)) {
            return;
        }
        let label = |k| if k == 0 { "this expression" } else { "which also stands here" };
        let places = self.terms.spans(at).iter().enumerate().map(|(k, s)| (*s, label(k))).collect();
        let site = self.site(failing, places);
        self.push(Stmt::Check(ok, site, values));
    }

    fn refuse<T>(&self, at: Id, what: &str) -> Result<T> {
        let d = Diagnostic::limit(format!("{what} is not compiled"));
        Err(match self.terms.spans(at).first() {
            Some(span) => d.at(*span, "only the interpreter runs this"),
            None => d.note("only the interpreter runs this"),
        })
    }
}

/// Whether the value of an expression is the same wherever its variables are in scope.
fn stays(e: &Expr) -> bool {
    !matches!(e, Expr::Load(..)) && e.kids().iter().all(stays)
}

fn weight(e: &Expr) -> usize {
    1 + e.kids().iter().map(weight).sum::<usize>()
}
