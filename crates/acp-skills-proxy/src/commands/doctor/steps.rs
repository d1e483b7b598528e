//! [`Steps`]: the steps of a test of an agent. Each step is printed as it happens.

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

use super::elsewhere::Elsewhere;
use crate::{commands::permission, output, progress::Progress};

const OVER_ACP: &str = "the ACP connection";
const NO_SERVER: &str = "no server: ";

/// A step and its result.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    /// The time since the start of the test in milliseconds.
    ms: u128,
    detail: String,
}

/// The steps so far.
pub(super) struct Steps {
    start: Instant,
    is_shown: bool,
    /// True if the agent runs elsewhere.
    is_elsewhere: bool,
    seen: Mutex<State>,
    listed: Mutex<Sender<()>>,
}

struct State {
    steps: Vec<Step>,
    current: &'static str,
    progress: Option<Progress>,
    /// Advice for the case that skills don't work.
    advice: Vec<String>,
}

impl Steps {
    /// Starts the clock. Steps are printed if `is_shown` is true. The first step describes the place if the
    /// agent runs `elsewhere`. The receiver gets a message each time the agent fetches the list of
    /// our tools.
    pub(super) fn start(is_shown: bool, elsewhere: Option<&Elsewhere>) -> (Self, Receiver<()>) {
        let (listed, tools) = mpsc::channel();
        let current = "starting the agent";
        let state = State {
            steps: Vec::new(),
            current,
            progress: Some(Progress::spinner(current)),
            advice: Vec::new(),
        };
        let steps = Self {
            start: Instant::now(),
            is_shown,
            is_elsewhere: elsewhere.is_some(),
            seen: Mutex::new(state),
            listed: Mutex::new(listed),
        };
        if let Some(elsewhere) = elsewhere {
            steps.step("elsewhere", true, elsewhere.to_string());
        }
        (steps, tools)
    }

    /// Adds advice for the case that skills don't work.
    pub(super) fn advise(&self, advice: String) {
        self.state().advice.push(advice);
    }

    /// Returns the hint with all advice added to it.
    pub(super) fn advised(&self, hint: Option<String>) -> Option<String> {
        let all: Vec<_> = hint.into_iter().chain(self.state().advice.iter().cloned()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the current activity, such as "waiting for turn to end", and shows it as progress.
    pub(super) fn wait_for(&self, activity: &'static str) {
        let mut state = self.state();
        state.current = activity;
        if let Some(progress) = &state.progress {
            progress.message(activity);
        }
    }

    /// Returns the current activity.
    pub(super) fn current(&self) -> &'static str {
        self.state().current
    }

    /// Adds a step, and prints it if steps are shown.
    pub(super) fn step(&self, name: &'static str, ok: bool, detail: impl Into<String>) {
        let step = Step { name, ok, ms: self.start.elapsed().as_millis(), detail: detail.into() };
        let mut state = self.state();
        if self.is_shown {
            let mark = if ok { "ok  " } else { "FAIL" };
            let line = format!("{mark} {:>6} ms  {name:<12} {}\n", step.ms, shown(&step.detail));
            // If this fails, the error will be reported when we print the conclusion.
            let _ = match &state.progress {
                Some(progress) => progress.aside(|| output::print(&line)),
                None => output::print(&line),
            };
        }
        state.steps.push(step);
    }

    /// Removes the progress display and returns all steps.
    pub(super) fn finish(&self) -> Vec<Step> {
        let mut state = self.state();
        state.progress = None;
        state.steps.clone()
    }

    /// Returns true if the agent reaches the tools over the ACP connection, so that it need not connect first.
    pub(super) fn over_acp(&self) -> bool {
        self.transport_is(OVER_ACP)
    }

    /// Returns true if an agent elsewhere gets no server, so that there is no connection to wait for.
    pub(super) fn needs_no_server(&self) -> bool {
        self.is_elsewhere && self.transport_is(NO_SERVER)
    }

    fn transport_is(&self, start: &str) -> bool {
        self.state().steps.iter().any(|step| step.name == "transport" && step.detail.starts_with(start))
    }

    /// Adds a step for an event, if the event is relevant.
    pub(super) fn trace(&self, trace: &Trace<'_>) {
        match trace {
            Trace::ToAgent(message) if message["method"] == "session/new" => self.set_up(&message["params"]),
            Trace::ToAgent(message) if message["method"] == "session/prompt" => {
                let blocks = message["params"]["prompt"].as_array().into_iter().flatten();
                if blocks.into_iter().any(|block| block["text"].as_str().is_some_and(begins_with_ours)) {
                    self.step("catalog", true, "added to the prompt");
                }
            }
            Trace::Activity(Activity::Listed { revision, .. }) => {
                let revision = revision.as_deref().unwrap_or("revision unknown");
                self.step("tools", true, format!("agent fetched tools (MCP {revision})"));
                // This fails if the conversation is already over.
                let _ = self.listed.lock().unwrap_or_else(PoisonError::into_inner).send(());
            }
            Trace::Activity(Activity::Called(call)) => {
                self.step("call", !call.output.is_error, format!("model called {}", call.tool));
            }
            Trace::Permission(request, chosen) => {
                self.step("permission", true, permission::describe(request, *chosen));
            }
            _ => {}
        }
    }

    /// Adds steps for the changes of the proxy to `session/new`.
    fn set_up(&self, params: &Value) {
        let servers = params["mcpServers"].as_array().into_iter().flatten();
        let ours = servers
            .into_iter()
            .find(|server| server["name"].as_str().is_some_and(|name| name.starts_with(SERVER_NAME)));
        let detail = match ours {
            Some(server) => self.transport(server),
            None if self.is_elsewhere => format!("{NO_SERVER}the agent cannot reach one here"),
            None => format!("{NO_SERVER}`--mcp off` is set, or the agent rejected the server"),
        };
        self.step("transport", true, detail);
        self.placement(params);
    }

    /// Describes the transport in our entry of `mcpServers`.
    fn transport(&self, server: &Value) -> String {
        let (transport, why) = match server["type"].as_str() {
            Some("acp") => (OVER_ACP, "advertised by the agent"),
            Some("http") if self.is_elsewhere => {
                // The path is a secret.
                let base: Vec<_> = server["url"].as_str().unwrap_or_default().split('/').take(3).collect();
                return format!("HTTP at {}: chosen with `--listen` or `--mcp`", base.join("/"));
            }
            Some("http") => ("HTTP on loopback", "advertised by the agent"),
            _ => ("stdio via bridge process", "neither ACP nor HTTP advertised by the agent"),
        };
        format!("{transport}: {why}, or selected with `--mcp`")
    }

    /// Adds a step for the place of the catalog.
    fn placement(&self, params: &Value) {
        let place = if params.get("systemPrompt").is_some() {
            "in the system prompt"
        } else if params["_meta"].get("systemPrompt").is_some() {
            "in the system prompt, using the format of older Claude adapters"
        } else {
            return self.step("placement", true, "catalog will be added to the first prompt");
        };
        self.step("placement", true, format!("catalog is {place}"));
    }
}
