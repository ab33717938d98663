//! How loops run: passes from nest to nest that never change a bit of what is computed.
//!
//! It must not know of the language, of C++ or of how values arrive.

pub mod passes;
