//! Recognizes calls to skill tools, using the format given for this agent in the table of known agents (see [`CallReports`]).
//!
//! [`CallReports`]: crate::known_agents::reports::CallReports

use std::borrow::Cow;

use acp_skills_wire::{Message, Node};
use skills_core::toolbox::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

use crate::{agent_facts::AgentFacts, known_agents::reports::Clue, session::Session};

/// Skill tools that are read-only.
pub(crate) const HARMLESS: [&str; 3] = [ACTIVATE_SKILL, READ_SKILL_FILE, SEARCH_SKILLS];

/// Skill tools that can change files or run programs.
const OTHERS: [&str; 2] = [CALL_SKILL_TOOL, RUN_SKILL_SCRIPT];

/// Members of a wrapper that agents add around an input, beside that input.
const WRAPPER: [&str; 3] = ["server", "tool", "variant"];

/// A tool call from a permission request.
pub(crate) struct Call<'a> {
    /// The call, as reported by the agent.
    pub(crate) node: Node<'a>,
    /// The tool name, as spelled by the agent.
    pub(crate) name: Option<String>,
    /// The skill tool to call. `None` if this may be a call to another tool.
    pub(crate) ours: Option<&'static str>,
    /// The input of the tool.
    pub(crate) input: Option<Node<'a>>,
}

impl<'a> Call<'a> {
    /// Reads the call of a request for permission.
    pub(crate) fn read(message: &Message<'a>, session: &Session, agent: &AgentFacts) -> Option<Self> {
        let node = agent.version.tool_call(message)?;
        let name = match names(node, agent).next() {
            Some(_) => name(node, agent),
            // If the request doesn't include a name, use the one from the announcement with this id.
            None => node.str("toolCallId").and_then(|id| session.calls.name(&id).map(str::to_owned)),
        };
        let input = input(node, agent);
        let reported = Reported { call: node, request: Some(message), name: name.as_deref() };
        let ours = agent.quirks.calls.and_then(|calls| reported.tool(calls.requests, session));
        let ours = ours.filter(|tool| is_plausible(tool, node, input, agent));
        Some(Self { node, name, ours, input })
    }

    /// Returns the name of the tool for people.
    pub(crate) fn shown(&self) -> &str {
        self.ours.or(self.name.as_deref()).unwrap_or("an unnamed tool")
    }
}

/// Returns the skill tool used in an update, or `None` if this may be another tool. `is_first` should be true if the update
/// announces the call.
pub(crate) fn updated(
    update: Node<'_>,
    is_first: bool,
    session: &Session,
    agent: &AgentFacts,
) -> Option<&'static str> {
    let calls = agent.quirks.calls.filter(|calls| is_first || !calls.only_first)?;
    let name = name(update, agent);
    let reported = Reported { call: update, request: None, name: name.as_deref() };
    let ours = reported.tool(calls.updates, session)?;
    is_plausible(ours, update, input(update, agent), agent).then_some(ours)
}

/// Returns the tool input, without any wrapper that is added by the agent. An input with other members than those of the wrapper is not
/// wrapped, because the tool may use these members.
pub(crate) fn input<'a>(call: Node<'a>, agent: &AgentFacts) -> Option<Node<'a>> {
    let input = call.get("rawInput").filter(|input| !input.is_null())?;
    match agent.quirks.calls.and_then(|calls| calls.input_in) {
        Some((sign, member)) if input.get(sign).is_some() && is_wrapper(input, &[sign, member]) => {
            input.get(member)
        }
        _ => Some(input),
    }
}

/// Returns true if an input has no other members than `members` and those in [`WRAPPER`].
fn is_wrapper(input: Node<'_>, members: &[&str]) -> bool {
    input.members().all(|(key, _)| members.iter().chain(&WRAPPER).any(|known| key.is_str(known)))
}

/// Returns the tool name, or `None` if no name or several different names are given.
pub(crate) fn name(call: Node<'_>, agent: &AgentFacts) -> Option<String> {
    let mut names = names(call, agent);
    let first = names.next()?;
    names.all(|other| first == other).then(|| first.into_owned())
}

/// Returns all tool names that are given in the call.
fn names<'a>(call: Node<'a>, agent: &AgentFacts) -> impl Iterator<Item = Cow<'a, str>> {
    let path = agent.quirks.calls.map(|calls| calls.name_at).filter(|path| !path.is_empty());
    let other = path.and_then(|path| call.at(path));
    [call.get("name"), other].into_iter().flatten().filter_map(|name| name.as_str())
}

/// Returns true if the rest of a call is possible for this skill tool. The input should only contain members that are used by
/// this tool, and a call to a read-only tool should not be reported as a change or as a command.
pub(crate) fn is_plausible(tool: &str, call: Node<'_>, input: Option<Node<'_>>, agent: &AgentFacts) -> bool {
    let takes: &[&str] = match tool {
        ACTIVATE_SKILL => &["name", "arguments"],
        READ_SKILL_FILE => &["skill", "path", "offset", "limit"],
        SEARCH_SKILLS => &["query", "tags", "limit"],
        // The user is asked about these tools, unless all calls of a tool are allowed, see `server_calls`.
        _ => return true,
    };
    let fits = input.is_none_or(|input| {
        input.is_object() && input.members().all(|(key, _)| takes.iter().any(|known| key.is_str(known)))
    });
    let changes = call
        .str("kind")
        .is_some_and(|kind| matches!(kind.as_ref(), "edit" | "delete" | "move" | "execute" | "switch_mode"));
    fits && (!changes || agent.quirks.calls.is_some_and(|calls| calls.always_executes))
}

/// Returns the name that Claude uses for a tool from an MCP server.
pub(crate) fn qualified(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// A reported call to compare with clues.
struct Reported<'m, 'a> {
    call: Node<'a>,
    /// The request for permission, unless the call comes from an update.
    request: Option<&'m Message<'a>>,
    name: Option<&'m str>,
}

impl Reported<'_, '_> {
    /// Returns the skill tool for which all clues match.
    fn tool(&self, clues: &[Clue], session: &Session) -> Option<&'static str> {
        let server = session.server.name()?;
        let mut tools = HARMLESS.into_iter().chain(OTHERS);
        tools.find(|tool| clues.iter().all(|clue| self.matches(clue, server, tool, session)))
    }

    fn matches(&self, clue: &Clue, server: &str, tool: &str, session: &Session) -> bool {
        let filled = |template: &str| fill(template, server, tool);
        match *clue {
            Clue::Announced => {
                let id = self.call.str("toolCallId");
                id.and_then(|id| session.calls.ours(&id)).is_some_and(|ours| ours.tool == tool)
            }
            Clue::Name(name) => self.name.is_some_and(|given| given == filled(name)),
            Clue::Title(title) => self.call.str("title").is_some_and(|given| given == filled(title)),
            Clue::Kind(kind) => self.call.get("kind").is_some_and(|given| given.is_str(kind)),
            Clue::IdStart(start) => {
                self.call.str("toolCallId").is_some_and(|id| id.starts_with(&filled(start)))
            }
            Clue::Input(member, text) => {
                self.call.at(&["rawInput", member]).is_some_and(|given| given.is_str(&filled(text)))
            }
            Clue::Text(text) => self.first_text().is_some_and(|given| given == filled(text)),
            Clue::TextStart(start) => {
                self.first_text().is_some_and(|given| given.starts_with(&filled(start)))
            }
            Clue::Flag(flag) => {
                self.metas().any(|meta| meta.get(flag).and_then(|value| value.as_bool()) == Some(true))
            }
            Clue::Option(id, part) => self.offers(id, &filled(part)),
        }
    }

    fn metas(&self) -> impl Iterator<Item = Node<'_>> {
        [self.request.and_then(|request| request.param(&["_meta"])), self.call.get("_meta")]
            .into_iter()
            .flatten()
    }

    /// Returns true if the request offers an option with this id and with `part` in its name.
    fn offers(&self, id: &str, part: &str) -> bool {
        let Some(options) = self.request.and_then(|request| request.param(&["options"])) else {
            return false;
        };
        options.elements().any(|option| {
            option.get("optionId").is_some_and(|given| given.is_str(id))
                && option.str("name").is_some_and(|name| name.contains(part))
        })
    }

    /// Returns the text of the first content block, or `None` if this is not a text.
    fn first_text(&self) -> Option<Cow<'_, str>> {
        let first = self.call.get("content")?.elements().next()?;
        first.at(&["content", "text"])?.as_str()
    }
}

/// Fills in a template of [`CallReports`](crate::known_agents::reports::CallReports).
fn fill(template: &str, server: &str, tool: &str) -> String {
    let plain =
        || -> String { server.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect() };
    let text = template.replace("{tool}", tool);
    let text = if text.contains("{server_}") { text.replace("{server_}", &plain()) } else { text };
    text.replace("{server}", server)
}
