//! [`Steps`]: what is seen of an agent from outside, each shown as it happens.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::Instant,
};

use acp_skills::{
    activity::Activity,
    intercept::{SERVER_NAME, begins_with_ours},
    one_shot::Trace,
};
use serde::Serialize;
use serde_json::Value;
use skills_core::text::shown;

use crate::{commands::permission, output, progress::Progress};

const OVER_ACP: &str = "the ACP connection";

/// One step.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    /// Since the start.
    ms: u128,
    detail: String,
}

/// The steps so far.
pub(super) struct Steps {
    start: Instant,
    is_shown: bool,
    seen: Mutex<State>,
    listed: Mutex<Sender<()>>,
}

struct State {
    steps: Vec<Step>,
    waiting: &'static str,
    progress: Option<Progress>,
}

impl Steps {
    /// Begins; shows the steps to people if they want to see them. What comes with it hears when the agent fetches
    /// our tools.
    pub(super) fn start(is_shown: bool) -> (Self, Receiver<()>) {
        let (listed, tools) = mpsc::channel();
        let waiting = "starting the agent";
        let state = State { steps: Vec::new(), waiting, progress: Some(Progress::spinner(waiting)) };
        (Self { start: Instant::now(), is_shown, seen: Mutex::new(state), listed: Mutex::new(listed) }, tools)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is being waited for from now on.
    pub(super) fn wait_for(&self, what: &'static str) {
        let mut state = self.state();
        state.waiting = what;
        if let Some(progress) = &state.progress {
            progress.message(what);
        }
    }

    /// What is being waited for.
    pub(super) fn waiting(&self) -> &'static str {
        self.state().waiting
    }

    /// Something is known.
    pub(super) fn step(&self, name: &'static str, ok: bool, detail: impl Into<String>) {
        let step = Step { name, ok, ms: self.start.elapsed().as_millis(), detail: detail.into() };
        let mut state = self.state();
        if self.is_shown {
            let mark = if ok { "ok  " } else { "FAIL" };
            let line = format!("{mark} {:>6} ms  {name:<12} {}\n", step.ms, shown(&step.detail));
            // Whoever closed stdout learns it from the exit code.
            drop(match &state.progress {
                Some(progress) => progress.aside(|| output::print(&line)),
                None => output::print(&line),
            });
        }
        state.steps.push(step);
    }

    /// All that was seen. Nothing is waited for any more.
    pub(super) fn finish(&self) -> Vec<Step> {
        let mut state = self.state();
        state.progress = None;
        state.steps.clone()
    }

    /// Whether the server is reached over the connection that is there: then there is nothing to wait for.
    pub(super) fn over_acp(&self) -> bool {
        self.state().steps.iter().any(|step| step.name == "transport" && step.detail.starts_with(OVER_ACP))
    }

    /// Takes in what happens.
    pub(super) fn trace(&self, trace: &Trace<'_>) {
        match trace {
            Trace::ToAgent(message) if message["method"] == "session/new" => self.set_up(&message["params"]),
            Trace::ToAgent(message) if message["method"] == "session/prompt" => {
                let blocks = message["params"]["prompt"].as_array().into_iter().flatten();
                if blocks.into_iter().any(|block| block["text"].as_str().is_some_and(begins_with_ours)) {
                    self.step("catalog", true, "in front of the prompt");
                }
            }
            Trace::Activity(Activity::Listed { revision, .. }) => {
                let revision = revision.as_deref().unwrap_or("of an unknown revision");
                self.step("tools", true, format!("the agent fetched the list of tools (MCP {revision})"));
                // The conversation may be over.
                let _ = self.listed.lock().unwrap_or_else(PoisonError::into_inner).send(());
            }
            Trace::Activity(Activity::Called(call)) => {
                self.step("call", !call.output.is_error, format!("the model called {}", call.tool));
            }
            Trace::Permission(request, chosen) => {
                self.step("permission", true, permission::describe(request, *chosen));
            }
            _ => {}
        }
    }

    /// What we put into `session/new`.
    fn set_up(&self, params: &Value) {
        let servers = params["mcpServers"].as_array().into_iter().flatten();
        let ours = servers
            .into_iter()
            .find(|server| server["name"].as_str().is_some_and(|name| name.starts_with(SERVER_NAME)));
        match ours {
            Some(server) => {
                let (transport, why) = match server["type"].as_str() {
                    Some("acp") => (OVER_ACP, "the agent advertises it"),
                    Some("http") => ("HTTP on loopback", "the agent advertises it"),
                    _ => ("stdio, through a bridge process", "the agent advertises neither ACP nor HTTP"),
                };
                self.step("transport", true, format!("{transport}: {why}, or a flag says so"));
            }
            None => self.step("transport", true, "none: switched off, or the agent refused it"),
        }
        let place = if params.get("systemPrompt").is_some() {
            "in the system prompt"
        } else if params["_meta"].get("systemPrompt").is_some() {
            "in the system prompt, the way of older versions of Claude's adapter"
        } else {
            return self.step("placement", true, "the catalog goes in front of the first prompt");
        };
        self.step("placement", true, format!("the catalog is {place}"));
    }
}
