//! [`AgentFacts`]: the capabilities that the agent declares, and known quirks of this agent.

use std::borrow::Cow;

use acp_skills_wire::Node;

use crate::{
    drafts::Offered,
    known_agents::{self, Quirks},
    queries::Transport,
    version::Version,
};

/// The capabilities of the agent, from its response to `initialize`, and its known quirks.
#[expect(clippy::struct_excessive_bools, reason = "all fields are independent capabilities")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AgentFacts {
    /// The negotiated version of the protocol.
    pub version: Version,
    /// True if the agent takes MCP servers over HTTP.
    pub mcp_http: bool,
    /// True if the agent does not take MCP servers over stdio.
    pub no_mcp_stdio: bool,
    /// True if the agent takes MCP servers over the ACP connection (unstable).
    pub mcp_acp: bool,
    /// True if the agent takes the field `systemPrompt` (draft).
    pub system_prompt: bool,
    /// The drafts about skills that the agent supports.
    pub drafts: Offered,
    /// The differences from the protocol and from other agents.
    pub quirks: &'static Quirks,
    /// True once the model has called a skill tool.
    pub has_called: bool,
    /// The `name` in `agentInfo`.
    pub name: Option<String>,
    /// The `version` in `agentInfo`.
    pub release: Option<String>,
}

impl AgentFacts {
    /// Reads the result of `initialize`.
    pub(crate) fn read(result: Node<'_>) -> Self {
        let version = Version::settled(result);
        let paths = version.paths();
        // This version of the protocol uses an empty object for a capability, but earlier drafts used a boolean.
        let marked = |node: Option<Node<'_>>| {
            node.is_some_and(|node| !node.is_null() && node.as_bool() != Some(false))
        };
        let mcp = |transport| marked(result.at(paths.mcp).and_then(|mcp| mcp.get(transport)));
        let name = result.at(paths.name).and_then(|name| name.as_str());
        let meta = result.at(&["agentCapabilities", "_meta"]);
        let agent = known_agents::recognize(name.as_deref().unwrap_or_default(), meta);
        let quirks = agent.map_or(&Quirks::NONE, |agent| &agent.quirks);
        Self {
            version,
            mcp_http: mcp("http") && !quirks.fails_on_http,
            no_mcp_stdio: !version.requires_stdio() && !mcp("stdio"),
            mcp_acp: mcp("acp"),
            system_prompt: marked(result.at(paths.system_prompt)),
            drafts: Offered::read(result.at(paths.session)),
            quirks,
            has_called: false,
            name: name.map(Cow::into_owned),
            release: result.at(paths.release).and_then(|release| release.as_str()).map(Cow::into_owned),
        }
    }

    /// Stops using this transport for MCP servers: the agent advertises it and fails on it.
    pub(crate) fn fails_on(&mut self, transport: Transport) {
        match transport {
            Transport::Acp => self.mcp_acp = false,
            Transport::Http => self.mcp_http = false,
            Transport::Stdio => self.no_mcp_stdio = true,
        }
    }

    /// Returns true if the agent certainly gives the tools of a session's MCP servers to its model.
    pub(crate) fn gives_tools(&self) -> bool {
        self.has_called || self.quirks.gives_tools
    }

    /// Returns the name and version of the agent, if it gives both. They tell it from other agents and from its own other
    /// versions.
    pub(crate) fn identity(&self) -> Option<String> {
        Some(format!("{} {}", self.name.as_ref()?, self.release.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Every `agentInfo.name` that was seen, and names that are close to one.
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

    /// Lists the quirks of an agent.
    fn quirks(facts: &AgentFacts) -> String {
        let mut names = Vec::new();
        let mut add = |name: &str, is: bool| {
            if is {
                names.push(name.to_owned());
            }
        };
        let quirks = facts.quirks;
        add("tools", facts.gives_tools());
        add("words-first", quirks.words_first);
        add("shared-servers", quirks.shares_servers);
        add("copied-servers", quirks.copies_servers);
        add("hidden-tools", quirks.hides_tools);
        add("checks-names", quirks.checks_names);
        add("fails-on-http", !facts.mcp_http);
        add("names-calls", quirks.calls.is_some());
        add("claude-meta", quirks.takes_system_prompt_in_meta && quirks.takes_allowed_tools_in_meta);
        add("own-activate", quirks.own_tools.contains(&"activate_skill"));
        add("executes", quirks.calls.is_some_and(|calls| calls.always_executes));
        add("keeps-prompts", quirks.keeps_prompts);
        if !quirks.compact_commands.is_empty() {
            names.push(format!("/{}", quirks.compact_commands.join(" /")));
        }
        if let Some(grace) = quirks.shutdown_grace {
            names.push(format!("{grace:?}"));
        }
        names.join(" ")
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
            @agentclientprotocol/claude-agent-acp: tools names-calls claude-meta /compact
            @zed-industries/claude-agent-acp: tools names-calls claude-meta /compact
            @zed-industries/claude-code-acp: tools names-calls claude-meta /compact
            claude-code: 
            @agentclientprotocol/codex-acp: tools names-calls executes keeps-prompts /compact 6s
            codex-acp: tools names-calls executes keeps-prompts /compact 6s
            codex: 
            Copilot: tools names-calls keeps-prompts /compact
            GitHub Copilot CLI: tools names-calls keeps-prompts /compact
            crow-cli: tools
            crow: tools
            @factory/cli: tools words-first hidden-tools names-calls
            factory: 
            elizacp: tools 500ms
            fast-agent-acp: tools names-calls
            fast-agent: tools names-calls
            fast: 
            gemini-cli: tools checks-names names-calls own-activate 500ms
            gemini: tools checks-names names-calls own-activate 500ms
            hermes-agent: tools words-first shared-servers
            hermes: 
            Kimi CLI: tools copied-servers names-calls
            Kimi Code CLI: tools copied-servers names-calls
            kimi-cli: tools copied-servers names-calls
            OpenCode: tools names-calls /compact
            opencode-look-alike: 
            Kilo: tools names-calls
            kilocode: 
            OpenHands CLI ACP Agent: tools fails-on-http
            qwen-code: tools hidden-tools checks-names names-calls /compress
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
            by its name first: tools checks-names names-calls own-activate 500ms
        "#]]
        .assert_eq(&text);
    }
}
