//! Settings with a fixed set of values that are applied in this crate.

use schemars::JsonSchema;
use serde::Deserialize;

/// A place that is searched for skills (`--discover`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Discover {
    /// The user's own directories, such as `~/.agents/skills`.
    User,
    /// The user's `~/.agents/skills` and `$XDG_CONFIG_HOME/agents/skills`, for agents that load `~/.claude/skills` themselves.
    Agents,
    /// The user's `$XDG_CONFIG_HOME/agents/skills`, for agents that load `~/.agents/skills` themselves.
    Config,
    /// The user's `~/.claude/skills`, for agents that load `~/.agents/skills` themselves.
    Claude,
    /// The project of the session.
    Project,
    /// The project of the session, including the subdirectories of the session's directories.
    ProjectTree,
}

/// Skills that are used without the user's approval (`--trust`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Trusted {
    /// The skills in the project of the session.
    Project,
}

/// The check for new versions in the background (`--check-updates`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CheckUpdates {
    /// Sources are not checked.
    Never,
    /// Each source is checked at most once a day.
    Daily,
}

/// The check of a source's new versions (`add --verify`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verify {
    /// Git must accept the signature of the commit or the tag.
    Git,
}

/// The paths of `SKILL.md` files in the catalog (`--location`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CatalogLocation {
    /// No paths.
    None,
    /// Absolute paths.
    Absolute,
}

/// The place where the agent runs (`--elsewhere`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Elsewhere {
    /// The place that the command of the agent tells.
    #[default]
    Auto,
    /// In a container or on another machine.
    Yes,
    /// The same, and its model reads files with requests to the editor.
    Files,
    /// On this machine.
    No,
}

/// The search tool for the model (`--search`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SearchTool {
    /// Offered if the catalog doesn't contain all skills.
    #[default]
    Auto,
    /// Always offered.
    On,
    /// Never offered.
    Off,
}

/// The sandbox for scripts (`--sandbox`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SandboxKind {
    /// Bubblewrap: the skill is read-only, the session's directory is writable, and there is no network.
    Bwrap,
}

/// The protocol for telemetry (`--telemetry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TelemetryProtocol {
    /// The protocol of OpenTelemetry, over HTTP.
    Otlp,
}

/// The level of log messages (`--log`).
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

/// The reaction to a command tool whose program doesn't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Validation {
    /// The start fails with an error.
    Strict,
    /// The start continues with a warning, and calls of the tool return an error.
    #[default]
    Warn,
    /// The program is not checked.
    Ignore,
}
