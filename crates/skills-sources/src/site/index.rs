//! [`RemoteIndex`]: the list of skills that a site publishes.
//!
//! Reads both drafts of the [format](https://github.com/cloudflare/agent-skills-discovery-rfc). In the first draft, a skill
//! has `files` in a directory with its name; in the second, it has a `url` and a `digest`. The second draft also has archives,
//! which this module doesn't unpack: such a skill is skipped with a diagnostic, unless the caller
//! [unpacks](RemoteIndex::parse_with_archives) it. Beyond the drafts, a file may be an object `{"path", "sha256", "size"}`, and
//! both the index and a skill may name their directory with `baseUrl`.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills_core::{
    Diagnostic, Skill, SkillSet, SkillSource, Source,
    fetch::{self, FetchError, Limits},
    json::{self, MAX_VALUES, has_more_values_than},
    name::MAX_NAME_CHARS,
    search::{Hits, Query},
    set::Skipped,
    source::SourceError,
    text::shorten,
};

use super::{
    entry::{Entry, EntryError},
    error::RemoteError,
};
use crate::git::tree::MAX_FILES;

/// The maximum size of an index: 4 MiB.
pub const MAX_INDEX_BYTES: u64 = 4 * 1024 * 1024;

/// The maximum size of all URLs together, which can be much larger than the index: `baseUrl` is a part of each URL.
const MAX_URL_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of entries of an index.
const MAX_ENTRIES: usize = 10_000;

/// The maximum number of invalid entries that are described one by one.
const MAX_SKIPPED: usize = 100;

/// The directories under a site in which an index may be, newest draft first.
const WELL_KNOWN_DIRECTORIES: [&str; 2] = ["/.well-known/agent-skills", "/.well-known/skills"];

/// A snapshot of the skills that a site lists.
///
/// The snapshot isn't refreshed; fetch the index again to see changes. Entries that can't be used are in
/// [`SkillSet::skipped`] of [`skills`](Self::skills), each with a diagnostic.
///
/// ```
/// use skills_core::SkillSource;
/// use skills_sources::site::RemoteIndex;
///
/// let text = r#"{ "skills": [{ "name": "pdf", "description": "Fills in forms.", "files": ["SKILL.md", "forms.md"] }] }"#;
/// let index = RemoteIndex::parse(text, "https://example.com/.well-known/skills/index.json")?;
/// assert_eq!(index.load("pdf")?.unwrap().description, "Fills in forms.");
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RemoteIndex {
    url: String,
    skills: SkillSet,
}

/// The unparsed text of an index, to be stored and parsed later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexText {
    /// The URL of the index itself.
    pub url: String,
    /// The JSON text.
    pub text: String,
    /// The `ETag` that the server sent, if any. It saves the next transfer if the index hasn't changed.
    pub etag: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "baseUrl", alias = "base_url")]
    base: Option<String>,
    skills: Vec<Value>,
}

impl RemoteIndex {
    /// Fetches and parses an index, with the default timeout ([`fetch::TIMEOUT`]). Blocks.
    ///
    /// `url` is the URL of the index (it ends with `.json`), of the directory that contains it, or of the site. For a site,
    /// the well-known directories of both drafts are tried.
    ///
    /// # Errors
    /// Returns [`RemoteError::Fetch`] if a request fails, [`RemoteError::NoIndex`] if all candidates answer 404, and
    /// [`RemoteError::Index`] if the text is not an index. An unusable entry is not an error; see [`SkillSet::skipped`].
    pub fn fetch(url: &str) -> Result<Self, RemoteError> {
        Self::fetch_with_timeout(url, fetch::TIMEOUT)
    }

    /// Fetches and parses an index like [`fetch`](Self::fetch), with another timeout.
    ///
    /// The timeout applies to the index and, later, to each file of its skills.
    ///
    /// # Errors
    /// Returns the errors of [`RemoteIndex::fetch`].
    pub fn fetch_with_timeout(url: &str, timeout: Duration) -> Result<Self, RemoteError> {
        match Self::fetch_text(url, None, timeout)? {
            Some(index) => Self::parse_with_timeout(&index.text, &index.url, timeout),
            None => Err(RemoteError::NoIndex { url: url.to_owned(), tried: candidates(url.trim()) }),
        }
    }

    /// Fetches the text of an index, to be stored and parsed later with [`parse`](Self::parse). Blocks.
    ///
    /// Returns `None` if the index is the same as `known`. If `known` has an `ETag`, the server can confirm that without
    /// sending the index again.
    ///
    /// # Errors
    /// Returns the errors of [`RemoteIndex::fetch`].
    pub fn fetch_text(
        url: &str,
        known: Option<&IndexText>,
        timeout: Duration,
    ) -> Result<Option<IndexText>, RemoteError> {
        Self::fetch_text_with(url, known, &[], timeout)
    }

    /// Fetches the text of an index like [`fetch_text`](Self::fetch_text), with headers such as those of [`fetch::get_with`].
    ///
    /// # Errors
    /// Returns the errors of [`RemoteIndex::fetch`].
    pub fn fetch_text_with(
        url: &str,
        known: Option<&IndexText>,
        headers: &[(String, String)],
        timeout: Duration,
    ) -> Result<Option<IndexText>, RemoteError> {
        let url = url.trim();
        let candidates = candidates(url);
        let mut first_error = None;
        for candidate in &candidates {
            let known = known.filter(|known| known.url == *candidate);
            let limits = Limits { max_bytes: MAX_INDEX_BYTES, timeout };
            let etag = known.and_then(|known| known.etag.as_deref());
            match fetch::get_with(candidate, etag, headers, limits) {
                Ok(None) => return Ok(None),
                Ok(Some(response)) => {
                    let text = fetch::text_of(candidate, response.bytes)?;
                    // Some sites return their front page instead of a 404. So if this is not an index, we should still try the
                    // next URL.
                    match Self::parse_with_timeout(&text, candidate, timeout) {
                        Ok(_) if known.is_some_and(|known| known.text == text) => return Ok(None),
                        Ok(_) => {
                            return Ok(Some(IndexText { url: candidate.clone(), text, etag: response.etag }));
                        }
                        Err(error) => first_error = first_error.or(Some(error)),
                    }
                }
                Err(FetchError::Status { status: 404, .. }) if candidates.len() > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(first_error.unwrap_or_else(|| RemoteError::NoIndex { url: url.to_owned(), tried: candidates }))
    }

    /// Parses the text of an index. `url` is the URL of the index; relative URLs in the text are resolved against it.
    ///
    /// # Errors
    /// Returns [`RemoteError::Index`] if the text is not JSON with a list of `skills`.
    pub fn parse(text: &str, url: &str) -> Result<Self, RemoteError> {
        Self::parse_with_timeout(text, url, fetch::TIMEOUT)
    }

    /// Parses an index like [`parse`](Self::parse), for callers that unpack archives. The skills include those in
    /// [archives](skills_core::Remote::is_archive), whose files can't be read.
    ///
    /// # Errors
    /// Returns the errors of [`RemoteIndex::parse`].
    pub fn parse_with_archives(text: &str, url: &str) -> Result<Self, RemoteError> {
        Self::read(text, url, fetch::TIMEOUT, true)
    }

    fn parse_with_timeout(text: &str, url: &str, timeout: Duration) -> Result<Self, RemoteError> {
        Self::read(text, url, timeout, false)
    }

    fn read(text: &str, url: &str, timeout: Duration, unpacks: bool) -> Result<Self, RemoteError> {
        let invalid = |message: String| RemoteError::Index { url: url.to_owned(), message };
        if has_more_values_than(text.as_bytes(), MAX_VALUES) {
            return Err(invalid(format!("more than {MAX_VALUES} values")));
        }
        let _guard = json::parsing_lock(text.as_bytes());
        let document: Document = serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
        let base = document.base.unwrap_or_default();
        let mut skills = SkillSet::builder();
        let number = document.skills.len();
        if number > MAX_ENTRIES {
            return Err(invalid(format!("{number} skills, but the maximum is {MAX_ENTRIES}")));
        }
        let mut skipped = 0;
        let (mut files, mut url_bytes) = (0, 0);
        for (position, value) in document.skills.into_iter().enumerate() {
            let name = match value["name"].as_str() {
                Some(name) => format!("`{}`", shorten(name, MAX_NAME_CHARS)),
                None => format!("skill {position}"),
            };
            let skill = serde_json::from_value(value)
                .map_err(EntryError::from)
                .and_then(|entry: Entry| entry.into_skill(url, &base, timeout, unpacks));
            match skill {
                Ok(skill) => {
                    if let Source::Remote(remote) = &skill.source {
                        files += remote.files.as_ref().map_or(0, |files| files.len());
                        url_bytes += remote.url.len() + remote.base.as_ref().map_or(0, |base| base.len());
                    }
                    if files > MAX_FILES {
                        return Err(invalid(format!("more than {MAX_FILES} files")));
                    }
                    if url_bytes > MAX_URL_BYTES {
                        return Err(invalid(format!("URLs of more than {} MiB", MAX_URL_BYTES >> 20)));
                    }
                    let _ = skills.add(skill, Vec::new());
                }
                Err(_) if skipped >= MAX_SKIPPED => skipped += 1,
                Err(error) => {
                    skipped += 1;
                    let error = Diagnostic::error("remote-skill", format!("skipping {name}: {error}"));
                    skills.skip(Skipped::new(url, vec![error]));
                }
            }
        }
        if skipped > MAX_SKIPPED {
            let more = format!("skipping {} more invalid entries", skipped - MAX_SKIPPED);
            skills.skip(Skipped::new(url, vec![Diagnostic::error("remote-skill", more)]));
        }
        Ok(Self { url: url.to_owned(), skills: skills.build() })
    }

    /// Returns the URL of the index.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the skills of the index, including the list of skipped entries.
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }
}

impl SkillSource for RemoteIndex {
    fn count(&self) -> Result<usize, SourceError> {
        self.skills.count()
    }

    fn list(&self, offset: usize, limit: usize) -> Result<Vec<Arc<Skill>>, SourceError> {
        self.skills.list(offset, limit)
    }

    fn load(&self, name: &str) -> Result<Option<Arc<Skill>>, SourceError> {
        self.skills.load(name)
    }

    fn search(&self, query: &Query) -> Result<Hits, SourceError> {
        SkillSource::search(&self.skills, query)
    }
}

/// Returns the URLs at which the index may be, in the order to try them.
fn candidates(url: &str) -> Vec<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.to_ascii_lowercase().ends_with(".json") {
        return vec![url.to_owned()];
    }
    let path = path.trim_end_matches('/');
    if WELL_KNOWN_DIRECTORIES.iter().any(|directory| path.ends_with(directory)) {
        return vec![format!("{path}/index.json")];
    }
    WELL_KNOWN_DIRECTORIES.iter().map(|directory| format!("{path}{directory}/index.json")).collect()
}
