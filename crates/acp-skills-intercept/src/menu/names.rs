//! Decides who gets a command if its name is both a command of the agent and a skill.
//!
//! The other one stays in reach with a prefix: `/skill:NAME` or `/agent:NAME`. The menu shows it with this prefix, and both
//! descriptions say which is which.

use std::sync::Arc;

use acp_skills_wire::{Edit, Node};
use skills_core::{Scope, Skill, SkillName};

use super::{
    reflections,
    spelling::{self, Words},
};
use crate::{
    policy::CommandNames,
    session::{Session, menu::AgentCommands},
};

/// The command that the proxy itself answers.
pub(crate) const SKILLS: &str = "skills";
/// The prefix that is added to the name of a skill if another command has the same name.
pub(crate) const PREFIX: &str = "skill:";
/// The prefix that is added to a command of the agent if a skill gets its name.
pub(crate) const AGENT_PREFIX: &str = "agent:";

/// The names of the commands in one session.
pub(crate) struct Names<'s> {
    theirs: AgentCommands,
    words: Arc<Words>,
    /// The name of the skills server.
    server: Option<&'s str>,
    policy: CommandNames,
}

impl<'s> Names<'s> {
    pub(crate) fn of(session: &'s Session, policy: CommandNames) -> Self {
        let words = spelling::spelled(&session.skills);
        let server = session.server.name();
        let is_own = |entry: Node<'_>| !reflections::is_reflection(entry, server, &words);
        Self { theirs: AgentCommands::of(&session.menu, is_own), words, server, policy }
    }

    /// Returns true if an entry from the agent's list is a reflection of one of our commands.
    pub(super) fn is_reflection(&self, entry: Node<'_>) -> bool {
        reflections::is_reflection(entry, self.server, &self.words)
    }

    /// Returns true if `/word` is a command of the agent.
    pub(crate) fn are_agents(&self, word: &str) -> bool {
        self.theirs.has(word)
    }

    /// Returns the skill that `word` names in the menu. Case is ignored.
    pub(crate) fn skill(&self, word: &str) -> Option<&Arc<Skill>> {
        self.words.skill(word)
    }

    /// Returns the skill that gets `/word`, or `None` if there is no such skill, or if `/word` is another command.
    pub(crate) fn skill_of(&self, word: &str) -> Option<&Arc<Skill>> {
        if SkillName::key_of(word) == SKILLS {
            return None;
        }
        self.skill(word).filter(|skill| !self.theirs.has(word) || self.is_preferred(skill))
    }

    /// Returns true if the skill gets its name even if the agent has a command with this name. By default, this applies to skills
    /// that the user named explicitly, for example with `--skill`.
    fn is_preferred(&self, skill: &Skill) -> bool {
        match self.policy {
            CommandNames::Auto => skill.scope == Scope::Named,
            CommandNames::Skills => true,
            CommandNames::Agent => false,
        }
    }

    /// Returns true if the agent's command `/word` is only available with the prefix.
    fn is_displaced(&self, word: &str) -> bool {
        // Another proxy in the chain may have displaced a command of the same name. Then the prefix is displaced, too.
        let bare = word.trim_start_matches(AGENT_PREFIX);
        SkillName::key_of(bare) != SKILLS && self.skill(bare).is_some_and(|skill| self.is_preferred(skill))
    }

    /// Returns the agent's command that the user means with `word`, which has the prefix. Returns `None` if `/word` itself is a
    /// command of the agent, or if neither the agent has this command nor a skill has its name.
    pub(crate) fn behind_prefix<'w>(&self, word: &'w str) -> Option<&'w str> {
        let command = word.strip_prefix(AGENT_PREFIX)?;
        let is_known = self.theirs.has(command) || self.is_displaced(command);
        (is_known && (!self.theirs.has(word) || self.is_displaced(word))).then_some(command)
    }

    /// Returns the words of the skills in the menu.
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    /// Returns true if no other command has this name.
    pub(super) fn is_free(&self, word: &str) -> bool {
        SkillName::key_of(word) != SKILLS && !self.theirs.has(word)
    }

    /// Returns the name and the description of a skill in the menu if its name is not free.
    pub(super) fn entry(&self, word: &str, skill: &Skill) -> (String, String) {
        let description = spelling::description(skill);
        let description = if self.are_agents(word) { format!("Skill: {description}") } else { description };
        let name = if self.skill_of(word).is_some() { word.to_owned() } else { format!("{PREFIX}{word}") };
        (name, description)
    }

    /// Adds the prefix to an entry of the agent's list if a skill gets its name.
    pub(super) fn rename(&self, edit: &mut Edit, entry: Node<'_>) {
        let Some((node, name)) = entry.get("name").and_then(|node| Some((node, node.as_text()?))) else {
            return;
        };
        let bare = name.trim_start().trim_start_matches('/');
        if !bare.split_whitespace().next().is_some_and(|word| self.is_displaced(word)) {
            return;
        }
        let slashes = &name[..name.len() - bare.len()];
        edit.set(node, &format!("{slashes}{AGENT_PREFIX}{bare}").into());
        if let Some((node, text)) = entry.get("description").and_then(|node| Some((node, node.as_text()?))) {
            edit.set(node, &format!("Agent: {text}").into());
        }
    }
}
