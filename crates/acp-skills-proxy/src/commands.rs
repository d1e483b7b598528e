//! The commands of the program, one file each. They print with the functions in `output`.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
mod paths;
mod permission;
pub(crate) mod policy;
pub(crate) mod proxy;
mod record;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod setup;
mod skills;
pub(crate) mod sources;
pub(crate) mod table;
pub(crate) mod r#try;
