//! Derivations become lines of JSON, and lines become derivations again.
//!
//! One object a line: a header, then for each definition the lemmas that it takes, each with its steps, and then its
//! name, its steps, and its result.

use super::lemma::Statement;
use super::{Derivation, Place, Step, UNSAID};
use crate::diag::{Diagnostic, Result, Source};
use crate::rules::assume::Assume;
use crate::rules::{Level, Library};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

/// The format that is written and read.
const FORMAT: &str = "daedal derivation 3";

/// What a derivation is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Hash of the program's text.
    pub program: String,
    /// What the steps keep.
    pub level: Level,
    /// What the rules may take for granted.
    pub assume: Vec<Assume>,
    /// The cost model of the costs.
    pub cost_model: String,
    /// The estimates of sizes that the costs rest on.
    pub sizes: Vec<(String, u64)>,
    /// Hash of all rules' texts: those that ship, and those of further files.
    pub rules: String,
    /// The further files, in order.
    pub rule_files: Vec<RuleFile>,
}

/// A file of further rules.
#[derive(Clone, PartialEq, Debug)]
pub struct RuleFile {
    /// Its name, without its folder: where it lay is no matter.
    pub name: String,
    /// Hash of its text.
    pub hash: String,
}

impl RuleFile {
    /// What a record says of a file.
    pub fn of(source: &Source) -> RuleFile {
        let name = source.name.rsplit(['/', '\\']).next().unwrap_or_default();
        RuleFile { name: name.to_string(), hash: hash(&source.text) }
    }
}

/// A file of derivations. The numbers of the lines on which each one's head, steps and result stand.
pub struct Record {
    /// What they are about.
    pub header: Header,
    /// The derivations, with the line of each one's head: a step a line follows, and the result.
    pub derivations: Vec<(Derivation, usize)>,
}

/// The hash of a text.
pub fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// The hash of a library.
pub fn hash_rules(library: &Library) -> String {
    hash(&library.rules.iter().map(|r| r.text.as_str()).collect::<Vec<_>>().join("\n"))
}

/// The text of a record.
pub fn write(header: &Header, derivations: &[Derivation]) -> String {
    let head = json!({
        "format": FORMAT,
        "program": header.program,
        "level": header.level.to_string(),
        "assume": header.assume.iter().map(|a| a.name()).collect::<Vec<_>>(),
        "cost_model": header.cost_model,
        "sizes": header.sizes,
        "rules": header.rules,
        "rule_files": header.rule_files.iter().map(|f| json!([f.name, f.hash])).collect::<Vec<Json>>(),
        "definitions": derivations.len(),
    });
    let mut lines = vec![head];
    for d in derivations {
        for lemma in &d.lemmas {
            let Statement { name, params, ty, left, given, below, defined, start, .. } = lemma;
            lines.push(json!({
                "lemma": name, "params": params, "type": ty, "left": left, "given": given, "below": below,
                "defined": defined, "unfolded": start,
            }));
            lines.extend(lemma.steps.iter().enumerate().map(step_line));
            lines.push(json!({ "right": lemma.right, "cost": lemma.cost }));
        }
        let unfolded = if d.bodies { "bodies" } else { "unfolded" };
        lines.push(json!({ "def": d.name, "params": d.params, "cost": d.cost_before, unfolded: d.start }));
        lines.extend(d.steps.iter().enumerate().map(step_line));
        lines.push(json!({ "result": d.result, "cost": d.cost_after }));
    }
    lines.iter().map(|l| l.to_string() + "\n").collect()
}

/// The line of a step.
fn step_line((k, step): (usize, &Step)) -> Json {
    let mut line = json!({ "step": k + 1, "by": step.by, "at": step.at, "cost": step.cost });
    if let Some(line) = line.as_object_mut() {
        match step.place {
            Place::Here => {}
            Place::Everywhere => drop(line.insert("everywhere".into(), json!(true))),
            Place::Within(length) => drop(line.insert("within".into(), json!(length))),
        }
        if let Some(to) = &step.to {
            line.insert("to".into(), json!(to));
        }
    }
    line
}

/// What is being read: a lemma, or a definition and the line of its head.
enum Open {
    Lemma(Statement),
    Def(Derivation, usize),
}

/// Reads a record.
///
/// # Errors
/// The line that is not what it should be, with what was expected there.
pub fn read(source: &Source) -> Result<Record> {
    let mut lines = source.text.lines().enumerate().map(|(k, text)| Line { file: source, number: k + 1, text });
    let first = lines.next().ok_or_else(|| Diagnostic::user(format!("`{}` is empty", source.name)))?;
    let (header, definitions) = first.header()?;
    let mut derivations: Vec<(Derivation, usize)> = vec![];
    let (mut lemmas, mut open): (Vec<Statement>, Option<Open>) = Default::default();
    for line in lines {
        let object = line.object()?;
        open = match open {
            None if object.get("lemma").is_some() => Some(Open::Lemma(line.lemma(&object)?)),
            None => {
                let lemmas = std::mem::take(&mut lemmas);
                Some(Open::Def(Derivation { lemmas, ..line.head(&object)? }, line.number))
            }
            Some(Open::Lemma(mut lemma)) => match object.get("right") {
                Some(_) => {
                    (lemma.right, lemma.cost) = (line.text_of(&object, "right")?, line.number_of(&object, "cost")?);
                    lemmas.push(lemma);
                    None
                }
                None => {
                    lemma.steps.push(line.step(&object, lemma.steps.len() + 1)?);
                    Some(Open::Lemma(lemma))
                }
            },
            Some(Open::Def(mut d, at)) => match object.get("result") {
                Some(_) => {
                    (d.result, d.cost_after) = (line.text_of(&object, "result")?, line.number_of(&object, "cost")?);
                    derivations.push((d, at));
                    None
                }
                None => {
                    d.steps.push(line.step(&object, d.steps.len() + 1)?);
                    Some(Open::Def(d, at))
                }
            },
        };
    }
    if let Some(lemma) = lemmas.first() {
        let name = &lemma.name;
        return Err(Diagnostic::user(format!("`{}` ends before the definition that takes `{name}`", source.name)));
    }
    match open {
        Some(Open::Lemma(lemma)) => {
            Err(Diagnostic::user(format!("`{}` ends before the right side of `{}`", source.name, lemma.name)))
        }
        Some(Open::Def(d, _)) => {
            Err(Diagnostic::user(format!("`{}` ends before the result of `{}`", source.name, d.name)))
        }
        None if derivations.len() == definitions => Ok(Record { header, derivations }),
        None => {
            let found = derivations.len();
            let message = format!("`{}` says that it derives {definitions} definitions", source.name);
            Err(Diagnostic::user(message).note(format!("found {found}: the file was cut off, or put together")))
        }
    }
}

/// The keys of each kind of line; the first says which it is.
const KEYS: [&[&str]; 6] = [
    &["format", "program", "level", "assume", "cost_model", "sizes", "rules", "rule_files", "definitions"],
    &["lemma", "params", "type", "left", "given", "below", "defined", "unfolded"],
    &["right", "cost"],
    &["def", "params", "cost", "unfolded", "bodies"],
    &["step", "by", "at", "everywhere", "within", "to", "cost"],
    &["result", "cost"],
];

struct Line<'a> {
    file: &'a Source,
    number: usize,
    text: &'a str,
}

impl Line<'_> {
    fn wrong(&self, expected: &str) -> Box<Diagnostic> {
        let shown: String = self.text.chars().take(80).collect();
        Diagnostic::user(format!("{}:{}: expected {expected}", self.file.name, self.number))
            .note(format!("found `{shown}`"))
    }

    /// An object of no other keys than those known: what is not understood is not checked either.
    fn object(&self) -> Result<Json> {
        let object: Option<Json> = serde_json::from_str(self.text).ok();
        let object = object.filter(Json::is_object).ok_or_else(|| self.wrong("a JSON object"))?;
        let known = KEYS.iter().find(|keys| object.get(keys[0]).is_some());
        let known = known.ok_or_else(|| self.wrong("a header, a lemma, a definition, a step or a result"))?;
        let mut keys = object.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        match keys.find(|key| !known.contains(key)) {
            Some(other) => Err(self.wrong(&format!("no `{other}` in a line with `{}`", known[0]))),
            None => Ok(object),
        }
    }

    fn text_of(&self, object: &Json, key: &str) -> Result<String> {
        let text = object.get(key).and_then(Json::as_str);
        text.map(str::to_string).ok_or_else(|| self.wrong(&format!("the text `{key}`")))
    }

    fn number_of(&self, object: &Json, key: &str) -> Result<f64> {
        object.get(key).and_then(Json::as_f64).ok_or_else(|| self.wrong(&format!("the number `{key}`")))
    }

    /// A cost of a program on the way, which may be left unsaid.
    fn cost_of(&self, object: &Json, key: &str) -> Result<f64> {
        if object.get(key).is_some_and(Json::is_null) { Ok(UNSAID) } else { self.number_of(object, key) }
    }

    fn list_of<T>(&self, object: &Json, key: &str, each: impl Fn(&Json) -> Option<T>) -> Result<Vec<T>> {
        let list = object.get(key).and_then(Json::as_array);
        let all = list.and_then(|l| l.iter().map(each).collect::<Option<Vec<T>>>());
        all.ok_or_else(|| self.wrong(&format!("the list `{key}`")))
    }

    /// The header, and how many definitions it says that there are.
    fn header(&self) -> Result<(Header, usize)> {
        let object = self.object()?;
        if object.get("format").and_then(Json::as_str) != Some(FORMAT) {
            return Err(self.wrong(&format!("the format `{FORMAT}`")));
        }
        let level = Level::named(&self.text_of(&object, "level")?);
        let assumed = |a: &Json| Assume::named(a.as_str()?);
        let assume = match object.get("assume") {
            Some(_) => self.list_of(&object, "assume", assumed)?,
            None => vec![],
        };
        let text = |t: &Json| t.as_str().map(str::to_string);
        let size = |pair: &Json| Some((text(pair.get(0)?)?, pair.get(1)?.as_u64()?));
        let file = |pair: &Json| Some(RuleFile { name: text(pair.get(0)?)?, hash: text(pair.get(1)?)? });
        let header = Header {
            program: self.text_of(&object, "program")?,
            level: level.ok_or_else(|| self.wrong("the level `exact` or `real`"))?,
            assume,
            cost_model: self.text_of(&object, "cost_model")?,
            sizes: self.list_of(&object, "sizes", size)?,
            rules: self.text_of(&object, "rules")?,
            rule_files: self.list_of(&object, "rule_files", file)?,
        };
        let definitions = object.get("definitions").and_then(Json::as_u64);
        Ok((header, definitions.ok_or_else(|| self.wrong("the number `definitions`"))? as usize))
    }

    fn lemma(&self, object: &Json) -> Result<Statement> {
        let text = |t: &Json| t.as_str().map(str::to_string);
        let pair = |p: &Json| Some((text(p.get(0)?)?, text(p.get(1)?)?));
        Ok(Statement {
            name: self.text_of(object, "lemma")?,
            params: self.list_of(object, "params", pair)?,
            ty: self.text_of(object, "type")?,
            left: self.text_of(object, "left")?,
            given: self.list_of(object, "given", pair)?,
            below: self.list_of(object, "below", pair)?,
            defined: self.list_of(object, "defined", text)?,
            steps: vec![],
            start: self.cost_of(object, "unfolded")?,
            right: String::new(),
            cost: 0.0,
        })
    }

    fn head(&self, object: &Json) -> Result<Derivation> {
        let bodies = object.get("bodies").is_some();
        if bodies && object.get("unfolded").is_some() {
            return Err(self.wrong("one of `unfolded` and `bodies`"));
        }
        Ok(Derivation {
            lemmas: vec![],
            bodies,
            name: self.text_of(object, "def")?,
            params: self.list_of(object, "params", |p| p.as_str().map(str::to_string))?,
            steps: vec![],
            start: self.cost_of(object, if bodies { "bodies" } else { "unfolded" })?,
            result: String::new(),
            cost_before: self.number_of(object, "cost")?,
            cost_after: 0.0,
        })
    }

    fn step(&self, object: &Json, number: usize) -> Result<Step> {
        if object.get("step").and_then(Json::as_u64) != Some(number as u64) {
            return Err(self.wrong(&format!("step {number}")));
        }
        let path = |p: &Json| p.as_array()?.iter().map(|k| Some(k.as_u64()? as usize)).collect();
        let at: Vec<Vec<usize>> = self.list_of(object, "at", path)?;
        if at.is_empty() {
            return Err(self.wrong("at least one place"));
        }
        let everywhere = match object.get("everywhere") {
            None => false,
            Some(said) => said.as_bool().ok_or_else(|| self.wrong("`everywhere` as true or false"))?,
        };
        let place = match object.get("within") {
            Some(_) if everywhere => return Err(self.wrong("one of `everywhere` and `within`")),
            Some(length) => {
                let length = length.as_u64().map(|n| n as usize).filter(|n| at.iter().all(|path| *n < path.len()));
                Place::Within(length.ok_or_else(|| self.wrong("`within` as the length of the beginning of a path"))?)
            }
            None if everywhere => Place::Everywhere,
            None => Place::Here,
        };
        Ok(Step {
            by: self.text_of(object, "by")?,
            at,
            place,
            to: object.get("to").map(|_| self.text_of(object, "to")).transpose()?,
            cost: self.cost_of(object, "cost")?,
        })
    }
}
