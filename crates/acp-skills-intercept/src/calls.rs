//! Which calls of an agent's are calls of our tools, as far as the agent vouches for it.

use std::borrow::Cow;

use acp_skills_wire::{Message, Node};
use skills_core::toolbox::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

use crate::{
    agent_facts::{AgentFacts, AgentKind},
    session::Session,
};

/// The tools of ours that change nothing and run nothing.
pub(crate) const HARMLESS: [&str; 3] = [ACTIVATE_SKILL, READ_SKILL_FILE, SEARCH_SKILLS];

/// What the agent says of a call that it asks permission for, as far as it vouches for it.
pub(crate) struct Call<'a> {
    /// All that it says.
    pub(crate) node: Node<'a>,
    /// The name of the tool, in the agent's own spelling.
    pub(crate) name: Option<String>,
    /// The tool of ours that is to be called.
    pub(crate) ours: Option<&'static str>,
    /// The call's input.
    pub(crate) input: Option<Node<'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn read(message: &Message<'a>, session: &Session, agent: &AgentFacts) -> Option<Self> {
        let node = agent.version.tool_call(message)?;
        let name = match names(node, agent).next() {
            Some(_) => name(node, agent),
            // Then it means the call that it announced.
            None => node.str("toolCallId").and_then(|id| session.calls.name(&id).map(str::to_owned)),
        };
        let ours = tools().find(|tool| {
            let Some(server) = session.server.name() else { return false };
            match agent.kind {
                AgentKind::Codex => is_codex_approval(message, node, server, tool),
                AgentKind::OpenCode => is_open_code_call(node, server, tool),
                AgentKind::Droid => is_droid_approval(message, node, server, tool),
                AgentKind::Agentao => is_agentao_approval(node, server, tool),
                AgentKind::Kimi => is_kimi_approval(node, server, tool),
                _ => is_named(node, name.as_deref(), server, tool, agent),
            }
        });
        let input = input(node, agent);
        let ours = ours.filter(|tool| is_plausible(tool, node, input, agent));
        Some(Self { node, name, ours, input })
    }

    pub(crate) fn shown(&self) -> &str {
        self.ours.or(self.name.as_deref()).unwrap_or("a tool without a name")
    }
}

/// The tool of ours that an update is about; `is_first` when it announces the call.
pub(crate) fn updated(
    update: Node<'_>,
    is_first: bool,
    session: &Session,
    agent: &AgentFacts,
) -> Option<&'static str> {
    let server = session.server.name()?;
    let name = name(update, agent);
    let ours = tools().find(|tool| match agent.kind {
        AgentKind::Codex => is_codex_call(update, server, tool),
        // Later the title may be what the model says of the call.
        AgentKind::OpenCode => is_first && is_open_code_call(update, server, tool),
        AgentKind::Droid => is_first && is_droid_call(update, server, tool),
        AgentKind::Agentao => is_first && is_agentao_call(update, server, tool),
        AgentKind::Kimi => is_first && is_kimi_call(update, server, tool),
        _ => is_named(update, name.as_deref(), server, tool, agent),
    });
    ours.filter(|tool| is_plausible(tool, update, input(update, agent), agent))
}

/// What a call is given.
pub(crate) fn input<'a>(call: Node<'a>, agent: &AgentFacts) -> Option<Node<'a>> {
    let input = call.get("rawInput").filter(|input| !input.is_null())?;
    match agent.kind {
        AgentKind::Codex => input.get("arguments").or(Some(input)),
        AgentKind::Grok if input.get("tool_name").is_some() => input.get("tool_input"),
        _ => Some(input),
    }
}

fn tools() -> impl Iterator<Item = &'static str> {
    HARMLESS.into_iter().chain(OTHERS)
}

/// The name of the tool, where the agent gives one: all that it gives have to agree.
pub(crate) fn name(call: Node<'_>, agent: &AgentFacts) -> Option<String> {
    let mut names = names(call, agent);
    let first = names.next()?;
    names.all(|other| first == other).then(|| first.into_owned())
}

/// All names of the tool that the agent gives.
fn names<'a>(call: Node<'a>, agent: &AgentFacts) -> impl Iterator<Item = Cow<'a, str>> {
    let other = match agent.kind {
        AgentKind::Claude => call.at(&["_meta", "claudeCode", "toolName"]),
        AgentKind::Qwen => call.at(&["_meta", "toolName"]),
        AgentKind::Grok => call.at(&["_meta", "x.ai/tool", "name"]),
        _ => None,
    };
    [call.get("name"), other].into_iter().flatten().filter_map(|name| name.as_str())
}

/// Whether the name of a call is that of a tool of ours, or what stands for one.
fn is_named(call: Node<'_>, name: Option<&str>, server: &str, tool: &str, agent: &AgentFacts) -> bool {
    match agent.kind {
        AgentKind::Claude | AgentKind::Qwen => name == Some(qualified(server, tool).as_str()),
        AgentKind::Gemini => is_gemini_call(call, server, tool),
        AgentKind::FastAgent => is_fast_agent_call(call, server, tool),
        AgentKind::Grok => is_grok_call(call, name, server, tool),
        _ => false,
    }
}

/// Whether the rest of what the agent says of a call fits a tool of ours: its input has only what the tool takes, and a
/// call that only reads is not announced as one that changes or runs something.
pub(crate) fn is_plausible(tool: &str, call: Node<'_>, input: Option<Node<'_>>, agent: &AgentFacts) -> bool {
    let takes: &[&str] = match tool {
        ACTIVATE_SKILL => &["name", "arguments"],
        READ_SKILL_FILE => &["skill", "path", "offset", "limit"],
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
pub(crate) fn qualified(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Codex names no tool; it marks requests for calls of MCP tools, and writes their titles itself.
fn is_codex_approval(message: &Message<'_>, call: Node<'_>, server: &str, tool: &str) -> bool {
    let marked = [message.param(&["_meta"]), call.get("_meta")].into_iter().flatten();
    let mut marked = marked.filter_map(|meta| meta.get("is_mcp_tool_approval")?.as_bool());
    marked.any(|marked| marked)
        && call.str("title").is_some_and(|title| title == format!("mcp.{server}.{tool}"))
}

/// It marks calls of MCP tools when it announces them, too.
fn is_codex_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    let is = |path: &[&str], text: &str| call.at(path).is_some_and(|it| it.is_str(text));
    call.at(&["_meta", "is_mcp_tool_call"]).and_then(|marked| marked.as_bool()) == Some(true)
        && is(&["rawInput", "server"], server)
        && is(&["rawInput", "tool"], tool)
}

/// OpenCode makes the name of the tool the title of a request, and of a call that it announces. Of kind `other` are tools
/// that are not its own.
fn is_open_code_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    call.get("kind").is_some_and(|kind| kind.is_str("other"))
        && call.str("title").is_some_and(|title| title == format!("{server}_{tool}"))
}

/// Gemini names no tool either; it begins the id of a call with the name of the function that the model called, which is
/// how it finds the tool. Names are joined of parts that it does not keep apart, so the title has to agree.
fn is_gemini_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    let by_id = call.str("toolCallId").is_some_and(|id| id.starts_with(&format!("mcp_{server}_{tool}__")));
    by_id && call.str("title").is_some_and(|title| title == format!("{tool} ({server} MCP Server)"))
}

/// fast-agent makes `SERVER/TOOL` the title of every call of an MCP tool. Its own tools have no server.
fn is_fast_agent_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    call.str("title").is_some_and(|title| title == format!("{server}/{tool}"))
}

/// Grok has one tool that calls those of MCP servers, and says which in its input. It names its own tool in the metadata,
/// so that no command can pass for it.
fn is_grok_call(call: Node<'_>, name: Option<&str>, server: &str, tool: &str) -> bool {
    name == Some("use_tool")
        && call
            .at(&["rawInput", "tool_name"])
            .is_some_and(|called| called.is_str(&format!("{server}__{tool}")))
}

/// Droid makes the name of the tool the title of a call that it announces. Its own tools are named in another way.
fn is_droid_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    call.str("title").is_some_and(|title| title == format!("{server}___{tool}"))
}

/// When it asks for permission to call a tool of an MCP server, it also offers to allow all tools of that server.
fn is_droid_approval(message: &Message<'_>, call: Node<'_>, server: &str, tool: &str) -> bool {
    let names_server = message.param(&["options"]).is_some_and(|options| {
        options.elements().any(|option| {
            option.get("optionId").is_some_and(|id| id.is_str("proceed_always_server"))
                && option.str("name").is_some_and(|name| name.contains(&format!("\"{server}\"")))
        })
    });
    names_server && is_droid_call(call, server, tool)
}

/// Agentao makes the name of the tool the title of a call. Of kind `other` are tools that are not its own.
fn is_agentao_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    let server: String = server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    call.get("kind").is_some_and(|kind| kind.is_str("other"))
        && call.str("title").is_some_and(|title| title == format!("mcp_{server}_{tool}"))
}

/// When it asks for permission, it says which server in front of the tool's description; names of servers are not kept apart
/// from names of tools in the title.
fn is_agentao_approval(call: Node<'_>, server: &str, tool: &str) -> bool {
    is_agentao_call(call, server, tool)
        && first_text(call).is_some_and(|text| text.starts_with(&format!("[MCP:{server}] ")))
}

/// Kimi Code makes the name of the tool the title of a call that it announces, with its server. The CLI before it names no
/// server, so nobody can say whose tool it means.
fn is_kimi_call(call: Node<'_>, server: &str, tool: &str) -> bool {
    call.get("kind").is_some_and(|kind| kind.is_str("other"))
        && call.str("title").is_some_and(|title| title == qualified(server, tool))
}

/// When it asks for permission, it says so once more: the title of a command may be anything.
fn is_kimi_approval(call: Node<'_>, server: &str, tool: &str) -> bool {
    let name = qualified(server, tool);
    call.str("title").is_some_and(|title| title == name)
        && first_text(call).is_some_and(|text| text == format!("Requesting approval to Approve {name}"))
}

/// The first thing that a call shows, when it is a text.
fn first_text(call: Node<'_>) -> Option<String> {
    let first = call.get("content")?.elements().next()?;
    Some(first.at(&["content", "text"])?.as_str()?.into_owned())
}
