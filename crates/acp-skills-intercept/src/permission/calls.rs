//! Which call a request for permission is about, as far as the agent vouches for it.

use acp_skills_wire::{Message, Node};
use skills_core::toolbox::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

use crate::{
    agent_facts::{AgentFacts, AgentKind},
    session::Session,
};

/// The tools of ours that change nothing and run nothing.
pub(super) const HARMLESS: [&str; 3] = [ACTIVATE_SKILL, READ_SKILL_FILE, SEARCH_SKILLS];

/// What the agent says of a call, as far as it vouches for it.
pub(super) struct Call<'a> {
    /// The name of the tool, in the agent's own spelling.
    pub(super) name: Option<String>,
    /// The tool of ours that is to be called.
    pub(super) ours: Option<&'static str>,
    /// The call's input.
    pub(super) input: Option<Node<'a>>,
}

impl<'a> Call<'a> {
    pub(super) fn read(message: &Message<'a>, session: &Session, agent: &AgentFacts) -> Option<Self> {
        let call = agent.version.tool_call(message)?;
        let claude =
            call.at(&["_meta", "claudeCode", "toolName"]).filter(|_| agent.kind == AgentKind::Claude);
        let names = [call.get("name"), claude];
        let mut names = names.into_iter().flatten().filter_map(|name| name.as_str());
        let first = names.next();
        // Two that differ: neither counts.
        let agreed = names.all(|other| first.as_ref() == Some(&other));
        let name = first.filter(|_| agreed).map(std::borrow::Cow::into_owned);
        let tools = HARMLESS.iter().copied().chain(OTHERS);
        let server = session.server.name();
        let ours = server.and_then(|server| {
            tools.into_iter().find(|tool| match agent.kind {
                AgentKind::Claude => name.as_deref() == Some(qualified(server, tool).as_str()),
                AgentKind::Codex => is_codex_approval(message, call, server, tool),
                AgentKind::Gemini => is_gemini_call(call, server, tool),
                AgentKind::Other => false,
            })
        });
        let input = call.get("rawInput").filter(|input| !input.is_null());
        let ours = ours.filter(|tool| is_plausible(tool, call, input, agent));
        Some(Self { name, ours, input })
    }

    pub(super) fn shown(&self) -> &str {
        self.ours.or(self.name.as_deref()).unwrap_or("a tool without a name")
    }
}

/// Whether the rest of what the agent says of a call fits a tool of ours: its input has only what the tool takes, and a
/// call that only reads is not announced as one that changes or runs something.
fn is_plausible(tool: &str, call: Node<'_>, input: Option<Node<'_>>, agent: &AgentFacts) -> bool {
    let takes: &[&str] = match tool {
        ACTIVATE_SKILL => &["name", "arguments"],
        READ_SKILL_FILE => &["skill", "path", "offset"],
        SEARCH_SKILLS => &["query", "tags", "limit"],
        // What is not granted anyway need not be doubted.
        _ => return true,
    };
    let fits = input.is_none_or(|input| {
        input.is_object() && input.members().all(|(key, _)| takes.iter().any(|known| key.is_str(known)))
    });
    let changes = call
        .str("kind")
        .is_some_and(|kind| matches!(kind.as_ref(), "edit" | "delete" | "move" | "execute" | "switch_mode"));
    // Codex announces every call of an MCP tool as `execute`, and has another mark.
    fits && (!changes || agent.kind == AgentKind::Codex)
}

/// The tools of ours that do more than read.
const OTHERS: [&str; 2] = [CALL_SKILL_TOOL, RUN_SKILL_SCRIPT];

/// The name of a tool of an MCP server, as Claude spells it.
pub(super) fn qualified(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Codex names no tool; it marks requests for calls of MCP tools, and writes their titles itself.
fn is_codex_approval(message: &Message<'_>, call: Node<'_>, server: &str, tool: &str) -> bool {
    let marked = [message.param(&["_meta"]), call.get("_meta")].into_iter().flatten();
    let mut marked = marked.filter_map(|meta| meta.get("is_mcp_tool_approval")?.as_bool());
    marked.any(|marked| marked)
        && call.str("title").is_some_and(|title| title == format!("mcp.{server}.{tool}"))
}

/// Gemini names no tool either; it begins the id of a call with the name of the function that the model called, which is
/// how it finds the tool. Names are joined of parts that it does not keep apart, so the title has to agree.
fn is_gemini_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    let by_id = call.str("toolCallId").is_some_and(|id| id.starts_with(&format!("mcp_{server}_{tool}__")));
    by_id && call.str("title").is_some_and(|title| title == format!("{tool} ({server} MCP Server)"))
}
