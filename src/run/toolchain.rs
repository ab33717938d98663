//! C++ text becomes a shared object: finds the compiler, and says what is wrong with it where it makes none.
//!
//! What was made is kept by `cache.rs`.

use super::cache::{Cache, Making};
use crate::diag::{Diagnostic, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex};

/// Flags that keep the bits of the interpreter: no contraction, no reordering, wrapping integers.
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

/// Kept from GCC alone, since other compilers may not know the flag: GCC 12 vectorizes a group of loads under one
/// condition with the mask of the group's first vector for all of them, so that later elements are loaded, or left
/// at zero, by another element's condition. Without that pass no load becomes a masked one; vectors that this
/// compiler writes itself carry their own masks.
const GCC_FLAGS: &[&str] = &["-fno-tree-loop-if-convert"];

/// Beyond so many bytes of text the compiler does only what is cheap.
const HUGE: usize = 2 << 20;

/// Bytes of compiled objects that are kept where nobody asks for another number: 1 GiB.
pub const CACHE_BYTES: u64 = 1 << 30;

/// What to do about a compiler that does not compile.
const HINT: &str = "hint: install g++, or name another compiler in the environment variable CXX";

/// What compilers say where there is no room for what they make.
const FULL: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// What every compiler of C++ takes.
const TRIVIAL: &str = "extern \"C\" int ks_trivial() { return 0; }\n";

/// A compiler, how hard it works, and where its output is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Toolchain {
    /// The command that compiles C++.
    pub compiler: String,
    /// The folder of compiled objects.
    pub cache: PathBuf,
    /// Objects take so many bytes there at most; the least recently used ones go first, but for those that were
    /// used in the last minute.
    pub bound: u64,
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
        Toolchain { compiler, cache, bound: CACHE_BYTES, level: 3 }
    }

    /// How hard the compiler works on a text: its time grows faster than the text.
    fn level_for(&self, text: &str) -> u8 {
        if text.len() > HUGE { self.level.min(1) } else { self.level }
    }

    /// The flags of the compilation of a text by a compiler that says so of itself.
    fn flags(level: u8, text: &str, version: &str) -> Vec<String> {
        let mut out = vec![format!("-O{level}")];
        out.extend(FLAGS.iter().map(|f| (*f).to_string()));
        if !version.contains("clang") {
            out.extend(GCC_FLAGS.iter().map(|f| (*f).to_string()));
        }
        if text.contains("pthread_create") {
            out.push("-pthread".into());
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
        Diagnostic::user(format!("the C++ compiler `{}` cannot be run", self.compiler)).note(e.to_string()).note(HINT)
    }

    /// The compiled object of a text: from the cache, or made now.
    ///
    /// # Errors
    /// No compiler, no place to write, or text that the compiler refuses.
    pub fn object(&self, text: &str) -> Result<PathBuf> {
        let version = self.version()?;
        let mut hash = Sha256::new();
        for part in [
            self.compiler.as_str(),
            &version,
            &processor(),
            &Self::flags(self.level_for(text), text, &version).join(" "),
            text,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let key: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        let mut last = None;
        for folder in [self.cache.clone(), std::env::temp_dir().join("daedal")] {
            let cache = match Cache::open(&folder) {
                Ok(cache) => cache,
                Err(e) => {
                    last = Some(write_error(&folder, &e));
                    continue;
                }
            };
            if let Some(object) = cache.find(&key) {
                return Ok(object);
            }
            match cache.making() {
                Ok(making) => {
                    let made = self.compile(text, &making)?;
                    return cache.keep(&made, &key, self.bound).map_err(|e| write_error(&folder, &e));
                }
                Err(e) => last = Some(write_error(&folder, &e)),
            }
        }
        Err(last.unwrap_or_else(|| Diagnostic::bug("there is no folder for compiled objects")))
    }

    /// Compiles in a folder of its own, which also takes what the compiler writes on the way.
    fn compile(&self, text: &str, making: &Making) -> Result<PathBuf> {
        let made = making.path("object.so");
        let mut level = self.level_for(text);
        let mut out = self.attempt(text, level, making)?;
        // A compiler that crashes is asked for less: g++ 12 does on some long functions.
        while level > 0 && crashed(&out) {
            level -= 1;
            out = self.attempt(text, level, making)?;
        }
        if !out.status.success() {
            return Err(self.refused(&out, making));
        }
        if std::fs::metadata(&made).is_ok_and(|m| m.len() > 0) {
            return Ok(made);
        }
        Err(Diagnostic::user(format!("the C++ compiler `{}` succeeds, but writes nothing", self.compiler)).note(HINT))
    }

    fn attempt(&self, text: &str, level: u8, making: &Making) -> Result<Output> {
        let (source, made) = (making.path("text.cpp"), making.path("object.so"));
        std::fs::write(&source, text).map_err(|e| write_error(&source, &e))?;
        let mut command = self.command();
        command
            .args(Self::flags(level, text, &self.version()?))
            .arg("-o")
            .arg(&made)
            .arg(&source)
            .env("TMPDIR", making.path(""))
            // What it says is looked into.
            .env("LC_ALL", "C");
        command.output().map_err(|e| self.missing(&e))
    }

    /// Why a compiler failed: itself, where it cannot even compile a text that every compiler takes.
    fn refused(&self, out: &Output, making: &Making) -> Box<Diagnostic> {
        let compiler = format!("the C++ compiler `{}`", self.compiler);
        if let Some(signal) = out.status.signal() {
            let hint = "hint: it may lack memory; smaller programs need less";
            return Diagnostic::user(format!("{compiler} was ended by signal {signal}")).note(hint);
        }
        let said = [&out.stderr, &out.stdout].map(|s| String::from_utf8_lossy(s).trim().to_string());
        let Some(said) = said.into_iter().find(|s| !s.is_empty()) else {
            let code = out.status.code().unwrap_or_default();
            return Diagnostic::user(format!("{compiler} fails without a message, with exit code {code}")).note(HINT);
        };
        let said = said.lines().take(12).collect::<Vec<_>>().join("\n");
        if let Some(full) = FULL.iter().find(|full| said.contains(*full)) {
            let own = making.path("");
            let folder = own.parent().unwrap_or(&own).display();
            let d = Diagnostic::user(format!("{compiler} cannot write in {folder}: {full}"));
            return d.note(said).note("hint: DAEDAL_CACHE names another folder for compiled code");
        }
        match self.attempt(TRIVIAL, 0, making) {
            Ok(out) if out.status.success() => Diagnostic::bug("the C++ compiler refuses generated code").note(said),
            Ok(_) | Err(_) => Diagnostic::user(format!("{compiler} does not compile")).note(said).note(HINT),
        }
    }
}

/// Whether a compiler says that it is wrong itself.
fn crashed(out: &Output) -> bool {
    !out.status.success() && String::from_utf8_lossy(&out.stderr).contains("internal compiler error")
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
