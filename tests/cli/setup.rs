//! `setup` in a temporary home directory.
//!
//! | file | owns |
//! |---|---|
//! | `changes` | changes of settings, confirmation, and `--undo` |
//! | `files` | settings files of all kinds |
//! | `agents` | names of agents, and the paths with which an editor finds them |
//! | `editors` | the paths of settings, and texts to paste |
//! | `machine` | the home directory, and the output of the program in it |

mod agents;
mod changes;
mod editors;
mod files;
mod machine;

/// Settings with comments, trailing commas and blank lines.
const ZED: &str = include_str!("zed-settings.json");
