//! Work in a process of its own, with a limit of time: what crashes or hangs there ends nothing here.

use super::seconds;
use crate::diag::{Diagnostic, Result};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often it is looked whether the process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a program with arguments for so many seconds at most. Gives what it writes, or why there is nothing of use: it
/// failed, crashed, or did not end.
///
/// # Errors
/// It cannot be started.
pub fn output(program: &Path, args: &[OsString], limit: f64) -> Result<std::result::Result<String, String>> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot =
        |e: std::io::Error| Diagnostic::user(format!("{} cannot be started", program.display())).note(e.to_string());
    let mut child = command.spawn().map_err(cannot)?;
    // Both pipes are read while it runs: one that is full would hold it up.
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = vec![];
            let _ = pipe.map(|mut p| p.read_to_end(&mut text));
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let (out, err) = (
        drain(child.stdout.take().map(|p| Box::new(p) as Box<dyn Read + Send>)),
        drain(child.stderr.take().map(|p| Box::new(p) as Box<dyn Read + Send>)),
    );
    let from = seconds();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if seconds() - from < limit => std::thread::sleep(LOOK),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                break Err(format!("it did not end within {limit:.0} s"));
            }
            Err(e) => break Err(e.to_string()),
        }
    };
    let status = match status {
        Ok(status) => status,
        Err(why) => return Ok(Err(why)),
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    Ok(match (status.success(), status.signal()) {
        (true, _) => Ok(out),
        (false, Some(signal)) => Err(format!("it was ended by signal {signal}")),
        (false, None) => Err(err.lines().next().unwrap_or("it failed without a message").to_string()),
    })
}
