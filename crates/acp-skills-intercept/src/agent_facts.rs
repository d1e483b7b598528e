//! What is known of the agent: what it said of itself, and in which ways it differs from others.

use std::{borrow::Cow, time::Duration};

use acp_skills_wire::Node;

use crate::{drafts::Offered, queries::Transport, version::Version};

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
    /// What it offers of the drafts about skills.
    pub drafts: Offered,
    /// Which agent it is, where that matters.
    pub kind: AgentKind,
    /// Its model has called a tool of ours.
    pub has_called: bool,
    /// The name that it gives itself.
    pub name: Option<String>,
    /// The version of itself that it names.
    pub release: Option<String>,
}

/// Agents whose ways are known, because they differ from the protocol or from what others do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// Agentao.
    Agentao,
    /// Claude's adapter.
    Claude,
    /// Codex's adapter.
    Codex,
    /// GitHub Copilot.
    Copilot,
    /// Crow.
    Crow,
    /// Factory's Droid.
    Droid,
    /// Elizacp.
    Elizacp,
    /// fast-agent.
    FastAgent,
    /// Gemini, which has a tool of its own named `activate_skill`.
    Gemini,
    /// Grok, which gives no name.
    Grok,
    /// Hermes.
    Hermes,
    /// Kimi's CLI, the old one and Kimi Code, which has taken its name.
    Kimi,
    /// OpenCode, which has no name for a tool but the title; and Kilo, which is made from it.
    OpenCode,
    /// OpenHands.
    OpenHands,
    /// Qwen Code.
    Qwen,
    /// Reasonix.
    Reasonix,
    /// Mistral's Vibe, whose model gets no tools of a session's servers.
    Vibe,
    /// Any other.
    #[default]
    Other,
}

impl AgentKind {
    /// The agent with this `agentInfo.name`, or with this `_meta` in its capabilities when it gives no name.
    fn of(name: &str, meta: Option<Node<'_>>) -> Self {
        let name = name.to_ascii_lowercase();
        let is = |part: &str| name.contains(part);
        if name == "agentao" {
            Self::Agentao
        } else if is("claude-agent-acp") || is("claude-code-acp") {
            Self::Claude
        } else if is("codex-acp") {
            Self::Codex
        } else if is("copilot") {
            Self::Copilot
        } else if is("crow") {
            Self::Crow
        } else if name == "@factory/cli" {
            Self::Droid
        } else if is("elizacp") {
            Self::Elizacp
        } else if is("fast-agent") {
            Self::FastAgent
        } else if is("gemini") {
            Self::Gemini
        } else if name == "hermes-agent" {
            Self::Hermes
        } else if is("kimi") {
            Self::Kimi
        } else if name == "opencode" || name == "kilo" {
            Self::OpenCode
        } else if is("openhands") {
            Self::OpenHands
        } else if name == "qwen-code" {
            Self::Qwen
        } else if is("reasonix") {
            Self::Reasonix
        } else if is("mistral-vibe") {
            Self::Vibe
        } else if meta.is_some_and(|meta| meta.get("x.ai/capabilities").is_some()) {
            Self::Grok
        } else {
            Self::Other
        }
    }

    /// Whether it was seen to give the tools of a session's MCP servers to its model. Some list them and do not, so that of
    /// any other nobody knows until its model calls one.
    pub(crate) fn passes_tools_on(self) -> bool {
        !matches!(self, Self::Vibe | Self::Other)
    }

    /// Whether it shows a model only the beginning of a prompt, for a title or for other reasons: the user's words are to be there.
    ///
    /// Hermes sends the first 500 characters to have a title made, Droid some to choose what to do; with the catalog in front they
    /// send nothing but that. Behind the words, a text block reaches the model of each of 27 agents that were tried, in its place,
    /// and all titles begin with the words. A block of the type `resource` is no way: three agents drop it, one refuses the
    /// prompt, and for four it is the title. Who sends the whole prompt gets the catalog in front, so that what is added last is the
    /// user's.
    pub(crate) fn wants_words_first(self) -> bool {
        matches!(self, Self::Droid | Self::Hermes)
    }

    /// Whether it keeps one list of servers for all sessions and connects to none of a name that it has: each session's is to
    /// have its own.
    pub(crate) fn shares_servers(self) -> bool {
        self == Self::Hermes
    }

    /// Whether a copy of a session has the servers of that session, whatever the request for the copy says.
    pub(crate) fn copies_servers(self) -> bool {
        self == Self::Kimi
    }

    /// Whether its model sees no tool of an MCP server until it has searched for it.
    pub(crate) fn hides_tools(self) -> bool {
        matches!(self, Self::Droid | Self::Grok | Self::Qwen | Self::Reasonix)
    }

    /// How long it is worth to wait for it to end by itself once nobody can say anything to it any more, where that was
    /// measured.
    fn time_to_leave(self) -> Option<Duration> {
        match self {
            // They go on for ever, or do for some part of the time.
            Self::Gemini | Self::Elizacp => Some(Duration::from_millis(500)),
            // Two to five seconds.
            Self::Codex | Self::Vibe => Some(Duration::from_secs(6)),
            _ => None,
        }
    }

    /// Whether it advertises MCP over HTTP and fails on ACP's way of writing the entry.
    fn fails_on_http(self) -> bool {
        self == Self::OpenHands
    }

    /// Whether what it says of calls is known well enough to tell which are calls of our tools.
    fn names_calls(self) -> bool {
        matches!(
            self,
            Self::Agentao
                | Self::Claude
                | Self::Codex
                | Self::Droid
                | Self::FastAgent
                | Self::Gemini
                | Self::Grok
                | Self::Kimi
                | Self::OpenCode
                | Self::Qwen
        )
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
        let kind =
            AgentKind::of(name.as_deref().unwrap_or_default(), result.at(&["agentCapabilities", "_meta"]));
        Self {
            version,
            mcp_http: mcp("http") && !kind.fails_on_http(),
            no_mcp_stdio: !version.requires_stdio() && !mcp("stdio"),
            mcp_acp: mcp("acp"),
            system_prompt: marked(result.at(paths.system_prompt)),
            drafts: Offered::read(result.at(paths.session)),
            kind,
            has_called: false,
            name: name.map(Cow::into_owned),
            release: result.at(paths.release).and_then(|release| release.as_str()).map(Cow::into_owned),
        }
    }

    /// It advertises this transport and fails on it: it is to have another one, or none.
    pub(crate) fn fails_on(&mut self, transport: Transport) {
        match transport {
            Transport::Acp => self.mcp_acp = false,
            Transport::Http => self.mcp_http = false,
            Transport::Stdio => self.no_mcp_stdio = true,
        }
    }

    /// Whether it gives the tools of a session's MCP servers to its model, for certain.
    pub(crate) fn passes_tools_on(&self) -> bool {
        self.has_called || self.kind.passes_tools_on()
    }

    /// What tells it from other agents and from other versions of itself, when it says both.
    pub(crate) fn identity(&self) -> Option<String> {
        Some(format!("{} {}", self.name.as_ref()?, self.release.as_ref()?))
    }

    /// How long it is worth to wait for it to end by itself, where that is known.
    pub(crate) fn time_to_leave(&self) -> Option<Duration> {
        self.kind.time_to_leave()
    }
}

/// What is known in advance of an agent of this name.
///
/// ```
/// assert!(acp_skills_intercept::known_agent("OpenCode").names_calls);
/// assert!(!acp_skills_intercept::known_agent("some-agent").names_calls);
/// ```
pub fn known_agent(name: &str) -> KnownAgent {
    let kind = AgentKind::of(name, None);
    KnownAgent {
        names_calls: kind.names_calls(),
        passes_tools_on: kind.passes_tools_on(),
        hides_tools: kind.hides_tools(),
    }
}

/// What is known in advance of an agent, for whoever tells people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownAgent {
    /// Whether it says which tool it asks permission for, so that calls of our reading tools need not be asked about.
    pub names_calls: bool,
    /// Whether it was seen to give the tools of a session's MCP servers to its model.
    pub passes_tools_on: bool,
    /// Whether its model has to search for those tools.
    pub hides_tools: bool,
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Every name that an agent was seen to have, and names that are nearly one.
    const NAMES: &[&str] = &[
        "",
        "other",
        "agentao",
        "Agentao",
        "agentao-2",
        "@agentclientprotocol/claude-agent-acp",
        "@zed-industries/claude-agent-acp",
        "@zed-industries/claude-code-acp",
        "claude-code",
        "@agentclientprotocol/codex-acp",
        "codex-acp",
        "codex",
        "Copilot",
        "GitHub Copilot CLI",
        "crow-cli",
        "crow",
        "@factory/cli",
        "factory",
        "elizacp",
        "fast-agent-acp",
        "fast-agent",
        "fast",
        "gemini-cli",
        "gemini",
        "hermes-agent",
        "hermes",
        "Kimi CLI",
        "Kimi Code CLI",
        "kimi-cli",
        "OpenCode",
        "opencode-look-alike",
        "Kilo",
        "kilocode",
        "OpenHands CLI ACP Agent",
        "qwen-code",
        "qwen-code-2",
        "reasonix",
        "@mistralai/mistral-vibe",
        "vibe",
        "bub",
        "cline",
        "minion-code",
        "nanocoder",
        "auggie",
        "gptme",
        "mastracode",
        "nooa-acp",
        "qoder-cli",
        "superqode",
        "goose",
        "grok",
    ];

    fn facts(name: &str, meta: &str) -> AgentFacts {
        let result = format!(
            r#"{{"protocolVersion":1,"agentInfo":{{"name":"{name}","version":"1"}},"agentCapabilities":{{"mcpCapabilities":{{"http":true}},"_meta":{meta}}}}}"#
        );
        AgentFacts::read(Node::parse(result.as_bytes()).unwrap())
    }

    /// The quirks of an agent, by their names.
    fn quirks(facts: &AgentFacts) -> String {
        let mut quirks = Vec::new();
        let mut add = |name: &str, is: bool| {
            if is {
                quirks.push(name.to_owned());
            }
        };
        let kind = facts.kind;
        add("tools", facts.passes_tools_on());
        add("words-first", kind.wants_words_first());
        add("shared-servers", kind.shares_servers());
        add("copied-servers", kind.copies_servers());
        add("hidden-tools", kind.hides_tools());
        add("fails-on-http", !facts.mcp_http);
        add("names-calls", kind.names_calls());
        add("claude-meta", kind == AgentKind::Claude);
        add("own-activate", kind == AgentKind::Gemini);
        add("executes", kind == AgentKind::Codex);
        if let Some(grace) = facts.time_to_leave() {
            quirks.push(format!("{grace:?}"));
        }
        quirks.join(" ")
    }

    #[test]
    fn every_agent_has_its_quirks() {
        let rows = NAMES.iter().map(|name| format!("{name}: {}\n", quirks(&facts(name, "null"))));
        let by_meta = format!("by its `_meta`: {}\n", quirks(&facts("", r#"{"x.ai/capabilities":{}}"#)));
        let by_name = quirks(&facts("gemini", r#"{"x.ai/capabilities":{}}"#));
        let text: String = rows.chain([by_meta, format!("by its name first: {by_name}\n")]).collect();
        expect![[r#"
            : 
            other: 
            agentao: tools names-calls
            Agentao: tools names-calls
            agentao-2: 
            @agentclientprotocol/claude-agent-acp: tools names-calls claude-meta
            @zed-industries/claude-agent-acp: tools names-calls claude-meta
            @zed-industries/claude-code-acp: tools names-calls claude-meta
            claude-code: 
            @agentclientprotocol/codex-acp: tools names-calls executes 6s
            codex-acp: tools names-calls executes 6s
            codex: 
            Copilot: tools
            GitHub Copilot CLI: tools
            crow-cli: tools
            crow: tools
            @factory/cli: tools words-first hidden-tools names-calls
            factory: 
            elizacp: tools 500ms
            fast-agent-acp: tools names-calls
            fast-agent: tools names-calls
            fast: 
            gemini-cli: tools names-calls own-activate 500ms
            gemini: tools names-calls own-activate 500ms
            hermes-agent: tools words-first shared-servers
            hermes: 
            Kimi CLI: tools copied-servers names-calls
            Kimi Code CLI: tools copied-servers names-calls
            kimi-cli: tools copied-servers names-calls
            OpenCode: tools names-calls
            opencode-look-alike: 
            Kilo: tools names-calls
            kilocode: 
            OpenHands CLI ACP Agent: tools fails-on-http
            qwen-code: tools hidden-tools names-calls
            qwen-code-2: 
            reasonix: tools hidden-tools
            @mistralai/mistral-vibe: 6s
            vibe: 
            bub: 
            cline: 
            minion-code: 
            nanocoder: 
            auggie: 
            gptme: 
            mastracode: 
            nooa-acp: 
            qoder-cli: 
            superqode: 
            goose: 
            grok: 
            by its `_meta`: tools hidden-tools names-calls
            by its name first: tools names-calls own-activate 500ms
        "#]].assert_eq(&text);
    }
}
