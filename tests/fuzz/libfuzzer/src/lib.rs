//! The targets of `tests/fuzz`, for libFuzzer.

// An inline module, so that `targets.rs` finds its own modules in `targets/`.
#[path = "../.."]
mod fuzz {
    pub(super) mod targets;
}

/// Runs a target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = fuzz::targets::TARGETS.iter().find(|(other, _)| *other == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1(bytes);
}
