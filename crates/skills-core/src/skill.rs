//! [`Skill`]: one capability, stored in a directory or defined in code.
//!
//! This file owns the data. How a `SKILL.md` becomes a [`Skill`] is `frontmatter`, where skills are found is
//! `discovery`, and what a model gets to read is `catalog` and `activation`.

#[cfg(feature = "fetch")]
mod digest;
mod guard;
#[cfg(feature = "fetch")]
mod remote;
mod usage;

use std::{
    borrow::Cow,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "fetch")]
pub use self::{
    digest::Sha256,
    remote::{Remote, RemoteFile},
};
pub use self::{
    guard::{FileGuard, Guard},
    usage::{Example, Parameter, Usage},
};

use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

use crate::name::SkillName;

/// One skill: what the catalog shows of it, and where its instructions come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Skill {
    /// What users type and models send back.
    pub name: SkillName,
    /// What the skill does and when to use it; one line or more, not empty.
    pub description: String,
    /// Everything else that the frontmatter says.
    pub properties: Properties,
    /// Where the instructions are.
    pub source: Source,
    /// How the skill got into the set.
    pub scope: Scope,
}

/// The optional fields of the frontmatter. Most skills have none of them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Properties {
    /// `license`.
    pub license: Option<Box<str>>,
    /// `compatibility`: what the skill needs around it; 1–500 characters in the specification.
    pub compatibility: Option<Box<str>>,
    /// `version`, as the text in the file (`1.10` stays `1.10`).
    pub version: Option<Box<str>>,
    /// `argument-hint`: what to show behind the slash command.
    pub argument_hint: Option<Box<str>>,
    /// `allowed-tools`: one pattern an entry, for example `Bash(git:*)`.
    pub allowed_tools: Vec<String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// `priority`: higher ranks first among equally good search results.
    pub priority: i64,
    /// `user-invocable`: whether the skill is offered as a slash command. Default `true`.
    pub user_invocable: bool,
    /// `disable-model-invocation`: keeps the skill from the catalog and the model. Default `false`.
    pub disable_model_invocation: bool,
    /// `hide-from-discovery`: neither in the catalog nor in search results, activated by name only. Default `false`.
    pub hide_from_discovery: bool,
    /// `parameters` and `examples`, of a virtual skill or in `metadata`.
    pub usage: Option<Box<Usage>>,
    /// `metadata`, in whatever shape it has.
    pub metadata: Option<Box<Value>>,
    /// Every other key, in the order of the file.
    pub extra: Option<Box<IndexMap<String, Value>>>,
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
            usage: None,
            metadata: None,
            extra: None,
        }
    }
}

/// Where the instructions of a skill come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Source {
    /// A directory with a `SKILL.md`; the body is read when the skill is activated.
    Stored(Stored),
    /// Defined in code or in a configuration file; has no directory and no files.
    Virtual(Virtual),
    /// Listed by an index on the web; body and files are fetched when they are needed.
    #[cfg(feature = "fetch")]
    Remote(Remote),
}

/// The directory of a stored skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// The absolute path of the skill's directory.
    pub dir: Arc<Path>,
    /// The name of the file in it, normally `SKILL.md`.
    pub file_name: &'static str,
    /// Tells one text of the file from another; 0 when the text is not known.
    pub(crate) stamp: u64,
    /// Whether that text had all that a skill has, so that one without is broken.
    pub(crate) is_complete: bool,
    /// Decides which of its files are served.
    pub(crate) guard: Option<Guard>,
}

impl Stored {
    /// A skill in `dir` (absolute), read from `file_name` in it.
    pub fn new(dir: impl Into<Arc<Path>>, file_name: &'static str) -> Self {
        Self { dir: dir.into(), file_name, stamp: 0, is_complete: false, guard: None }
    }

    /// Whether discovery has found it; then the path of its directory is canonical.
    pub(crate) fn was_found(&self) -> bool {
        self.stamp != 0
    }

    /// The absolute path of the `SKILL.md`.
    pub fn file(&self) -> PathBuf {
        self.dir.join(self.file_name)
    }
}

/// The instructions and tools of a virtual skill.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Virtual {
    /// The text that activation gives.
    pub instructions: Instructions,
    /// Tools that `call_skill_tool` dispatches to; names are unique within the skill.
    pub tools: Vec<SkillTool>,
}

/// Where the text of a virtual skill is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instructions {
    /// Right here.
    Inline(Arc<str>),
    /// In a file, read at each activation.
    File(PathBuf),
    /// Behind a URL (https, or http on loopback), fetched at the first activation.
    Url(String),
}

/// How a skill got into a set; also its precedence, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Scope {
    /// Named one by one: `--skill DIR`, or defined in code or configuration.
    #[default]
    Named,
    /// Found in the project of a session.
    Project,
    /// Found in the user's own directories.
    User,
    /// Found below a directory that was given to be scanned.
    Scanned,
    /// Listed by a remote index.
    Remote,
    /// Brought by the client, for one session.
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
    /// A skill with default properties.
    pub fn new(name: SkillName, description: impl Into<String>, source: Source) -> Self {
        Self {
            name,
            description: description.into(),
            properties: Properties::default(),
            source,
            scope: Scope::Named,
        }
    }

    /// Whether nothing visible differs from `other`: every field is the same, and so are the instructions of a
    /// stored skill. Of skills that are not stored only the fields are compared.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let sources = match (&self.source, &other.source) {
            (Source::Stored(this), Source::Stored(that)) => this == that,
            (Source::Stored(_), _) | (_, Source::Stored(_)) => false,
            _ => true,
        };
        sources && self.scope == other.scope && self.is_described_as(other)
    }

    /// Whether `other` has the same name, description and properties: a catalog shows both alike.
    pub fn is_described_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.properties == other.properties
    }

    /// What to type behind the skill's command: what its author says, else its parameters, such as `<path> [depth]`.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        match (&self.properties.argument_hint, &self.properties.usage) {
            (Some(hint), _) => Some(Cow::Borrowed(hint)),
            (None, Some(usage)) => usage.hint().map(Cow::Owned),
            (None, None) => None,
        }
    }

    /// The same skill, of which nothing is served that `guard` does not allow; only a stored one can have it.
    #[must_use]
    pub fn guarded(mut self, guard: Guard) -> Self {
        if let Source::Stored(stored) = &mut self.source {
            stored.guard = Some(guard);
        }
        self
    }

    /// The directory of a stored skill, absolute; `None` for any other.
    pub fn dir(&self) -> Option<&Path> {
        match &self.source {
            Source::Stored(stored) => Some(&stored.dir),
            _ => None,
        }
    }

    /// The tools of a virtual skill; no other has any.
    pub fn tools(&self) -> &[SkillTool] {
        match &self.source {
            Source::Virtual(skill) => &skill.tools,
            _ => &[],
        }
    }

    /// The tool with this exact name.
    pub fn tool(&self, name: &str) -> Option<&SkillTool> {
        self.tools().iter().find(|tool| tool.name == name)
    }

    /// Whether the model may see the skill in the catalog, in search results and in the list of valid names.
    pub fn is_listed(&self) -> bool {
        !self.properties.disable_model_invocation && !self.properties.hide_from_discovery
    }

    /// Whether the model may activate the skill by name.
    pub fn is_model_invocable(&self) -> bool {
        !self.properties.disable_model_invocation
    }
}

/// A tool of a virtual skill. It is never listed up front; activation describes it.
#[derive(Clone)]
#[non_exhaustive]
pub struct SkillTool {
    /// Unique within the skill.
    pub name: String,
    /// What it does, for the activation text.
    pub description: String,
    /// The JSON schema of its input, for the activation text; not enforced.
    pub input_schema: Option<Value>,
    /// What runs.
    pub handler: Arc<dyn ToolHandler>,
    /// Why the tool cannot work (its program does not exist), when that is known.
    pub missing: Option<String>,
}

impl SkillTool {
    /// A tool that runs `handler`.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl ToolHandler + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: None,
            handler: Arc::new(handler),
            missing: None,
        }
    }
}

impl fmt::Debug for SkillTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillTool")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("input_schema", &self.input_schema)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

/// What is known about the caller of a tool.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallContext {
    /// The working directory of the session, absolute, when there is one.
    pub cwd: Option<PathBuf>,
    /// Skills that the user activated in this session. Their tools and files are open to the model even when it may
    /// not activate them itself ([`Properties::disable_model_invocation`]).
    pub unlocked: Arc<[SkillName]>,
}

impl CallContext {
    /// A call from a session that works in `cwd`, an absolute path.
    pub fn in_directory(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    /// The same call in a session in which the user activated these skills.
    #[must_use]
    pub fn unlock(self, skills: impl Into<Arc<[SkillName]>>) -> Self {
        Self { unlocked: skills.into(), ..self }
    }

    /// Whether the user activated this skill in the session.
    pub fn is_unlocked(&self, skill: &SkillName) -> bool {
        self.unlocked.iter().any(|name| name.key() == skill.key())
    }
}

/// What a tool says when it fails; the model reads it.
pub type ToolError = Box<dyn std::error::Error + Send + Sync>;

/// Runs a tool of a virtual skill. `input` is any JSON; `None` means that the caller sent no input at all.
///
/// Dropping the future cancels the call. Closures `Fn(Value) -> impl Future<Output = Result<Value, ToolError>>`
/// implement this; they get `null` for no input.
pub trait ToolHandler: Send + Sync {
    /// Runs the tool; a string result is given to the model as it is, anything else as JSON.
    ///
    /// # Errors
    /// Whatever the tool wants the model to know.
    fn call(
        &self,
        input: Option<Value>,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>>;
}

impl<F, Fut> ToolHandler for F
where
    F: Fn(Value) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    fn call(
        &self,
        input: Option<Value>,
        _context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        Box::pin(self(input.unwrap_or(Value::Null)))
    }
}
