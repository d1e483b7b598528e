//! `setup`, in a home directory of the test's own.
//!
//! | file | owns |
//! |---|---|
//! | `changes` | what is changed in settings, who is asked, and how it is taken back |
//! | `files` | settings files of all kinds |
//! | `agents` | which agent is meant, and how an editor finds it |
//! | `editors` | where the settings of editors are, and what to paste |
//! | `machine` | the home directory, and what is said there |

mod agents;
mod changes;
mod editors;
mod files;
mod machine;

/// Settings as somebody has them: comments, trailing commas, blank lines.
const ZED: &str = include_str!("zed-settings.json");
