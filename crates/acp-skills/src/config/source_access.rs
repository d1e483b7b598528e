//! [`SourceAccess`]: the settings for the servers of sources, such as headers with secrets.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use acp_skills_servers::{SkillVariables, processes::Processes};
use skills_core::tool::Variables;
use skills_sources::{Access, Address, Credentials, Place};

use super::Config;

/// The settings for the servers of the sources in a configuration. Secrets are read for each request.
#[derive(Debug, Default)]
pub struct SourceAccess {
    entries: Vec<Entry>,
    /// The directory for sources that are not in the configuration.
    directory: Option<PathBuf>,
}

#[derive(Debug)]
struct Entry {
    url: String,
    headers: SkillVariables,
    /// The directory of the configuration file.
    directory: Option<PathBuf>,
}

impl SourceAccess {
    /// Returns the settings in a configuration. Commands that print secrets are registered in `processes`.
    pub fn new(config: &Config, processes: &Processes) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for entry in config.all_sources() {
            // An address that is not valid is an error elsewhere.
            let Ok(address) = Address::parse(&entry.source) else { continue };
            let url = match address.place() {
                Place::Git(place) => place.url.clone(),
                Place::Web(url) => url.clone(),
                _ => continue,
            };
            if !entry.headers.is_empty() {
                entries.retain(|other| other.url != url);
            } else if entries.iter().any(|other| other.url == url) {
                continue;
            }
            let headers = entry.headers.clone().into_iter().collect();
            let headers = SkillVariables::new(headers, entry.secrets.clone(), processes.clone());
            let directory = entry.lock.as_deref().and_then(Path::parent).map(Path::to_owned);
            entries.push(Entry { url, headers, directory });
        }
        Self { entries, directory: None }
    }

    /// Sets the directory of the configuration file to which other sources are added.
    #[must_use]
    pub fn with_directory(self, directory: Option<&Path>) -> Self {
        Self { directory: directory.map(Path::to_owned), ..self }
    }
}

impl Credentials for SourceAccess {
    fn access(&self, url: &str) -> Result<Access, Box<dyn Error + Send + Sync>> {
        let Some(entry) = self.entries.iter().find(|entry| entry.url == url) else {
            return Ok(Access::new(Vec::new(), self.directory.clone()));
        };
        // Sources are fetched on threads of their own.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let headers = runtime.block_on(entry.headers.resolve())?;
        Ok(Access::new(headers, entry.directory.clone()))
    }
}
