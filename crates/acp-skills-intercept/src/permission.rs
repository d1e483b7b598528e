//! Answers requests for permission in place of the user, if the answer is certain.
//!
//! Agents ask before each tool call, even for our read-only tools. A request is answered here in two cases: the call is one of
//! ours and changes nothing ([`Approve`]), or `allowed-tools` of the active skills decides it ([`ToolPolicy`]). Both rely only on
//! names that the agent itself reports, never on a title, which can be any text. All other requests go to the user.
//!
//! | file | owns |
//! |---|---|
//! | `calls_in_turn` | granting calls of our own tools one by one |
//! | `patterns` | matching calls with the patterns of `allowed-tools` |
//! | `claude` | permissions that are given in advance |
//! | `server_calls` | calls of tools of MCP servers behind skills, and forms that these servers show |
//!
//! This is not a sandbox: the proxy doesn't see calls that the agent makes without asking.

mod calls_in_turn;
mod claude;
mod patterns;
mod server_calls;

use acp_skills_wire::{Edit, Message, Node, build};
use serde_json::{Value, json};
use skills_core::{Skill, text::shown};

pub(crate) use self::claude::allow_ours;
use self::{
    calls_in_turn::MAX_NEXT_CALLS,
    patterns::Match,
    server_calls::{MAX_AGENT_QUESTIONS, ToolRequest},
};
use crate::{
    Interceptor,
    agent_facts::AgentFacts,
    call_titles::{self, Peers, Shape},
    calls::{self, Call, HARMLESS},
    events::{Decision as Decided, EventKind, Rule},
    keys::{SessionKey, Ticket},
    outputs::{Actions, Effect, Level, Pass},
    pending::Kind,
    policy::{Approve, Policy, ToolPolicy},
    queries::{Query, Resolved},
    session::{Claim, Session, server_calls::Shown},
    tool_paths::only_path,
    usage_scanner::is_of_subagent,
};

/// The maximum length of the name of a tool in a record, in bytes.
const MAX_NAME: usize = 256;

/// A decision about a request.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// The user decides. The value is the reason, if it should be logged.
    Ask(Option<String>),
    /// We choose an option of this kind, for this reason.
    Choose(&'static str, String),
    /// The decision depends on the target of this path, which may be a link.
    Resolve(String),
    /// The decision depends on whether the call that was granted before arrives.
    Wait,
}

/// Remembers if a call may move the agent's shell, or if it runs in the shell of a subagent. `call` comes from an update or from a request
/// for permission. Only [`ToolPolicy::Approval`] needs this.
pub(crate) fn shell_may_move(call: Node<'_>, session: &mut Session, agent: &AgentFacts, policy: &Policy) {
    if policy.tool_policy != ToolPolicy::Approval {
        return;
    }
    session.shell.runs(call, calls::name(call, agent).as_deref(), &session.workspace);
    if is_of_subagent(call.get("_meta"))
        && let Some(id) = call.str("toolCallId")
    {
        session.calls.set_of_subagent(&id);
    }
}

/// Returns true if calls of one of our tools are allowed without the user.
fn allows(tool: &str, policy: &Policy) -> bool {
    policy.approve == Approve::Own && HARMLESS.contains(&tool)
}

/// The result of comparing a call with `allowed-tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Declared {
    /// No active skill has `allowed-tools`, or it is not certain if the call matches.
    Unknown,
    /// The call matches.
    Inside,
    /// The call does not match.
    Outside,
}

/// Returns the `allowed-tools` of the active skills, or only of those that the user activated.
fn allowed_tools(session: &Session, by_user: bool) -> impl Iterator<Item = &str> {
    let of_user = by_user.then(|| session.invoked());
    let of_all = (!by_user).then(|| {
        let names = session.activations.iter().map(|(name, _)| name);
        names.filter_map(|name| session.skills.get(name.as_str())).map(AsRef::as_ref)
    });
    let skills = of_user.into_iter().flatten().chain(of_all.into_iter().flatten());
    skills.flat_map(|skill: &Skill| skill.properties.allowed_tools.iter().map(String::as_str))
}

/// Compares a call of the tool `name` with the `allowed-tools` of the active skills, or only of those that the user activated.
fn declared(session: &Session, name: &str, input: Option<Node<'_>>, by_user: bool) -> Declared {
    let mut patterns = allowed_tools(session, by_user).peekable();
    if patterns.peek().is_none() {
        return Declared::Unknown;
    }
    match patterns::match_call(
        patterns,
        Some(name),
        input,
        None,
        &session.workspace,
        session.shell.has_moved(),
    ) {
        Match::Inside => Declared::Inside,
        Match::Unsure => Declared::Unknown,
        Match::Outside => Declared::Outside,
    }
}

/// Decides about a call that is not one of ours. `resolved` is the target of the call's path, once it is known.
fn decide(call: &Call<'_>, session: &Session, policy: &Policy, resolved: Option<&Resolved>) -> Decision {
    let declared = |by_user| allowed_tools(session, by_user);
    if declared(false).next().is_none() {
        return Decision::Ask(None);
    }
    // If the path is a link, it may point to a different directory. So we make sure that both the path and its target match.
    let path = call.input.and_then(only_path).filter(|_| policy.tool_policy != ToolPolicy::Permissive);
    let is_of_subagent = || call.node.str("toolCallId").is_some_and(|id| session.calls.is_of_subagent(&id));
    let has_moved = session.shell.has_moved() || is_of_subagent();
    // We can't find out where the path leads on another machine, or from an unknown directory.
    let unknown = Resolved::default();
    let is_unknown =
        |path: &String| policy.elsewhere || has_moved && std::path::Path::new(path).is_relative();
    let resolved = if path.as_ref().is_some_and(is_unknown) { Some(&unknown) } else { resolved };
    let matched = |by_user| {
        let said = patterns::match_call(
            declared(by_user),
            call.name.as_deref(),
            call.input,
            None,
            &session.workspace,
            has_moved,
        );
        let Some(resolved) = resolved.filter(|_| path.is_some()) else { return said };
        let path = resolved.path.as_deref().and_then(std::path::Path::to_str);
        // Without the target, only patterns for all calls of the tool count.
        let patterns = declared(by_user).filter(|pattern| path.is_some() || !pattern.contains('('));
        let name = call.name.as_deref();
        let real = patterns::match_call(patterns, name, call.input, path, &resolved.workspace, has_moved);
        // If links can't be resolved at all, a path is refused as it is written.
        let is_sure = real == said && (path.is_some() || real == Match::Inside || policy.elsewhere);
        if is_sure { said } else { Match::Unsure }
    };
    let shown = call.shown();
    if let (Some(path), None) = (&path, resolved)
        && matched(false) != Match::Unsure
    {
        return Decision::Resolve(path.clone());
    }
    match policy.tool_policy {
        ToolPolicy::Permissive if matched(false) == Match::Outside => {
            Decision::Ask(Some(format!("`{shown}` is not in `allowed-tools` of any active skill")))
        }
        ToolPolicy::Approval if matched(true) == Match::Inside => Decision::Choose(
            "allow_once",
            format!("allowed `{shown}`: listed in `allowed-tools` of a skill that you activated"),
        ),
        ToolPolicy::Strict if matched(false) == Match::Outside => Decision::Choose(
            "reject_once",
            format!("refused `{shown}`: not in `allowed-tools` of any active skill"),
        ),
        _ => Decision::Ask(None),
    }
}

/// Returns the id of the offered option of this kind. The names of options differ between agents.
///
/// If several options allow a call, they also do something else, such as switching the mode or answering a question. Only the user can
/// choose then, so the result is `None`, unless the call is harmless.
fn option(message: &Message<'_>, kind: &str, is_harmless: bool) -> Option<String> {
    let options = message.param(&["options"])?;
    let mut offered =
        options.elements().filter(|option| option.get("kind").is_some_and(|given| given.is_str(kind)));
    let option = offered.next()?;
    let is_clear = is_harmless || kind != "allow_once" || offered.next().is_none();
    Some(option.str("optionId").filter(|_| is_clear)?.into_owned())
}

/// Returns the event for a decision. `chosen` is the kind of the option that we chose; `None` if the user is asked.
fn event(call: &Call<'_>, decision: &Decision, chosen: Option<&str>) -> EventKind {
    let tool = call.ours.or(call.name.as_deref());
    EventKind::Permission {
        tool: tool.map(|name| name[..name.floor_char_boundary(MAX_NAME)].to_owned()),
        decision: match chosen {
            Some("allow_once") => Decided::Allowed,
            Some(_) => Decided::Refused,
            None => Decided::Asked,
        },
        rule: match (decision, call.ours) {
            (Decision::Ask(None), _) => None,
            (_, Some(_)) => Some(Rule::Own),
            (_, None) => Some(Rule::AllowedTools),
        },
    }
}

/// Forwards a request to the user, with a readable title if the call is ours. If the proxy asks about a call with the same id, that call is
/// `shown` to the user, and keeps its title.
fn asked(
    message: &Message<'_>,
    call: &Call<'_>,
    session: &mut Session,
    peers: Peers<'_>,
    policy: &Policy,
    shown: Option<&Shown>,
) -> Pass {
    if let Some(shown) = shown {
        return call_titles::keep(message, call.node, Shape::Part, shown, peers.agent);
    }
    let Some(tool) = call.ours.filter(|_| call_titles::wanted(session, policy)) else {
        return Pass::Untouched;
    };
    let mut edit = Edit::new();
    call_titles::dress(&mut edit, call.node, tool, Shape::Part, session, peers);
    if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
}

/// Builds the announcement of a call whose request the client does not see, because some agents announce a call only by asking
/// for permission. Returns `None` if the client already knows the call.
fn announcement(
    call: &Call<'_>,
    session: &mut Session,
    peers: Peers<'_>,
    policy: &Policy,
) -> Option<Vec<u8>> {
    let id = call.node.str("toolCallId")?;
    let was_announced = session.calls.announced(&id);
    let ours = call.ours.filter(|_| call_titles::wanted(session, policy));
    if was_announced {
        // Keep the title here, as this request might be the last message to include the input.
        if let Some(tool) = ours {
            call_titles::note(call.node, tool, session, peers);
        }
        return None;
    }
    // We have to parse the call by itself here, because we edit the call and not the whole message.
    let node = Node::parse(call.node.raw())?;
    let mut edit = Edit::new();
    match ours {
        Some(tool) => call_titles::dress(&mut edit, node, tool, Shape::Whole, session, peers),
        None if node.get("title").is_none() => {
            edit.insert(node, "title", &Value::from(shown(call.shown())).to_string());
        }
        None => {}
    }
    edit.insert(node, "sessionUpdate", &Value::from(peers.agent.version.announcement()).to_string());
    let line = build::notification("session/update", &json!({ "sessionId": session.id()?, "update": null }));
    let place = Message::parse(&line)?.param(&["update"])?.span();
    let mut whole = Edit::new();
    whole.replace(place, edit.apply(node.raw()));
    Some(whole.apply(&line))
}

/// Returns the reason to allow a call of our tool `tool`, or `None` if the user decides.
fn reason_to_allow(tool: &str, call: &Call<'_>, session: &Session, policy: &Policy) -> Option<String> {
    if server_calls::is_allowed_in_session(call, session) {
        return Some("allowed a tool of a skill, because you have allowed it for this session".to_owned());
    }
    allows(tool, policy).then(|| format!("allowed `{tool}`: read-only skill tool"))
}

impl Interceptor {
    /// Handles a request for permission.
    pub(crate) fn permission(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        self.decide_permission(message, None, actions)
    }

    /// Continues with a request for permission, once the target of its path is known.
    pub(crate) fn resolved(&mut self, ticket: Ticket, resolved: &Resolved, actions: &mut Actions) {
        if let Some(line) = self.pending.take_permission(ticket) {
            self.decide_again(line, Some(resolved), actions);
        }
    }

    /// Decides about a request for permission that was held back.
    fn decide_again(&mut self, line: Vec<u8>, resolved: Option<&Resolved>, actions: &mut Actions) {
        let pass = match Message::parse(&line) {
            Some(message) => self.decide_permission(&message, resolved, actions),
            None => Pass::Untouched,
        };
        match pass {
            Pass::Untouched => actions.to_client.push(line),
            Pass::Edited(edited) => actions.to_client.push(edited),
            Pass::Consumed => {}
        }
    }

    fn decide_permission(
        &mut self,
        message: &Message<'_>,
        resolved: Option<&Resolved>,
        actions: &mut Actions,
    ) -> Pass {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else {
            return Pass::Untouched;
        };
        if let Some(call) = message.param(&["toolCall"]) {
            session.call_touches(call, actions);
            shell_may_move(call, session, &self.agent, &self.policy);
        }
        let Some(call) = Call::read(message, session, &self.agent) else { return Pass::Untouched };
        let decision = match call.ours {
            Some(tool) => match reason_to_allow(tool, &call, session, &self.policy) {
                Some(reason) => {
                    let has_room = self.pending.next_calls(session.key()) < MAX_NEXT_CALLS;
                    calls_in_turn::decide(tool, reason, &call, message, session, has_room, actions)
                }
                None => Decision::Ask(None),
            },
            None => decide(&call, session, &self.policy, resolved),
        };
        let key = session.key();
        match decision {
            Decision::Resolve(path) => {
                let workspace = session.workspace.clone();
                let ticket = self.hold_permission(key, message, false);
                actions.ask(Query::Resolve { session: key, ticket, path: path.into(), workspace });
                return Pass::Consumed;
            }
            Decision::Wait => {
                self.hold_permission(key, message, true);
                return Pass::Consumed;
            }
            _ => {}
        }
        let choice = match &decision {
            Decision::Choose(kind, why) => {
                let is_harmless = call.ours.is_some_and(|tool| HARMLESS.contains(&tool));
                option(message, kind, is_harmless).map(|option| (*kind, option, why.clone()))
            }
            _ => None,
        };
        let kind = event(&call, &decision, choice.as_ref().map(|(kind, ..)| *kind));
        actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
        let text = match (decision, &choice) {
            (_, Some((_, _, why))) => Some(why.clone()),
            (Decision::Choose(kind, _), None) => Some(format!(
                "asked you about `{}`: expected exactly one option `{kind}` from agent",
                call.shown()
            )),
            (Decision::Ask(why), None) => why,
            (Decision::Resolve(_) | Decision::Wait, None) => None,
        };
        if let Some(text) = text {
            actions.log(Level::Info, text.clone());
            session.decisions.add(text);
        }
        let peers = Peers { agent: &self.agent, client: &self.client };
        let (Some((_, option, _)), Some(id)) = (choice, message.id()) else {
            if self.pending.agent_questions() < MAX_AGENT_QUESTIONS
                && let Some(request) = ToolRequest::read(message, &call, session, peers)
            {
                self.ask_for_agent(key, request, actions);
                return Pass::Consumed;
            }
            let shown = call.node.str("toolCallId").and_then(|id| self.pending.shown(key, &id));
            return asked(message, &call, session, peers, &self.policy, shown);
        };
        if let Some(tool) = call.ours {
            session.claims.granted(Claim::new(tool, call.input));
        }
        actions.to_client.extend(announcement(&call, session, peers, &self.policy));
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        actions.to_agent.push(build::result(&id, &outcome));
        Pass::Consumed
    }

    /// Holds a request back. `is_next_call` is true if it waits for the call of an earlier request.
    fn hold_permission(&mut self, session: SessionKey, message: &Message<'_>, is_next_call: bool) -> Ticket {
        let ticket = self.pending.new_ticket();
        let request = Kind::Permission { id: message.id(), line: message.line.to_vec(), is_next_call };
        self.pending.insert(ticket, Some(session), None, request);
        ticket
    }
}
