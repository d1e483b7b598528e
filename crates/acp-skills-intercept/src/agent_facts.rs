//! What is known of the agent: what it said of itself, and in which ways it differs from others.

use std::borrow::Cow;

use acp_skills_wire::Node;

use crate::version::Version;

/// What the agent said of itself in its answer to `initialize`.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that an agent takes or not")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentFacts {
    /// The version of the protocol that it settled on.
    pub version: Version,
    /// It takes MCP servers over HTTP.
    pub mcp_http: bool,
    /// It does not take MCP servers over stdio.
    pub no_mcp_stdio: bool,
    /// It takes MCP servers over the ACP connection (unstable).
    pub mcp_acp: bool,
    /// It takes the field `systemPrompt` (draft).
    pub system_prompt: bool,
    /// Which agent it is, where that matters.
    pub kind: AgentKind,
    /// The name that it gives itself.
    pub name: Option<String>,
}

/// Agents whose ways differ from the protocol, or from what others do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// Claude's adapter.
    Claude,
    /// Codex's adapter.
    Codex,
    /// Gemini, which has a tool of its own named `activate_skill`.
    Gemini,
    /// OpenCode, which has no name for a tool but the title.
    OpenCode,
    /// Qwen Code.
    Qwen,
    /// Any other.
    #[default]
    Other,
}

impl AgentKind {
    /// The agent with this `agentInfo.name`.
    fn of(name: &str) -> Self {
        let is = |part: &str| name.contains(part);
        if is("claude-agent-acp") || is("claude-code-acp") {
            Self::Claude
        } else if is("codex-acp") {
            Self::Codex
        } else if is("gemini") {
            Self::Gemini
        } else if name == "OpenCode" {
            Self::OpenCode
        } else if name == "qwen-code" {
            Self::Qwen
        } else {
            Self::Other
        }
    }
}

impl AgentFacts {
    /// What the result of `initialize` says.
    pub(crate) fn read(result: Node<'_>) -> Self {
        let version = Version::settled(result);
        let paths = version.paths();
        // An object marker or a flag, as the version has it and as texts before it had it.
        let marked = |node: Option<Node<'_>>| {
            node.is_some_and(|node| !node.is_null() && node.as_bool() != Some(false))
        };
        let mcp = |transport| marked(result.at(paths.mcp).and_then(|mcp| mcp.get(transport)));
        let name = result.at(paths.name).and_then(|name| name.as_str());
        Self {
            version,
            mcp_http: mcp("http"),
            no_mcp_stdio: !version.requires_stdio() && !mcp("stdio"),
            mcp_acp: mcp("acp"),
            system_prompt: marked(result.at(paths.system_prompt)),
            kind: AgentKind::of(name.as_deref().unwrap_or_default()),
            name: name.map(Cow::into_owned),
        }
    }
}
