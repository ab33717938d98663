//! Layers of networks, and what they are trained by.

use super::Loss;

const AUTOENCODER: [&str; 10] = ["w1", "b1", "wm", "bm", "ws", "bs", "w2", "b2", "w3", "b3"];

pub fn all() -> Vec<Loss> {
    let lit = |u: f64| f64::from(u < 0.3);
    let heads = [4, 128, 32];
    vec![
        Loss::new("contrastive", "256 pairs of 64", &["a", "b"])
            .normal("a", &[256, 64], 1.0)
            .normal("b", &[256, 64], 1.0)
            .constant("temperature", &[], 0.3),
        Loss::new("skip_gram", "2000 words of 64, 5 drawn for each", &["u", "w"])
            .normal("u", &[2000, 64], 0.1)
            .normal("w", &[2000, 64], 0.1)
            .integers("center", &[2000], 2000)
            .integers("beside", &[2000], 2000)
            .integers("drawn", &[2000, 5], 2000),
        Loss::new("graph", "2000 nodes, 8000 edges, 64 to 32 to 7", &["w1", "w2"])
            .normal("x", &[2000, 64], 0.2)
            .integers("source", &[8000], 2000)
            .integers("target", &[8000], 2000)
            .normal("w1", &[32, 64], 0.1)
            .normal("w2", &[7, 32], 0.1)
            .integers("y", &[2000], 7),
        Loss::new("block", "256 by 64, 256 wide", &["x", "g", "b", "w1", "w2"])
            .normal("x", &[256, 64], 1.0)
            .constant("g", &[64], 1.0)
            .constant("b", &[64], 0.0)
            .normal("w1", &[256, 64], 0.1)
            .normal("w2", &[64, 256], 0.06)
            .normal("y", &[256, 64], 1.0),
        Loss::new("attention", "4 heads, 128 by 32", &["q", "k", "v"])
            .normal("q", &heads, 1.0)
            .normal("k", &heads, 1.0)
            .normal("v", &heads, 1.0)
            .normal("y", &heads, 1.0),
        Loss::new("coupling", "1000 points, 2 halves of 16", &["ws", "bs", "wt", "bt"])
            .normal("x1", &[1000, 16], 1.0)
            .normal("x2", &[1000, 16], 1.0)
            .normal("ws", &[16, 16], 0.2)
            .constant("bs", &[16], 0.0)
            .normal("wt", &[16, 16], 0.2)
            .constant("bt", &[16], 0.0),
        Loss::new("convolution", "16 images of 30 by 30, 8 filters", &["k", "g", "b", "wo"])
            .normal("x", &[16, 30, 30], 1.0)
            .normal("k", &[8, 3, 3], 0.3)
            .constant("g", &[8], 1.0)
            .constant("b", &[8], 0.0)
            .normal("wo", &[8], 1.0)
            .normal("y", &[16], 1.0),
        Loss::new("autoencoder", "128 by 64, 64 wide, codes of 8", &AUTOENCODER)
            .uniform("x", &[128, 64], lit)
            .normal("eps", &[128, 8], 1.0)
            .normal("w1", &[64, 64], 0.1)
            .constant("b1", &[64], 0.0)
            .normal("wm", &[8, 64], 0.1)
            .constant("bm", &[8], 0.0)
            .normal("ws", &[8, 64], 0.1)
            .constant("bs", &[8], 0.0)
            .normal("w2", &[64, 8], 0.2)
            .constant("b2", &[64], 0.0)
            .normal("w3", &[64, 64], 0.1)
            .constant("b3", &[64], 0.0),
        Loss::new("triplets", "3000 of 300 points of 32", &["x"])
            .normal("x", &[300, 32], 1.0)
            .integers("anchor", &[3000], 300)
            .integers("like", &[3000], 300)
            .integers("unlike", &[3000], 300),
        Loss::new("mixture_network", "2000 points, 32 wide, 5 distributions", &["w", "b", "wp", "wm", "ws"])
            .normal("x", &[2000], 1.0)
            .normal("y", &[2000], 1.0)
            .normal("w", &[32], 1.0)
            .normal("b", &[32], 1.0)
            .normal("wp", &[5, 32], 0.2)
            .normal("wm", &[5, 32], 0.2)
            .normal("ws", &[5, 32], 0.1),
        Loss::new("neural_ode", "64 by 16, 32 wide, 20 steps", &["w1", "b1", "w2"])
            .normal("x", &[64, 16], 1.0)
            .normal("y", &[64, 16], 1.0)
            .normal("w1", &[32, 16], 0.3)
            .constant("b1", &[32], 0.0)
            .normal("w2", &[16, 32], 0.3),
        Loss::new("strided", "16 images of 33 by 33, 3 to 8 to 16 channels", &["k1", "k2", "d"])
            .normal("x", &[16, 3, 33, 33], 1.0)
            .normal("k1", &[8, 3, 3, 3], 0.3)
            .normal("k2", &[16, 8, 3, 3], 0.2)
            .normal("d", &[10, 16], 0.3)
            .normal("y", &[16, 10], 1.0),
        Loss::new("planar_flow", "1000 points of 6, 16 layers", &["u", "w", "b"])
            .normal("z0", &[1000, 6], 1.0)
            .normal("u", &[16, 6], 0.3)
            .normal("w", &[16, 6], 0.3)
            .normal("b", &[16], 0.3),
        Loss::new("decorrelation", "256 pairs of 64", &["a", "b"]).normal("a", &[256, 64], 1.0).normal(
            "b",
            &[256, 64],
            1.0,
        ),
    ]
}
