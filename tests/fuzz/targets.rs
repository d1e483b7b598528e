//! The fuzz targets, one file for each parser of foreign data. A target takes any bytes and panics if an invariant is violated.
//!
//! The targets are called by `tests/fuzz/main.rs`, which runs all past findings in each test run, and by libFuzzer
//! (`tests/fuzz/libfuzzer`), which searches for new ones.

mod bytes;
mod config;
mod envelope;
mod fixture;
mod intercept;
mod parse;
mod permission;
mod remote;
mod strip;
mod wire;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets with their names.
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
