//! [`Menu`]: the commands of one session that the client shows.

use std::collections::HashSet;

use acp_skills_wire::Node;
use skills_core::name::SkillName;

/// The maximum number of commands that are remembered to add their prefix again.
const MAX_WITHOUT_PREFIX: usize = 500;

/// The menu of one session.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    /// The agent's last list of commands: a JSON array.
    agent_commands: Option<Vec<u8>>,
    /// True if a list with skill commands was sent to the client since the last setup of this session.
    sent: bool,
    /// The agent's commands that the user has typed with a prefix, and the agent has received without it.
    without_prefix: HashSet<String>,
}

impl Menu {
    /// Returns true if a list with skill commands was sent to the client since the last setup of this session.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent
    }

    /// Remembers that the session is set up again, so that the client needs a list again.
    pub(crate) fn is_due_again(&mut self) {
        self.sent = false;
    }

    /// Remembers that a list with skill commands is sent to the client.
    pub(crate) fn sent(&mut self) {
        self.sent = true;
    }

    /// Notes that the agent gets this command without the prefix that the user typed.
    pub(crate) fn sent_without_prefix(&mut self, command: &str) {
        if self.without_prefix.len() < MAX_WITHOUT_PREFIX {
            self.without_prefix.insert(SkillName::key_of(command));
        }
    }

    /// Notes that the agent gets this command as the user typed it, for example because the skill of this name was turned off.
    pub(crate) fn sent_as_typed(&mut self, command: &str) {
        if !self.without_prefix.is_empty() {
            self.without_prefix.remove(&SkillName::key_of(command));
        }
    }

    /// Returns true if the agent has received this command without the prefix that the user typed.
    pub(crate) fn was_sent_without_prefix(&self, command: &str) -> bool {
        !self.without_prefix.is_empty() && self.without_prefix.contains(&SkillName::key_of(command))
    }

    /// Stores the agent's list of commands, or `None` if the agent sent no list.
    pub(crate) fn set_agent_commands(&mut self, list: Option<Vec<u8>>) {
        self.agent_commands = list;
    }

    /// The agent's last list of commands: a JSON array.
    pub(crate) fn agent_commands(&self) -> &[u8] {
        self.agent_commands.as_deref().unwrap_or(b"[]")
    }
}

/// The words that are commands of the agent. If a command has several words, the first one counts.
pub(crate) struct AgentCommands(HashSet<String>);

impl AgentCommands {
    /// Reads the commands in the agent's list for which `are_its_own` returns true.
    pub(crate) fn of(menu: &Menu, are_its_own: impl Fn(Node<'_>) -> bool) -> Self {
        let list = Node::parse(menu.agent_commands());
        let entries = list.into_iter().flat_map(|list| list.elements()).filter(|entry| are_its_own(*entry));
        let names = entries.filter_map(|entry| entry.str("name"));
        Self(names.filter_map(|name| first_word(&name)).collect())
    }

    pub(crate) fn has(&self, word: &str) -> bool {
        self.0.contains(&SkillName::key_of(word))
    }
}

fn first_word(name: &str) -> Option<String> {
    Some(SkillName::key_of(name.trim().trim_start_matches('/').split_whitespace().next()?))
}
