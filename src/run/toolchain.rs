//! C++ text becomes a shared object: finds the compiler and keeps what it made in a cache.

use crate::diag::{Diagnostic, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

/// Flags that keep the bits of the interpreter: no contraction, no reordering, wrapping integers, and
/// library functions that the compiler does not evaluate itself.
const FLAGS: &[&str] = &[
    "-std=c++17",
    "-march=native",
    "-mprefer-vector-width=512",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
];

/// Functions whose value the compiler would round otherwise than the library does.
const LIBRARY: &[&str] =
    &["sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "erf", "lgamma", "pow", "atan2"];

/// Beyond so many bytes of text the compiler does only what is cheap.
const HUGE: usize = 2 << 20;

/// A compiler, how hard it works, and where its output is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toolchain {
    /// The command that compiles C++.
    pub compiler: String,
    /// The folder of compiled objects.
    pub cache: PathBuf,
    /// The level of optimization: 0 to 3. All give the same bits.
    pub level: u8,
}

impl Toolchain {
    /// The compiler that is asked for, or g++; the folder that is asked for, or the user's cache.
    pub fn discover(cxx: Option<String>, cache: Option<PathBuf>) -> Toolchain {
        let compiler = cxx.filter(|c| !c.trim().is_empty()).unwrap_or_else(|| "g++".to_string());
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let cache = cache
            .or_else(|| folder("XDG_CACHE_HOME").map(|p| p.join("daedal")))
            .or_else(|| folder("HOME").map(|p| p.join(".cache").join("daedal")))
            .unwrap_or_else(|| std::env::temp_dir().join("daedal"));
        Toolchain { compiler, cache, level: 3 }
    }

    /// How hard the compiler works on a text: its time grows faster than the text.
    fn level_for(&self, text: &str) -> u8 {
        if text.len() > HUGE { self.level.min(1) } else { self.level }
    }

    /// The flags of a compilation.
    fn flags(level: u8) -> Vec<String> {
        let mut out = vec![format!("-O{level}")];
        out.extend(FLAGS.iter().map(|f| (*f).to_string()));
        for f in LIBRARY {
            out.push(format!("-fno-builtin-{f}"));
            out.push(format!("-fno-builtin-{f}f"));
        }
        out
    }

    fn command(&self) -> Command {
        // A compiler may be given with flags of its own, as in `ccache g++`.
        let mut words = self.compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("g++"));
        command.args(words);
        command
    }

    /// What the compiler says of itself: part of the key of the cache.
    fn version(&self) -> Result<String> {
        static KNOWN: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(v) = known.get(&self.compiler) {
            return Ok(v.clone());
        }
        let out = self.command().arg("--version").output().map_err(|e| self.missing(&e))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        known.insert(self.compiler.clone(), text.clone());
        Ok(text)
    }

    fn missing(&self, e: &std::io::Error) -> Box<Diagnostic> {
        Diagnostic::user(format!("the C++ compiler `{}` cannot be run", self.compiler))
            .note(e.to_string())
            .note("hint: install g++, or name another compiler in the environment variable CXX")
    }

    /// The compiled object of a text: from the cache, or made now.
    ///
    /// # Errors
    /// No compiler, no place to write, or text that the compiler refuses.
    pub fn object(&self, text: &str) -> Result<PathBuf> {
        let version = self.version()?;
        let mut hash = Sha256::new();
        for part in [self.compiler.as_str(), &version, &processor(), &Self::flags(self.level_for(text)).join(" "), text]
        {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let key: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        let folders = [self.cache.clone(), std::env::temp_dir().join("daedal")];
        let mut last = None;
        for folder in folders {
            match usable(&folder) {
                Ok(()) => {
                    let object = folder.join(format!("{key}.so"));
                    if !object.exists() {
                        self.compile(text, &folder, &object)?;
                    }
                    return Ok(object);
                }
                Err(e) => last = Some(write_error(&folder, &e)),
            }
        }
        Err(last.unwrap_or_else(|| Diagnostic::bug("there is no folder for compiled objects")))
    }

    /// Compiles beside the final name and renames, so that no one ever loads half an object.
    fn compile(&self, text: &str, folder: &Path, object: &Path) -> Result<()> {
        let stem = format!("making-{}", serial());
        let (source, made) = (folder.join(format!("{stem}.cpp")), folder.join(format!("{stem}.so")));
        std::fs::write(&source, text).map_err(|e| write_error(&source, &e))?;
        let run = |level| self.command().args(Self::flags(level)).arg("-o").arg(&made).arg(&source).output();
        let mut level = self.level_for(text);
        let mut out = run(level);
        // A compiler that crashes is asked for less: g++ 12 does on some long functions.
        while level > 0 && matches!(&out, Ok(o) if crashed(o)) {
            level -= 1;
            out = run(level);
        }
        let _ = std::fs::remove_file(&source);
        let out = out.map_err(|e| self.missing(&e))?;
        if !out.status.success() {
            let _ = std::fs::remove_file(&made);
            let said = String::from_utf8_lossy(&out.stderr);
            let said: Vec<&str> = said.lines().take(12).collect();
            return Err(Diagnostic::bug("the C++ compiler refuses generated code").note(said.join("\n")));
        }
        std::fs::rename(&made, object).map_err(|e| write_error(object, &e))
    }
}

/// Whether a compiler says that it is wrong itself.
fn crashed(out: &Output) -> bool {
    !out.status.success() && String::from_utf8_lossy(&out.stderr).contains("internal compiler error")
}

/// Makes a folder for objects, where it can be made, written, and belongs to this user: objects of
/// somebody else are not loaded.
fn usable(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mine = std::fs::metadata("/proc/self").map(|m| m.uid());
    if mine.is_ok_and(|uid| std::fs::metadata(folder).is_ok_and(|m| m.uid() != uid)) {
        return Err(std::io::Error::other("the folder belongs to another user"));
    }
    let probe = folder.join(format!("probe-{}", serial()));
    std::fs::write(&probe, "")?;
    std::fs::remove_file(&probe)
}

/// A name that no other process or thread uses at this time.
fn serial() -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn write_error(path: &Path, e: &std::io::Error) -> Box<Diagnostic> {
    Diagnostic::user(format!("cannot write {}", path.display())).note(e.to_string())
}

/// The processor's model and features: `-march=native` makes objects that others cannot run.
fn processor() -> String {
    static KNOWN: LazyLock<String> = LazyLock::new(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let wanted = |l: &&str| l.starts_with("model name") || l.starts_with("flags") || l.starts_with("Features");
        text.lines().filter(wanted).take(2).collect::<Vec<_>>().join("\n")
    });
    KNOWN.clone()
}
