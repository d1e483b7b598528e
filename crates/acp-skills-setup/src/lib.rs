//! Reads and edits the agents in the settings of editors, to put the proxy in front of an agent.
//!
//! This crate neither prints nor asks: the command `setup` of the program does that.
//!
//! **This crate has no stable API.** It changes with the program `acp-skills-proxy`.
//!
//! # Modules
//!
//! | module | responsible for |
//! |---|---|
//! | [`editors`] | the supported editors, the paths of their settings, and the format of an agent in these |
//! | [`home`] | the user's directories on this machine |
//! | [`document`] | parses settings: their agents, and errors with line and column |
//! | [`edit`] | adds, changes or removes one agent in the text, and keeps all other text |
//! | [`mod@file`] | the settings file, which is replaced atomically unless another program has changed it |
//! | [`change_record`] | the changes that were made, for `--undo` |
//! | [`undo`] | reverts a change, even if the settings were edited since |
//! | [`program`] | the command with which an editor starts the proxy and finds the agent |
//! | [`mcp`] | the same for MCP clients: their settings, and our server in these |
//! | [`shell`] | words of a command line |
//! | [`paste`] | texts to paste for editors whose settings are written in code |

pub mod change_record;
pub mod document;
pub mod edit;
pub mod editors;
mod error;
pub mod file;
pub mod home;
pub mod mcp;
pub mod paste;
pub mod program;
pub mod shell;
#[cfg(test)]
mod tests;
pub mod undo;

pub use self::error::SetupError;

/// The name of our program and of its packages.
pub const NAME: &str = "acp-skills-proxy";
