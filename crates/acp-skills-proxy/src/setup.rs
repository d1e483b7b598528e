//! Reads and edits the agents in the settings of editors, to put the proxy in front of an agent.
//!
//! This module neither prints nor asks: the command `setup` does that.
//!
//! | file | owns |
//! |---|---|
//! | `editors` | the supported editors, the paths of their settings, and the format of an agent in these |
//! | `home` | the user's directories on this machine |
//! | `document` | parses settings: their agents, and errors with line and column |
//! | `edit` | adds, changes or removes one agent in the text, and keeps all other text |
//! | `file` | the settings file, which is replaced atomically unless another program has changed it |
//! | `record` | the changes that were made, for `--undo` |
//! | `undo` | reverts a change, even if the settings were edited since |
//! | `program` | the command with which an editor starts the proxy and finds the agent |
//! | `mcp/` | the same for MCP clients: their settings, and our server in these |
//! | `paste` | texts to paste for editors whose settings are written in code |

pub(crate) mod document;
pub(crate) mod edit;
pub(crate) mod editors;
pub(crate) mod file;
pub(crate) mod home;
pub(crate) mod mcp;
pub(crate) mod paste;
pub(crate) mod program;
pub(crate) mod record;
#[cfg(test)]
mod tests;
pub(crate) mod undo;

/// The name of our program and of its packages.
pub(crate) const NAME: &str = "acp-skills-proxy";
