//! The targets of `tests/fuzz`, for libFuzzer.

// We need an inline module here, so that the modules of `targets.rs` are found in `targets/`.
#[path = "../.."]
mod fuzz {
    pub(super) mod targets;
}

/// Runs a target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = fuzz::targets::TARGETS.iter().find(|(other, _)| *other == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1(bytes);
}
