//! How well expected times order measured ones.

/// What an order is worth, over several groups of schedules.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ranking {
    /// Of the pairs of one group whose times are a tenth apart, the share that is in the right order.
    pub pairs: f64,
    /// The correlation of ranks (Spearman), in the mean over groups.
    pub ranks: f64,
    /// How many times as long as the best of a group the one takes that was expected to be, in the geometric mean.
    pub first: f64,
    /// Groups.
    pub groups: usize,
}

/// Times that are closer than this are equal: what is measured differs as much from call to call.
const APART: f64 = 1.1;

/// Judges orders: of each group the expected and the measured seconds.
pub fn ranking(groups: &[(Vec<f64>, Vec<f64>)]) -> Ranking {
    let (mut right, mut all, mut ranks, mut logs, mut count) = (0.0, 0.0, 0.0, 0.0, 0);
    for (expected, measured) in groups.iter().filter(|(_, m)| m.len() > 1) {
        count += 1;
        for i in 0..measured.len() {
            for j in 0..measured.len() {
                if measured[j] > APART * measured[i] {
                    all += 1.0;
                    right += match expected[i].total_cmp(&expected[j]) {
                        std::cmp::Ordering::Less => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Greater => 0.0,
                    };
                }
            }
        }
        ranks += correlation(&places(expected), &places(measured));
        let chosen = (0..expected.len()).min_by(|a, b| expected[*a].total_cmp(&expected[*b])).unwrap_or(0);
        logs += (measured[chosen] / measured.iter().copied().fold(f64::INFINITY, f64::min)).ln();
    }
    let n = (count as f64).max(1.0);
    Ranking {
        pairs: if all > 0.0 { right / all } else { 1.0 },
        ranks: ranks / n,
        first: (logs / n).exp(),
        groups: count,
    }
}

/// The place of each number in the order of all; equal ones share theirs.
fn places(of: &[f64]) -> Vec<f64> {
    let place = |x: &f64| {
        let (less, equal) = (of.iter().filter(|y| *y < x).count(), of.iter().filter(|y| *y == x).count());
        less as f64 + (equal as f64 - 1.0) / 2.0
    };
    of.iter().map(place).collect()
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (x, y) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let sum = |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| f(a - x, b - y)).sum::<f64>();
    let (top, bottom) = (sum(&|a, b| a * b), (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt());
    if bottom > 0.0 { top / bottom } else { 0.0 }
}
