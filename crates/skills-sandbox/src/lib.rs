//! The rules of a sandbox for scripts on Linux.
//!
//! | module | responsible for |
//! |---|---|
//! | [`environment`] | the environment variables that are removed |
//! | [`filter`] | the filter for system calls |
//! | [`links`] | the links in the path of a directory |
//! | [`mounts`] | the mounts that a sandbox must have before its program starts |
#![cfg(target_os = "linux")]

pub mod environment;
pub mod filter;
pub mod links;
pub mod mounts;
