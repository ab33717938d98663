//! How far long work is, on one line of a terminal: how much is done of how much, what is being done, and how
//! long the rest may take.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::time::Duration;

/// The line is drawn anew so often, in milliseconds, for as long as nothing else happens.
const TICK: u64 = 500;

/// Work that consists of parts.
pub struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// Shown on the standard error, or not at all.
    pub fn new(shown: bool) -> Progress {
        Progress::drawn(if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }, shown)
    }

    fn drawn(target: ProgressDrawTarget, shown: bool) -> Progress {
        let left = |state: &ProgressState, out: &mut dyn Write| {
            if state.pos() > 0 && Some(state.pos()) < state.len() {
                // A line that cannot be shown is not worth an error.
                let _ = write!(out, ", {} left", HumanDuration(state.eta()));
            }
        };
        let style = ProgressStyle::with_template("[{bar:20}] {pos} of {len}{left}  {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(style.progress_chars("=> ").with_key("left", left));
        Progress { bar, shown }
    }

    /// Says how many parts there are. Before that nothing is shown: it would be none of none.
    pub fn all(&self, parts: usize) {
        self.bar.set_length(parts as u64);
        if self.shown {
            self.bar.enable_steady_tick(Duration::from_millis(TICK));
        }
    }

    /// Says what is being done.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// A part is done.
    pub fn done(&self) {
        self.bar.inc(1);
    }

    /// Parts are done.
    pub fn done_many(&self, parts: usize) {
        self.bar.inc(parts as u64);
    }

    /// Writes something else while the line is not there.
    pub fn beside<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex, PoisonError};

    /// A terminal that keeps what is written.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl Paper {
        fn text(&self) -> String {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, s: &str) -> io::Result<()> {
            self.write_str(&format!("{s}\n"))
        }
        fn write_str(&self, s: &str) -> io::Result<()> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(s);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Protects: the line says n of m, what, and how long the rest may take.
    #[test]
    fn a_line_says_how_far_the_work_is() {
        let paper = Paper::default();
        let progress = Progress::drawn(ProgressDrawTarget::term_like_with_hz(Box::new(paper.clone()), 200), true);
        std::thread::sleep(Duration::from_millis(2 * TICK));
        assert!(paper.text().is_empty(), "{}", paper.text());
        progress.all(3);
        progress.doing("softmax");
        assert!(paper.text().contains("0 of 3  softmax") && !paper.text().contains("left"), "{}", paper.text());
        std::thread::sleep(Duration::from_millis(30));
        progress.done();
        std::thread::sleep(Duration::from_millis(30));
        progress.doing("gemm");
        assert!(paper.text().contains("1 of 3, ") && paper.text().contains(" left  "), "{}", paper.text());
        assert_eq!(progress.beside(|| 5), 5);
    }

    /// Protects: what nobody watches writes nothing.
    #[test]
    fn a_hidden_line_is_not_drawn() {
        let progress = Progress::new(false);
        assert!(progress.bar.is_hidden());
    }
}
