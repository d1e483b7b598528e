//! [`Entry`]: one skill in the index of a site, and its conversion to a [`Skill`].

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use skills_core::{
    FileError, Remote, Scope, Skill, SkillName, Source, fetch,
    files::SKILL_FILE_NAMES,
    name::MAX_LOADED_NAME_CHARS,
    skill::{RemoteFile, Sha256},
    text::shorten,
};

use crate::git::tree::MAX_SKILL_FILES;

/// The characters that a URL must not contain ([RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-2)).
const NOT_IN_URLS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'?')
    .remove(b'#')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'%')
    .remove(b'\'');
/// The maximum length of a URL in bytes. Models see it.
const MAX_URL_BYTES: usize = 2_048;
/// The maximum number of characters of a refused URL in an error.
const MAX_SHOWN_CHARS: usize = 100;

/// An entry of an index, in the form of either draft.
#[derive(Deserialize)]
pub(super) struct Entry {
    name: String,
    description: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    #[serde(rename = "baseUrl", alias = "base_url")]
    base: Option<String>,
    #[serde(alias = "sha256")]
    digest: Option<String>,
    files: Option<Vec<FileEntry>>,
}

/// A file of an entry: a path, or an object with a path.
#[derive(Deserialize)]
#[serde(untagged)]
enum FileEntry {
    Path(String),
    Object {
        path: String,
        #[serde(alias = "sha256")]
        digest: Option<String>,
        size: Option<u64>,
    },
}

/// The reason that an entry cannot become a skill. Displays as a clause about the entry.
#[derive(Debug, thiserror::Error)]
pub(super) enum EntryError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("archives are not supported here; unpack the archive and use `--skill DIR` instead")]
    Archive,
    #[error("an archive needs `url` and `digest`")]
    IncompleteArchive,
    #[error("unknown type `{0}`")]
    UnknownType(String),
    #[error("name is missing")]
    NoName,
    #[error("name should have at most {MAX_LOADED_NAME_CHARS} characters")]
    LongName,
    #[error("name cannot be used in a URL")]
    NameNotInUrl,
    #[error("description is missing")]
    NoDescription,
    #[error("`files` should include a SKILL.md")]
    NoSkillMd,
    #[error("`files` has more than {MAX_SKILL_FILES} files")]
    ManyFiles,
    #[error("URL `{0}` is not allowed in this index")]
    UrlNotAllowed(String),
    #[error(transparent)]
    Path(#[from] FileError),
    #[error("digest `{0}` is not a SHA-256")]
    Digest(String),
}

impl Entry {
    /// Converts the entry to a skill.
    ///
    /// `index` is the URL of the index, `base` the `baseUrl` of the whole index (empty if there is none), and `timeout` the
    /// time limit for each file that is fetched later. Archives are an error, unless the caller unpacks them.
    pub(super) fn into_skill(
        self,
        index: &str,
        base: &str,
        timeout: Duration,
        unpacks: bool,
    ) -> Result<Skill, EntryError> {
        let is_archive = match self.kind.as_deref() {
            None | Some("skill-md") => false,
            Some("archive") if unpacks => true,
            Some("archive") => return Err(EntryError::Archive),
            Some(other) => return Err(EntryError::UnknownType(other.to_owned())),
        };
        let name = SkillName::new(&self.name).ok_or(EntryError::NoName)?;
        if name.as_str().chars().count() > MAX_LOADED_NAME_CHARS {
            return Err(EntryError::LongName);
        }
        if self.description.trim().is_empty() {
            return Err(EntryError::NoDescription);
        }
        if is_archive && (self.url.is_none() || self.digest.is_none()) {
            return Err(EntryError::IncompleteArchive);
        }
        // The files of an archive are known when it is unpacked.
        let files = self.files.filter(|_| !is_archive).map(read_files).transpose()?;
        let location = match &self.url {
            Some(url) => Location::of_file(index, url)?,
            None => Location::of_directory(index, self.base.as_deref(), base, &self.name, files.as_deref())?,
        };
        let (skill_md, other_files): (Vec<_>, Vec<_>) =
            files.into_iter().flatten().partition(|file| file.path == location.file_name);
        let sha256 = digest(self.digest.as_deref())?.or_else(|| skill_md.first()?.sha256);
        let lists_files = !skill_md.is_empty() || !other_files.is_empty();
        let mut remote = Remote::new(&location.url, lists_files.then_some(other_files), timeout);
        remote.sha256 = sha256;
        remote.base = location.base.map(Into::into);
        remote.is_archive = is_archive;
        let mut skill = Skill::new(name, self.description.trim(), Source::Remote(remote));
        skill.scope = Scope::Remote;
        Ok(skill)
    }
}

/// The location of a `SKILL.md`.
struct Location {
    url: String,
    /// The last part of the URL's path, for example `SKILL.md`.
    file_name: String,
    /// The URL of the directory with the skill's other files, with a `/` at its end; `None` if there are no other files.
    base: Option<String>,
}

impl Location {
    /// Locates a skill by the URL of its file (second draft).
    ///
    /// The skill has other files only if this file is called `SKILL.md` (or one of the accepted variants), because any other
    /// name doesn't promise a directory of its own.
    fn of_file(index: &str, url: &str) -> Result<Self, EntryError> {
        let url = resolve(index, url)?;
        let (_, file_name) = split(&url);
        Ok(Self { file_name: file_name.to_owned(), base: base_of(&url), url })
    }

    /// Locates a skill by its directory (first draft): `own` if the entry names one, otherwise a directory with the skill's
    /// name below `common`.
    fn of_directory(
        index: &str,
        own: Option<&str>,
        common: &str,
        name: &str,
        files: Option<&[RemoteFile]>,
    ) -> Result<Self, EntryError> {
        let with_slash =
            |url: &str| if url.is_empty() || url.ends_with('/') { url.to_owned() } else { format!("{url}/") };
        let base = match own {
            Some(own) => resolve(index, &with_slash(own))?,
            None if name.contains(['/', '\\']) || name.trim().starts_with('.') => {
                return Err(EntryError::NameNotInUrl);
            }
            None => {
                resolve(index, &format!("{}{}/", with_slash(common), fetch::percent_encoded(name.trim())))?
            }
        };
        // The names of files are appended to it.
        if base.contains(['?', '#']) {
            return Err(EntryError::UrlNotAllowed(base));
        }
        let is_listed = |wanted: &str| files.is_none_or(|files| files.iter().any(|file| file.path == wanted));
        let mut names = SKILL_FILE_NAMES.into_iter();
        let file_name = names.find(|wanted| is_listed(wanted)).ok_or(EntryError::NoSkillMd)?;
        Ok(Self { url: format!("{base}{file_name}"), file_name: file_name.to_owned(), base: Some(base) })
    }
}

/// Returns the URL of the directory with the other files of a skill, if its file at `url` is called `SKILL.md`.
pub(crate) fn base_of(url: &str) -> Option<String> {
    let (parent, file_name) = split(url);
    SKILL_FILE_NAMES.contains(&file_name).then(|| format!("{parent}/"))
}

/// Splits the path of a URL before the last part.
fn split(url: &str) -> (&str, &str) {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    path.rsplit_once('/').unwrap_or((path, ""))
}

/// Resolves a URL of the index. Characters that [RFC 3986](https://www.rfc-editor.org/rfc/rfc3986#section-2) doesn't allow, such as spaces
/// of Unicode, are encoded, because the model and the user see the result.
fn resolve(index: &str, reference: &str) -> Result<String, EntryError> {
    let url = fetch::resolve(index, reference).filter(|url| url.len() <= MAX_URL_BYTES);
    let url =
        url.ok_or_else(|| EntryError::UrlNotAllowed(shorten(reference, MAX_SHOWN_CHARS).into_owned()))?;
    Ok(utf8_percent_encode(&url, NOT_IN_URLS).to_string())
}

fn read_files(files: Vec<FileEntry>) -> Result<Vec<RemoteFile>, EntryError> {
    if files.len() > MAX_SKILL_FILES {
        return Err(EntryError::ManyFiles);
    }
    let read = |file| {
        let (path, sha256, size) = match file {
            FileEntry::Path(path) => (path, None, None),
            FileEntry::Object { path, digest: text, size } => (path, digest(text.as_deref())?, size),
        };
        Ok(RemoteFile::listed(&path, size, sha256)?)
    };
    files.into_iter().map(read).collect()
}

/// Parses a digest. An unsupported kind is an error, because content must not look verified if we can't verify it.
fn digest(text: Option<&str>) -> Result<Option<Sha256>, EntryError> {
    text.map(|text| Sha256::parse(text).ok_or_else(|| EntryError::Digest(text.to_owned()))).transpose()
}
