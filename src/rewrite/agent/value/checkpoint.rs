//! A training becomes a file and goes on from it, as if it had never stopped.
//!
//! States are not written but how to make them: which moves led to each. Searches made them in this order, so
//! the same moves make the same terms again.

use super::fit::{Fit, TABLES};
use super::network::{Network, Setting};
use super::train::{EpochReport, Trainer};
use super::vocabulary::{KINDS, VERSION};
use super::weights::WANTED;
use crate::data::tensors::{Part, counts, floats, pack, unpack};
use crate::diag::{Diagnostic, Result};
use crate::ir::print;
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

#[derive(Serialize, Deserialize)]
struct About {
    training: u32,
    /// A hash of all that determines the training beside the number of epochs.
    of: String,
    width: usize,
    propagations: usize,
    steps: usize,
    /// Steps of the fit.
    fitted: u32,
    best: Vec<f64>,
    reports: Vec<EpochReport>,
}

impl<F: Fit> Trainer<'_, F> {
    /// The bytes of a file from which the training can go on.
    ///
    /// # Errors
    /// A bug, where they cannot be made.
    pub fn checkpoint(&self) -> Result<Vec<u8>> {
        let Setting { width, propagations, steps } = self.network.setting;
        let (fitted, tables) = self.fit.state();
        let (best, reports) = (self.best.clone(), self.reports.clone());
        let about = About { training: VERSION, of: self.identity(), width, propagations, steps, fitted, best, reports };
        let about =
            serde_json::to_string(&about).map_err(|e| Diagnostic::bug(format!("a training cannot be written: {e}")))?;
        let named = |what: &str, tensors: &[Array2<f32>]| -> Vec<(String, Part)> {
            tensors.iter().enumerate().map(|(k, t)| (format!("{what} {k}"), Part::floats(t))).collect()
        };
        let mut parts = named("weights", &self.network.tensors);
        parts.extend(named("fit", &tables));
        for (k, lesson) in self.lessons.iter().enumerate() {
            parts.push((format!("lesson {k}"), Part::counts(&lesson.record())));
        }
        pack(about, parts)
    }

    /// Goes on from such a file.
    ///
    /// # Errors
    /// The bytes are no such file, or one of a training of other programs or settings.
    pub fn resume(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let (about, file) = unpack(name, bytes, &WANTED)?;
        let about: About = serde_json::from_str(&about)
            .map_err(|_| Diagnostic::user(format!("`{name}` holds no training that could go on")))?;
        if about.of != self.identity() || about.training != VERSION {
            return Err(Diagnostic::user(format!("`{name}` holds a training of other programs or settings"))
                .note("it goes on with the same ones, but for the number of epochs"));
        }
        let setting = Setting { width: about.width, propagations: about.propagations, steps: about.steps };
        let shapes: Vec<[usize; 2]> = setting.tensors().iter().map(|(_, shape)| *shape).collect();
        let read = |what: &str, k: usize, shape: [usize; 2]| floats(name, &file, &format!("{what} {k}"), shape);
        let tensors = shapes.iter().enumerate().map(|(k, s)| read("weights", k, *s)).collect::<Result<_>>()?;
        let tables = (0..TABLES).flat_map(|_| &shapes).enumerate();
        let tables = tables.map(|(k, s)| read("fit", k, *s)).collect::<Result<_>>()?;
        for (k, lesson) in self.lessons.iter_mut().enumerate() {
            if !lesson.replay(&counts(name, &file, &format!("lesson {k}"))?) {
                return Err(Diagnostic::user(format!("`{name}` holds searches that these rules do not allow"))
                    .note("it was written by another version of daedal: train anew"));
            }
        }
        if about.best.len() != self.lessons.len() {
            return Err(Diagnostic::user(format!("`{name}` holds a training of another number of definitions")));
        }
        self.network = Network { setting, tensors };
        self.fit.restore(&self.network, (about.fitted, tables));
        (self.best, self.reports) = (about.best, about.reports);
        Ok(())
    }

    /// A hash of the programs, the rules and the settings.
    fn identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(&format!("{:?} {:?} {:?}", self.settings, self.network.setting, self.floors));
        KINDS.iter().for_each(|kind| add(kind));
        self.rules.iter().for_each(|rule| add(&rule.rule.name));
        for task in self.tasks.iter().chain(&self.held_out) {
            add(task.def.name());
            add(&print::program(task.program));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
