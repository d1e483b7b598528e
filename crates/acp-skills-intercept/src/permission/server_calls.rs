//! Calls of tools of MCP servers behind skills, and forms that these servers show.
//!
//! Agents ask the user about `call_skill_tool`, or don't. A call reaches the server if the user has allowed exactly this call. The user
//! is always asked in a request of the proxy, which names the real tool and the skill, for example `browser: click`, and has the
//! proxy's own id and options. It takes the place of the agent's request, because an agent could choose the words and the id of its
//! request such that the user seems to allow something else.

use std::borrow::Cow;

use acp_skills_wire::{Id, Message, Node, build};
use serde_json::{Value, json};
use skills_core::toolbox::CALL_SKILL_TOOL;

use super::{Declared, declared};
use crate::{
    Interceptor,
    call_titles::{self, Peers},
    calls::Call,
    events::{Decision, EventKind, Rule},
    inputs::UserQuestion,
    keys::SessionKey,
    outputs::{Actions, Effect, Level, Pass, UserAnswer},
    pending::{Asker, Kind, ServerQuestion},
    policy::{Policy, ToolPolicy},
    session::{
        Session,
        server_calls::{Options, ServerCall, Shown},
    },
};

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const REJECT: &str = "reject";
/// The maximum length of the id of a call that is kept with a question, in bytes.
const MAX_CALL_ID: usize = 1024;

/// Returns the answer to a call, or `None` if the user decides.
fn decide(
    call: &ServerCall,
    needs_user: bool,
    session: &mut Session,
    policy: &Policy,
    actions: &mut Actions,
) -> (Option<UserAnswer>, Option<Rule>) {
    let name = crate::calls::qualified(&call.skill, &call.tool);
    let input = Value::Object(call.input.clone()).to_string();
    let input = Node::parse(input.as_bytes());
    match policy.tool_policy {
        ToolPolicy::Strict if declared(session, &name, input, false) == Declared::Outside => {
            return (Some(UserAnswer::NotAllowed), Some(Rule::AllowedTools));
        }
        ToolPolicy::Permissive if declared(session, &name, input, false) == Declared::Outside => {
            let text = format!(
                "`{}` of `{}` is not in `allowed-tools` of any active skill",
                skills_core::text::shown(&call.tool),
                skills_core::text::shown(&call.skill)
            );
            actions.log(Level::Info, text.clone());
            session.decisions.add(text);
        }
        ToolPolicy::Approval if declared(session, &name, input, true) == Declared::Inside => {
            return (Some(UserAnswer::Allowed), Some(Rule::AllowedTools));
        }
        _ => {}
    }
    let is_allowed = session.server_calls.take(call) || !needs_user;
    (is_allowed.then_some(UserAnswer::Allowed), None)
}

impl Interceptor {
    /// Answers a question of an MCP server behind a skill, or asks the user.
    pub(crate) fn user_asked(
        &mut self,
        key: SessionKey,
        number: u64,
        question: UserQuestion,
        actions: &mut Actions,
    ) {
        let answer = match question {
            UserQuestion::Call { skill, tool, input, needs_user } => {
                let call = ServerCall { skill, tool, input };
                self.call_asked(key, number, call, needs_user, actions)
            }
            UserQuestion::Form { skill, message, schema } => {
                self.form_asked(key, number, &skill, &message, &schema, actions)
            }
        };
        if let Some(answer) = answer {
            actions.effects.push(Effect::AnswerServer { session: key, number, answer });
        }
    }

    fn call_asked(
        &mut self,
        key: SessionKey,
        number: u64,
        call: ServerCall,
        needs_user: bool,
        actions: &mut Actions,
    ) -> Option<UserAnswer> {
        let Some(session) = self.sessions.get(key) else { return Some(UserAnswer::Unavailable) };
        let (answer, rule) = decide(&call, needs_user, session, &self.policy, actions);
        let id = session.id().map(str::to_owned);
        let decision = match &answer {
            Some(UserAnswer::Allowed) => Decision::Allowed,
            Some(_) => Decision::Refused,
            None => Decision::Asked,
        };
        let kind = EventKind::Permission { tool: Some(CALL_SKILL_TOOL.to_owned()), decision, rule };
        actions.effects.push(Effect::Record { session: id.clone(), kind });
        if answer.is_some() {
            return answer;
        }
        if id.is_none() {
            return Some(UserAnswer::Unavailable);
        }
        let title = call_titles::titled(&call.skill, &call.tool, self.client);
        let call_id = session.calls.latest(CALL_SKILL_TOOL, &title).map(str::to_owned);
        self.ask_about_call(key, Asker::Server(number), call_id, call, actions);
        None
    }

    /// Asks the user about a call in place of the agent.
    pub(super) fn ask_for_agent(&mut self, key: SessionKey, request: ToolRequest, actions: &mut Actions) {
        let ToolRequest { id, call_id, call, options } = request;
        let turn = self.sessions.get(key).map_or(0, |session| session.server_calls.turn);
        self.ask_about_call(key, Asker::Agent { id, options, turn }, call_id, call, actions);
    }

    /// Asks the user about a call. `call_id` is the id of the call in the client, if the agent has announced it.
    fn ask_about_call(
        &mut self,
        key: SessionKey,
        asker: Asker,
        call_id: Option<String>,
        call: ServerCall,
        actions: &mut Actions,
    ) {
        let Some(session_id) = self.sessions.get(key).and_then(|session| session.id().map(str::to_owned))
        else {
            return;
        };
        let title = call_titles::titled(&call.skill, &call.tool, self.client);
        let request = self.ids.new_question();
        // A second question about the same call would replace the first one in the client.
        let call_id = call_id.filter(|id| self.pending.shown(key, id).is_none());
        let call_id = call_id.unwrap_or_else(|| request.clone());
        let tool_call = json!({
            "toolCallId": call_id,
            "title": title,
            "kind": "execute",
            "status": "pending",
            "rawInput": { "skill": call.skill, "tool": call.tool, "input": call.input },
        });
        let options = json!([
            { "optionId": ALLOW, "name": "Allow", "kind": "allow_once" },
            { "optionId": ALWAYS, "name": "Allow in this session", "kind": "allow_always" },
            { "optionId": REJECT, "name": "Reject", "kind": "reject_once" },
        ]);
        let params = self.agent.version.permission(&session_id, &title, tool_call, options);
        let about = Some(Shown { call_id, title, call });
        self.ask_client(key, asker, &request, "session/request_permission", &params, about, actions);
    }

    fn form_asked(
        &mut self,
        key: SessionKey,
        number: u64,
        skill: &str,
        message: &str,
        schema: &Value,
        actions: &mut Actions,
    ) -> Option<UserAnswer> {
        let session_id = self.sessions.get(key).and_then(|session| session.id().map(str::to_owned));
        let Some(session_id) = session_id.filter(|_| self.client.shows_forms()) else {
            return Some(UserAnswer::Unavailable);
        };
        let request = self.ids.new_question();
        let params = json!({
            "sessionId": session_id,
            "mode": "form",
            "message": format!("{skill}: {message}"),
            "requestedSchema": schema,
        });
        self.ask_client(key, Asker::Server(number), &request, "elicitation/create", &params, None, actions);
        None
    }

    /// Sends a request to the client. `about` is the call that the user is asked about, or `None` for a form.
    #[expect(clippy::too_many_arguments, reason = "all parts of a single request")]
    fn ask_client(
        &mut self,
        key: SessionKey,
        asker: Asker,
        request: &str,
        method: &str,
        params: &Value,
        about: Option<Shown>,
        actions: &mut Actions,
    ) {
        let ticket = self.pending.new_ticket();
        let generation = self.sessions.get(key).map_or(0, |session| session.server_calls.generation);
        let question = ServerQuestion { id: request.to_owned(), asker, about, generation, is_unclear: false };
        self.pending.insert(ticket, Some(key), None, Kind::ServerQuestion(question));
        actions.to_client.push(build::request(request, method, params));
    }

    /// Handles a response of the client to a question about a call, or to a form. Returns `None` if it is another response.
    pub(crate) fn server_question_answered(
        &mut self,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Option<Pass> {
        let Some(Id::Text(id)) = message.id() else { return None };
        let (key, question) = self.pending.take_server_question(id.as_str())?;
        let Some(shown) = question.about else {
            if let Asker::Server(number) = question.asker {
                let answer = form_answer(message);
                actions.effects.push(Effect::AnswerServer { session: key, number, answer });
            }
            return Some(Pass::Consumed);
        };
        let mut choice = Choice::read(message);
        if question.is_unclear && matches!(choice, Choice::Allow | Choice::Always) {
            let text = "did not call a tool that you allowed, because the agent sent an ambiguous message \
                        while you were asked";
            actions.log(Level::Warn, text.to_owned());
            choice = Choice::Reject;
        }
        let session = self.sessions.get(key);
        let current = session.filter(|session| session.server_calls.generation == question.generation);
        match question.asker {
            Asker::Server(number) => {
                if let (Some(session), Choice::Always) = (current, choice) {
                    session.server_calls.allow_always(shown.call.skill, shown.call.tool);
                }
                let answer = match choice {
                    Choice::Allow | Choice::Always => UserAnswer::Allowed,
                    Choice::Reject => UserAnswer::Refused,
                    Choice::Nothing => UserAnswer::Unavailable,
                };
                actions.effects.push(Effect::AnswerServer { session: key, number, answer });
            }
            Asker::Agent { id, options, turn } => {
                let current = current.filter(|session| session.server_calls.turn == turn);
                let Shown { call, .. } = shown;
                match (current, choice) {
                    (Some(session), Choice::Allow) => session.server_calls.allow(call),
                    (Some(session), Choice::Always) => {
                        session.server_calls.allow_always(call.skill, call.tool);
                    }
                    _ => {}
                }
                let outcome = match choice.option(options) {
                    Some(option) => json!({ "outcome": "selected", "optionId": option }),
                    None => json!({ "outcome": "cancelled" }),
                };
                actions.to_agent.push(build::result(&id, &json!({ "outcome": outcome })));
            }
        }
        Some(Pass::Consumed)
    }
}

/// The maximum number of requests of the agent in whose place the proxy asks at the same time. The client gets further ones as they are, and
/// the user is asked again when the call arrives.
pub(super) const MAX_AGENT_QUESTIONS: usize = 64;

/// A request of the agent for permission to call a tool of an MCP server.
pub(super) struct ToolRequest {
    id: Id,
    call_id: Option<String>,
    call: ServerCall,
    options: Options,
}

impl ToolRequest {
    /// Reads a request. Returns `None` if it is about another call, or if the skill and the tool are unknown.
    pub(super) fn read(
        message: &Message<'_>,
        call: &Call<'_>,
        session: &mut Session,
        peers: Peers<'_>,
    ) -> Option<Self> {
        let asked = server_call(call)?;
        let options = Options::read(message.param(&["options"]))?;
        call_titles::note(call.node, CALL_SKILL_TOOL, session, peers);
        Some(Self {
            id: message.id()?,
            call_id: call.node.str("toolCallId").map(Cow::into_owned).filter(|id| id.len() <= MAX_CALL_ID),
            call: asked,
            options,
        })
    }
}

/// Returns the call of a tool behind a skill that the agent asks about, if it is one.
fn server_call(call: &Call<'_>) -> Option<ServerCall> {
    call.ours.filter(|tool| *tool == CALL_SKILL_TOOL)?;
    // Gemini reports the input only as the text that the user sees.
    let content = call.node.get("content").and_then(|content| content.elements().next());
    let text = content.and_then(|content| content.at(&["content", "text"])?.as_str());
    ServerCall::read(call.input.or_else(|| Node::parse(text.as_ref()?.as_bytes())))
}

/// Returns true if the agent asks about a tool that the user has allowed for the session. An input with other members belongs to
/// another tool.
pub(super) fn is_allowed_in_session(call: &Call<'_>, session: &Session) -> bool {
    let mut members = call.input.into_iter().flat_map(|input| input.members());
    members.all(|(key, _)| ["skill", "tool", "input"].iter().any(|known| key.is_str(known)))
        && server_call(call).is_some_and(|call| session.server_calls.are_allowed(&call))
}

/// The user's choice in a question about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Allow,
    Always,
    Reject,
    /// The question was cancelled, or the client can't ask.
    Nothing,
}

impl Choice {
    fn read(message: &Message<'_>) -> Self {
        let selected = message.result.and_then(|result| result.at(&["outcome", "optionId"])?.as_str());
        match (selected.as_deref(), message.result) {
            (Some(ALLOW), _) => Self::Allow,
            (Some(ALWAYS), _) => Self::Always,
            (_, Some(_)) => Self::Reject,
            (_, None) => Self::Nothing,
        }
    }

    /// Returns the option of the agent for this choice. The proxy itself remembers what the user has allowed for the session.
    fn option(self, options: Options) -> Option<String> {
        match self {
            Self::Allow | Self::Always => Some(options.once),
            Self::Reject => options.reject,
            Self::Nothing => None,
        }
    }
}

/// Returns the answer to a form.
fn form_answer(message: &Message<'_>) -> UserAnswer {
    let Some(result) = message.result.filter(|result| result.get("action").is_some()) else {
        return UserAnswer::Unavailable;
    };
    let mut answer = serde_json::from_slice::<Value>(result.raw()).unwrap_or_default();
    let mut form = json!({ "action": answer["action"].take() });
    // Servers refuse `null`.
    if answer["content"].is_object() {
        form["content"] = answer["content"].take();
    }
    UserAnswer::Form(form)
}
