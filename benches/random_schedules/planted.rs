//! Faults that sanitizers have to see, over the memory and threads that generated code has.

use daedal::codegen;
use daedal::run::Toolchain;
use std::path::PathBuf;

/// One fault each: a number behind a tensor that stands before another one, a shift by as many bits as there are, and iterations
/// on threads that write one place.
const FAULTS: &str = r#"
static char memory[1 << 20] __attribute__((aligned(64)));
static ks::Arena arena() { return {memory, memory + sizeof memory, memory, memory, nullptr, 2}; }
extern "C" __attribute__((visibility("default"))) int64_t ks_address(int64_t n) {
  ks::Arena all = arena();
  double* const first = ks::take<double>(all, 0, n);
  double* const second = ks::take<double>(all, 0, n);
  second[0] = 1;
  first[n] = 2;
  return (int64_t)(first[n] + second[0]);
}
extern "C" __attribute__((visibility("default"))) int64_t ks_undefined(int64_t n) { return (int64_t)1 << (n + 57); }
extern "C" __attribute__((visibility("default"))) int64_t ks_thread(int64_t n) {
  ks::Arena all = arena();
  int64_t* const place = ks::take<int64_t>(all, 0, 1);
  *place = 0;
  ks::parallel<false, false>(all, 0, 64, 1e9, [=](int64_t from, int64_t to, ks::Arena&) {
    for (int64_t i = from; i < to; ++i) *place += n;
  });
  return *place;
}
"#;

/// What a sanitizer says of its fault.
pub fn sign(name: &str) -> &'static str {
    match name {
        "address" => "use-after-poison",
        "undefined" => "shift exponent 64 is too large",
        "thread" => "data race",
        _ => "a sanitizer that has a fault: address, undefined or thread",
    }
}

/// Commits the fault of a sanitizer.
pub fn commit(name: &str, compiler: Option<String>, cache: PathBuf) {
    let tools = Toolchain { level: 1, ..Toolchain::discover(compiler, Some(cache)) };
    let object = tools.object(&(codegen::runtime(|_| 0) + codegen::parallel() + FAULTS)).unwrap();
    // SAFETY: the object is the text above, which has functions of this type.
    unsafe {
        let library = libloading::Library::new(object).unwrap();
        let fault = library.get::<unsafe extern "C" fn(i64) -> i64>(format!("ks_{name}").as_bytes()).unwrap();
        println!("{}", fault(7));
    }
}
