//! What the user decided: how the agent gets the skills, who activates them, which permissions are granted.

use std::time::Duration;

use serde::Deserialize;
use skills_core::catalog::CatalogOptions;

/// How the agent is to reach our MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum McpMode {
    /// By what the agent advertises.
    #[default]
    Auto,
    /// Over the ACP connection.
    Acp,
    /// HTTP on loopback.
    Http,
    /// A bridge process.
    Stdio,
    /// Not at all: the model reads the files with its own tools.
    Off,
}

/// Where the catalog is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CatalogIn {
    /// The cleanest way that the agent offers.
    #[default]
    Auto,
    /// The system prompt where the agent takes one, else the prompt.
    System,
    /// The first prompt.
    Prompt,
    /// Nowhere.
    Off,
}

/// How skills are activated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The model does it, with our tools or by reading the files.
    #[default]
    Model,
    /// The proxy does it: it puts the skills that fit a prompt in front of it. For agents without tools.
    Prompt,
    /// The model does it where it has our tools, else the proxy.
    Hybrid,
}

/// What the user decided.
#[derive(Debug, Clone)]
pub struct Policy {
    /// How the agent is to reach our MCP server.
    pub mcp: McpMode,
    /// How long a first prompt waits for the agent to have our tools, from the opening of its session.
    pub mcp_wait: Duration,
    /// How long of that for an agent that has not connected. Those that connect do so within milliseconds, or never.
    pub mcp_connect: Duration,
    /// Where the catalog is to go.
    pub catalog_in: CatalogIn,
    /// How the catalog is rendered.
    pub catalog: CatalogOptions,
    /// How skills are activated.
    pub activation: Activation,
    /// Whether `$NAME` invokes a skill as `/NAME` does.
    pub dollar: bool,
    /// Which requests for permission are granted because the call is ours.
    pub approve: Approve,
    /// What the `allowed-tools` of active skills mean.
    pub tool_policy: ToolPolicy,
    /// What calls of our own tools are called in the client.
    pub titles: Titles,
    /// Whether skills are options of the session that the client shows as switches.
    pub toggles: bool,
    /// Whether the drafts of the protocol about skills are spoken: `skills/list`, and `agentSkills` of a session.
    pub drafts: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mcp: McpMode::Auto,
            mcp_wait: Duration::from_secs(2),
            mcp_connect: Duration::from_millis(300),
            catalog_in: CatalogIn::Auto,
            catalog: CatalogOptions::default(),
            activation: Activation::Model,
            dollar: false,
            approve: Approve::Own,
            tool_policy: ToolPolicy::Permissive,
            titles: Titles::People,
            toggles: false,
            drafts: false,
        }
    }
}

/// Which requests for permission the proxy grants because the call is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// Calls of our tools that only read.
    #[default]
    Own,
    /// None.
    None,
}

/// What the `allowed-tools` of active skills mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolPolicy {
    /// What they do not name is logged.
    #[default]
    Permissive,
    /// What they name is granted once, when the user activated the skill.
    Approval,
    /// What they do not name is refused.
    Strict,
}

/// What calls of our own tools are called in the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Titles {
    /// What they are for: `Skill: code-review`.
    #[default]
    People,
    /// Whatever the agent calls them.
    Agent,
}
