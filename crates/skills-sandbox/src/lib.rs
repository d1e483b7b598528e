//! The rules of a sandbox for scripts on Linux.
//!
//! | module | responsible for |
//! |---|---|
//! | [`directories`] | the directories that a sandbox protects |
//! | [`environment`] | the environment variables that are removed |
//! | [`filter`] | the filter for system calls |
//! | [`launcher`] | the command line that starts a program as a child of process 1 |
//! | [`links`] | the links in the path of a directory |
//! | [`mounts`] | the mounts that a sandbox must have before its program starts |
//! | [`privileges`] | the privileges that a process must not have |
//! | [`sockets`] | the sockets of the system |
//! | [`version`] | the versions of bubblewrap that can be used |
#![cfg(target_os = "linux")]

pub mod directories;
pub mod environment;
pub mod filter;
pub mod launcher;
pub mod links;
pub mod mounts;
pub mod privileges;
pub mod sockets;
pub mod version;
