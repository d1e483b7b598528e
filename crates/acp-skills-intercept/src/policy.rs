//! [`Policy`]: the user's configuration for the interceptor.

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

/// The user's configuration.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The transport for our MCP server. The default is [`McpMode::Auto`].
    pub mcp: McpMode,
    /// The timeout for the agent to list our tools, from the opening of a session. The first prompt is held until then. The
    /// default is 2 seconds. Zero turns waiting off.
    pub mcp_wait: Duration,
    /// The connect timeout, as a part of `mcp_wait`. The default is 300 ms: agents that connect by themselves do so within
    /// milliseconds.
    pub mcp_connect: Duration,
    /// The place of the catalog. The default is [`CatalogIn::Auto`].
    pub catalog_in: CatalogIn,
    /// The format of the catalog.
    pub catalog: CatalogOptions,
    /// The party that activates skills. The default is the model.
    pub activation: Activation,
    /// True if `$NAME` invokes a skill as `/NAME` does. The default is false.
    pub dollar: bool,
    /// The calls of our own tools that are allowed without asking the user. The default is [`Approve::Own`].
    pub approve: Approve,
    /// The effect of the `allowed-tools` of active skills. The default is [`ToolPolicy::Permissive`].
    pub tool_policy: ToolPolicy,
    /// The titles of calls of our own tools in the client. The default is [`Titles::People`].
    pub titles: Titles,
    /// True if the client gets skills as configuration options. The default is false.
    pub toggles: bool,
    /// True if the drafts of the protocol about skills are supported: `skills/list`, and `agentSkills` of a session. The default
    /// is false.
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
