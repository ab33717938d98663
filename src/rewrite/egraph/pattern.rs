//! A typed rule with named binders becomes a search pattern and two templates.
//!
//! A metavariable is matched as a class at the depth where it stands on the left. On the right its
//! variables are moved from there to where it stands ([`super::apply`]).

use super::language::ENode;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Head, Id, Terms, Ty};
use crate::rules::{Condition, Meta, Rule};
use egg::{ENodeOrVar, Pattern, PatternAst, Var};
use rustc_hash::FxHashMap;

/// One side of a rule.
#[derive(Clone, Debug)]
pub enum Template {
    /// A metavariable and what it is applied to.
    Meta(Meta, Vec<Template>),
    /// A variable bound on this side.
    Var(u32, Ty),
    /// A node.
    Node(Head, Vec<Template>),
}

impl Template {
    /// Whether a variable is bound somewhere.
    fn binds(&self) -> bool {
        match self {
            Template::Meta(..) | Template::Var(..) => false,
            Template::Node(head, kids) => {
                kids.iter().enumerate().any(|(k, kid)| head.binds(k, kids.len()) > 0 || kid.binds())
            }
        }
    }

    /// The number of levels below its root.
    fn depth(&self) -> usize {
        match self {
            Template::Meta(..) | Template::Var(..) => 0,
            Template::Node(_, kids) => kids.iter().map(|k| 1 + k.depth()).max().unwrap_or(0),
        }
    }
}

/// Where a metavariable stands on the left side.
#[derive(Clone, Debug)]
pub struct Place {
    /// The variable of the pattern.
    pub var: Var,
    /// How many variables are bound there.
    pub depth: usize,
    /// The indices it is applied to, in order.
    pub args: Vec<usize>,
    /// Whether the right side evaluates it just as the left does.
    pub kept: bool,
    /// Further places, deeper inside: there the class must be this one, moved inside.
    pub deeper: Vec<(Var, usize)>,
}

/// A rule, ready to be searched for.
pub struct Compiled<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// What to search for.
    pub pattern: Pattern<ENode>,
    /// Both sides.
    pub sides: (Template, Template),
    /// The metavariables.
    pub places: FxHashMap<Meta, Place>,
    /// The type of both sides.
    pub ty: Ty,
    /// How many levels below its root a match reaches.
    pub reach: usize,
    /// Whether nothing further below decides about a match: conditions on indices and sizes look there.
    pub local: bool,
    /// Whether no variable is bound on either side: then equal matches make equal terms.
    pub flat: bool,
}

impl Compiled<'_> {
    /// The head that the left side begins with.
    pub fn root(&self) -> Option<Head> {
        match self.sides.0 {
            Template::Node(head, _) => Some(head),
            Template::Meta(..) | Template::Var(..) => None,
        }
    }
}

/// Compiles a rule. Nothing for a rule about `let`: in a let-free graph it holds by construction.
///
/// # Errors
/// A left side that is a bare metavariable, or has one in places with other variables in scope.
pub fn compile(rule: &Rule) -> Result<Option<Compiled<'_>>> {
    let sides = &rule.sides;
    let roots = [sides.sides.0, sides.sides.1];
    if roots.iter().any(|r| sides.terms.reachable(*r).iter().any(|id| sides.terms.head(*id) == Head::Let)) {
        return Ok(None);
    }
    let mut reader = Reader { rule, terms: &sides.terms, places: FxHashMap::default() };
    let left = reader.template(roots[0], 0, true)?;
    let right = reader.template(roots[1], 0, false)?;
    let mut places = reader.places;
    let Template::Node(..) = left else {
        return Err(refused(rule, "the left side matches every term"));
    };
    for (meta, place) in &mut places {
        place.kept = kept(&left, *meta, place, 0) && kept(&right, *meta, place, 0);
    }
    let mut ast = PatternAst::default();
    let mut wild = 0;
    add(&mut ast, &left, 0, &mut wild)?;
    let far = |c: &Condition| matches!(c, Condition::InRange | Condition::SameSize);
    let local = !rule.when.iter().any(|(c, _)| far(c)) && places.values().all(|p| p.deeper.is_empty());
    let flat = !left.binds() && !right.binds();
    let (ty, reach) = (sides.terms.ty(roots[0]), left.depth());
    Ok(Some(Compiled { rule, pattern: Pattern::new(ast), sides: (left, right), places, ty, reach, local, flat }))
}

fn refused(rule: &Rule, why: &str) -> Box<Diagnostic> {
    let message = format!("the rule `{}` cannot be searched for: {why}", rule.name);
    let at = rule.source.text.find(&rule.text).unwrap_or(0) as u32;
    let span = crate::diag::Span { start: at, end: at + rule.text.len() as u32 };
    Diagnostic::user(message).at(span, "this rule").within(&rule.source)
}

struct Reader<'a> {
    rule: &'a Rule,
    terms: &'a Terms,
    places: FxHashMap<Meta, Place>,
}

impl Reader<'_> {
    fn template(&mut self, id: Id, depth: usize, left: bool) -> Result<Template> {
        let (head, kids) = (self.terms.head(id), self.terms.kids(id).to_vec());
        match head {
            Head::Var(i, ty) if (i as usize) < depth => Ok(Template::Var(i, ty)),
            Head::Var(i, _) => {
                let k = self.rule.sides.params.len() - 1 - (i as usize - depth);
                if left {
                    self.place(Meta::Plain(k), depth, vec![])?;
                }
                Ok(Template::Meta(Meta::Plain(k), vec![]))
            }
            Head::Call(f) => {
                let Some(k) = self.rule.sides.funs.iter().position(|g| *g == f) else {
                    return Err(refused(self.rule, "it calls a function that is no metavariable"));
                };
                let args = kids.iter().map(|a| self.template(*a, depth, left)).collect::<Result<Vec<_>>>()?;
                if left {
                    let indices =
                        args.iter().map(|a| if let Template::Var(i, _) = a { Some(*i as usize) } else { None });
                    let Some(indices) = indices.collect::<Option<Vec<_>>>() else {
                        let why = "on the left a metavariable may be applied to bound variables only";
                        return Err(refused(self.rule, why));
                    };
                    self.place(Meta::Applied(k), depth, indices)?;
                }
                Ok(Template::Meta(Meta::Applied(k), args))
            }
            _ => {
                let n = kids.len();
                let kids = kids.iter().enumerate().map(|(k, kid)| self.template(*kid, depth + head.binds(k, n), left));
                Ok(Template::Node(head, kids.collect::<Result<_>>()?))
            }
        }
    }

    fn place(&mut self, meta: Meta, depth: usize, args: Vec<usize>) -> Result<()> {
        let var = variable(meta, depth)?;
        let Some(old) = self.places.get_mut(&meta) else {
            self.places.insert(meta, Place { var, depth, args, kept: false, deeper: vec![] });
            return Ok(());
        };
        let plain = old.args.is_empty() && args.is_empty();
        if (old.depth, &old.args) == (depth, &args) || old.deeper.contains(&(var, depth)) {
            Ok(())
        } else if plain && old.depth == 0 {
            old.deeper.push((var, depth));
            Ok(())
        } else if plain && depth == 0 {
            old.deeper.push((old.var, old.depth));
            (old.var, old.depth) = (var, depth);
            Ok(())
        } else {
            Err(refused(self.rule, "a metavariable stands under different binders on the left side"))
        }
    }
}

/// The pattern variable of a metavariable at a depth.
fn variable(meta: Meta, depth: usize) -> Result<Var> {
    let name = match meta {
        Meta::Plain(k) => format!("?p{k}d{depth}"),
        Meta::Applied(k) => format!("?f{k}d{depth}"),
    };
    name.parse::<Var>().map_err(|_| Diagnostic::bug("a pattern variable has no name"))
}

/// Whether a template evaluates a metavariable unconditionally, with the same variables in scope.
fn kept(side: &Template, meta: Meta, place: &Place, depth: usize) -> bool {
    match side {
        Template::Meta(m, args) => {
            let same = |(a, j): (&Template, &usize)| matches!(a, Template::Var(i, _) if *i as usize == *j);
            *m == meta && depth == place.depth && args.iter().zip(&place.args).all(same)
        }
        Template::Var(..) => false,
        Template::Node(head, kids) => kids.iter().enumerate().any(|(k, kid)| {
            let skipped = matches!(head, Head::If | Head::Assert) && k > 0;
            !skipped && kept(kid, meta, place, depth + head.binds(k, kids.len()))
        }),
    }
}

fn add(ast: &mut PatternAst<ENode>, side: &Template, depth: usize, wild: &mut usize) -> Result<egg::Id> {
    Ok(match side {
        Template::Meta(m, _) => ast.add(ENodeOrVar::Var(variable(*m, depth)?)),
        Template::Var(i, ty) => {
            // The extent is the binder's, which is matched elsewhere.
            *wild += 1;
            let extent = format!("?e{wild}").parse().map_err(|_| Diagnostic::bug("a pattern variable has no name"))?;
            let extent = ast.add(ENodeOrVar::Var(extent));
            ast.add(ENodeOrVar::ENode(ENode::new(Head::Var(*i, *ty), [extent])))
        }
        Template::Node(head, kids) => {
            let n = kids.len();
            let kids = kids.iter().enumerate().map(|(k, kid)| add(ast, kid, depth + head.binds(k, n), wild));
            let kids = kids.collect::<Result<Vec<_>>>()?;
            ast.add(ENodeOrVar::ENode(ENode::new(*head, kids)))
        }
    })
}
