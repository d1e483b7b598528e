//! The commands for people, black box: their output and their exit codes.
//!
//! | file | owns |
//! |---|---|
//! | `check`, `list`, `report` | the command of that name |
//! | `permission` | what `try` and `doctor` permit an agent |
//! | `readme_commands` | `try`, `doctor` and `search`, and every command of the README |

mod check;
mod list;
#[cfg(unix)]
mod permission;
mod readme_commands;
mod report;
