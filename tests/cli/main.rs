//! Black-box tests of the commands for people: their output and their exit codes.
//!
//! | file | contents |
//! |---|---|
//! | `check`, `list`, `report` | the command of that name |
//! | `security` | `check --security` |
//! | `agents` | the manual's table of agents |
//! | `documented_commands` | every command of the README and of the manual |
//! | `completions` | shell completion |
//! | `permission` | the permissions that `try` and `doctor` grant an agent |
//! | `messages` | errors and hints that a new user sees |
//! | `mistakes` | wrong command lines, and the suggestions for them |
//! | `place` | the temporary home directory in which both are tested |
//! | `progress` | progress on a terminal while a command takes long |
//! | `reference` | the manual's pages with every flag and every key |
//! | `setup` | changes of editors' settings, and their undo |
//! | `terminal` | output on a terminal, and to a closed pipe |
//! | `readme_commands` | `try`, `doctor` and `search` |

mod agents;
mod check;
#[cfg(unix)]
mod completions;
mod documented_commands;
mod list;
mod messages;
mod mistakes;
#[cfg(unix)]
mod permission;
mod place;
#[cfg(unix)]
mod progress;
mod readme_commands;
mod reference;
mod report;
mod security;
mod setup;
mod terminal;
