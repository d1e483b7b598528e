//! The words of a configuration that nothing below this crate acts on.

use schemars::JsonSchema;
use serde::Deserialize;

/// Places with skills that nobody named (`--discover`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Discover {
    /// The user's own directories.
    User,
    /// The project of the session.
    Project,
}

/// Skills that need no approval where they would (`--trust`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Trusted {
    /// Those of the project of a session.
    Project,
}

/// Whether the catalog names the `SKILL.md` files (`--location`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CatalogLocation {
    /// It does not.
    None,
    /// By their absolute paths.
    Absolute,
}

/// When the model can search the skills (`--search`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SearchTool {
    /// When the catalog does not hold them all.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What scripts are confined with (`--sandbox`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SandboxKind {
    /// Bubblewrap.
    Bwrap,
}

/// How much is written for people (`--log`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the usual names of levels")]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// What to do about a command tool whose program does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Validation {
    /// Refuse to start.
    Strict,
    /// Start, and say so; the model is told too.
    #[default]
    Warn,
    /// Do not look.
    Ignore,
}
