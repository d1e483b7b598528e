//! The commands for people, black box: their output and their exit codes.
//!
//! | file | owns |
//! |---|---|
//! | `check`, `list`, `report` | the command of that name |
//! | `terminal` | what a terminal gets, and when nobody reads |
//! | `readme_commands` | `try`, `doctor` and `search`, and every command of the README |

mod check;
mod list;
mod readme_commands;
mod report;
mod terminal;
