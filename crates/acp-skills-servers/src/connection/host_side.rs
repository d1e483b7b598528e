//! [`HostSide`]: the requests and notifications of a server.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use acp_skills_intercept::{UserAnswer, UserQuestion};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::{
    super::{
        form,
        messages::{Answer, Listener},
    },
    Session,
    forms::Forms,
};

/// Our side of the connection: what the server can ask for.
pub(super) struct HostSide {
    pub(super) skill: String,
    pub(super) session: Option<Arc<dyn Session>>,
    pub(super) changes: Arc<AtomicU64>,
    pub(super) resources_changed: Arc<AtomicBool>,
    pub(super) skills_changed: Arc<Notify>,
    pub(super) forms: Forms,
}

impl Listener for HostSide {
    fn asked(&self, method: &str, params: Value) -> Option<Answer> {
        Some(match method {
            "ping" => Answer::Now(json!({})),
            "roots/list" => {
                let roots = self.session.as_ref().map(|session| session.roots()).unwrap_or_default();
                let roots: Vec<_> = roots.iter().map(|root| json!({ "uri": file_uri(root) })).collect();
                Answer::Now(json!({ "roots": roots }))
            }
            "elicitation/create" => self.form(params),
            // This includes sampling, because the proxy has no model.
            _ => return None,
        })
    }

    fn notified(&self, method: &str) {
        match method {
            "notifications/tools/list_changed" | "notifications/prompts/list_changed" => {
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
            // The extension has no notification of its own, because the files of skills are resources.
            "notifications/resources/list_changed" | "notifications/skills/list_changed" => {
                self.resources_changed.store(true, Ordering::Relaxed);
                self.skills_changed.notify_one();
            }
            _ => {}
        }
    }
}

impl HostSide {
    /// Shows a form of the server to the user, or declines it.
    fn form(&self, params: Value) -> Answer {
        let declined = || json!({ "action": "decline" });
        let is_form = params["mode"].as_str().is_none_or(|mode| mode == "form");
        let Some(session) = self.session.clone().filter(|_| is_form) else { return Answer::Now(declined()) };
        let (message, schema) = match form::read(params) {
            Ok(form) => form,
            Err(why) => return Answer::Refused(why),
        };
        if !self.forms.open() {
            return Answer::Now(declined());
        }
        let (answer, answered) = oneshot::channel();
        let forms = self.forms.clone();
        let skill = self.skill.clone();
        tokio::spawn(async move {
            let question = UserQuestion::Form { skill, message, schema };
            let result = match session.ask(question).await {
                Some(UserAnswer::Form(result)) => result,
                _ => declined(),
            };
            forms.close(result["action"] == "accept");
            // This fails if the server has ended.
            let _ = answer.send(result);
        });
        Answer::Later(answered)
    }
}

/// The characters of a path that have a meaning in a URL.
const RESERVED: AsciiSet =
    CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

fn file_uri(path: &Path) -> String {
    let path = path.to_string_lossy().replace('\\', "/");
    let path = utf8_percent_encode(&path, &RESERVED);
    let slash = if path.to_string().starts_with('/') { "" } else { "/" };
    format!("file://{slash}{path}")
}
