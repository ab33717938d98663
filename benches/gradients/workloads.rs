//! What is measured: for each workload its baseline, its program, its data, and what its derivatives mean.

use crate::data::{Array, Stream};

/// What the outputs after those of the primal are.
#[derive(Clone, Copy)]
pub enum Meaning {
    /// Of one number by the named inputs, in order.
    Gradient(&'static [usize]),
    /// Of bundle adjustment: by observation 2 rows by camera (11), point (3) and weight, then the derivatives
    /// of the weight errors.
    Observations,
    /// Of hand tracking: for each angle the derivative of all errors.
    Angles,
}

/// One set of arguments.
pub struct Case {
    /// Given to the baseline before its inputs.
    pub sizes: Vec<i64>,
    pub inputs: Vec<Array>,
    /// What the program takes after the inputs.
    pub extra: Vec<Array>,
    /// Dimensions of what the primal writes, and of what the gradient writes after that.
    pub outputs: Vec<Vec<usize>>,
    pub derivatives: Vec<Vec<usize>>,
}

/// The program of a workload: its text is that of the files, one after another.
pub struct Objective {
    pub files: &'static [&'static str],
    pub def: &'static str,
}

/// A row of the table.
pub struct Workload {
    pub name: &'static str,
    pub shape: String,
    /// The file in `benches/baselines/`, and the names in it, without `_primal` and `_gradient`.
    pub file: &'static str,
    pub entries: &'static [&'static str],
    /// Where the entries compute in 32 bits: the same in 64, for checks.
    pub precise: Option<&'static str>,
    /// And the program in 32 bits, which is timed beside them.
    pub single: Option<Objective>,
    pub meaning: Meaning,
    pub objective: Objective,
    /// Odd sizes, for checks against differences and the interpreter.
    pub small: Vec<Case>,
    /// What is timed.
    pub large: Case,
}

impl Workload {
    /// How many times as long as the hand-written gradient this one may take.
    pub fn bound(&self) -> f64 {
        match self.name {
            "ba" | "hand" => 1.0,
            "lstm" | "convnet" => 1.5,
            _ => 1.2,
        }
    }

    /// The program that is timed.
    pub fn timed(&self) -> &Objective {
        self.single.as_ref().unwrap_or(&self.objective)
    }
}

fn case(sizes: &[usize], inputs: Vec<Array>, outputs: &[&[usize]], derivatives: &[&[usize]]) -> Case {
    let list = |all: &[&[usize]]| all.iter().map(|d| d.to_vec()).collect();
    let sizes = sizes.iter().map(|n| *n as i64).collect();
    Case { sizes, inputs, extra: vec![], outputs: list(outputs), derivatives: list(derivatives) }
}

/// One number, and its gradient by some inputs.
fn scalar(sizes: &[usize], inputs: Vec<Array>, by: &[usize]) -> Case {
    let derivatives: Vec<Vec<usize>> = by.iter().map(|w| inputs[*w].dims.clone()).collect();
    Case { derivatives, ..case(sizes, inputs, &[&[]], &[]) }
}

const GMM: &[usize] = &[1, 2, 3, 4];

fn gmm_case(n: usize, d: usize, k: usize) -> Case {
    let mut s = Stream(1);
    let t = d * (d - 1) / 2;
    let inputs = vec![
        s.floats(&[n, d], 0.0, 1.0),
        s.floats(&[k], -0.5, 0.5),
        s.floats(&[k, d], 0.0, 1.0),
        s.floats(&[k, d], -0.5, 0.5),
        s.floats(&[k, t], -0.3, 0.3),
        Array::floats(&[], |_| 1.5),
        Array::integers(&[], |_| 2),
    ];
    scalar(&[n, d, k], inputs, GMM)
}

fn gmm(d: usize) -> Workload {
    Workload {
        name: "gmm",
        shape: format!("n=1000 d={d} k=25"),
        file: "gmm_gradient",
        entries: &["gmm_batched", "gmm_pointwise"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(GMM),
        objective: Objective { files: &["programs/apps/gmm.ks"], def: "gmm_objective" },
        small: vec![gmm_case(7, 3, 4), gmm_case(53, 9, 6), gmm_case(1, 2, 1)],
        large: gmm_case(1000, d, 25),
    }
}

fn ba_case(cameras: usize, points: usize, p: usize) -> Case {
    let mut s = Stream(2);
    let mut camera = s.floats(&[cameras, 11], 0.0, 0.5);
    // Cameras stand off from the points, which lie in the unit cube.
    let back: Vec<f64> = (0..cameras * 11).map(|i| if i % 11 == 5 { -4.0 } else { 0.0 }).collect();
    camera = camera.moved(&back, 1.0);
    let inputs = vec![
        camera,
        s.floats(&[points, 3], 0.0, 1.0),
        s.floats(&[p], 0.0, 1.0),
        s.floats(&[p, 2], 0.0, 1.0),
        s.indices(&[p], cameras),
        s.indices(&[p], points),
    ];
    case(&[cameras, points, p], inputs, &[&[p, 2], &[p]], &[&[p, 2, 15], &[p]])
}

fn ba() -> Workload {
    Workload {
        name: "ba",
        shape: "49 cameras, 7776 points, 31843 obs.".into(),
        file: "ba",
        entries: &["ba"],
        precise: None,
        single: None,
        meaning: Meaning::Observations,
        objective: Objective { files: &["programs/apps/ba.ks"], def: "all_residuals" },
        small: vec![ba_case(3, 7, 25)],
        large: ba_case(49, 7776, 31843),
    }
}

fn hand_case(vertices: usize, points: usize, mirrored: bool) -> Case {
    const BONES: usize = 22;
    let mut s = Stream(3);
    // The wrist hangs on nothing, the palm on the wrist, and a finger's bones on one another.
    let parents = Array::integers(&[BONES], |b| match b {
        0 => -1,
        1 => 0,
        b if (b - 2) % 4 == 0 => 1,
        b => b as i64 - 1,
    });
    let frames = |s: &mut Stream| {
        let v = s.floats(&[BONES, 4, 4], -0.3, 0.3).to_floats();
        Array::floats(&[BONES, 4, 4], |i| match (i / 4 % 4, i % 4) {
            (3, c) => f64::from(u8::from(c == 3)),
            (r, c) => v[i] + f64::from(u8::from(r == c)),
        })
    };
    let inputs = vec![
        s.floats(&[26], -1.0, 1.0),
        parents,
        frames(&mut s),
        frames(&mut s),
        Array::floats(&[vertices, 4], |i| if i % 4 == 3 { 1.0 } else { s.number(-1.0, 1.0) }),
        s.floats(&[vertices, BONES], 0.0, 0.1),
        s.indices(&[points], vertices),
        s.floats(&[points, 3], -1.0, 1.0),
        Array::integers(&[1], |_| i64::from(mirrored)),
    ];
    case(&[BONES, vertices, points], inputs, &[&[points, 3]], &[&[26, points, 3]])
}

fn hand(points: usize) -> Workload {
    Workload {
        name: "hand",
        shape: format!("22 bones, 544 vertices, {points} points"),
        file: "hand",
        entries: &["hand"],
        precise: None,
        single: None,
        meaning: Meaning::Angles,
        objective: Objective { files: &["benches/gradients/hand.ks"], def: "hand_errors" },
        small: vec![hand_case(11, 5, true), hand_case(11, 30, false)],
        large: hand_case(544, points, false),
    }
}

const LSTM: &[usize] = &[0, 1];

fn lstm_case(l: usize, c: usize, b: usize) -> Case {
    let mut s = Stream(4);
    let inputs = vec![
        s.floats(&[l, 2, 4, b], -1.0, 1.0),
        s.floats(&[3, b], -1.0, 1.0),
        s.floats(&[l, 2, b], -1.0, 1.0),
        Array::floats(&[c, b], |_| f64::from(u8::from(s.number(0.0, 1.0) < 0.3))),
    ];
    scalar(&[l, c, b], inputs, LSTM)
}

fn lstm(l: usize, c: usize) -> Workload {
    Workload {
        name: "lstm",
        shape: format!("{l} layers, {c} characters, 14 wide"),
        file: "lstm",
        entries: &["lstm"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(LSTM),
        objective: Objective { files: &["benches/gradients/lstm.ks"], def: "lstm_objective" },
        small: vec![lstm_case(1, 2, 1), lstm_case(2, 9, 3), lstm_case(3, 6, 21)],
        large: lstm_case(l, c, 14),
    }
}

const CONVNET: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8];

/// Batch, side of the square images, padding, channels, hidden, classes.
fn convnet_case(batch: usize, side: usize, pad: usize, [c1, c2]: [usize; 2], hidden: usize, classes: usize) -> Case {
    let mut s = Stream(5);
    let pooled = |n: usize| (n + 2 * pad - 4) / 2;
    let flat = c2 * pooled(pooled(side)).pow(2);
    let inputs = vec![
        s.floats(&[batch, 1, side, side], 0.0, 1.0),
        s.floats(&[c1, 1, 5, 5], -0.3, 0.3),
        s.floats(&[c1], -0.1, 0.1),
        s.floats(&[c2, c1, 5, 5], -0.1, 0.1),
        s.floats(&[c2], -0.1, 0.1),
        s.floats(&[hidden, flat], -0.05, 0.05),
        s.floats(&[hidden], -0.1, 0.1),
        s.floats(&[classes, hidden], -0.2, 0.2),
        s.floats(&[classes], -0.1, 0.1),
        s.indices(&[batch], classes),
    ];
    let mut made = scalar(&[batch, side, side, pad, c1, c2, hidden, classes], inputs, CONVNET);
    made.extra = vec![Array::integers(&[], |_| pad as i64)];
    made
}

fn convnet(pad: usize) -> Workload {
    Workload {
        name: "convnet",
        shape: format!("batch 64, padding {pad}, 32 bits"),
        file: "convnet",
        entries: &["convnet_f32"],
        precise: Some("convnet_f64"),
        single: Some(Objective { files: &["benches/gradients/convnet32.ks"], def: "convnet_loss" }),
        meaning: Meaning::Gradient(CONVNET),
        objective: Objective {
            files: &["programs/apps/convnet.ks", "benches/gradients/convnet_loss.ks"],
            def: "convnet_loss",
        },
        small: vec![convnet_case(2, 17, 0, [16, 16], 16, 3), convnet_case(1, 10, 2, [16, 32], 32, 4)],
        large: convnet_case(64, 28, pad, [16, 32], 128, 10),
    }
}

fn chain_case(n: usize) -> Case {
    let mut s = Stream(6);
    let mut inputs: Vec<Array> = (0..3).map(|_| s.floats(&[n, n], -1.0, 1.0)).collect();
    inputs.push(s.floats(&[n], -1.0, 1.0));
    scalar(&[n], inputs, &[3])
}

fn chain() -> Workload {
    Workload {
        name: "matvec chain",
        shape: "3 matrices of 256 by 256".into(),
        file: "small",
        entries: &["chain"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[3]),
        objective: Objective { files: &["benches/gradients/chain.ks"], def: "chain" },
        small: vec![chain_case(5), chain_case(19)],
        large: chain_case(256),
    }
}

fn logsumexp_case(n: usize) -> Case {
    scalar(&[n], vec![Stream(7).floats(&[n], -4.0, 4.0)], &[0])
}

fn logsumexp() -> Workload {
    Workload {
        name: "log-sum-exp",
        shape: "n=10000".into(),
        file: "small",
        entries: &["logsumexp"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[0]),
        objective: Objective { files: &["programs/apps/logsumexp.ks"], def: "logsumexp" },
        small: vec![logsumexp_case(3), logsumexp_case(45)],
        large: logsumexp_case(10000),
    }
}

fn kmeans_case(n: usize, d: usize, k: usize) -> Case {
    let mut s = Stream(8);
    scalar(&[n, d, k], vec![s.floats(&[n, d], 0.0, 1.0), s.floats(&[k, d], 0.0, 1.0)], &[1])
}

fn kmeans() -> Workload {
    Workload {
        name: "k-means",
        shape: "n=10000 d=16 k=25".into(),
        file: "small",
        entries: &["kmeans"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[1]),
        objective: Objective { files: &["programs/apps/kmeans.ks"], def: "objective" },
        small: vec![kmeans_case(5, 2, 2), kmeans_case(71, 3, 5)],
        large: kmeans_case(10000, 16, 25),
    }
}

fn conv1d_case(kernels: usize, channels: usize, taps: usize, n: usize) -> Case {
    let mut s = Stream(9);
    let inputs = vec![s.floats(&[kernels, channels, taps], -1.0, 1.0), s.floats(&[channels, n], -1.0, 1.0)];
    scalar(&[kernels, channels, taps, n], inputs, &[0, 1])
}

fn conv1d() -> Workload {
    Workload {
        name: "conv1d",
        shape: "16 kernels, 8 channels, 5 taps, n=1024".into(),
        file: "small",
        entries: &["conv1d"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[0, 1]),
        objective: Objective {
            files: &["programs/apps/conv1d.ks", "benches/gradients/conv1d_loss.ks"],
            def: "conv1d_loss",
        },
        small: vec![conv1d_case(2, 3, 4, 9), conv1d_case(9, 2, 3, 30), conv1d_case(1, 1, 1, 1)],
        large: conv1d_case(16, 8, 5, 1024),
    }
}

fn gelu_case(n: usize) -> Case {
    scalar(&[n], vec![Stream(10).floats(&[n], -4.0, 4.0)], &[0])
}

fn gelu() -> Workload {
    Workload {
        name: "gelu",
        shape: "n=10000".into(),
        file: "steps",
        entries: &["gelu"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[0]),
        objective: Objective { files: &["programs/apps/gelu.ks", "benches/gradients/gelu_sum.ks"], def: "gelu_sum" },
        small: vec![gelu_case(3), gelu_case(45)],
        large: gelu_case(10000),
    }
}

fn swing_case(n: usize) -> Case {
    let mut s = Stream(11);
    let inputs = vec![s.floats(&[2], -1.0, 1.0), Array::floats(&[], |_| 0.3), s.floats(&[n], 0.001, 0.01)];
    scalar(&[n], inputs, &[0, 1, 2])
}

fn swing() -> Workload {
    Workload {
        name: "swing",
        shape: "10000 steps".into(),
        file: "steps",
        entries: &["swing"],
        precise: None,
        single: None,
        meaning: Meaning::Gradient(&[0, 1, 2]),
        objective: Objective { files: &["benches/gradients/swing.ks"], def: "swing_end" },
        small: vec![swing_case(1), swing_case(37)],
        large: swing_case(10000),
    }
}

/// All rows of the table.
pub fn all() -> Vec<Workload> {
    vec![
        gmm(10),
        gmm(64),
        ba(),
        hand(100),
        hand(1000),
        lstm(2, 1024),
        lstm(4, 4096),
        convnet(0),
        convnet(2),
        chain(),
        logsumexp(),
        kmeans(),
        conv1d(),
        gelu(),
        swing(),
    ]
}
