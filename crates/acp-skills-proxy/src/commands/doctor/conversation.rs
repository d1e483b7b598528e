//! [`Conversation`]: the conversation with the agent.

use std::{
    path::Path,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use acp_skills::one_shot::Client;
use anyhow::Context;

use super::steps::Steps;
use acp_skills::{
    agents::{self, Agent, Means},
    intercept::known_agent,
};

/// What a conversation needs.
pub(super) struct Conversation {
    pub(super) steps: Arc<Steps>,
    /// Hears when the agent fetches our tools.
    pub(super) tools: Receiver<()>,
    pub(super) wants_tools: bool,
    /// How long the agent may take to fetch them.
    pub(super) patience: Duration,
    pub(super) prompt: Option<String>,
}

impl Conversation {
    /// Returns whether the agent has our tools.
    pub(super) fn run(self, client: &mut Client, cwd: &Path) -> anyhow::Result<bool> {
        self.steps.wait_for("waiting for the agent's answer to initialize");
        let answer = client.initialize().context("initialize")?;
        let info = &answer["agentInfo"];
        let name = info["name"].as_str().unwrap_or("an agent without a name");
        let version = info["version"].as_str().unwrap_or_default();
        self.steps.step(
            "initialize",
            true,
            format!("{name} {version}, protocol version {}", answer["protocolVersion"]),
        );
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
        self.steps.wait_for("waiting for the agent to open a session");
        let session =
            client.new_session(cwd).context("session/new (does the agent want you to log in first?)")?;
        self.steps.step("session/new", true, "the agent opened a session");
        let mut connected = self.wants_tools && self.waits_for_tools();
        if let Some(prompt) = &self.prompt {
            self.steps.wait_for("waiting for the end of the turn");
            let end = client.prompt(&session, prompt).context("session/prompt")?;
            self.steps.step("prompt", true, format!("the turn ended: {}", end["stopReason"]));
            connected |= self.tools.try_recv().is_ok();
        }
        if self.wants_tools && !connected {
            let seconds = self.patience.as_secs_f64();
            let text = format!("the agent did not fetch the list of tools within {seconds} s");
            self.steps.step("tools", false, text);
        }
        Ok(connected)
    }

    fn waits_for_tools(&self) -> bool {
        self.steps.wait_for("waiting for the agent to fetch the tools");
        self.steps.over_acp() || self.tools.recv_timeout(self.patience).is_ok()
    }
}

/// What is known beforehand of the agent that gives itself this name and version, as steps.
fn known(name: &str, version: &str) -> Vec<(&'static str, String)> {
    let permission = if known_agent(name).is_some_and(Agent::names_calls) {
        "the agent says which tool it wants to call, so calls of our reading tools need not be asked about"
    } else {
        "the agent is not known to say which tool it wants to call, so it is you who is asked"
    };
    let mut steps = Vec::new();
    if let Some((agent, seen)) =
        agents::calling_itself(name).and_then(|agent| Some((agent, agent.seen.as_ref()?)))
    {
        let tried = seen.version.unwrap_or_default();
        let is_same = seen.is_of(version);
        let means = match seen.skills {
            _ if seen.login => "it opened no session without an account; its refusals were passed on",
            Some(Means::Tools) => "its model worked with the tools",
            Some(Means::Files) => "its model worked with the files",
            None => "it opened sessions",
            Some(_) => "it worked",
        };
        let other = if is_same { "" } else { ", which is another version" };
        let notes =
            if agent.notes.is_empty() { String::new() } else { format!("; {} {}", agent.name, agent.notes) };
        steps.push(("known", format!("{} {tried}{other}: {means}{notes}", agent.name)));
    } else {
        steps.push(("known", "nobody has tried this agent; what is seen now is all there is".to_owned()));
    }
    steps.push(("approval", permission.to_owned()));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_beforehand() {
        for (name, version, known_as, approval) in [
            ("OpenCode", "1.18.33", "OpenCode 1.18: its model worked with the tools; ", "need not be asked"),
            ("OpenCode", "1.180.1", "OpenCode 1.18, which is another version: ", "need not be asked"),
            (
                "mastracode",
                "0.1.0",
                "Mastra Code 0.32: its model worked with the files",
                "it is you who is asked",
            ),
            (
                "auggie",
                "0.36.0 (commit 1)",
                "Auggie 0.36: it opened no session without an account; ",
                "it is you",
            ),
            ("cline", "3.0.65", "Cline 3.0: its model worked with the files; ", "it is you who is asked"),
            ("some-agent", "1", "nobody has tried this agent; ", "it is you who is asked"),
        ] {
            let steps = known(name, version);
            let [("known", known), ("approval", permission)] = &steps[..] else { panic!("{steps:?}") };
            assert!(known.starts_with(known_as), "{known}");
            assert!(permission.contains(approval), "{permission}");
        }
    }
}
