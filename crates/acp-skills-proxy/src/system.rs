//! What a system does when there is too little of something, and how a program is made one. What differs is in `unix` and
//! `windows`.

#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod platform;

pub(crate) use platform::{limit_hint, make_executable_hint, report_large_files};
