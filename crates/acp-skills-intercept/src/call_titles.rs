//! Sets readable titles for calls to skill tools: `Skill: code-review` instead of `mcp__acp-skills__activate_skill`.
//!
//! The title and kind are only changed if this is certainly a call to a skill tool. This applies to announcements, updates and
//! permission requests. The result of an activation is shortened (see `call_results`). All other members are forwarded without
//! changes.

use acp_skills_wire::{Edit, Message, Node};
use skills_core::{
    activation,
    text::{markdown, shown},
    toolbox::{ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS},
};

use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    call_results, calls,
    client_facts::ClientFacts,
    keys::SessionKey,
    outputs::Pass,
    policy::{Policy, Titles},
    session::{
        Session,
        calls::Ours,
        server_calls::{ServerCall, Shown},
    },
};

/// The agent that reports a call, and the client that shows it.
#[derive(Clone, Copy)]
pub(crate) struct Peers<'a> {
    pub(crate) agent: &'a AgentFacts,
    pub(crate) client: &'a ClientFacts,
}

/// The maximum length of a name or a path in a title, in characters.
const MAX_CHARS: usize = 80;

/// Returns the title to use when the input is not known.
fn plain(tool: &str) -> &'static str {
    match tool {
        ACTIVATE_SKILL => "Skill",
        READ_SKILL_FILE => "Skill file",
        SEARCH_SKILLS => "Skill search",
        RUN_SKILL_SCRIPT => "Skill script",
        _ => "Skill tool",
    }
}

/// Returns the title for a call with the given input, or `None` if a required member is missing.
fn named(tool: &str, input: Node<'_>, client: ClientFacts) -> Option<String> {
    let between = client.separator();
    let text = |key| input.str(key).map(|text| short(&text)).filter(|text| !text.is_empty());
    Some(match tool {
        ACTIVATE_SKILL => format!("Skill{between}{}", text("name")?),
        SEARCH_SKILLS => format!("Skill search{between}{}", text("query")?),
        CALL_SKILL_TOOL => format!("{}{between}{}", text("skill")?, text("tool")?),
        RUN_SKILL_SCRIPT => format!("{}{between}{}", text("skill")?, text("script")?),
        READ_SKILL_FILE => format!("{}{between}{}", text("skill")?, text("path")?),
        _ => return None,
    })
}

/// Returns the title for a call of a tool of a skill.
pub(crate) fn titled(skill: &str, tool: &str, client: ClientFacts) -> String {
    format!("{}{}{}", short(skill), client.separator(), short(tool))
}

/// Returns the kind of a call.
fn kind(tool: &str) -> &'static str {
    match tool {
        ACTIVATE_SKILL | READ_SKILL_FILE => "read",
        SEARCH_SKILLS => "search",
        _ => "execute",
    }
}

/// Returns `text` on one line. If it is too long, its middle is left out, because the end of a path is the name of the file. The text is
/// escaped, because some clients display titles as Markdown.
fn short(text: &str) -> String {
    let line = shown(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |index| line.char_indices().nth(index).map_or(line.len(), |(at, _)| at);
    let chars = line.chars().count();
    if chars <= MAX_CHARS {
        return markdown(&line);
    }
    let (start, end) = (at(MAX_CHARS / 2), at(chars - MAX_CHARS / 2));
    format!("{}…{}", markdown(&line[..start]), markdown(&line[end..]))
}

/// Returns the title of a call from its current report.
fn title(tool: &str, call: Node<'_>, peers: Peers<'_>) -> Option<String> {
    let client = *peers.client;
    if let Some(title) = calls::input(call, peers.agent).and_then(|input| named(tool, input, client)) {
        return Some(title);
    }
    let mut texts =
        call.get("content")?.elements().filter_map(|block| block.at(&["content", "text"])?.as_str());
    // Gemini puts the input into a text block. But if this is a result from our server, we can get the name of the skill from it
    // as well.
    texts.find_map(|text| match Node::parse(text.as_bytes()).filter(Node::is_object) {
        Some(input) => named(tool, input, client),
        None if tool == ACTIVATE_SKILL => {
            let name = activation::parse(&text)?.name;
            Some(format!("Skill{}{}", client.separator(), short(name)))
        }
        None => None,
    })
}

/// The members that a message needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All members, because the message announces the call.
    Whole,
    /// Only the members that change.
    Part,
}

/// Updates the state of `call`, a call to `tool`. Returns the title to use, and true if this title should be sent to the client.
fn learn(
    call: Node<'_>,
    tool: &'static str,
    session: &mut Session,
    peers: Peers<'_>,
) -> Option<(String, bool)> {
    let id = call.str("toolCallId")?;
    let before = session.calls.ours(&id);
    let known = title(tool, call, peers).or_else(|| Some(before?.title.clone()));
    let title = known.unwrap_or_else(|| plain(tool).to_owned());
    let is_news = before.is_none_or(|before| !before.is_shown || before.title != title);
    session.calls.set_ours(&id, Ours { tool, title: title.clone(), is_shown: !is_news });
    Some((title, is_news))
}

/// Stores the title of a call without sending this title to the client.
pub(crate) fn note(call: Node<'_>, tool: &'static str, session: &mut Session, peers: Peers<'_>) {
    learn(call, tool, session, peers);
}

/// Sets the title and the kind of `call`, a call of `tool`, for the client, and shortens its result.
pub(crate) fn dress(
    edit: &mut Edit,
    call: Node<'_>,
    tool: &'static str,
    shape: Shape,
    session: &mut Session,
    peers: Peers<'_>,
) {
    let (Some((title, is_news)), Some(id)) = (learn(call, tool, session, peers), call.str("toolCallId"))
    else {
        return;
    };
    set(edit, call, "title", &title, shape == Shape::Whole || is_news);
    set(edit, call, "kind", kind(tool), shape == Shape::Whole);
    if tool == ACTIVATE_SKILL {
        call_results::shorten(edit, call);
    }
    session.calls.set_ours(&id, Ours { tool, title, is_shown: true });
}

/// Keeps the title and the input of a call about which the user is being asked. Otherwise, the agent could change what the user seems to
/// allow.
pub(crate) fn keep(
    message: &Message<'_>,
    update: Node<'_>,
    shape: Shape,
    shown: &Shown,
    agent: &AgentFacts,
) -> Pass {
    let mut edit = Edit::new();
    set(&mut edit, update, "title", &shown.title, shape == Shape::Whole);
    set(&mut edit, update, "kind", kind(CALL_SKILL_TOOL), shape == Shape::Whole);
    if ServerCall::read(calls::input(update, agent)).as_ref() != Some(&shown.call) {
        edit.remove(update, "rawInput");
    }
    if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
}

/// Replaces a member. If it is missing, adds it only if `is_due` is true.
fn set(edit: &mut Edit, call: Node<'_>, key: &str, text: &str, is_due: bool) {
    let value = text.into();
    match call.get(key) {
        Some(node) if node.is_str(text) => {}
        Some(node) => edit.set(node, &value),
        None if is_due => edit.insert(call, key, &value.to_string()),
        None => {}
    }
}

/// Returns true if calls to skill tools should be given new titles.
pub(crate) fn wanted(session: &Session, policy: &Policy) -> bool {
    policy.titles == Titles::People && !session.claims.is_broken()
}

impl Interceptor {
    /// Handles an update about the tool call with this id. `shape` is [`Shape::Whole`] if the update announces the call.
    pub(crate) fn tool_call(
        &mut self,
        key: SessionKey,
        id: &str,
        message: &Message<'_>,
        update: Node<'_>,
        shape: Shape,
    ) -> Pass {
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        if shape == Shape::Whole {
            session.calls.announced(id);
            session.calls.named(id, calls::name(update, &self.agent));
        }
        if let Some(shown) = self.pending.shown(key, id) {
            return keep(message, update, shape, shown, &self.agent);
        }
        let is_first = shape == Shape::Whole;
        let known = session.calls.ours(id).map(|ours| ours.tool);
        let is_still = |tool: &&str| {
            !is_first && calls::is_plausible(tool, update, calls::input(update, &self.agent), &self.agent)
        };
        let Some(tool) =
            known.filter(is_still).or_else(|| calls::updated(update, is_first, session, &self.agent))
        else {
            if known.is_some() {
                session.calls.set_theirs(id);
            }
            return Pass::Untouched;
        };
        let peers = Peers { agent: &self.agent, client: &self.client };
        if !wanted(session, &self.policy) {
            note(update, tool, session, peers);
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        dress(&mut edit, update, tool, shape, session, peers);
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }
}
