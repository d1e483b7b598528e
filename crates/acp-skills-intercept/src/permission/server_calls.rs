//! Calls of tools of MCP servers behind skills, and forms that these servers show.
//!
//! Agents ask the user about `call_skill_tool`, or don't. A call reaches the server if the user has allowed exactly this call in
//! the agent's request, or in a request of the proxy. The requests of the proxy name the real tool and the skill, for example
//! `browser: click`.

use acp_skills_wire::{Id, Message, Node, build};
use serde_json::{Value, json};
use skills_core::toolbox::CALL_SKILL_TOOL;

use super::{Declared, declared};
use crate::{
    Interceptor, call_titles,
    calls::Call,
    client_facts::ClientFacts,
    events::{Decision, EventKind, Rule},
    inputs::UserQuestion,
    keys::SessionKey,
    outputs::{Actions, Effect, Level, Pass, UserAnswer},
    pending::{Kind, ServerQuestion},
    policy::{Policy, ToolPolicy},
    session::{
        Session,
        server_calls::{Options, ServerCall, Shown},
    },
};

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const REJECT: &str = "reject";

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
        let Some(session_id) = id else { return Some(UserAnswer::Unavailable) };
        let title = call_titles::titled(&call.skill, &call.tool, self.client);
        let known = session.calls.latest(CALL_SKILL_TOOL, &title).map(str::to_owned);
        let request = self.ids.new_question();
        let call_id = known.unwrap_or_else(|| request.clone());
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
        self.ask_client(key, number, &request, "session/request_permission", &params, about, actions);
        None
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
        self.ask_client(key, number, &request, "elicitation/create", &params, None, actions);
        None
    }

    /// Sends a request to the client. `about` is the call that the user is asked about, or `None` for a form.
    #[expect(clippy::too_many_arguments, reason = "all parts of a single request")]
    fn ask_client(
        &mut self,
        key: SessionKey,
        number: u64,
        request: &str,
        method: &str,
        params: &Value,
        about: Option<Shown>,
        actions: &mut Actions,
    ) {
        let ticket = self.pending.new_ticket();
        let generation = self.sessions.get(key).map_or(0, |session| session.server_calls.generation);
        let question = ServerQuestion { id: request.to_owned(), number, about, generation };
        self.pending.insert(ticket, Some(key), None, Kind::ServerQuestion(question));
        actions.to_client.push(build::request(request, method, params));
    }

    /// Handles a response of the client to a question of a server. Returns `None` if it is another response.
    pub(crate) fn server_question_answered(
        &mut self,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Option<Pass> {
        let Some(Id::Text(id)) = message.id() else { return None };
        let (key, question) = self.pending.take_server_question(id.as_str())?;
        let option = selected(message);
        let answer = match (question.about, option.as_deref(), message.result) {
            (Some(Shown { call: ServerCall { skill, tool, .. }, .. }), Some(ALWAYS), _) => {
                if let Some(session) = self.sessions.get(key)
                    && session.server_calls.generation == question.generation
                {
                    session.server_calls.allow_always(skill, tool);
                }
                UserAnswer::Allowed
            }
            (Some(_), Some(ALLOW), _) => UserAnswer::Allowed,
            (Some(_), _, Some(_)) => UserAnswer::Refused,
            (None, _, Some(result)) if result.get("action").is_some() => {
                let mut answer = serde_json::from_slice::<Value>(result.raw()).unwrap_or_default();
                let mut form = json!({ "action": answer["action"].take() });
                // Servers refuse `null`.
                if answer["content"].is_object() {
                    form["content"] = answer["content"].take();
                }
                UserAnswer::Form(form)
            }
            _ => UserAnswer::Unavailable,
        };
        actions.effects.push(Effect::AnswerServer { session: key, number: question.number, answer });
        Some(Pass::Consumed)
    }

    /// Notes the user's answer to a request of the agent, which may be about a call of a server.
    pub(crate) fn permission_answered(&mut self, message: &Message<'_>) {
        // Another request of the agent can have the same id, but its answer has no outcome.
        if let Some(id) = message.id().filter(|_| message.result.is_some_and(has_outcome)) {
            let option = selected(message).filter(|_| self.open_permissions.answered(&id));
            self.sessions
                .iter_mut()
                .for_each(|session| session.server_calls.answered(&id, option.as_deref()));
        }
    }

    /// Forgets a request of the agent. If the user allows it, the answer doesn't count, and the user is asked again.
    pub(crate) fn forget_request(&mut self, id: &Id) {
        self.sessions.iter_mut().for_each(|session| session.server_calls.answered(id, None));
    }
}

fn has_outcome(result: Node<'_>) -> bool {
    result.get("outcome").is_some()
}

/// Remembers that the user is asked about a call in a request of the agent, which the client shows with this title. If the title doesn't
/// name the skill and the tool, the user's answer doesn't count.
pub(super) fn note_request(
    message: &Message<'_>,
    call: &Call<'_>,
    title: String,
    session: &mut Session,
    client: ClientFacts,
) {
    if call.ours != Some(CALL_SKILL_TOOL) {
        return;
    }
    // Gemini reports the input only as the text that the user sees.
    let text = call
        .node
        .get("content")
        .and_then(|content| content.elements().next()?.at(&["content", "text"])?.as_str());
    let input = call.input.or_else(|| Node::parse(text.as_ref()?.as_bytes()));
    if let (Some(id), Some(call_id), Some(asked)) =
        (message.id(), call.node.str("toolCallId"), ServerCall::read(input))
        && title == call_titles::titled(&asked.skill, &asked.tool, client)
    {
        let options = Options::read(message.param(&["options"]));
        let shown = Shown { call_id: call_id.into_owned(), title, call: asked };
        session.server_calls.asked(id, shown, options);
    }
}

/// Returns the option that the user has selected in the answer to a request for permission.
fn selected(message: &Message<'_>) -> Option<String> {
    Some(message.result?.at(&["outcome", "optionId"])?.as_str()?.into_owned())
}
