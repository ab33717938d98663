//! Seeds become pictures, as cameras would give them: broad shades, edges and some noise.

use crate::common::npy;
use crate::common::numbers::Numbers;
use std::path::Path;

/// How a sample is stored.
#[derive(Clone, Copy)]
enum Samples {
    Floats,
    Bytes,
    /// Of 16 bits, so small that sums of three do not wrap.
    Shorts,
}

/// A pipeline: the definition of its name in the file of that name, its picture and what else it takes.
pub struct Picture {
    pub name: &'static str,
    /// Rows and columns, and channels where there are some; a fourth one says what is opaque.
    shape: &'static [usize],
    samples: Samples,
    more: &'static [&'static str],
}

/// All pipelines, at the sizes of the benchmarks of Halide.
pub fn all() -> Vec<Picture> {
    use Samples::{Bytes, Floats, Shorts};
    let of = |name, shape, samples, more| Picture { name, shape, samples, more };
    vec![
        of("blur", &[2048, 2048], Shorts, &[]),
        of("unsharp", &[2048, 2048, 3], Floats, &[]),
        of("harris", &[2048, 2048, 3], Floats, &[]),
        of("histogram", &[1536, 2560, 3], Bytes, &[]),
        of("iir_blur", &[1536, 2560, 3], Floats, &["0.25"]),
        of("max_filter", &[1536, 2560, 3], Floats, &["26"]),
        of("bilateral_grid", &[1536, 2560], Floats, &["8", "0.1"]),
        of("interpolate", &[1536, 2560, 4], Floats, &[]),
        of("stencil_chain", &[1536, 2560], Shorts, &["32"]),
    ]
}

impl Picture {
    fn file(&self, ending: &str) -> String {
        format!("{}/programs/imaging/{}.{ending}", env!("CARGO_MANIFEST_DIR"), self.name)
    }

    /// The schedule by hand, where one stands beside the program.
    pub fn schedule(&self) -> Option<String> {
        Some(self.file("sched")).filter(|f| Path::new(f).exists())
    }

    pub fn size(&self) -> String {
        self.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("×")
    }

    /// The program, the definition and its arguments, as commands take them.
    pub fn arguments(&self, folder: &Path) -> Vec<String> {
        let picture = format!("@{}", folder.join(format!("{}.npy", self.name)).display());
        let more = self.more.iter().map(ToString::to_string);
        [self.file("ks"), self.name.into(), picture].into_iter().chain(more).collect()
    }

    pub fn write(&self, folder: &Path) {
        let (path, all) = (folder.join(format!("{}.npy", self.name)), self.bright());
        let scaled = |most: f64| all.iter().map(move |v| most * v);
        match self.samples {
            Samples::Floats => npy::write(&path, self.shape, scaled(1.0).map(|v| v as f32).collect()),
            Samples::Bytes => npy::write(&path, self.shape, scaled(255.0).map(|v| v as u8).collect()),
            Samples::Shorts => npy::write(&path, self.shape, scaled(21_000.0).map(|v| v as u16).collect()),
        }
    }

    /// Between 0.02 and 1; of what is opaque, 1 at three of ten pixels.
    fn bright(&self) -> Vec<f64> {
        let columns = self.shape[1];
        let channels = self.shape.get(2).copied().unwrap_or(1);
        let count: usize = self.shape.iter().product();
        let noise = Numbers(7).some(count, 0.5);
        let of = |at: usize| {
            let (y, x, c) = (at / channels / columns, at / channels % columns, at % channels);
            let random = 0.5 + noise[at];
            if c == 3 {
                return f64::from(u8::from(random > 0.7));
            }
            let squares = (x / 128 + y / 160) % 2;
            let shade = 0.5 + 0.25 * (x as f64 / 97.0).sin() * (y as f64 / 61.0).cos() + 0.2 * squares as f64;
            (shade * (0.7 + 0.1 * c as f64) + 0.05 * random).clamp(0.02, 1.0)
        };
        (0..count).map(of).collect()
    }
}
