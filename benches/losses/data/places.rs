//! Images, and points in space.

use super::{Loss, Values, normal, unit};

pub fn all() -> Vec<Loss> {
    // No pixel comes to lie exactly between two, where a derivative is one of two.
    let map = [1.012_318_27, 0.021_145_93, 0.513_207_31, -0.013_719_64, 0.987_123_58, 0.733_129_87];
    let covered = |u: f64| f64::from(u < 0.4);
    vec![
        Loss::new("focal", "256 by 256 pixels", &["z"]).normal("z", &[256, 256], 1.0).uniform(
            "y",
            &[256, 256],
            covered,
        ),
        Loss::new("alignment", "256 by 256 pixels", &["q"])
            .uniform("image", &[256, 256], |u| u)
            .uniform("target", &[256, 256], |u| u)
            .fixed("q", &[6], &map),
        Loss::new("rendering", "1000 rays of 64 samples", &["sigma", "rgb"])
            .normal("sigma", &[1000, 64], 1.0)
            .uniform("rgb", &[1000, 64, 3], |u| u)
            .uniform("dt", &[1000, 64], |u| 0.1 * u)
            .uniform("target", &[1000, 3], |u| u),
        lennard_jones(),
        Loss::new("arm", "500 positions of 6 joints", &["length", "offset"])
            .normal("angle", &[500, 6], 1.0)
            .integers("axes", &[6], 3)
            .uniform("length", &[6], |u| u)
            .normal("offset", &[6], 0.1)
            .normal("y", &[500, 3], 1.0),
        Loss::new("total_variation", "260 by 260 pixels, blurred by 5 by 5", &["x"])
            .uniform("x", &[260, 260], |u| u)
            .uniform("y", &[256, 256], |u| u)
            .constant("k", &[5, 5], 0.04),
        springs(),
        torsions(),
    ]
}

fn lennard_jones() -> Loss {
    let mut loss = Loss::new("lennard_jones", "512 atoms", &["p"]);
    // A cubic lattice, its atoms a little off.
    let place = |k: usize| [k / 64, k / 8 % 8, k % 8];
    let p: Vec<f64> = (0..512).flat_map(place).map(|c| 1.2 * c as f64 + 0.1 * unit(&mut loss.numbers)).collect();
    loss.fixed("p", &[512, 3], &p)
}

fn torsions() -> Loss {
    let mut loss = Loss::new("torsions", "a chain of 2000 atoms", &["x"]);
    // Each atom a normal step away from the one before it.
    let mut x: Vec<f64> = (0..6000).map(|_| normal(&mut loss.numbers)).collect();
    (3..x.len()).for_each(|k| x[k] += x[k - 3]);
    loss.fixed("x", &[2000, 3], &x)
}

fn springs() -> Loss {
    const POINTS: i64 = 3000;
    let loss = Loss::new("springs", "3000 points, 10000 springs", &["x"]);
    let mut loss = loss.normal("x", &[POINTS as usize, 3], 1.0);
    let source: Vec<i64> = (0..10000).map(|_| loss.below(POINTS as usize)).collect();
    // No spring ends where it begins: its length has no derivative there.
    let target = source.iter().map(|s| (s + 1 + loss.below(POINTS as usize - 1)) % POINTS).collect();
    let loss = loss.with("source", &[10000], Values::Integers(source));
    loss.with("target", &[10000], Values::Integers(target)).uniform("length", &[10000], |u| u)
}
