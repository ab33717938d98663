//! Faults are planted in nests: one statement becomes others.

use daedal::nest::Stmt;

/// Changes the first statement that a function picks, wherever it stands; the statement becomes several.
pub fn change(stmts: &mut Vec<Stmt>, pick: &mut dyn FnMut(&Stmt) -> Option<Vec<Stmt>>) -> bool {
    for k in 0..stmts.len() {
        if let Some(new) = pick(&stmts[k]) {
            stmts.splice(k..=k, new);
            return true;
        }
        if stmts[k].blocks_mut().into_iter().any(|b| change(b, pick)) {
            return true;
        }
    }
    false
}
