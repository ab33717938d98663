//! A folder of compiled objects: finds, checks and keeps them, within a bound.
//!
//! Processes share the folder. An object is written beside its name, synced and renamed, and ends with a checksum of
//! its key and content: what was damaged or replaced is never loaded. Everything else in the folder belongs to a
//! compilation that goes on, or to one that was killed, which the lock in its own folder tells apart. It must not know
//! of compilers.

use sha2::{Digest, Sha256};
use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// What stands before the checksum at the end of an object.
const SEAL: &[u8; 8] = b"daedal01";
/// Objects that were used in so many seconds stay: another process may be about to load them.
const FRESH: Duration = Duration::from_secs(60);
/// How the folders of compilations are called.
const MAKING: &str = "making-";
/// The file that a compilation holds a lock on, in its folder.
const HELD: &str = "lock";

/// A folder of compiled objects.
pub(super) struct Cache {
    folder: PathBuf,
}

/// A folder for one compilation, which goes with it.
pub(super) struct Making {
    folder: PathBuf,
    _held: File,
}

impl Making {
    /// A file in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Cache {
    /// Opens a folder, where it can be made and belongs to this user: objects of somebody else are not loaded.
    pub(super) fn open(folder: &Path) -> io::Result<Cache> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mine = fs::metadata("/proc/self").map(|m| m.uid());
        if mine.is_ok_and(|uid| fs::metadata(folder).is_ok_and(|m| m.uid() != uid)) {
            return Err(io::Error::other("the folder belongs to another user"));
        }
        Ok(Cache { folder: folder.to_path_buf() })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.so"))
    }

    /// The object of a key, if it is there and whole.
    pub(super) fn find(&self, key: &str) -> Option<PathBuf> {
        let path = self.path(key);
        if !path.is_file() || !is_whole(key, &fs::read(&path).ok()?) {
            return None;
        }
        // Where the time cannot be set, the object only goes earlier than it should.
        let now = FileTimes::new().set_modified(SystemTime::now());
        let _ = File::options().append(true).open(&path).and_then(|f| f.set_times(now));
        Some(path)
    }

    /// A new folder for a compilation. What killed compilations left is removed first.
    pub(super) fn making(&self) -> io::Result<Making> {
        let _alone = self.alone()?;
        self.sweep();
        let folder = self.folder.join(format!("{MAKING}{}", serial()));
        // A process of another machine or container may have had the same number.
        let _ = fs::remove_dir_all(&folder);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let held = File::create(folder.join(HELD))?;
        // Where there are no locks, nothing is ever taken for a leftover.
        let _ = held.lock();
        Ok(Making { folder, _held: held })
    }

    /// Takes what a compilation made as the object of a key, and removes the least recently used ones beyond a bound
    /// of so many bytes.
    pub(super) fn keep(&self, made: &Path, key: &str, bound: u64) -> io::Result<PathBuf> {
        let content = fs::read(made)?;
        let mut file = File::options().append(true).open(made)?;
        file.write_all(SEAL)?;
        file.write_all(&checksum(key, &content))?;
        file.sync_all()?;
        let path = self.path(key);
        if path.is_dir() {
            fs::remove_dir_all(&path)?;
        }
        fs::rename(made, &path)?;
        let _ = File::open(&self.folder).and_then(|f| f.sync_all());
        self.shrink(bound, &path);
        Ok(path)
    }

    /// The lock of the folder: one process at a time begins to compile there, or removes what others made.
    fn alone(&self) -> io::Result<File> {
        let file = File::create(self.folder.join(HELD))?;
        let _ = file.lock();
        Ok(file)
    }

    /// Removes the folders of compilations that nobody holds any more.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with(MAKING) {
                continue;
            }
            let path = entry.path();
            let held = File::open(path.join(HELD)).is_ok_and(|f| f.try_lock().is_err());
            if !held {
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
        }
    }

    /// Removes the least recently used objects until the others take no more than so many bytes.
    fn shrink(&self, bound: u64, new: &Path) {
        let Ok(_alone) = self.alone() else { return };
        let mut objects = vec![];
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if let (true, Ok(about)) = (path.extension().is_some_and(|e| e == "so"), entry.metadata()) {
                objects.push((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), path, about.len()));
            }
        }
        objects.sort();
        let mut total: u64 = objects.iter().map(|o| o.2).sum();
        let now = SystemTime::now();
        for (used, path, bytes) in objects {
            let fresh = now.duration_since(used).is_ok_and(|age| age < FRESH);
            if total <= bound || fresh {
                return;
            }
            if path != new && fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

/// What an object of a key ends with.
fn checksum(key: &str, content: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(content);
    hash.finalize().into()
}

fn is_whole(key: &str, bytes: &[u8]) -> bool {
    let Some((content, end)) = bytes.len().checked_sub(SEAL.len() + 32).map(|n| bytes.split_at(n)) else {
        return false;
    };
    end.starts_with(SEAL) && end[SEAL.len()..] == checksum(key, content)
}

/// A name that no other process or thread of this machine uses at this time.
fn serial() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
