//! A table that is made of another one, and copied over it, shares its memory: a step of a recurrence that changes few elements
//! of its state changes these alone.
//!
//! A buffer `b` is taken in a block, filled, and last read in a loop that overwrites all of another buffer `s`. Both may lie in
//! the place of `s` where neither would be overwritten while it is still read: each read of `s` comes before the writes of `b`
//! to the same element, and each read of `b` before those of `s`. Copies of one to the other are nothing then, and loops that
//! do something in one iteration only are that iteration (`once.rs`). What comes of it is computed by the same operations.
//!
//! Reads and writes are told apart by their order in the text, and, in loops around both, by the parts of the buffer that an
//! iteration has for itself (`places.rs`). What is not seen there stays. It must not know of recurrences.

use super::once::once;
use super::places::{Counted, Part, Sum, Sums, part};
use crate::ir::{Op, Scalar};
use crate::nest::{Arg, Buf, Expr, Func, Info, Stmt, Var, walk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Regions of more statements are not looked at.
const MAX_STATEMENTS: usize = 400;
/// Nor those of more accesses to the two buffers.
const MAX_ACCESSES: usize = 64;

/// Lets tables share their memory where they may.
pub fn share_memory(func: &mut Func) {
    let mut body = std::mem::take(&mut func.body);
    chosen(&mut body);
    func.body = body;
    let mut pass = InPlace::of(func);
    let mut body = std::mem::take(&mut func.body);
    pass.block(&mut body, &mut func.vars);
    func.body = body;
}

/// Puts the arms of conditions that are literals in their place.
fn chosen(stmts: &mut Vec<Stmt>) {
    for mut s in std::mem::take(stmts) {
        s.blocks_mut().into_iter().for_each(chosen);
        match s {
            Stmt::If(c, a, b) if c == Expr::bool(true) || c == Expr::bool(false) => {
                stmts.extend(if c == Expr::bool(true) { a } else { b });
            }
            _ => stmts.push(s),
        }
    }
}

struct InPlace {
    sums: Sums,
    /// How often buffers are named.
    uses: FxHashMap<Buf, usize>,
    /// The number of elements of buffers that are taken once.
    sizes: FxHashMap<Buf, Option<Sum>>,
    /// The sizes of their dimensions.
    dims: FxHashMap<Buf, Vec<Expr>>,
    /// What buffers have for elements.
    infos: Vec<Info>,
}

/// A read or write of one of the two buffers.
struct Access {
    buf: Buf,
    index: Option<Sum>,
    write: bool,
    /// Whether it is a copy of an element to its own place.
    copy: bool,
    path: Path,
    loops: Loops,
}

/// The statements around one and itself, each by its place in its block and the block of that which leads on.
type Path = Vec<(usize, usize)>;
/// The loops around a statement, by their place in its path.
type Loops = Vec<(usize, Counted)>;
/// Buffers that a loop overwrites, and how much further in them the first element of another one has its place.
type Overwritten = Vec<(Buf, Sum)>;

/// The two buffers: the place of an element of the first is so much further in the second.
struct Pair {
    /// The one that is taken for a while.
    b: Buf,
    /// The one that is overwritten with it.
    s: Buf,
    off: Sum,
}

impl InPlace {
    fn of(func: &Func) -> InPlace {
        let sums = Sums::of(func);
        let mut uses: FxHashMap<Buf, usize> = FxHashMap::default();
        let (mut sizes, mut dims) = (FxHashMap::default(), FxHashMap::default());
        walk::visit(&func.body, &mut |s| {
            named(s, &mut |b| *uses.entry(b).or_insert(0) += 1);
            if let Stmt::Alloc(b, each) = s {
                let size = if sizes.contains_key(b) { None } else { sums.product(each) };
                sizes.insert(*b, size);
                dims.insert(*b, each.clone());
            }
        });
        for r in &func.results {
            if let Arg::Data(b, _) = r {
                *uses.entry(*b).or_insert(0) += 1;
            }
            loads(r.expr(), &mut |b| *uses.entry(b).or_insert(0) += 1);
        }
        InPlace { sums, uses, sizes, dims, infos: func.bufs.clone() }
    }

    /// Inner blocks first: what they leave may be a copy.
    fn block(&mut self, stmts: &mut Vec<Stmt>, vars: &mut Vec<Info>) {
        for s in stmts.iter_mut() {
            s.blocks_mut().into_iter().for_each(|b| self.block(b, vars));
        }
        let mut k = stmts.len();
        // The last table first: it takes the place of what all others are copied to.
        while k > 0 {
            k -= 1;
            if let Stmt::Alloc(b, _) = stmts[k]
                && let Some((len, new)) = self.merged(b, &stmts[k + 1..], vars)
            {
                stmts.splice(k..=k + len, new).for_each(drop);
                k = k.min(stmts.len());
            }
        }
    }

    /// The statements after a buffer is taken, up to the last one that reads it, with another buffer in its place; and how many
    /// they were.
    fn merged(&mut self, b: Buf, rest: &[Stmt], vars: &mut Vec<Info>) -> Option<(usize, Vec<Stmt>)> {
        let (region, found) = self.region(b, rest)?;
        let new = found.into_iter().find_map(|(s, off)| self.shared(&Pair { b, s, off }, region, vars))?;
        walk::visit(&new, &mut |s| named(s, &mut |b| *self.uses.entry(b).or_insert(0) += 1));
        walk::visit(region, &mut |s| {
            named(s, &mut |b| {
                if let Some(n) = self.uses.get_mut(&b) {
                    *n = n.saturating_sub(1);
                }
            })
        });
        Some((region.len(), new))
    }

    /// The statements in which a buffer is used, and the buffers that the last of them, a loop, overwrites with what it reads.
    fn region<'a>(&self, b: Buf, rest: &'a [Stmt]) -> Option<(&'a [Stmt], Overwritten)> {
        let size = self.sizes.get(&b)?.clone()?;
        let mut left = self.uses.get(&b)?.checked_sub(1)?;
        let (mut len, mut statements) = (0, 0);
        for s in rest {
            len += 1;
            statements += walk::count(std::slice::from_ref(s));
            walk::visit(std::slice::from_ref(s), &mut |s| {
                named(s, &mut |c| left = left.saturating_sub(usize::from(c == b)))
            });
            if left == 0 || statements > MAX_STATEMENTS {
                break;
            }
        }
        let region = &rest[..len];
        let Some(Stmt::For(last)) = region.last().filter(|_| left == 0) else { return None };
        let mut found: Overwritten = vec![];
        let mut loops = vec![];
        self.overwrites(&region[len - 1..], &mut loops, &mut |s, index, loops| {
            let is_new = s != b && !found.iter().any(|(t, _)| *t == s);
            let like = self.infos[s.0 as usize].ty == self.infos[b.0 as usize].ty;
            if let Some(p) = part(index, &[], loops).filter(|p| is_new && like && p.length == size)
                && self.fills(&last.body, &mut vec![self.counted(last)], (b, s))
            {
                found.push((s, p.base));
            }
        });
        Some((region, found)).filter(|(_, found)| !found.is_empty())
    }

    fn counted(&self, l: &crate::nest::Loop) -> Counted {
        Counted { var: l.var, extent: l.extent().and_then(|n| self.sums.sum(n)) }
    }

    /// Visits the stores of a statement with their loops.
    fn overwrites(&self, stmts: &[Stmt], loops: &mut Vec<Counted>, f: &mut dyn FnMut(Buf, &Sum, &[Counted])) {
        for s in stmts {
            match s {
                Stmt::Store(b, at, _) => {
                    if let Some(at) = self.sums.sum(at) {
                        f(*b, &at, loops);
                    }
                }
                Stmt::For(l) => {
                    loops.push(self.counted(l));
                    self.overwrites(&l.body, loops, f);
                    loops.pop();
                }
                _ => s.blocks().into_iter().for_each(|b| self.overwrites(b, loops, f)),
            }
        }
    }

    /// Whether a block in loops stores to each element of a buffer of which there is one for each of another: one loop over all
    /// of them, or a loop for each dimension.
    fn fills(&self, stmts: &[Stmt], loops: &mut Vec<Counted>, (b, s): (Buf, Buf)) -> bool {
        stmts.iter().any(|stmt| match stmt {
            Stmt::Store(to, at, _) if *to == s => {
                let extents: Option<Vec<Sum>> = loops.iter().map(|l| l.extent.clone()).collect();
                let dims: Option<Vec<Sum>> = self.dims[&b].iter().map(|n| self.sums.sum(n)).collect();
                let all = extents.is_some_and(|e| e.len() == 1 || Some(e) == dims);
                let named = |at: &Sum| loops.iter().all(|l| at.uses(&|v| v == l.var));
                let at = self.sums.sum(at).filter(|at| all && named(at));
                at.and_then(|at| part(&at, &[], loops)).is_some_and(|p| Some(p.length) == self.sizes[&b])
            }
            Stmt::For(l) => {
                loops.push(self.counted(l));
                let made = self.fills(&l.body, loops, (b, s));
                loops.pop();
                made
            }
            Stmt::If(_, x, y) => self.fills(x, loops, (b, s)) && self.fills(y, loops, (b, s)),
            _ => false,
        })
    }

    /// A region with both buffers in one place; nothing where that is not seen to be the same.
    fn shared(&mut self, of: &Pair, region: &[Stmt], vars: &mut Vec<Info>) -> Option<Vec<Stmt>> {
        if !self.is_followed(of, region) {
            return None;
        }
        let before = self.accesses(region, of)?;
        // All writes of the first buffer come before all of the second.
        let last = region.len() - 1;
        if !before.iter().filter(|a| a.write).all(|a| (a.path[0].0 == last) == (a.buf == of.s)) {
            return None;
        }
        let copies = before.iter().filter(|a| a.copy && !a.write);
        let writes = |of: Buf| before.iter().filter(move |a| a.write && !a.copy && a.buf == of);
        let inside = declared(region);
        let mut pairs = copies.flat_map(|r| writes(other(of, r.buf)).map(move |w| (r, w)));
        if !pairs.all(|(r, w)| comes_first(r, w, of, &inside)) {
            return None;
        }
        let mut new = region.to_vec();
        self.without_copies(&mut new, of);
        let mut told = vec![];
        once(&mut new, vars, &mut |v, e| {
            told.push(v);
            self.sums.tell(v, Some(e));
        });
        let ordered = self.in_order(&new, of) || {
            sink(&mut new, of.b);
            self.in_order(&new, of)
        };
        if !ordered {
            told.into_iter().for_each(|v| self.sums.tell(v, None));
            return None;
        }
        let off = self.written(of, region, &inside).unwrap_or_else(|| of.off.expr());
        rename(&mut new, of, &off);
        Some(new)
    }

    /// The place of the first element in the second buffer as the last loop writes it, where that is known before the region.
    fn written(&self, of: &Pair, region: &[Stmt], inside: &FxHashSet<Var>) -> Option<Expr> {
        let mut found = None;
        walk::visit(region, &mut |s| {
            if let Stmt::Store(b, Expr::Op(Op::Add, _, args), _) = s
                && *b == of.s
            {
                let fixed = |e: &&Expr| !e.loads() && !e.uses(&|v| inside.contains(&v));
                let is_off = |e: &&Expr| fixed(e) && self.sums.sum(e).is_some_and(|sum| sum == of.off);
                found = found.take().or_else(|| args.iter().find(is_off).cloned());
            }
        });
        found
    }

    /// Whether nothing in a region is beyond this pass: what it does to the two buffers, and who may leave it.
    fn is_followed(&self, of: &Pair, region: &[Stmt]) -> bool {
        let (mut follows, mut may_end) = (true, false);
        walk::visit(region, &mut |s| {
            match s {
                Stmt::Alloc(b, _) => follows &= *b != of.s,
                Stmt::Let(..) | Stmt::Mut(..) | Stmt::Store(..) | Stmt::Set(..) | Stmt::If(..) | Stmt::For(_) => {}
                Stmt::Check(..) => may_end = true,
                Stmt::Call(..) | Stmt::Print(..) | Stmt::Mark(_) | Stmt::Reset(_) => {
                    may_end |= matches!(s, Stmt::Call(..));
                    named(s, &mut |b| follows &= b != of.b && b != of.s);
                }
                _ => follows = false,
            }
            let vectors = |e: &Expr| matches!(e, Expr::MaskedLoad(..) | Expr::Ramp(..) | Expr::PerLane(..));
            follows &= !s.exprs().into_iter().any(|e| e.any(&mut |e| vectors(e)));
        });
        // The last loop says that there is room for all of the first buffer, where it is reached.
        let size = |b: Buf| self.sizes.get(&b).cloned().flatten();
        let there = of.off == Sum::int(0) && size(of.s).is_some() && size(of.s) == size(of.b);
        let inside = declared(region);
        follows && (there || !may_end) && !of.off.uses(&|v| inside.contains(&v))
    }

    /// Whether no read of a buffer comes after the other one was written there.
    fn in_order(&self, stmts: &[Stmt], of: &Pair) -> bool {
        let Some(all) = self.accesses(stmts, of) else { return false };
        let inside = declared(stmts);
        let writes = |of: Buf| all.iter().filter(move |a| a.write && a.buf == of);
        let reads = all.iter().filter(|a| !a.write);
        let mut pairs = reads.flat_map(|r| writes(other(of, r.buf)).map(move |w| (r, w)));
        pairs.all(|(r, w)| comes_first(r, w, of, &inside))
    }

    /// The reads and writes of two buffers; nothing where they are too many.
    fn accesses(&self, stmts: &[Stmt], of: &Pair) -> Option<Vec<Access>> {
        let mut out = vec![];
        self.collect(stmts, of, (&mut vec![], &mut vec![]), &mut out);
        (out.len() <= MAX_ACCESSES).then_some(out)
    }

    fn collect(&self, stmts: &[Stmt], of: &Pair, (path, loops): (&mut Path, &mut Loops), out: &mut Vec<Access>) {
        for (k, s) in stmts.iter().enumerate() {
            path.push((k, 0));
            let copy = self.is_copy(s, of);
            for e in s.exprs() {
                e.visit(&mut |e| {
                    if let Expr::Load(buf, at) = e
                        && (*buf == of.b || *buf == of.s)
                    {
                        let index = self.sums.sum(at);
                        let (path, loops) = (path.clone(), loops.clone());
                        out.push(Access { buf: *buf, index, write: false, copy, path, loops });
                    }
                });
            }
            if let Stmt::Store(buf, at, _) = s
                && (*buf == of.b || *buf == of.s)
            {
                let (path, loops) = (path.clone(), loops.clone());
                out.push(Access { buf: *buf, index: self.sums.sum(at), write: true, copy, path, loops });
            }
            for (arm, block) in s.blocks().into_iter().enumerate() {
                if let Some(last) = path.last_mut() {
                    last.1 = arm;
                }
                let depth = path.len() - 1;
                let inner = if let Stmt::For(l) = s { Some((depth, self.counted(l))) } else { None };
                let around = loops.len();
                loops.extend(inner);
                self.collect(block, of, (&mut *path, &mut *loops), out);
                loops.truncate(around);
            }
            path.pop();
        }
    }

    /// Whether a statement copies an element of one of two buffers to its place in the other.
    fn is_copy(&self, s: &Stmt, of: &Pair) -> bool {
        let Stmt::Store(to, at, Expr::Load(from, i)) = s else { return false };
        let (Some(at), Some(i)) = (self.sums.sum(at), self.sums.sum(i)) else { return false };
        if (*to, *from) == (of.b, of.s) {
            return at.plus(&of.off, 1) == i;
        }
        (*to, *from) == (of.s, of.b) && i.plus(&of.off, 1) == at
    }

    /// Drops copies between two buffers in one place, and what does nothing without them.
    fn without_copies(&self, stmts: &mut Vec<Stmt>, of: &Pair) {
        let idle = |stmts: &[Stmt]| stmts.iter().all(|s| matches!(s, Stmt::Let(..)));
        stmts.retain_mut(|s| {
            s.blocks_mut().into_iter().for_each(|b| self.without_copies(b, of));
            match s {
                Stmt::Store(..) => !self.is_copy(s, of),
                Stmt::For(l) => !idle(&l.body),
                Stmt::If(c, a, b) => {
                    if idle(a) {
                        a.clear();
                    }
                    if idle(b) {
                        b.clear();
                    }
                    if a.is_empty() && !b.is_empty() {
                        std::mem::swap(a, b);
                        *c = Expr::Op(Op::Not, Scalar::Bool, vec![c.clone()]);
                    }
                    !a.is_empty()
                }
                _ => true,
            }
        });
    }
}

fn other(of: &Pair, buf: Buf) -> Buf {
    if buf == of.b { of.s } else { of.b }
}

/// Whether a read of one buffer comes before a write of the other one to the same place, whenever both happen.
fn comes_first(r: &Access, w: &Access, of: &Pair, inside: &FxHashSet<Var>) -> bool {
    let both = r.path.iter().zip(&w.path);
    let common = both.take_while(|(a, b)| a == b).count().min(r.path.len() - 1).min(w.path.len() - 1);
    let (a, b) = (r.path[common], w.path[common]);
    // What a statement reads it reads before it writes, and one arm of a condition is never behind the other.
    let first = if a.0 == b.0 { r.path.len() - 1 == common || a.1 != b.1 } else { a.0 < b.0 };
    let split = |x: &Access| -> (Vec<Counted>, Vec<Counted>) {
        let (around, inside): (Vec<_>, Vec<_>) = x.loops.iter().cloned().partition(|(depth, _)| *depth < common);
        (around.into_iter().map(|(_, l)| l).collect(), inside.into_iter().map(|(_, l)| l).collect())
    };
    let ((around, inside_r), (_, inside_w)) = (split(r), split(w));
    if around.is_empty() {
        return first;
    }
    // In the place of the second buffer.
    let place = |x: &Access| {
        let index = x.index.clone()?;
        Some(if x.buf == of.b { index.plus(&of.off, 1) } else { index })
    };
    let (Some(i), Some(j)) = (place(r), place(w)) else { return false };
    let (x, y) = (part(&i, &around, &inside_r), part(&j, &around, &inside_w));
    // What is declared in the loops may be another number in each iteration.
    let fixed = |p: &Part| ![&p.length, &p.base].into_iter().any(|n| n.uses(&|v| inside.contains(&v)));
    first && x == y && x.as_ref().is_some_and(fixed)
}

/// The variables that some statements declare.
fn declared(stmts: &[Stmt]) -> FxHashSet<Var> {
    let mut out = FxHashSet::default();
    walk::visit(stmts, &mut |s| match s {
        Stmt::Let(v, _) | Stmt::Mut(v, _) => drop(out.insert(*v)),
        Stmt::For(l) => drop(out.insert(l.var)),
        _ => {}
    });
    out
}

/// Moves changes of a buffer behind all that reads no change of it, in their order.
fn sink(stmts: &mut [Stmt], b: Buf) {
    let mut end = stmts.len();
    let uses = |s: &Stmt| {
        let mut any = false;
        walk::visit(std::slice::from_ref(s), &mut |s| named(s, &mut |c| any |= c == b));
        any
    };
    // The last loop reads all of it, where it is still there.
    if stmts.last().is_some_and(|s| uses(s) && !only_changes(s, b)) {
        end -= 1;
    }
    for k in (0..end).rev() {
        if !uses(&stmts[k]) || !only_changes(&stmts[k], b) {
            continue;
        }
        if stmts[k + 1..end].iter().all(|s| !uses(s) && !touches(s, &stmts[k])) {
            stmts[k..end].rotate_left(1);
            end -= 1;
        }
    }
}

/// Whether a statement stores to a buffer and does nothing else.
fn only_changes(s: &Stmt, b: Buf) -> bool {
    match s {
        Stmt::Store(to, ..) => *to == b,
        Stmt::If(..) | Stmt::For(_) => {
            s.blocks().into_iter().flatten().all(|s| matches!(s, Stmt::Let(..)) || only_changes(s, b))
        }
        _ => false,
    }
}

/// Whether a statement changes what another one reads.
fn touches(s: &Stmt, reader: &Stmt) -> bool {
    let (mut vars, mut bufs) = (FxHashSet::default(), FxHashSet::default());
    walk::visit(std::slice::from_ref(reader), &mut |s| {
        for e in s.exprs() {
            e.visit(&mut |e| match e {
                Expr::Var(v) => drop(vars.insert(*v)),
                Expr::Load(b, _) | Expr::MaskedLoad(b, _) => drop(bufs.insert(*b)),
                _ => {}
            });
        }
    });
    let mut any = false;
    walk::visit(std::slice::from_ref(s), &mut |s| {
        any |= match s {
            Stmt::Set(v, _) | Stmt::SetLane(v, ..) => vars.contains(v),
            Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) | Stmt::Alloc(b, _) => {
                bufs.contains(b)
            }
            Stmt::Let(..) | Stmt::Mut(..) | Stmt::Check(..) | Stmt::For(_) | Stmt::If(..) => false,
            _ => true,
        };
    });
    any
}

/// Puts the second of two buffers in the place of the first.
fn rename(stmts: &mut [Stmt], of: &Pair, off: &Expr) {
    let moved = |at: &mut Expr| {
        let old = std::mem::replace(at, Expr::int(0));
        *at = Expr::index_op(Op::Add, off.clone(), old);
    };
    for s in stmts {
        for e in s.exprs_mut() {
            e.map(&mut |e| {
                if let Expr::Load(b, at) = e
                    && *b == of.b
                {
                    *b = of.s;
                    moved(at);
                }
            });
        }
        if let Stmt::Store(b, at, _) = s
            && *b == of.b
        {
            *b = of.s;
            moved(at);
        }
        s.blocks_mut().into_iter().for_each(|b| rename(b, of, off));
    }
}

/// The buffers that a statement names itself, each time.
fn named(s: &Stmt, f: &mut dyn FnMut(Buf)) {
    match s {
        Stmt::Alloc(b, _) | Stmt::Store(b, ..) | Stmt::MaskedStore(b, ..) | Stmt::StoreLane(b, ..) => f(*b),
        Stmt::Point(b, of, _) => [*b, *of].into_iter().for_each(&mut *f),
        Stmt::Call(_, args, outs) => {
            args.iter().for_each(|a| {
                if let Arg::Data(b, _) = a {
                    f(*b)
                }
            });
            outs.iter().for_each(|o| {
                if let crate::nest::Slot::Data(b) = o {
                    f(*b)
                }
            });
        }
        Stmt::Print(_, args, _) => args.iter().for_each(|a| {
            if let Arg::Data(b, _) = a {
                f(*b)
            }
        }),
        _ => {}
    }
    s.exprs().into_iter().for_each(|e| loads(e, f));
}

fn loads(e: &Expr, f: &mut dyn FnMut(Buf)) {
    e.visit(&mut |e| {
        if let Expr::Load(b, _) | Expr::MaskedLoad(b, _) = e {
            f(*b);
        }
    });
}
