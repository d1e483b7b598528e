//! [`FileService`]: the files of a skill that a service provides.

use std::{error::Error, fmt};

/// A service that provides the files of one skill, such as an MCP server. Two services are equal if they have the same identity.
pub trait FileService: fmt::Debug + Send + Sync {
    /// Returns the name of the service for users and models, such as ``MCP server `docs` ``.
    fn label(&self) -> &str;

    /// Returns a text that identifies the service, wherever its name comes from. Decisions of the user are kept by it.
    fn identity(&self) -> &str;

    /// Returns a prefix for the names of its skills, such as `docs`. It is used if another skill has the same name.
    fn namespace(&self) -> Option<&str> {
        None
    }

    /// Reads a whole file: `SKILL.md`, or one that its entry lists. Blocks.
    ///
    /// # Errors
    /// Returns the reason as a clause if the file can't be read.
    fn read(&self, path: &str) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;
}

impl PartialEq for dyn FileService {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for dyn FileService {}
