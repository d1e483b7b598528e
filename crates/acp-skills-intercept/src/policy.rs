//! [`Policy`]: the user's configuration for the interceptor.

use std::time::Duration;

use serde::Deserialize;
use skills_core::catalog::CatalogOptions;

use crate::queries::Listen;

/// The transport between the agent and the skills server, which is the MCP server with the skill tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum McpMode {
    /// The best transport that the agent announces.
    #[default]
    Auto,
    /// The ACP connection.
    Acp,
    /// HTTP on loopback, or at the address of `--listen`.
    Http,
    /// A bridge process and a private socket, without a port.
    Stdio,
    /// Don't use a server: the model should read files with built-in tools instead.
    Off,
}

/// The place of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CatalogIn {
    /// The best place that the agent supports.
    #[default]
    Auto,
    /// The system prompt if the agent supports one, otherwise the first prompt.
    System,
    /// The first prompt.
    Prompt,
    /// No catalog.
    Off,
}

/// The party that activates skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// The model, with the skill tools or by reading the files.
    #[default]
    Model,
    /// The proxy: it adds the skills that match a prompt to the prompt. For agents without tools.
    Prompt,
    /// The model if it has the skill tools, otherwise the proxy.
    Hybrid,
}

/// The user's configuration.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub struct Policy {
    /// The transport for the skills server. The default is [`McpMode::Auto`].
    pub mcp: McpMode,
    /// The timeout for the agent to list the skill tools, from the opening of a session. The first prompt is held until then. The
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
    /// The maximum number of tokens for the instructions of skills that are repeated after a compaction. A skill gets at most a fifth
    /// of it. The default is 25,000.
    pub restore_budget: usize,
    /// True if a line before a prompt names the skill that clearly fits it best. The default is false.
    pub hint: bool,
    /// The party that gets a slash command if a skill and a command of the agent have the same name. The default is
    /// [`CommandNames::Auto`].
    pub commands: CommandNames,
    /// True if `$NAME` invokes a skill as `/NAME` does. The default is false.
    pub dollar: bool,
    /// The calls of the skill tools that are allowed without asking the user. The default is [`Approve::Own`].
    pub approve: Approve,
    /// The effect of the `allowed-tools` of active skills. The default is [`ToolPolicy::Permissive`].
    pub tool_policy: ToolPolicy,
    /// The titles of calls of the skill tools in the client. The default is [`Titles::People`].
    pub titles: Titles,
    /// True if the client gets skills as configuration options. The default is false.
    pub toggles: bool,
    /// The MCP servers of the client that become skills. The default is none.
    pub mcp_on_demand: OnDemand,
    /// The MCP servers of the client that are asked for skills. `All` means those with HTTP, because a program would be started a second
    /// time. The default is none.
    pub mcp_skills: OnDemand,
    /// True if the agent runs in a container or on another machine. It reaches neither the loopback address of the skills server,
    /// unless `mcp` names a transport, nor the files of skills, unless the catalog has their paths. The default is false.
    pub elsewhere: bool,
    /// True if an agent that runs elsewhere lets its model read files with `fs/read_text_file`. The interceptor then advertises the
    /// capability if the client doesn't. The default is false: this is only known of agents that are known by name.
    pub reads_through_client: bool,
    /// The address of the skills server over HTTP. The default is a free port of the loopback address.
    pub listen: Option<Listen>,
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
            restore_budget: 25_000,
            hint: false,
            commands: CommandNames::Auto,
            dollar: false,
            approve: Approve::Own,
            tool_policy: ToolPolicy::Permissive,
            titles: Titles::People,
            toggles: false,
            mcp_on_demand: OnDemand::None,
            mcp_skills: OnDemand::None,
            elsewhere: false,
            reads_through_client: false,
            listen: None,
            drafts: false,
        }
    }
}

/// The MCP servers of the client to which a setting applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OnDemand {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// The servers with these names.
    Named(Vec<String>),
}

impl OnDemand {
    /// Returns true if the setting applies to a server with this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.iter().any(|other| other == name),
        }
    }
}

/// The party that gets a slash command if a skill and a command of the agent have the same name. The other one is available with
/// a prefix: `/skill:NAME` or `/agent:NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CommandNames {
    /// The skill if it was named explicitly, for example with `--skill`, otherwise the agent.
    #[default]
    Auto,
    /// The skill.
    Skills,
    /// The agent.
    Agent,
}

/// The calls of the proxy's own tools that are allowed without asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Approve {
    /// Calls that only read.
    #[default]
    Own,
    /// No calls.
    None,
}

/// The effect of the `allowed-tools` of active skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolPolicy {
    /// Calls of other tools are logged.
    #[default]
    Permissive,
    /// Calls of these tools are allowed once, if the user activated the skill.
    Approval,
    /// Calls of other tools are refused.
    Strict,
}

/// The titles of calls of the proxy's own tools in the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Titles {
    /// The purpose of the call, such as `Skill: code-review`, and one line instead of the loaded instructions.
    #[default]
    People,
    /// The agent's own titles, and whole results.
    Agent,
}
