//! [`Skill`]: the name, description, properties and source of one skill.
//!
//! A skill is stored in a directory, defined in code, or offered by a web site. This module holds the data only:
//! [`frontmatter`](crate::frontmatter) parses a `SKILL.md`, [`discovery`](crate::discovery) finds skills on disk, and
//! [`catalog`](crate::catalog) and [`activation`](crate::activation) produce the texts for the model.

mod digest;
mod guard;
#[cfg(feature = "fetch")]
mod remote;
mod service;
mod usage;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "fetch")]
pub use self::remote::{Remote, RemoteFile};
pub use self::{
    digest::Sha256,
    guard::{FileGuard, Guard},
    service::FileService,
    usage::{Example, Parameter, Usage},
};

use serde::Serialize;

use crate::{
    name::SkillName,
    tool::{SkillTool, ToolProvider, Variables},
};

/// A skill: the metadata that a catalog shows, and the source of its instructions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Skill {
    /// The name that users type and models send.
    pub name: SkillName,
    /// A description that tells the model what the skill does and when to use it. It is never empty, but may have several
    /// lines.
    pub description: String,
    /// The optional fields of the frontmatter.
    pub properties: Properties,
    /// The source of the instructions.
    pub source: Source,
    /// The way in which the skill was added to its set. It decides the precedence.
    pub scope: Scope,
    /// The root of the session's workspace for which the skill was found, as the client wrote it. `None` for skills that don't
    /// belong to a project.
    pub session_root: Option<Arc<Path>>,
    /// True if a file that matches [`Properties::paths`] has come up in the session.
    pub has_joined: bool,
    /// A service that provides further tools while the skill is in use.
    pub provider: Option<Arc<dyn ToolProvider>>,
    /// Additional environment variables for the scripts of the skill.
    pub variables: Option<Arc<dyn Variables>>,
}

/// The optional fields of the [frontmatter](https://agentskills.io/specification). Most skills set none of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// `license`: the name of a license, or of a file with its text.
    pub license: Option<Box<str>>,
    /// `compatibility`: the environment that the skill requires. The specification allows 1 to 500 characters.
    pub compatibility: Option<Box<str>>,
    /// `version`, with the exact text from the file (`1.10` stays `1.10`).
    pub version: Option<Box<str>>,
    /// `argument-hint`: the hint that editors show after the skill's slash command.
    pub argument_hint: Option<Box<str>>,
    /// `allowed-tools`: tools that the skill may use without asking. Each entry is a pattern such as `Bash(git:*)`. At most 256 are
    /// read.
    pub allowed_tools: Vec<String>,
    /// `tags`: keywords for search. At most 256 are read.
    pub tags: Vec<String>,
    /// `priority`: orders search results that have the same score, highest first. The default is 0.
    pub priority: i64,
    /// `user-invocable`: true if the skill is offered as a slash command. The default is `true`.
    pub user_invocable: bool,
    /// `disable-model-invocation`: true if only users may activate the skill. The model doesn't see it. The default is
    /// `false`.
    pub disable_model_invocation: bool,
    /// `hide-from-discovery`: true if the skill is left out of the catalog and of search results. The model can still
    /// activate it by name. The default is `false`.
    pub hide_from_discovery: bool,
    /// `paths`: globs of files for which the skill is meant. It is listed when such a file comes up ([`paths`](crate::paths)). If
    /// there are none, it is listed from the beginning.
    pub paths: Vec<String>,
    /// The `parameters` and `examples` of a virtual skill, or those in the `metadata` of a `SKILL.md`.
    pub usage: Option<Box<Usage>>,
    /// `metadata` as JSON, because small maps and lists need much more memory than their text. The specification asks for a map of
    /// strings, but files in the wild contain other shapes.
    pub metadata: Option<Arc<str>>,
    /// All other keys as a JSON object, in the order of the file.
    pub extra: Option<Arc<str>>,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            license: None,
            compatibility: None,
            version: None,
            argument_hint: None,
            allowed_tools: Vec::new(),
            tags: Vec::new(),
            priority: 0,
            user_invocable: true,
            disable_model_invocation: false,
            hide_from_discovery: false,
            paths: Vec::new(),
            usage: None,
            metadata: None,
            extra: None,
        }
    }
}

/// The source of a skill's instructions.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Source {
    /// A directory with a `SKILL.md`. The body is read when the skill is activated.
    Stored(Stored),
    /// A definition in code or in a configuration file. The skill has no directory and no files.
    Virtual(Virtual),
    /// An entry of an index on the web. The body and the files are fetched when they are needed.
    #[cfg(feature = "fetch")]
    Remote(Remote),
}

/// The directory of a stored skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The absolute path of the skill's directory.
    pub dir: Arc<Path>,
    /// The name of the skill's file, normally `SKILL.md`.
    pub file_name: &'static str,
    /// A hash of the text that was read, which is used to detect changes. It is 0 if the file has not been read.
    pub(crate) stamp: u64,
    /// True if that text was complete, so that a later text without a body or a closing line is considered broken.
    pub(crate) is_complete: bool,
    /// Decides which of the skill's files are served. `None` allows all of them.
    pub(crate) guard: Option<Guard>,
}

impl Stored {
    /// Describes a skill in `dir`, an absolute path, whose text is in the file `file_name`.
    pub fn new(dir: impl Into<Arc<Path>>, file_name: &'static str) -> Self {
        Self { dir: dir.into(), file_name, stamp: 0, is_complete: false, guard: None }
    }

    /// Returns true if the skill was found by discovery. In this case the path of its directory is canonical.
    pub(crate) fn was_found(&self) -> bool {
        self.stamp != 0
    }

    /// Returns the absolute path of the `SKILL.md`.
    pub fn file(&self) -> PathBuf {
        self.dir.join(self.file_name)
    }
}

/// The instructions and tools of a virtual skill.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Virtual {
    /// The source of the text that activation returns.
    pub instructions: Instructions,
    /// Tools that the model calls with `call_skill_tool`. Their names are unique within the skill.
    pub tools: Vec<SkillTool>,
}

/// The source of a virtual skill's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Instructions {
    /// The text itself.
    Inline(Arc<str>),
    /// A file, which is read at each activation.
    File(PathBuf),
    /// A URL (`https`, or `http` on loopback), which is fetched at the first activation.
    Url(String),
}

/// The way in which a skill was added to a set. The order of the variants is the order of precedence, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// Named explicitly: with `--skill DIR`, in code, or in a configuration file.
    #[default]
    Named,
    /// Found in a session's project.
    Project,
    /// Found in the user's own directories.
    User,
    /// Found below a directory that the user asked to scan.
    Scanned,
    /// Listed by an index on the web.
    Remote,
    /// Provided by the client for one session.
    Session,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "named",
            Self::Project => "project",
            Self::User => "user",
            Self::Scanned => "scanned",
            Self::Remote => "remote",
            Self::Session => "session",
        })
    }
}

impl Skill {
    /// Creates a skill with default properties and [`Scope::Named`].
    pub fn new(name: SkillName, description: impl Into<String>, source: Source) -> Self {
        Self {
            name,
            description: description.into(),
            properties: Properties::default(),
            source,
            scope: Scope::Named,
            session_root: None,
            has_joined: false,
            provider: None,
            variables: None,
        }
    }

    /// Returns true if all fields of both skills are equal and, for stored skills, their instructions too.
    ///
    /// The instructions of virtual skills are not compared. For a remote skill, the URL and the checksums of its files are compared.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let sources = match (&self.source, &other.source) {
            (Source::Stored(this), Source::Stored(that)) => this == that,
            (Source::Stored(_), _) | (_, Source::Stored(_)) => false,
            #[cfg(feature = "fetch")]
            (Source::Remote(this), Source::Remote(that)) => this == that,
            #[cfg(feature = "fetch")]
            (Source::Remote(_), _) | (_, Source::Remote(_)) => false,
            _ => true,
        };
        let origins = self.scope == other.scope && self.session_root == other.session_root;
        sources && origins && self.is_described_as(other)
    }

    /// Returns true if `other` has the same name, description and properties, so that both look the same in a catalog.
    pub fn is_described_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.properties == other.properties
            && self.has_joined == other.has_joined
    }

    /// Returns a hint for the arguments of the skill's slash command, such as `<path> [depth]`.
    ///
    /// This is the author's `argument-hint` or, if there is none, a list of the skill's parameters.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match (&self.properties.argument_hint, &self.properties.usage) {
            (Some(hint), _) => Some(Cow::Borrowed(hint)),
            (None, Some(usage)) => usage.hint().map(Cow::Owned),
            (None, None) => None,
        }
    }

    /// Restricts the skill's files to those that `guard` allows. This has an effect on stored skills only.
    #[must_use]
    pub fn guarded(mut self, guard: Guard) -> Self {
        if let Source::Stored(stored) = &mut self.source {
            stored.guard = Some(guard);
        }
        self
    }

    /// Returns a text that identifies the skill: its name, where it comes from and, if its files have to be approved, their approved
    /// version. For a virtual skill, also its instructions and `allowed-tools`, because each project of a configuration can have another
    /// one of the same name. Stored skills of the user keep their identity when they are edited, unless their `allowed-tools` change:
    /// otherwise, a model that may edit the file could give itself more rights.
    pub fn identity(&self) -> String {
        let version = match &self.source {
            Source::Stored(Stored { guard: Some(guard), .. }) => guard.key().into(),
            Source::Virtual(skill) => hash(&(&skill.instructions, &self.properties.allowed_tools)),
            Source::Stored(_) if !self.properties.allowed_tools.is_empty() => {
                hash(&self.properties.allowed_tools)
            }
            _ => Cow::Borrowed(""),
        };
        let url = match &self.source {
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => remote.place(),
            _ => Cow::Borrowed(""),
        };
        // `Debug` keeps apart paths that are not UTF-8.
        format!("{} {:?} {version} {url} {:?}", self.name, self.scope, self.dir())
    }

    /// Returns the absolute path of a stored skill's directory, or `None` for other skills.
    pub fn dir(&self) -> Option<&Path> {
        match &self.source {
            Source::Stored(stored) => Some(&stored.dir),
            _ => None,
        }
    }

    /// Returns the service that provides the files, for example an MCP server. `None` for skills from other places.
    pub fn service(&self) -> Option<&dyn FileService> {
        match &self.source {
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => remote.service.as_deref(),
            _ => None,
        }
    }

    /// Returns the URI of the `SKILL.md` of a skill of a [service](Self::service).
    pub fn service_uri(&self) -> Option<&str> {
        match &self.source {
            #[cfg(feature = "fetch")]
            Source::Remote(remote) => remote.service.is_some().then_some(&*remote.url),
            _ => None,
        }
    }

    /// Returns the tools of a virtual skill. For other skills, the slice is empty.
    pub fn tools(&self) -> &[SkillTool] {
        match &self.source {
            Source::Virtual(skill) => &skill.tools,
            _ => &[],
        }
    }

    /// Returns the tool with exactly this name.
    pub fn tool(&self, name: &str) -> Option<&SkillTool> {
        self.tools().iter().find(|tool| tool.name == name)
    }

    /// Returns true if the model can call tools of the skill.
    pub fn has_tools(&self) -> bool {
        !self.tools().is_empty() || self.provider.is_some()
    }

    /// Returns true if the model sees the skill in the catalog, in search results and in lists of valid names. A skill with
    /// [`Properties::paths`] is not listed at first.
    pub fn is_listed(&self) -> bool {
        let is_hidden = self.properties.disable_model_invocation || self.properties.hide_from_discovery;
        !is_hidden && !self.awaits_path()
    }

    /// Returns true if the model may activate the skill by name.
    pub fn is_model_invocable(&self) -> bool {
        !self.properties.disable_model_invocation
    }
}

/// Returns a hash that is the same in other processes, because identities are saved. An author can't choose two values with the same hash.
fn hash(value: &impl fmt::Debug) -> Cow<'static, str> {
    Cow::Owned(Sha256::of(format!("{value:?}").as_bytes()).to_string())
}
