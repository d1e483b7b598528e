//! What the settings of editors say of agents, and how the proxy is put in front of them.
//!
//! Nothing here prints or asks; the command `setup` does.
//!
//! | file | owns |
//! |---|---|
//! | `editors` | which editors there are, where their settings are, and what an agent looks like in them |
//! | `home` | where on this machine that is |
//! | `document` | settings as a text: which agents they have, and what is wrong with them |
//! | `edit` | one agent in the text, added or changed in place; all else stays as it is |
//! | `file` | the settings file: read once, replaced whole, and only if nobody else has changed it |
//! | `record` | what was changed, for taking it back |
//! | `undo` | the text without the change |
//! | `program` | how an editor starts us, and finds the agent |
//! | `paste` | what to paste where settings are a program |

pub(crate) mod document;
pub(crate) mod edit;
pub(crate) mod editors;
pub(crate) mod file;
pub(crate) mod home;
pub(crate) mod paste;
pub(crate) mod program;
pub(crate) mod record;
#[cfg(test)]
mod tests;
pub(crate) mod undo;

/// The name of our program, and of its packages.
pub(crate) const NAME: &str = "acp-skills-proxy";
