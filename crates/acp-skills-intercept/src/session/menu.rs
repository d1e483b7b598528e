//! [`Menu`]: the commands of one session that the client shows.

use std::collections::HashSet;

use acp_skills_wire::Node;
use skills_core::name::SkillName;

/// The menu of one session.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    /// The agent's own commands as it sent them last: a JSON array.
    agent_commands: Option<Vec<u8>>,
    /// Whether the client has got a list of commands with ours in it since the session was set up last.
    sent: bool,
}

impl Menu {
    /// Whether the client has got a list with ours in it since the session was set up last.
    pub(crate) fn was_sent(&self) -> bool {
        self.sent
    }

    /// The session is set up again, and the client needs a list again.
    pub(crate) fn is_due_again(&mut self) {
        self.sent = false;
    }

    /// The client gets a list with ours in it.
    pub(crate) fn sent(&mut self) {
        self.sent = true;
    }

    /// The agent sent these commands; nothing when it sent no list.
    pub(crate) fn set_agent_commands(&mut self, list: Option<Vec<u8>>) {
        self.agent_commands = list;
    }

    /// The agent's own commands as it sent them last: a JSON array.
    pub(crate) fn agent_commands(&self) -> &[u8] {
        self.agent_commands.as_deref().unwrap_or(b"[]")
    }
}

/// The words that are commands of the agent's. A command of several words claims its first one.
pub(crate) struct AgentCommands(HashSet<String>);

impl AgentCommands {
    /// Those in the list that `are_its_own`.
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
