//! Steps of which each needs the one before.

use super::{Loss, unit};

pub fn all() -> Vec<Loss> {
    let pulse: Vec<f64> = (0..400).map(|i| (-((f64::from(i) - 120.0) / 10.0).powi(2)).exp()).collect();
    vec![
        Loss::new("garch", "20000 returns", &["omega", "alpha", "beta"])
            .normal("r", &[20000], 1.0)
            .constant("omega", &[], 0.1)
            .constant("alpha", &[], 0.1)
            .constant("beta", &[], 0.8),
        markov(),
        Loss::new("recurrent", "20 steps, 32 series of 8, 32 states", &["w", "u", "b", "o"])
            .normal("x", &[20, 32, 8], 1.0)
            .normal("w", &[32, 8], 0.3)
            .normal("u", &[32, 32], 0.15)
            .constant("b", &[32], 0.0)
            .normal("o", &[32], 1.0)
            .normal("y", &[32], 1.0),
        Loss::new("wave", "400 places, 500 steps", &["c"])
            .uniform("c", &[400], |u| 0.5 * u + 0.1)
            .fixed("start", &[400], &pulse)
            .normal("observed", &[500], 0.1),
        Loss::new("kalman", "5000 steps", &["lq", "lr", "phi"])
            .normal("y", &[5000], 1.0)
            .constant("lq", &[], -1.0)
            .constant("lr", &[], -0.5)
            .constant("phi", &[], 0.9),
        Loss::new("heat", "64 by 64 places, 50 steps", &["c"])
            .uniform("c", &[64, 64], |u| 0.2 * u)
            .normal("start", &[64, 64], 1.0)
            .normal("observed", &[64, 64], 1.0),
        Loss::new("chain_field", "100 steps, 20 labels", &["score", "transition"])
            .normal("score", &[100, 20], 1.0)
            .normal("transition", &[20, 20], 0.3)
            .integers("y", &[100], 20),
        Loss::new("spans", "trees over 24 words", &["s"]).normal("s", &[24, 24], 0.1),
        Loss::new("sequences", "32 sequences, 20 steps of 6, 12 states", &["w", "u", "b", "v"])
            .normal("x", &[32, 20, 6], 1.0)
            .normal("w", &[4, 12, 6], 0.3)
            .normal("u", &[4, 12, 12], 0.3)
            .normal("b", &[4, 12], 0.1)
            .normal("v", &[12], 1.0)
            .uniform("y", &[32], |u| f64::from(u < 0.5)),
        Loss::new("spectrogram", "60 frames of 64, 33 frequencies, 16 taps", &["f"])
            .normal("s", &[1967], 1.0)
            .normal("f", &[16], 0.3)
            .normal("target", &[60, 33], 1.0),
        Loss::new("hawkes", "5000 events", &["lmu", "la", "lb"])
            .uniform("dt", &[5000], |u| -(1.0 - u).ln())
            .constant("lmu", &[], -1.0)
            .constant("la", &[], -1.0)
            .constant("lb", &[], 0.5)
            .constant("end", &[], 6000.0),
    ]
}

fn markov() -> Loss {
    const STATES: usize = 32;
    let loss = Loss::new("markov", "200 steps, 32 states", &["emission", "transition"]);
    let mut loss = loss.normal("emission", &[200, STATES], 1.0);
    let mut transition = vec![];
    for _ in 0..STATES {
        // Exponential numbers over their sum are distributions, all equally likely.
        let row: Vec<f64> = (0..STATES).map(|_| -(1.0 - unit(&mut loss.numbers)).ln()).collect();
        let total: f64 = row.iter().sum();
        transition.extend(row.iter().map(|p| (p / total).ln()));
    }
    loss.fixed("transition", &[STATES, STATES], &transition).constant("start", &[STATES], (1.0 / STATES as f64).ln())
}
