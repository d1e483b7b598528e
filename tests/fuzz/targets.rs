//! What must hold for any bytes, one file for each thing that reads what others wrote. A target takes bytes and panics when
//! something does not hold.
//!
//! Two things call them: `tests/fuzz/main.rs`, with everything that was ever found, in each test run; and libFuzzer
//! (`tests/fuzz/libfuzzer`), which looks for more.

mod bytes;
mod config;
mod envelope;
mod intercept;
mod parse;
mod permission;
mod remote;
mod strip;
mod wire;
mod world;

/// A target.
pub type Target = fn(&[u8]);

/// All of them, by their names.
pub const TARGETS: [(&str, Target); 8] = [
    ("config", config::run),
    ("envelope", envelope::run),
    ("intercept", intercept::run),
    ("parse", parse::run),
    ("permission", permission::run),
    ("remote", remote::run),
    ("strip", strip::run),
    ("wire", wire::run),
];
