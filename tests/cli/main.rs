//! The commands for people, black box: their output and their exit codes.
//!
//! | file | owns |
//! |---|---|
//! | `check`, `list`, `report` | the command of that name |
//! | `security` | `check --security` |
//! | `agents` | the manual's table of agents |
//! | `documented_commands` | every command of the README and of the manual |
//! | `completions` | what shells complete |
//! | `permission` | what `try` and `doctor` permit an agent |
//! | `messages` | what a newcomer is told when something is wrong |
//! | `mistakes` | what a command line that is wrong probably meant |
//! | `place` | where both are tried |
//! | `progress` | what is seen on a terminal while work takes long |
//! | `reference` | the manual's pages with every flag and every key |
//! | `setup` | the settings of editors, changed and changed back |
//! | `terminal` | what a terminal gets, and when nobody reads |
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
