//! Work in a process of its own, with limits of time and memory: what crashes, hangs or takes too much there ends nothing here.
//!
//! The process leads a group of its own, so that a compiler that it started ends with it.

use super::memory;
use super::seconds;
use crate::diag::{Diagnostic, Result};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// How often it is looked whether the process has ended, and, so many times rarer, how much memory it holds.
const LOOK: Duration = Duration::from_millis(5);
const RARER: usize = 2;

/// What a process may use.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Seconds.
    pub seconds: f64,
    /// Bytes of memory, with those of all that it starts.
    pub bytes: u64,
    /// Whether nobody waits for it any more.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Runs a program with arguments, within limits. Gives what it writes, or why there is nothing of use: it failed, crashed,
/// did not end, or took too much memory.
///
/// # Errors
/// It cannot be started.
pub fn output(program: &Path, args: &[OsString], limits: &Limits<'_>) -> Result<std::result::Result<String, String>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // SAFETY: what runs between fork and exec is one system call, which touches no memory of this process.
    unsafe { command.pre_exec(end_with_parent) };
    let cannot =
        |e: std::io::Error| Diagnostic::user(format!("{} cannot be started", program.display())).note(e.to_string());
    let mut child = command.spawn().map_err(cannot)?;
    // Both pipes are read while it runs: one that is full would hold it up.
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    let status = match ended(&mut child, limits) {
        Ok(status) => status,
        Err(why) => {
            end(&mut child);
            return Ok(Err(why));
        }
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    Ok(match (status.success(), status.signal()) {
        (true, _) => Ok(out),
        (false, Some(signal)) => Err(format!("it was ended by signal {signal}")),
        (false, None) => Err(err.lines().next().unwrap_or("it failed without a message").to_string()),
    })
}

/// How a process ended, or why it is to end now.
fn ended(child: &mut Child, limits: &Limits<'_>) -> std::result::Result<ExitStatus, String> {
    let from = seconds();
    let mut looks = 0;
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status);
        }
        if seconds() - from >= limits.seconds {
            return Err(format!("it did not end within {} s", limits.seconds));
        }
        if (limits.stop)() {
            return Err("nobody waited for it any more".into());
        }
        if looks % RARER == 0 && memory::of_tree(child.id()).saturating_mul(1024) > limits.bytes {
            return Err(format!("it took more than {} MB of memory", limits.bytes >> 20));
        }
        looks += 1;
        sleep(LOOK);
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    spawn(move || {
        let mut text = vec![];
        let _ = pipe.map(|mut p| p.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Ends a process and its group.
fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // SAFETY: it touches no memory. The group is that of the process, which has not been waited for: nobody else has its
        // number.
        let _ = unsafe { kill(-group, KILL) };
    }
    let _ = (child.kill(), child.wait());
}

/// Where this process is killed, so is the one that it starts: one that hangs would stay for ever.
fn end_with_parent() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: this request takes one number and touches no memory.
    let _ = unsafe { prctl(PARENT_DEATH_SIGNAL, KILL as std::ffi::c_ulong) };
    Ok(())
}

const KILL: i32 = 9;
#[cfg(target_os = "linux")]
const PARENT_DEATH_SIGNAL: i32 = 1;

unsafe extern "C" {
    fn kill(process: i32, signal: i32) -> i32;
    #[cfg(target_os = "linux")]
    fn prctl(option: i32, ...) -> i32;
}
