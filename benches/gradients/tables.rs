//! Times of a workload become lines of the tables on the results page.

use crate::workloads::Workload;

/// The tables by the names of their sections, with their heads.
pub const TABLES: [(&str, &str); 3] = [
    (
        "gradients",
        "| workload | size | hand-written | primal | gradient | Daedal primal | gradient | ratio by hand | ratio | to hand |
|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ),
    (
        "scheduled gradients",
        "| workload | size | by hand | unscheduled | exact | real | exact to hand | real to hand |
|---|---|---:|---:|---:|---:|---:|---:|",
    ),
    (
        "bounds of gradients",
        "| workload | size | to hand | bound | gradient to primal | by hand | two threads | MB | by hand |
|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ),
];

/// The times of all turns, sorted.
pub struct Times(Vec<f64>);

impl Times {
    /// Of turns in any order.
    pub fn new(mut all: Vec<f64>) -> Times {
        all.sort_by(f64::total_cmp);
        Times(all)
    }

    pub fn least(&self) -> f64 {
        self.0[0]
    }

    pub fn text(&self) -> String {
        format!("{:.4} [{:.4}]", 1e3 * self.least(), 1e3 * self.0[self.0.len() / 2])
    }
}

/// A hand-written entry, compiled the way that makes the faster gradient.
pub struct ByHand {
    pub entry: &'static str,
    pub way: &'static str,
    pub primal: Times,
    pub gradient: Times,
    /// What the gradient takes beside its arguments, its results included.
    pub bytes: u64,
}

/// Daedal's times of a workload; nothing where it was not asked for, or is not staged.
#[derive(Default)]
pub struct Daedal {
    pub primal: Option<Times>,
    pub gradient: Option<Times>,
    /// Under the default schedule: the primal, and the gradient with the same bits, over the reals, and on two threads.
    pub scheduled_primal: Option<Times>,
    pub exact: Option<Times>,
    pub real: Option<Times>,
    pub two_threads: Option<Times>,
    /// What the gradient with the same bits takes.
    pub bytes: Option<u64>,
}

fn ms(t: Option<f64>) -> String {
    t.map_or("-".into(), |t| format!("{:.3}", 1e3 * t))
}

fn ratio(a: Option<f64>, b: Option<f64>) -> String {
    a.zip(b).map_or("-".into(), |(a, b)| format!("{:.2}", a / b))
}

fn megabytes(n: Option<u64>) -> String {
    n.map_or("-".into(), |n| format!("{:.2}", n as f64 / 1e6))
}

fn row(cells: &[&str]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The lines of a workload in each of the tables; they are printed, too.
pub fn lines(w: &Workload, hand: &[ByHand], daedal: &Daedal) -> [Vec<String>; 3] {
    let least = |t: &Option<Times>| t.as_ref().map(Times::least);
    let text = |t: &Option<Times>| t.as_ref().map_or("-".into(), Times::text);
    let (primal, gradient) = (least(&daedal.primal), least(&daedal.gradient));
    let mut beside = vec![];
    for h in hand {
        let (p, g) = (Some(h.primal.least()), Some(h.gradient.least()));
        println!(
            "{:13} {:39} {:14} {:9} {:>19} {:>19} {:>6} | {:>19} {:>19} {:>6} {:>7} {:>8}",
            w.name,
            w.shape,
            h.entry,
            h.way,
            h.primal.text(),
            h.gradient.text(),
            ratio(g, p),
            text(&daedal.primal),
            text(&daedal.gradient),
            ratio(gradient, primal),
            ratio(primal, p),
            ratio(gradient, g),
        );
        let name = format!("`{}`", h.entry);
        let times = [ms(p), ms(g), ms(primal), ms(gradient), ratio(g, p), ratio(gradient, primal), ratio(gradient, g)];
        let times: Vec<&str> = times.iter().map(String::as_str).collect();
        beside.push(row(&[&[w.name, &w.shape, &name], times.as_slice()].concat()));
    }
    let Some(best) = hand.iter().min_by(|a, b| a.gradient.least().total_cmp(&b.gradient.least())) else {
        return [beside, vec![], vec![]];
    };
    let by_hand = Some(best.gradient.least());
    let [exact, real] = [&daedal.exact, &daedal.real].map(least);
    let told = exact.map(|_| {
        let cells = [ms(by_hand), ms(gradient), ms(exact), ms(real), ratio(exact, by_hand), ratio(real, by_hand)];
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        row(&[&[w.name, w.shape.as_str()], cells.as_slice()].concat())
    });
    let bounds = exact.map(|_| {
        let faster = exact.into_iter().chain(real).min_by(f64::total_cmp);
        let cells = [
            ratio(faster, by_hand),
            format!("{:.1}", w.bound()),
            ratio(exact, least(&daedal.scheduled_primal)),
            ratio(by_hand, Some(best.primal.least())),
            ratio(exact, least(&daedal.two_threads)),
            megabytes(daedal.bytes),
            megabytes(Some(best.bytes)),
        ];
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        row(&[&[w.name, w.shape.as_str()], cells.as_slice()].concat())
    });
    told.iter().for_each(|l| println!("scheduled: {l}"));
    bounds.iter().for_each(|l| println!("bounds: {l}"));
    [beside, told.into_iter().collect(), bounds.into_iter().collect()]
}
