//! Says when the test programs changed, which are part of the binary. With the feature `torch`: says how to get
//! libtorch where it is missing, and lets binaries find it.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    let has = |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if !has("TORCH") || has("TORCH_CHECK") {
        return;
    }
    let folder = std::env::var("LIBTORCH").unwrap_or_default();
    // A folder that appears later must be seen.
    println!("cargo::rerun-if-changed={folder}/build-version");
    if !Path::new(&folder).join("lib/libtorch_cpu.so").exists() {
        println!("cargo::error=the feature `torch` needs libtorch, and there is none in `{folder}`");
        println!("cargo::error=run `scripts/get-libtorch.sh`, or set LIBTORCH to a folder of libtorch 2.11");
        return;
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}/lib");
}
