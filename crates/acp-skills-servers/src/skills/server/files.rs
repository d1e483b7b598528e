//! [`EntryFiles`]: the files of a skill, read from its server when they are needed.

use std::{
    error::Error,
    sync::{Arc, Weak, mpsc::sync_channel},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use skills_core::{
    files::MAX_REMOTE_FILE_BYTES,
    skill::{FileService, Sha256},
    text::shown,
};

use super::{
    super::{
        super::ServerError,
        entries::{Entry, SKILL_MD},
    },
    Shared,
};

/// The files of one skill. The entry stays the same for as long as the skill is in use.
#[derive(Debug)]
pub(super) struct EntryFiles {
    pub(super) server: Weak<Shared>,
    pub(super) label: Arc<str>,
    pub(super) namespace: Option<Arc<str>>,
    pub(super) identity: Arc<str>,
    pub(super) entry: Arc<Entry>,
}

/// The reason why a file can't be read, as a clause.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("the server does not list this file")]
    NotListed,
    #[error("the file has {0} bytes, and at most {MAX_REMOTE_FILE_BYTES} can be read from a server")]
    TooLong(u64),
    #[error(
        "the server sent a file that differs from its list. If the skill has changed, the user has to trust the new version"
    )]
    Differs,
    #[error("{}; the details are in the log", .0.without_text())]
    Server(#[from] ServerError),
    #[error("the server is no longer used")]
    Gone,
}

impl FileService for EntryFiles {
    fn label(&self) -> &str {
        &self.label
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
        self.read_verified(path).map_err(|error| {
            if let ReadError::Server(error) = &error {
                tracing::warn!("{}: cannot read {}: {}", self.label, shown(path), shown(&error.to_string()));
            }
            error.into()
        })
    }
}

impl EntryFiles {
    fn read_verified(&self, path: &str) -> Result<Vec<u8>, ReadError> {
        let file = self.entry.files.iter().find(|file| file.path == path).ok_or(ReadError::NotListed)?;
        if file.size > MAX_REMOTE_FILE_BYTES {
            return Err(ReadError::TooLong(file.size));
        }
        let server = self.server.upgrade().ok_or(ReadError::Gone)?;
        let (answer, answered) = sync_channel(1);
        let reader = Arc::clone(&server);
        let uri = file.uri.clone();
        let reading = async move {
            // This fails if the caller has left.
            let _ = answer.send(reader.read(&uri).await);
        };
        server.spawn(reading).ok_or(ReadError::Gone)?;
        let bytes = content(&answered.recv().map_err(|_| ReadError::Gone)??, &file.uri)?;
        let is_listed = bytes.len() as u64 == file.size && Sha256::of(&bytes) == file.sha256;
        if is_listed && (path != SKILL_MD || self.entry.describes(&bytes)) {
            return Ok(bytes);
        }
        let updated = Arc::clone(&server);
        let uri = self.entry.uri.clone();
        server.spawn(async move { updated.update(&uri).await });
        Err(ReadError::Differs)
    }
}

/// Returns the content of a resource.
fn content(result: &Value, uri: &str) -> Result<Vec<u8>, ServerError> {
    let contents = result["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = contents.iter().find(|content| content["uri"] == uri).or_else(|| contents.first());
    let invalid = ServerError::Invalid("resource has no content");
    let Some(found) = found else { return Err(invalid) };
    match (found["text"].as_str(), found["blob"].as_str()) {
        (Some(text), _) => Ok(text.as_bytes().to_vec()),
        (None, Some(blob)) => STANDARD.decode(blob).map_err(|_| invalid),
        (None, None) => Err(invalid),
    }
}
