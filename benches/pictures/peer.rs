//! A pipeline and a way to schedule it become a process of Halide, which is asked for times.

use crate::common::command::python;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The ways, in the order of the table.
pub const WAYS: [&str; 3] = ["mullapudi", "adams", "hand"];
/// What a search and a compilation may take.
const LIMIT: Duration = Duration::from_secs(240);

pub const SCRIPT: &str = "pictures/peers.py";

/// A compiled pipeline.
pub struct Peer {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<f64>,
}

/// Sends each number that is printed, until there is none any more.
fn numbers(from: ChildStdout) -> Receiver<f64> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(from).lines().map_while(Result::ok);
        lines.filter_map(|line| line.trim().parse().ok()).take_while(|n| send.send(*n).is_ok()).count()
    });
    receive
}

impl Peer {
    /// Searches a schedule and compiles; nothing where that fails or takes too long, which is said.
    pub fn start(folder: &Path, name: &str, way: &str, threads: &str) -> Option<Peer> {
        let mut command = python(SCRIPT);
        command.arg(folder).args([name, way, threads]).env("HL_NUM_THREADS", threads);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (process.stdin.take(), numbers(process.stdout.take().unwrap()));
        let mut peer = Peer { process, to, from };
        match peer.from.recv_timeout(LIMIT) {
            Ok(seconds) => {
                eprintln!("{name}, {way}, {threads} threads: searched for {seconds:.1} s");
                Some(peer)
            }
            Err(why) => {
                let why = match why {
                    RecvTimeoutError::Timeout => format!("no schedule in {} s", LIMIT.as_secs()),
                    RecvTimeoutError::Disconnected => "no schedule".into(),
                };
                eprintln!("{name}, {way}, {threads} threads: {why}");
                peer.process.kill().ok();
                peer.process.wait().unwrap();
                None
            }
        }
    }

    /// Seconds of the fastest call.
    pub fn seconds(&mut self) -> f64 {
        writeln!(self.to.as_mut().unwrap()).unwrap();
        self.from.recv().expect("Halide runs what it has compiled")
    }

    /// How far the result is off ours, as a part of its greatest magnitude.
    pub fn off(mut self) -> f64 {
        self.to = None;
        let off = self.from.recv().expect("Halide compares what it has computed");
        self.process.wait().unwrap();
        if off.is_nan() { f64::INFINITY } else { off }
    }
}
