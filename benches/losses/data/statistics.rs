//! Likelihoods and regressions of points that do not depend on each other.

use super::{Loss, unit};

pub fn all() -> Vec<Loss> {
    let event = |u: f64| f64::from(u < 0.6);
    let even = |u: f64| f64::from(u < 0.5);
    let scored = |u: f64| (5.0 * u).floor();
    vec![
        Loss::new("cox", "5000 points, 10 dimensions", &["beta"])
            .normal("x", &[5000, 10], 1.0)
            .uniform("event", &[5000], event)
            .normal("beta", &[10], 0.1),
        Loss::new("negative_binomial", "5000 points, 8 dimensions", &["beta"])
            .normal("x", &[5000, 8], 0.3)
            .counts("y", &[5000], 3.0)
            .normal("beta", &[8], 0.1)
            .constant("lr", &[], 0.4),
        Loss::new("dirichlet", "2000 rows of 16 counts", &["y", "la"]).counts("y", &[2000, 16], 2.0).normal(
            "la",
            &[16],
            0.3,
        ),
        Loss::new("pairs", "500 points, 10 dimensions, 5 grades", &["w"])
            .normal("x", &[500, 10], 1.0)
            .uniform("y", &[500], scored)
            .normal("w", &[10], 0.3),
        Loss::new("splines", "20000 points, 64 coefficients", &["c"])
            .uniform("x", &[20000], |u| 0.999 * u)
            .normal("y", &[20000], 1.0)
            .normal("c", &[64], 1.0),
        gaussian_process(),
        Loss::new("covariance", "1000 points of 8, a triangle solved by folds", &["mu", "l"])
            .normal("x", &[1000, 8], 1.0)
            .normal("mu", &[8], 1.0)
            .normal("l", &[8, 8], 0.3),
        Loss::new("sinkhorn", "100 by 100 points, 20 rounds", &["x"]).uniform("x", &[100, 2], |u| u).uniform(
            "y",
            &[100, 2],
            |u| u,
        ),
        Loss::new("poisson_factors", "200 by 150 counts, 12 factors", &["u", "v"])
            .normal("u", &[200, 12], 0.3)
            .normal("v", &[150, 12], 0.3)
            .counts("y", &[200, 150], 3.0),
        Loss::new("factorization_machine", "2000 points, 10 of 1000 features, vectors of 16", &["v", "w"])
            .integers("feature", &[2000, 10], 1000)
            .uniform("y", &[2000], even)
            .normal("v", &[1000, 16], 0.1)
            .normal("w", &[1000], 0.1),
        Loss::new("ordinal", "5000 points, 8 dimensions, 5 grades", &["beta", "c"])
            .normal("x", &[5000, 8], 1.0)
            .integers("y", &[5000], 5)
            .normal("beta", &[8], 0.2)
            .fixed("c", &[4], &[-2.0, -0.5, 0.5, 2.0]),
        Loss::new("student", "5000 points, 10 dimensions", &["beta", "ls", "ln"])
            .normal("x", &[5000, 10], 1.0)
            .normal("y", &[5000], 1.0)
            .normal("beta", &[10], 1.0)
            .constant("ls", &[], 0.0)
            .constant("ln", &[], 1.0),
        Loss::new("softmax_regression", "5000 points, 50 dimensions, 10 classes", &["w", "b"])
            .normal("x", &[5000, 50], 1.0)
            .integers("y", &[5000], 10)
            .normal("w", &[10, 50], 0.1)
            .constant("b", &[10], 0.0),
        Loss::new("spins", "1000 points of 30 spins", &["j", "h"])
            .uniform("s", &[1000, 30], |u| if u < 0.5 { -1.0 } else { 1.0 })
            .normal("j", &[30, 30], 0.1)
            .normal("h", &[30], 0.1),
    ]
}

fn gaussian_process() -> Loss {
    let mut loss = Loss::new("gaussian_process", "60 points, Cholesky by folds", &["ll", "ls"]);
    let mut x: Vec<f64> = (0..60).map(|_| 10.0 * unit(&mut loss.numbers)).collect();
    x.sort_by(f64::total_cmp);
    loss.fixed("x", &[60], &x).normal("y", &[60], 1.0).constant("ll", &[], 0.0).constant("ls", &[], -1.0)
}
