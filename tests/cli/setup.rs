//! `setup` in a temporary home directory.
//!
//! | file | owns |
//! |---|---|
//! | `changes` | changes of settings, confirmation, and `--undo` |
//! | `files` | settings files of all kinds |
//! | `agents` | names of agents, and the paths with which an editor finds them |
//! | `editors` | the paths of settings, and texts to paste |
//! | `skills` | skills that the agent loads itself, sources, and files of the proxy |
//! | `mcp` | settings of MCP clients |
//! | `machine` | the home directory, and the output of the program in it |

mod agents;
mod changes;
mod editors;
mod files;
mod machine;
mod mcp;
mod skills;

/// Settings with comments, trailing commas and blank lines.
const ZED: &str = include_str!("zed-settings.json");
