//! How much memory there is, and how much of it processes hold, where the system says so as Linux does.

use std::fs::{read_dir, read_to_string};

/// What is taken for the machine's memory where nothing says how much it has.
const UNKNOWN: u64 = 1 << 36;
/// Processes below a process that are looked at: a compiler has a handful.
const MANY: usize = 256;

/// Bytes that this process may use: most of the machine's memory, or of what it may have; who takes all is killed.
pub fn available() -> u64 {
    let read = |path: &str| read_to_string(path).unwrap_or_default();
    let total = kilobytes(&read("/proc/meminfo"), "MemTotal:").map_or(UNKNOWN, |kb| kb * 1024);
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let most = groups.iter().filter_map(|p| read(p).trim().parse::<u64>().ok()).fold(total, u64::min);
    (most / 4 * 3) & !4095
}

/// The kilobytes that this process holds.
pub fn own() -> Option<u64> {
    resident("self")
}

/// The kilobytes that a process and all that it started hold together; 0 where nothing says so.
pub fn of_tree(process: u32) -> u64 {
    let (mut open, mut sum, mut seen) = (vec![process], 0, 0);
    while let Some(process) = open.pop() {
        seen += 1;
        if seen > MANY {
            break;
        }
        sum += resident(&process.to_string()).unwrap_or(0);
        // Each thread has the processes that it started.
        for thread in read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let text = read_to_string(thread.path().join("children")).unwrap_or_default();
            open.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    sum
}

fn resident(process: &str) -> Option<u64> {
    kilobytes(&read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}

/// The number behind a name, in a text of lines.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Protects: what a process started counts as its own.
    #[test]
    fn children_count() {
        let mut command = Command::new("sh");
        let Ok(mut shell) = command.args(["-c", "(sleep 2; true) & wait"]).spawn() else { return };
        std::thread::sleep(std::time::Duration::from_millis(300));
        let (alone, all) = (resident(&shell.id().to_string()).unwrap_or(0), of_tree(shell.id()));
        let _ = (shell.kill(), shell.wait());
        assert!(alone > 0 && all > alone, "{alone} kB of {all} kB");
    }
}
