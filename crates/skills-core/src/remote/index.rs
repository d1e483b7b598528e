//! [`RemoteIndex`]: what a site says of its skills.
//!
//! Both drafts of the [format](https://github.com/cloudflare/agent-skills-discovery-rfc) are read. In the first, a skill
//! has `files`, below a directory with its name; in the second, an `url` and a `digest`. Archives, which the second also
//! has, are not unpacked: such a skill is left out, and that is said. Beyond the drafts, a file may be
//! `{"path", "sha256", "size"}`, and index or skill may name the directory with `baseUrl`.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RemoteError;
use crate::{
    catalog::shorten,
    diagnostic::Diagnostic,
    fetch::{self, FetchError, Limits},
    files::{
        SKILL_FILE_NAMES,
        remote::{canonical, encoded},
    },
    name::{MAX_LOADED_NAME_CHARS, MAX_NAME_CHARS, SkillName},
    search::{Hits, Query},
    set::{SkillSet, Skipped},
    skill::{Remote, RemoteFile, Scope, Sha256, Skill, Source},
    source::{SkillSource, SourceError},
};

/// Largest index that is read. 4 MiB.
pub const MAX_INDEX_BYTES: u64 = 4 * 1024 * 1024;

/// Where a site has its index, newest draft first.
const PLACES: [&str; 2] = ["/.well-known/agent-skills", "/.well-known/skills"];

/// The skills that a site lists, as of when it was asked.
///
/// ```
/// use skills_core::{SkillSource, remote::RemoteIndex};
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

/// An index as a site sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexText {
    /// Its own address.
    pub url: String,
    /// Its text.
    pub text: String,
    /// What the site calls this state of it.
    pub etag: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "baseUrl", alias = "base_url")]
    base: Option<String>,
    skills: Vec<Value>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    description: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    #[serde(rename = "baseUrl", alias = "base_url")]
    base: Option<String>,
    #[serde(alias = "sha256")]
    digest: Option<String>,
    files: Option<Vec<FileItem>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FileItem {
    Path(String),
    Entry {
        path: String,
        #[serde(alias = "sha256")]
        digest: Option<String>,
        size: Option<u64>,
    },
}

impl RemoteIndex {
    /// Fetches an index. `url` is that of the index (it ends with `.json`), of its directory, or of the site. Blocks.
    ///
    /// # Errors
    /// The index cannot be fetched or read. A problem with one skill in it is not an error, see
    /// [`SkillSet::skipped`].
    pub fn fetch(url: &str) -> Result<Self, RemoteError> {
        Self::fetch_within(url, fetch::TIMEOUT)
    }

    /// The same with another time limit, for the index and for each file that is fetched later.
    ///
    /// # Errors
    /// As [`RemoteIndex::fetch`].
    pub fn fetch_within(url: &str, timeout: Duration) -> Result<Self, RemoteError> {
        match Self::fetch_text(url, None, timeout)? {
            Some(index) => Self::parse_within(&index.text, &index.url, timeout),
            None => Err(RemoteError::NoIndex { url: url.to_owned(), tried: places(url.trim()) }),
        }
    }

    /// The text of an index, to be kept and read with [`parse`](Self::parse); `None` when it is still as `known`, which a
    /// server can tell without sending it again. Blocks.
    ///
    /// # Errors
    /// As [`RemoteIndex::fetch`].
    pub fn fetch_text(
        url: &str,
        known: Option<&IndexText>,
        timeout: Duration,
    ) -> Result<Option<IndexText>, RemoteError> {
        let url = url.trim();
        let places = places(url);
        let mut failed = None;
        for place in &places {
            let known = known.filter(|known| known.url == *place);
            let limits = Limits { max_bytes: MAX_INDEX_BYTES, timeout };
            match fetch::get_if_changed(place, known.and_then(|known| known.etag.as_deref()), limits) {
                Ok(None) => return Ok(None),
                Ok(Some(answer)) => {
                    let text = fetch::text_of(place, answer.bytes)?;
                    // Some sites show their front page for what they do not have.
                    match Self::parse_within(&text, place, timeout) {
                        Ok(_) if known.is_some_and(|known| known.text == text) => return Ok(None),
                        Ok(_) => return Ok(Some(IndexText { url: place.clone(), text, etag: answer.etag })),
                        Err(error) => failed = failed.or(Some(error)),
                    }
                }
                Err(FetchError::Status { status: 404, .. }) if places.len() > 1 => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(failed.unwrap_or_else(|| RemoteError::NoIndex { url: url.to_owned(), tried: places }))
    }

    /// Reads the text of an index that is at `url`. Fetches nothing.
    ///
    /// # Errors
    /// The text is not an index.
    pub fn parse(text: &str, url: &str) -> Result<Self, RemoteError> {
        Self::parse_within(text, url, fetch::TIMEOUT)
    }

    fn parse_within(text: &str, url: &str, timeout: Duration) -> Result<Self, RemoteError> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| RemoteError::Index { url: url.to_owned(), message: error.to_string() })?;
        let base = document.base.unwrap_or_default();
        let mut skills = SkillSet::builder();
        for (index, value) in document.skills.into_iter().enumerate() {
            let name = match value["name"].as_str() {
                Some(name) => format!("`{}`", shorten(name, MAX_NAME_CHARS)),
                None => format!("skill {index}"),
            };
            let skill = serde_json::from_value(value)
                .map_err(|error| error.to_string())
                .and_then(|item: Item| item.into_skill(url, &base, timeout));
            match skill {
                Ok(skill) => drop(skills.add(skill, Vec::new())),
                Err(why) => {
                    let why = Diagnostic::error("remote-skill", format!("{name} cannot be offered: {why}"));
                    skills.skip(Skipped::new(url, vec![why]));
                }
            }
        }
        Ok(Self { url: url.to_owned(), skills: skills.build() })
    }

    /// The address of the index.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its skills, and what was left out of them.
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

/// Where the index may be.
fn places(url: &str) -> Vec<String> {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    if path.to_ascii_lowercase().ends_with(".json") {
        return vec![url.to_owned()];
    }
    let path = path.trim_end_matches('/');
    if PLACES.iter().any(|place| path.ends_with(place)) {
        return vec![format!("{path}/index.json")];
    }
    PLACES.iter().map(|place| format!("{path}{place}/index.json")).collect()
}

impl Item {
    fn into_skill(self, index: &str, base: &str, timeout: Duration) -> Result<Skill, String> {
        match self.kind.as_deref() {
            None | Some("skill-md") => {}
            Some("archive") => {
                return Err("it is an archive; download and unpack it, then use --skill".into());
            }
            Some(other) => return Err(format!("its type `{other}` is not known")),
        }
        let name = SkillName::new(&self.name).ok_or("it has no name")?;
        if name.as_str().chars().count() > MAX_LOADED_NAME_CHARS {
            return Err(format!("its name has more than {MAX_LOADED_NAME_CHARS} characters"));
        }
        if self.description.trim().is_empty() {
            return Err("it has no description".into());
        }
        let files = self.files.map(read_files).transpose()?;
        let place = match &self.url {
            Some(url) => Place::of_file(index, url)?,
            None => Place::of_directory(index, self.base.as_deref(), base, &self.name, files.as_deref())?,
        };
        let (own, mut others): (Vec<_>, Vec<_>) =
            files.into_iter().flatten().partition(|file| file.path == place.file_name);
        others.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        others.dedup_by(|a, b| a.path == b.path);
        let sha256 = digest(self.digest.as_deref())?.or_else(|| own.first()?.sha256);
        let known = !own.is_empty() || !others.is_empty();
        let remote = Remote {
            url: place.url.into(),
            sha256,
            base: place.base.map(Into::into),
            files: known.then(|| others.into()),
            timeout,
        };
        let mut skill = Skill::new(name, self.description.trim(), Source::Remote(remote));
        skill.scope = Scope::Remote;
        Ok(skill)
    }
}

/// Where a `SKILL.md` is.
struct Place {
    url: String,
    file_name: String,
    base: Option<String>,
}

impl Place {
    /// At an address of its own. Other files are beside it only when it has the name that a skill's file has.
    fn of_file(index: &str, url: &str) -> Result<Self, String> {
        let url = resolve(index, url)?;
        let path = url.split(['?', '#']).next().unwrap_or(&url);
        let (parent, file_name) = path.rsplit_once('/').unwrap_or((path, ""));
        let base = SKILL_FILE_NAMES.contains(&file_name).then(|| format!("{parent}/"));
        Ok(Self { file_name: file_name.to_owned(), base, url })
    }

    /// In a directory: its own, or the one with its name beside the others.
    fn of_directory(
        index: &str,
        own: Option<&str>,
        common: &str,
        name: &str,
        files: Option<&[RemoteFile]>,
    ) -> Result<Self, String> {
        let slash =
            |url: &str| if url.is_empty() || url.ends_with('/') { url.to_owned() } else { format!("{url}/") };
        let base = match own {
            Some(own) => resolve(index, &slash(own))?,
            None if name.contains(['/', '\\']) || name.trim().starts_with('.') => {
                return Err("its name cannot be part of an address".into());
            }
            None => resolve(index, &format!("{}{}/", slash(common), encoded(name.trim())))?,
        };
        let named = |wanted: &str| files.is_none_or(|files| files.iter().any(|file| file.path == wanted));
        let mut names = SKILL_FILE_NAMES.into_iter();
        let file_name = names.find(|wanted| named(wanted)).ok_or("its files have no SKILL.md")?;
        Ok(Self { url: format!("{base}{file_name}"), file_name: file_name.to_owned(), base: Some(base) })
    }
}

fn resolve(index: &str, reference: &str) -> Result<String, String> {
    fetch::resolve(index, reference)
        .ok_or_else(|| format!("its address `{reference}` is none that may be fetched from there"))
}

fn read_files(files: Vec<FileItem>) -> Result<Vec<RemoteFile>, String> {
    let read = |file| {
        let (path, sha256, size) = match file {
            FileItem::Path(path) => (path, None, None),
            FileItem::Entry { path, digest: text, size } => (path, digest(text.as_deref())?, size),
        };
        let canonical = canonical(&path).map_err(|error| error.to_string())?;
        if canonical.is_empty() || path.ends_with('/') {
            return Err(format!("`{path}` is no file"));
        }
        Ok(RemoteFile { path: canonical, size, sha256 })
    };
    files.into_iter().map(read).collect()
}

/// A digest that we cannot check must not pass for one that was checked.
fn digest(text: Option<&str>) -> Result<Option<Sha256>, String> {
    text.map(|text| Sha256::parse(text).ok_or_else(|| format!("its digest `{text}` is no SHA-256")))
        .transpose()
}
