//! [`Visit`]: the conversation with the agent.

use std::{
    path::Path,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use acp_skills::one_shot::Client;
use anyhow::Context;

use super::look::Look;

/// What a visit needs.
pub(super) struct Visit {
    pub(super) look: Arc<Look>,
    /// Hears when the agent fetches our tools.
    pub(super) tools: Receiver<()>,
    pub(super) wants_tools: bool,
    /// How long the agent may take to fetch them.
    pub(super) patience: Duration,
    pub(super) prompt: Option<String>,
}

impl Visit {
    /// Returns whether the agent has our tools.
    pub(super) fn run(self, client: &mut Client, cwd: &Path) -> anyhow::Result<bool> {
        self.look.wait_for("waiting for the agent's answer to initialize");
        let answer = client.initialize().context("initialize")?;
        let info = &answer["agentInfo"];
        let name = info["name"].as_str().unwrap_or("an agent without a name");
        let version = info["version"].as_str().unwrap_or_default();
        self.look.step(
            "initialize",
            true,
            format!("{name} {version}, protocol version {}", answer["protocolVersion"]),
        );
        let capabilities = &answer["agentCapabilities"];
        let detail = format!(
            "mcpCapabilities {}, systemPrompt {}, loadSession {}",
            capabilities["mcpCapabilities"],
            capabilities["sessionCapabilities"]["systemPrompt"],
            capabilities["loadSession"],
        );
        self.look.step("capabilities", true, detail);
        self.look.wait_for("waiting for the agent to open a session");
        let session =
            client.new_session(cwd).context("session/new (does the agent want you to log in first?)")?;
        self.look.step("session/new", true, "the agent opened a session");
        let mut connected = self.wants_tools && self.waits_for_tools();
        if let Some(prompt) = &self.prompt {
            self.look.wait_for("waiting for the end of the turn");
            let end = client.prompt(&session, prompt).context("session/prompt")?;
            self.look.step("prompt", true, format!("the turn ended: {}", end["stopReason"]));
            connected |= self.tools.try_recv().is_ok();
        }
        if self.wants_tools && !connected {
            let seconds = self.patience.as_secs_f64();
            let text = format!("the agent did not fetch the list of tools within {seconds} s");
            self.look.step("tools", false, text);
        }
        Ok(connected)
    }

    fn waits_for_tools(&self) -> bool {
        self.look.wait_for("waiting for the agent to fetch the tools");
        self.look.over_acp() || self.tools.recv_timeout(self.patience).is_ok()
    }
}
