//! [`Conversation`]: the part of the client in a conversation with the agent.

use std::{
    ffi::OsString,
    path::Path,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use acp_skills::one_shot::Client;
use anyhow::Context;

use super::{login, machine, steps::Steps};
use acp_skills::{
    agents::{self, Agent, Means},
    intercept::known_agent,
};

/// The settings of a conversation.
pub(super) struct Conversation {
    pub(super) steps: Arc<Steps>,
    /// Receives a message each time the agent fetches the list of our tools.
    pub(super) tools: Receiver<()>,
    pub(super) wants_tools: bool,
    /// The timeout for the agent to fetch the list of our tools.
    pub(super) connect_timeout: Duration,
    pub(super) prompt: Option<String>,
    /// The command of the agent.
    pub(super) command: Vec<OsString>,
}

impl Conversation {
    /// Opens a session and sends the prompt, if there is one. Returns true if the agent has connected to our tools.
    ///
    /// # Errors
    /// Returns an error if the agent answers a request with an error, or not at all.
    pub(super) fn run(self, client: &mut Client, cwd: &Path) -> anyhow::Result<bool> {
        self.steps.wait_for("waiting for response to initialize");
        let answer = client.initialize().context("initialize")?;
        let info = &answer["agentInfo"];
        let name = info["name"].as_str().unwrap_or("an unnamed agent");
        let version = info["version"].as_str().unwrap_or_default();
        self.steps.step(
            "initialize",
            true,
            format!("{name} {version}, protocol version {}", answer["protocolVersion"]),
        );
        if let Some(tried) = agents::calling_itself(name).and_then(|agent| agent.seen.as_ref()?.tried())
            && machine::is_older(version, tried)
        {
            self.steps.advise(format!("update the agent: {version} is older than {tried}, which was tested"));
        }
        for (step, detail) in known(name, version) {
            self.steps.step(step, true, detail);
        }
        let capabilities = &answer["agentCapabilities"];
        let detail = format!(
            "mcpCapabilities {}, systemPrompt {}, loadSession {}",
            capabilities["mcpCapabilities"],
            capabilities["sessionCapabilities"]["systemPrompt"],
            capabilities["loadSession"],
        );
        self.steps.step("capabilities", true, detail);
        self.steps.wait_for("waiting for agent to open a session");
        let or_log_in = |error| login::needed(error, &answer["authMethods"], &self.command);
        let session = client
            .new_session(cwd)
            .map_err(or_log_in)
            .context("session/new (you may need to log in to the agent first)")?;
        self.steps.step("session/new", true, "agent opened a session");
        let waits = self.wants_tools && !self.steps.needs_no_server();
        let mut connected = waits && self.waits_for_tools();
        if let Some(prompt) = &self.prompt {
            self.steps.wait_for("waiting for turn to end");
            let end = client.prompt(&session, prompt).map_err(or_log_in).context("session/prompt")?;
            self.steps.step("prompt", true, format!("turn ended: {}", end["stopReason"]));
            connected |= self.tools.try_recv().is_ok();
        }
        if waits && !connected {
            let seconds = self.connect_timeout.as_secs_f64();
            let text = format!("agent did not fetch tools within {seconds} s");
            self.steps.step("tools", false, text);
        }
        Ok(connected)
    }

    fn waits_for_tools(&self) -> bool {
        self.steps.wait_for("waiting for agent to fetch tools");
        self.steps.over_acp() || self.tools.recv_timeout(self.connect_timeout).is_ok()
    }
}

/// Returns steps with the facts that are known about an agent by its name and version.
fn known(name: &str, version: &str) -> Vec<(&'static str, String)> {
    let permission = if known_agent(name).is_some_and(Agent::names_calls) {
        "permission requests from this agent include the tool name: read-only tools are allowed without asking you"
    } else {
        "permission requests from this agent may not include the tool name: you may have to allow all calls yourself"
    };
    let mut steps = Vec::new();
    if let Some((agent, seen)) =
        agents::calling_itself(name).and_then(|agent| Some((agent, agent.seen.as_ref()?)))
    {
        let tried = seen.version.unwrap_or_default();
        let is_same = seen.is_of(version);
        let means = match seen.skills {
            _ if seen.login => "requires an account",
            Some(Means::Tools) => "model used the tools",
            Some(Means::Files) => "model read the files",
            None => "opened sessions",
            Some(_) => "worked",
        };
        let other = match seen.tried() {
            _ if is_same => "",
            Some(tried) if machine::is_older(version, tried) => " (yours is older)",
            _ => " (a different version)",
        };
        let notes =
            if agent.notes.is_empty() { String::new() } else { format!("; {} {}", agent.name, agent.notes) };
        steps.push(("known", format!("tested with {} {tried}{other}: {means}{notes}", agent.name)));
    } else {
        steps
            .push(("known", "this agent has not been tested; the next steps show if skills work".to_owned()));
    }
    steps.push(("approval", permission.to_owned()));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_by_name_and_version() {
        for (name, version, known_as, approval) in [
            (
                "OpenCode",
                "1.18.33",
                "tested with OpenCode 1.18: model used the tools; ",
                "without asking you",
            ),
            (
                "OpenCode",
                "1.180.1",
                "tested with OpenCode 1.18 (a different version): ",
                "without asking you",
            ),
            (
                "mastracode",
                "0.1.0",
                "tested with Mastra Code 0.32: model read the files",
                "you may have to allow",
            ),
            (
                "auggie",
                "0.36.0 (commit 1)",
                "tested with Auggie 0.36: requires an account; ",
                "you may have to allow",
            ),
            ("cline", "3.0.65", "tested with Cline 3.0: model read the files; ", "you may have to allow"),
            ("some-agent", "1", "this agent has not been tested; ", "you may have to allow"),
        ] {
            let steps = known(name, version);
            let [("known", known), ("approval", permission)] = &steps[..] else { panic!("{steps:?}") };
            assert!(known.starts_with(known_as), "{known}");
            assert!(permission.contains(approval), "{permission}");
        }
    }
}
