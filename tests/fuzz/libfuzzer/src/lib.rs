//! The targets of `tests/fuzz`, for libFuzzer.

#[path = "../../targets/mod.rs"]
mod targets;

/// Runs a target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = targets::TARGETS.iter().find(|(other, _)| *other == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1(bytes);
}
