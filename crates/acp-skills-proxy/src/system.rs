//! Limits of the system, and hints for errors that they cause. `unix` and `windows` have the implementations.

#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod platform;

#[cfg(all(target_os = "linux", target_env = "musl", panic = "abort"))]
mod no_unwinding;

#[cfg(unix)]
pub(crate) use platform::catch_signals;
pub(crate) use platform::{catch_harmless_signals, check_address_space, limit_hint, make_executable_hint};
