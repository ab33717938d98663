//! Arguments and environment become a command; its outcome becomes the exit code. No logic.

use daedal::cli::{self, Look};
use daedal::diag::Diagnostic;
use daedal::run::Interrupt;
use std::env;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::panic;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::thread;

/// Bytes of stack, which take memory where they are used only. Terms nest deeply, and what walks over them takes more
/// stack where this one ends; but each walk would get, and give back, its own.
const STACK: usize = 1 << 30;

static INTERRUPT: Interrupt = Interrupt::new();

fn main() -> ExitCode {
    // Without a handler an interrupt ends the process, which is right for most commands.
    let _ = ctrlc::set_handler(|| {
        if !INTERRUPT.raise() {
            process::exit(130);
        }
        let _ = writeln!(stderr(), "interrupted: ending with what is done so far; once more ends at once");
    });
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(String::new, |l| format!(" ({}:{})", l.file(), l.line()));
        let what = info.payload_as_str().unwrap_or("an unknown failure");
        let d = Diagnostic::bug(format!("{what}{place}")).note("this is an error of daedal, not of its input");
        complain(&d, Look::default());
    }));
    // Where the system has no room for such a stack, the first one does.
    match thread::Builder::new().stack_size(STACK).spawn(caught) {
        Ok(worker) => worker.join().unwrap_or(ExitCode::from(70)),
        Err(_) => caught(),
    }
}

fn caught() -> ExitCode {
    panic::catch_unwind(command).unwrap_or(ExitCode::from(70))
}

fn command() -> ExitCode {
    let cli = match cli::parse(env::args_os()) {
        Ok(cli) => cli,
        Err(e) => {
            // Help that nobody reads any more is no error.
            let _ = e.print();
            return ExitCode::from(u8::from(e.use_stderr()));
        }
    };
    let mut out = stdout().lock();
    let set = |name: &str| env::var(name).ok().filter(|v| !v.is_empty());
    let plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
    let look = cli.look(stdout().is_terminal(), stderr().is_terminal(), plain);
    let (cxx, cache_size) = (set("CXX"), set("DAEDAL_CACHE_SIZE"));
    let (program, interrupt) = (env::current_exe().ok(), &INTERRUPT);
    let mut world = cli::World { out: &mut out, cxx, cache: cache(), cache_size, program, look, interrupt };
    match cli::run(&cli, &mut world) {
        Ok(()) => ExitCode::SUCCESS,
        Err(d) => {
            complain(&d, look);
            ExitCode::from(d.exit_code())
        }
    }
}

/// Writes a message to the standard error, if that can be written.
fn complain(d: &Diagnostic, look: Look) {
    let _ = writeln!(stderr(), "{}", d.text(look.message_colour));
}

/// `$DAEDAL_CACHE`, else where the system keeps a user's caches.
fn cache() -> Option<PathBuf> {
    let path = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    path("DAEDAL_CACHE")
        .or_else(|| path("XDG_CACHE_HOME").map(|p| p.join("daedal")))
        .or_else(|| path("HOME").map(|p| p.join(".cache").join("daedal")))
}
