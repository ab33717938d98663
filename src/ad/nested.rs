//! How deep conditions stand in each other's arms, with operations between, and whether what arms read is
//! numbers.
//!
//! Each level of such a nest needs the value of the one within it. It must not know how derivatives are made.

use super::flow::has_floats;
use crate::ir::{Head, Id, Terms, deep};
use rustc_hash::FxHashMap;

/// Conditions nested so deep have their values and derivatives made at once.
const DEEP: u32 = 3;
/// Those that read elements of tensors are shallow up to here: what goes back to an element need not be carried
/// through all arms around, as long as they are few.
const DEEP_OF_ELEMENTS: u32 = 12;

/// What is known of terms.
#[derive(Default)]
pub struct Nested {
    depth: FxHashMap<Id, u32>,
    plain: FxHashMap<Id, Option<bool>>,
}

impl Nested {
    /// Whether conditions are nested deep in a term, those in the bodies of its loops left out.
    pub fn is_deep(&mut self, terms: &Terms, id: Id) -> bool {
        self.depth(terms, id) >= DEEP
    }

    /// Whether they are anywhere in a term, in the bodies of loops too.
    pub fn is_deep_within(terms: &Terms, id: Id) -> bool {
        let mut nested = Nested::default();
        terms.reachable(id).into_iter().any(|id| nested.is_deep(terms, id))
    }

    /// The greatest number of conditions around a part. Those that stand right in an arm of another one count
    /// as one with it.
    fn depth(&mut self, terms: &Terms, id: Id) -> u32 {
        if let Some(known) = self.depth.get(&id) {
            return *known;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let mut most = 0;
        for (k, kid) in kids.iter().enumerate() {
            let body = head.is_loop() && head.binds(k, kids.len()) > 0;
            if body || head == Head::If && k == 0 {
                continue;
            }
            let inside = deep(|| self.depth(terms, *kid));
            let arm = head == Head::If && terms.head(*kid) != Head::If;
            most = most.max(inside + u32::from(arm));
        }
        self.depth.insert(id, most);
        most
    }

    /// Whether a condition is made at once with its derivatives: it is nested deep, and gives a number that is
    /// made of numbers and elements of variables.
    pub fn is_joint(&mut self, terms: &Terms, id: Id) -> bool {
        if terms.head(id) != Head::If || terms.ty(id).as_scalar().is_none() || !self.is_deep(terms, id) {
            return false;
        }
        let least = match self.elements(terms, id) {
            None => return false,
            Some(true) => DEEP_OF_ELEMENTS,
            Some(false) => DEEP,
        };
        self.depth(terms, id) >= least
    }

    /// Whether elements of variables are in what a number is made of; nothing where there are loops in it, or
    /// calls of functions of tensors. What has no floats does not matter.
    fn elements(&mut self, terms: &Terms, id: Id) -> Option<bool> {
        if let Some(known) = self.plain.get(&id) {
            return *known;
        }
        let (head, kids) = (terms.head(id), terms.kids(id));
        let number = |id: &Id| terms.ty(*id).as_scalar().is_some();
        let each = |me: &mut Self| kids.iter().try_fold(false, |any, k| Some(deep(|| me.elements(terms, *k))? || any));
        let found = match head {
            _ if !has_floats(terms.ty(id)) => Some(false),
            Head::Var(..) | Head::Const(_) => Some(false),
            Head::Let | Head::If | Head::Cast(_) | Head::Get(..) | Head::Tuple | Head::Assert => each(self),
            Head::Op(_) | Head::Call(_) if number(&id) && kids.iter().all(number) => each(self),
            Head::Index(d) if is_row(terms, kids[d]) => Some(true),
            _ => None,
        };
        self.plain.insert(id, found);
        found
    }
}

/// Whether a tensor is a variable, or a part of one.
fn is_row(terms: &Terms, id: Id) -> bool {
    let kids = terms.kids(id);
    match terms.head(id) {
        Head::Var(..) => true,
        Head::Index(d) => is_row(terms, kids[d]),
        Head::Get(..) => is_row(terms, kids[0]),
        _ => false,
    }
}
