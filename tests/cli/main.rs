//! Tests the commands for users as a black box: their output and their exit codes.
//!
//! | file | owns |
//! |---|---|
//! | `check`, `list`, `report` | the command of that name |
//! | `check_files` | `check` with files that are long, strange, or outside of the skill |
//! | `security` | `check --security` |
//! | `agents` | the manual's table of agents |
//! | `approval` | the questions of `add` and `update` on a terminal |
//! | `doctor` | `doctor` with agents that need a login, or that are too old |
//! | `documented_commands` | every command of the README and of the manual |
//! | `completions` | completion in bash, zsh and fish |
//! | `permission` | the answers of `try` and `doctor` to permission requests |
//! | `interruption` | `try` with agents that are silent or never stop |
//! | `mcp` | the server for clients without ACP |
//! | `messages` | messages about missing agents, skills and files |
//! | `pages` | the pages of `report` and `eval` in a real browser |
//! | `nested` | skills within skills, skills for certain files, and additional directories |
//! | `paths` | paths on the command line |
//! | `mistakes` | hints for wrong command lines |
//! | `fixture` | a home directory with skills for `messages` and `mistakes` |
//! | `progress` | progress on a terminal while a command takes long |
//! | `reference` | the manual's pages with all flags and all configuration keys |
//! | `setup` | changing the settings of editors, and undoing it |
//! | `terminal` | control characters in output, and closed pipes |
//! | `wrong_lines` | wrong command lines as people type them |
//! | `waiting` | commands that wait for a lock or for input |
//! | `readme_commands` | `try`, `doctor` and `search` |

mod agents;
#[cfg(unix)]
mod approval;
mod check;
mod check_files;
#[cfg(unix)]
mod completions;
#[cfg(unix)]
mod doctor;
mod documented_commands;
mod fixture;
#[cfg(unix)]
mod interruption;
mod list;
mod mcp;
mod messages;
mod mistakes;
mod nested;
mod pages;
mod paths;
#[cfg(unix)]
mod permission;
#[cfg(unix)]
mod progress;
mod readme_commands;
mod reference;
mod report;
mod security;
mod setup;
mod terminal;
#[cfg(unix)]
mod waiting;
mod wrong_lines;
