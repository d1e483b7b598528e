//! Requests for permission that the user need not see.
//!
//! Agents ask before each call of a tool, also of our read-only ones. Two things may answer in the user's place: that
//! the call is ours and changes nothing ([`Approve`]), and what the active skills say in `allowed-tools`
//! ([`ToolPolicy`]). Both decide only what they are certain of, by names that the agent itself vouches for; a title is
//! for people and can say anything. The rest goes to the user.
//!
//! This is advice at the ACP layer, no sandbox: calls that the agent does not ask about are not seen.

use acp_skills_wire::{Edit, Message, Node, build};
use serde_json::{Value, json};
use skills_core::toolbox::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

use crate::{
    Interceptor,
    agent_facts::{AgentFacts, AgentKind},
    events::{Decision as Decided, EventKind, Rule},
    outputs::{Actions, Effect, Level, Pass},
    patterns::{self, Fit},
    policy::{Approve, Policy, ToolPolicy},
    session::{Session, activations::By},
};

/// The tools of ours that change nothing and run nothing.
const HARMLESS: [&str; 3] = [ACTIVATE_SKILL, READ_SKILL_FILE, SEARCH_SKILLS];

/// What the agent says of a call, as far as it vouches for it.
struct Call<'a> {
    /// The name of the tool, in the agent's own spelling.
    name: Option<String>,
    /// The tool of ours that is to be called.
    ours: Option<&'static str>,
    /// The call's input.
    input: Option<Node<'a>>,
}

impl<'a> Call<'a> {
    fn read(message: &Message<'a>, session: &Session, agent: &AgentFacts) -> Option<Self> {
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
        Some(Self { name, ours, input: call.get("rawInput").filter(|input| !input.is_null()) })
    }

    fn shown(&self) -> &str {
        self.ours.or(self.name.as_deref()).unwrap_or("a tool without a name")
    }
}

/// The tools of ours that do more than read.
const OTHERS: [&str; 2] = [CALL_SKILL_TOOL, RUN_SKILL_SCRIPT];

/// The name of a tool of an MCP server, as Claude spells it.
fn qualified(server: &str, tool: &str) -> String {
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

/// What is to become of a request.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// The user decides; the reason is worth a line in the log, or not.
    Ask(Option<String>),
    /// An option of this kind is chosen.
    Choose(&'static str, String),
}

fn decide(call: &Call<'_>, session: &Session, policy: &Policy) -> Decision {
    if let Some(tool) = call.ours {
        return if policy.approve == Approve::Own && HARMLESS.contains(&tool) {
            Decision::Choose("allow_once", format!("allowed `{tool}`: a tool of the skills"))
        } else {
            Decision::Ask(None)
        };
    }
    let declared = |by_user: bool| {
        let active = session.activations.iter().filter(move |(_, by)| !by_user || *by == By::User);
        let skills = active.filter_map(|(name, _)| session.skills.get(name.as_str()));
        skills.flat_map(|skill| skill.properties.allowed_tools.iter().map(String::as_str))
    };
    if declared(false).next().is_none() {
        return Decision::Ask(None);
    }
    let fit =
        |by_user| patterns::fit(declared(by_user), call.name.as_deref(), call.input, session.cwd.as_deref());
    let shown = call.shown();
    match policy.tool_policy {
        ToolPolicy::Permissive if fit(false) == Fit::Outside => {
            Decision::Ask(Some(format!("`{shown}` is not in `allowed-tools` of the active skills")))
        }
        ToolPolicy::Approval if fit(true) == Fit::Inside => Decision::Choose(
            "allow_once",
            format!("allowed `{shown}`: in `allowed-tools` of a skill that you activated"),
        ),
        ToolPolicy::Strict if fit(false) == Fit::Outside => Decision::Choose(
            "reject_once",
            format!("refused `{shown}`: not in `allowed-tools` of the active skills"),
        ),
        _ => Decision::Ask(None),
    }
}

/// The offered option of this kind. Names differ from agent to agent.
fn option(message: &Message<'_>, kind: &str) -> Option<String> {
    let options = message.param(&["options"])?;
    let option = options.elements().find(|option| option.get("kind").is_some_and(|it| it.is_str(kind)))?;
    Some(option.str("optionId")?.into_owned())
}

impl Interceptor {
    /// A request for permission: answered here, or left to the user.
    pub(crate) fn permission(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.id() else { return Pass::Untouched };
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else {
            return Pass::Untouched;
        };
        let Some(call) = Call::read(message, session, &self.agent) else { return Pass::Untouched };
        let decision = decide(&call, session, &self.policy);
        let choice = match &decision {
            Decision::Ask(_) => None,
            Decision::Choose(kind, _) => Some((*kind, option(message, kind))),
        };
        let kind = EventKind::Permission {
            tool: call.ours.or(call.name.as_deref()).map(str::to_owned),
            decision: match &choice {
                Some(("allow_once", Some(_))) => Decided::Allowed,
                Some((_, Some(_))) => Decided::Refused,
                _ => Decided::Asked,
            },
            rule: match (&decision, call.ours) {
                (Decision::Ask(None), _) => None,
                (_, Some(_)) => Some(Rule::Own),
                (_, None) => Some(Rule::AllowedTools),
            },
        };
        actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
        let mut log = |text: &str| {
            actions.log(Level::Info, text);
            session.decisions.add(text.to_owned());
        };
        match (decision, choice) {
            (Decision::Choose(_, why), Some((_, Some(option)))) => {
                log(&why);
                let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                actions.to_agent.push(build::result(&id, &outcome));
                Pass::Consumed
            }
            (Decision::Choose(kind, _), _) => {
                log(&format!("asked for `{}`: there is no option `{kind}`", call.shown()));
                Pass::Untouched
            }
            (Decision::Ask(why), _) => {
                if let Some(why) = why {
                    log(&why);
                }
                Pass::Untouched
            }
        }
    }
}

/// Tells Claude's adapter, in a request that sets up a session, that our reading tools need no permission.
pub(crate) fn allow_ours(line: &[u8], server: &str, agent: &AgentFacts, policy: &Policy) -> Option<Vec<u8>> {
    if agent.kind != AgentKind::Claude || policy.approve != Approve::Own {
        return None;
    }
    let message = Message::parse(line)?;
    let params = message.params.filter(Node::is_object)?;
    let names: Vec<Value> = HARMLESS.iter().map(|tool| qualified(server, tool).into()).collect();
    let mut edit = Edit::new();
    // Down to the list, as far as the client has been there.
    let mut place = params;
    let path = ["_meta", "claudeCode", "options", "allowedTools"];
    for (depth, key) in path.iter().enumerate() {
        let rest = path[depth + 1..].iter().rev();
        let ours = || rest.clone().fold(Value::from(names.clone()), |value, key| json!({ *key: value }));
        match place.get(key) {
            None => edit.insert(place, key, &ours().to_string()),
            Some(list) if depth + 1 == path.len() && list.is_array() => {
                edit.push(list, &names.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
            }
            Some(next) if next.is_object() && depth + 1 < path.len() => {
                place = next;
                continue;
            }
            Some(null) if null.is_null() => edit.set(null, &ours()),
            // Not what it should be; that is between the client and the agent.
            Some(_) => return None,
        }
        break;
    }
    Some(edit.apply(line))
}
