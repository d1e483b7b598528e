//! Answers the questions of MCP servers behind skills: may a tool be called, and what does the user enter in a form?
//!
//! A client only knows our tool `call_skill_tool`. A user who allows it in the client has not seen which server and which tool it
//! calls later, so the client's own question does not replace ours. The user answers in a form of the client. Without forms, calls
//! that need the user are refused.

use acp_skills_intercept::{
    Effect, SessionKey, UserAnswer, UserQuestion,
    events::{Decision, EventKind},
};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value, json};
use skills_core::{text::shown, toolbox::CALL_SKILL_TOOL};

use super::{
    forms,
    sessions::{Session, Sessions},
};

/// The field of the form that allows later calls as well.
const ALWAYS: &str = "always";
/// The maximum length of an input in the form, in characters.
const MAX_INPUT: usize = 4000;

/// Answers a question, or asks the user in the background.
pub(super) fn asked(sessions: &Sessions, key: SessionKey, number: u64, question: UserQuestion) {
    let session = sessions.get(key);
    let client = session.as_ref().and_then(|session| session.forms.client());
    let answer = match &question {
        UserQuestion::Call { needs_user: false, .. } => Some(UserAnswer::Allowed),
        UserQuestion::Call { skill, tool, .. }
            if session.is_some_and(|session| {
                session.forms.is_allowed(&identity(sessions, &session, skill), tool)
            }) =>
        {
            Some(UserAnswer::Allowed)
        }
        _ => client.is_none().then_some(UserAnswer::Unavailable),
    };
    if matches!(question, UserQuestion::Call { .. }) {
        let decision = match &answer {
            Some(UserAnswer::Allowed) => Decision::Allowed,
            Some(_) => Decision::Refused,
            None => Decision::Asked,
        };
        let tool = Some(CALL_SKILL_TOOL.to_owned());
        sessions.record(key, EventKind::Permission { tool, decision, rule: None });
    }
    let done = {
        let sessions = sessions.clone();
        move |answer| sessions.carry_out(Effect::AnswerServer { session: key, number, answer })
    };
    match (answer, client) {
        (Some(answer), _) => done(answer),
        (None, None) => done(UserAnswer::Unavailable),
        (None, Some(client)) => {
            let sessions = sessions.clone();
            tokio::spawn(async move { done(ask(&sessions, key, &client, question).await) });
        }
    }
}

/// Asks the user.
async fn ask(
    sessions: &Sessions,
    key: SessionKey,
    client: &Peer<RoleServer>,
    question: UserQuestion,
) -> UserAnswer {
    match question {
        UserQuestion::Call { skill, tool, input, .. } => {
            let asked = sessions.get(key).map(|session| identity(sessions, &session, &skill));
            let Some((action, content)) = forms::show(client, form(&skill, &tool, &input)).await else {
                return UserAnswer::Unavailable;
            };
            if action != "accept" {
                return UserAnswer::Refused;
            }
            let is_always = content.is_some_and(|content| content[ALWAYS] == true);
            if let Some((session, skill)) = sessions.get(key).zip(asked).filter(|_| is_always) {
                session.forms.allow_always(skill, tool);
            }
            UserAnswer::Allowed
        }
        UserQuestion::Form { skill, message, schema } => {
            let message = format!("{skill}: {message}");
            let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
            match forms::show(client, params).await {
                Some((action, content)) => UserAnswer::Form(json!({ "action": action, "content": content })),
                None => UserAnswer::Unavailable,
            }
        }
    }
}

/// Returns the identity of the skill that has this name in a session now, and the directories of the session. Empty if there is no such
/// skill. In other directories, a configuration can have another server for it, and a relative path leads to another program.
fn identity(sessions: &Sessions, session: &Session, skill: &str) -> String {
    let skills = session.handler.skills();
    let Some(skill) = skills.get(skill) else { return String::new() };
    format!("{} {:?}", skill.identity(), sessions.workspace(session))
}

/// Returns the form about a call.
fn form(skill: &str, tool: &str, input: &Map<String, Value>) -> Value {
    let input = Value::Object(input.clone()).to_string();
    let left_out = input.chars().count().saturating_sub(MAX_INPUT);
    let more = if left_out > 0 { format!("… ({left_out} more characters)") } else { String::new() };
    let input: String = input.chars().take(MAX_INPUT).collect();
    json!({
        "mode": "form",
        "message": format!(
            "The model wants to call the tool `{}` of the MCP server behind the skill `{}`. Allow this call?\n\n{}{more}",
            shown(tool),
            shown(skill),
            shown(&input)
        ),
        "requestedSchema": {
            "type": "object",
            "properties": {
                ALWAYS: { "type": "boolean", "title": "Allow all calls of this tool in this session", "default": false },
            },
        },
    })
}
