//! The menu: our commands in the list that the agent gives the client.
//!
//! An `available_commands_update` replaces the whole list
//! ([slash commands](https://agentclientprotocol.com/protocol/v1/slash-commands)), so ours are added to each of the
//! agent's, and the agent's last list is kept for the times when ours change. An agent that sends none within
//! `PATIENCE` after the session is set up gets one from us.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use skills_core::{Skill, SkillName, SkillSet};

use super::{Actions, Effect, Interceptor, Pass, Version};
use crate::session::{Session, SessionKey};
use acp_skills_wire::{Edit, Message, Node, build};

/// How long the agent may take to send its commands once the session is set up.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);

/// The command that the proxy itself answers.
pub(super) const SKILLS: &str = "skills";
/// What stands before the name of a skill when the name alone is another command.
pub(super) const PREFIX: &str = "skill:";

/// How many skills are listed at most: editors show the list in a menu. The others can still be typed.
const MAX_LISTED: usize = 500;
/// How much of a description is listed, in characters.
const MAX_DESCRIPTION_CHARS: usize = 250;
/// Lists of sessions that are not known yet: more than these are nobody's.
const MAX_EARLY: usize = 64;

/// The skills that the user may invoke, each with the word to type for it.
///
/// Agents and editors split a command at the first space, so what cannot stand in a command becomes a hyphen. A name
/// that needs no such change keeps its spelling; others step aside.
pub fn spelled(skills: &SkillSet) -> Vec<(String, &Arc<Skill>)> {
    let invocable = || skills.iter().filter(|skill| skill.properties.user_invocable);
    let as_it_is = |skill: &Skill| spelling(skill.name.as_str()) == skill.name.as_str();
    let mut taken: HashSet<String> =
        invocable().filter(|skill| as_it_is(skill)).map(|skill| skill.name.key()).collect();
    invocable()
        .map(|skill| {
            let word = spelling(skill.name.as_str());
            if as_it_is(skill) || taken.insert(SkillName::key_of(&word)) {
                return (word, skill);
            }
            let free = (2..).map(|number| format!("{word}-{number}"));
            let word = free.into_iter().find(|word| taken.insert(SkillName::key_of(word)));
            (word.unwrap_or_default(), skill)
        })
        .collect()
}

fn spelling(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') {
            word.push(letter);
        } else if !word.ends_with('-') {
            word.push('-');
        }
    }
    let trimmed = word.trim_matches('-');
    match (trimmed.is_empty(), name.starts_with('-') || name.ends_with('-')) {
        // Nothing but symbols.
        (true, _) => "skill".to_owned(),
        // The hyphens at its ends are its own.
        (false, true) if word == name => word,
        (false, _) => trimmed.to_owned(),
    }
}

/// The words that are commands of the agent's. A command of several words claims its first one.
pub(super) struct AgentCommands(HashSet<String>);

impl AgentCommands {
    pub(super) fn of(session: &Session) -> Self {
        let list = session.agent_commands.as_deref().and_then(Node::parse);
        let names = list.into_iter().flat_map(|list| list.elements()).filter_map(|entry| entry.str("name"));
        Self(names.filter_map(|name| first_word(&name)).collect())
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.0.contains(&SkillName::key_of(word))
    }
}

fn first_word(name: &str) -> Option<String> {
    Some(SkillName::key_of(name.trim().trim_start_matches('/').split_whitespace().next()?))
}

/// Whether `/word` is another command than that of the skill.
pub(super) fn is_taken(theirs: &AgentCommands, word: &str) -> bool {
    theirs.has(word) || SkillName::key_of(word) == SKILLS
}

/// Our entries, as JSON.
fn entries(session: &Session, version: Version) -> Vec<Value> {
    let theirs = AgentCommands::of(session);
    let mut entries = Vec::new();
    if !theirs.has(SKILLS) {
        let what = "List the skills of this session, look for new ones, or search them";
        entries.push(version.command(SKILLS, what, Some("[reload | search WORDS]")));
    }
    for (word, skill) in spelled(&session.skills).into_iter().take(MAX_LISTED) {
        let name = if is_taken(&theirs, &word) { format!("{PREFIX}{word}") } else { word };
        let hint = skill.properties.argument_hint.as_deref();
        entries.push(version.command(&name, &description(skill), hint));
    }
    entries
}

/// The description on one line, shortened at a word.
pub(super) fn description(skill: &Skill) -> String {
    let line = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((cut, _)) = line.char_indices().nth(MAX_DESCRIPTION_CHARS) else { return line };
    let end = line[..cut].rfind(' ').unwrap_or(cut);
    format!("{}…", &line[..end])
}

/// Whether an entry of the agent's is only the echo of an MCP prompt of our server's: the skill is in the menu already.
fn is_echo(entry: Node<'_>, server: &str) -> bool {
    entry.str("name").is_some_and(|name| {
        [format!("mcp__{server}__"), format!("mcp:{server}:"), format!("{server}:")]
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
    })
}

/// Adds our entries to the array `list` of the agent's.
fn merge(edit: &mut Edit, list: Node<'_>, session: &Session, version: Version) {
    let ours = entries(session, version).iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let echoes =
        |entry: &Node<'_>| session.server_name.as_deref().is_some_and(|server| is_echo(*entry, server));
    if !list.elements().any(|entry| echoes(&entry)) {
        edit.push(list, &ours);
        return;
    }
    let theirs = list.elements().filter(|entry| !echoes(entry));
    let theirs = theirs.map(|entry| String::from_utf8_lossy(entry.raw()).into_owned());
    let all = theirs.chain([ours]).collect::<Vec<_>>().join(",");
    edit.replace(list.span(), format!("[{all}]"));
}

/// What the agent sent last, and ours.
fn union(session: &Session, version: Version) -> Option<Vec<u8>> {
    let theirs = session.agent_commands.as_deref().unwrap_or(b"[]");
    let mut edit = Edit::new();
    merge(&mut edit, Node::parse(theirs)?, session, version);
    Some(edit.apply(theirs))
}

/// Adds our entries to the list that `object` has, or should have.
fn add(edit: &mut Edit, object: Node<'_>, session: &Session, version: Version) {
    let list = object.get("availableCommands");
    if let Some(list) = list.filter(Node::is_array) {
        return merge(edit, list, session, version);
    }
    let Some(all) = union(session, version) else { return };
    match list {
        Some(other) => edit.replace(other.span(), all),
        None if object.is_object() => {
            edit.insert(object, "availableCommands", &String::from_utf8_lossy(&all));
        }
        // A result of nothing is as good as an empty one.
        None => {
            let result = [br#"{"availableCommands":"#.as_slice(), &all, b"}"].concat();
            edit.replace(object.span(), result);
        }
    }
}

/// The update that we send ourselves: what the agent sent last, and ours.
fn update(session: &Session, version: Version) -> Option<Vec<u8>> {
    let id = session.id.as_deref()?;
    let params = json!({
        "sessionId": id,
        "update": { "sessionUpdate": "available_commands_update", "availableCommands": [] },
    });
    let line = build::notification("session/update", &params);
    let place = Message::parse(&line)?.param(&["update", "availableCommands"])?;
    let mut edit = Edit::new();
    edit.replace(place.span(), union(session, version)?);
    Some(edit.apply(&line))
}

impl Interceptor {
    /// The agent's commands: ours are added.
    pub(super) fn commands_update(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let Some(id) = message.session_id() else { return Pass::Untouched };
        let list = update.get("availableCommands").filter(Node::is_array);
        let raw = list.map(|list| list.raw().to_vec());
        let Some(session) = self.sessions.find(&id) else {
            // Perhaps of a session whose response is still on its way; it goes on, and is kept for then.
            if self.early_commands.len() < MAX_EARLY && self.is_setting_up() {
                self.early_commands.extend(raw.map(|raw| (id.into_owned(), raw)));
            }
            return Pass::Untouched;
        };
        session.agent_commands = raw;
        if !session.has_menu() {
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        add(&mut edit, update, session, self.agent.version);
        session.menu_sent = true;
        Pass::Edited(edit.apply(message.line))
    }

    /// The session is set up, and its response is about to go on with the first commands of the agent.
    pub(super) fn menu_in_response(
        &mut self,
        key: SessionKey,
        message: &Message<'_>,
        result: Node<'_>,
    ) -> Pass {
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        let early = session.id.as_ref().and_then(|id| self.early_commands.remove(id));
        let list = result.get("availableCommands").filter(Node::is_array);
        if let Some(theirs) = list.map(|list| list.raw().to_vec()).or(early) {
            session.agent_commands = Some(theirs);
        }
        let is_due = session.has_menu() && (list.is_some() || !session.menu_sent);
        let mut edit = Edit::new();
        if is_due {
            session.menu_sent = true;
            add(&mut edit, result, session, self.agent.version);
        }
        if !self.is_setting_up() {
            self.early_commands.clear();
        }
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// The session is set up, and its response is about to go on.
    pub(super) fn menu_after_response(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let early = session.id.as_ref().and_then(|id| self.early_commands.remove(id));
        let has_sent = early.is_some();
        if has_sent {
            session.agent_commands = early;
        }
        if session.has_menu() && !session.menu_sent {
            if has_sent {
                session.menu_sent = true;
                actions.after.extend(update(session, self.agent.version));
            } else {
                actions.effects.push(Effect::WaitForMenu(key, PATIENCE));
            }
        }
        if !self.is_setting_up() {
            self.early_commands.clear();
        }
    }

    /// The agent has had its time.
    pub(super) fn menu_due(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.has_menu() && !session.menu_sent {
            session.menu_sent = true;
            actions.to_client.extend(update(session, self.agent.version));
        }
    }

    /// Our commands have changed.
    pub(super) fn menu_changed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(update) = update(session, self.agent.version) {
            session.menu_sent = true;
            actions.to_client.push(update);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(names: &[&str]) -> Vec<String> {
        let skill = |name: &&str| Skill::builder(*name, "x").body("x").build().unwrap();
        let set: SkillSet = names.iter().map(skill).collect();
        spelled(&set).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn spells_names_for_typing() {
        for (names, expected) in [
            (vec!["code-review"], vec!["code-review"]),
            (vec!["Code Review", "org/pdf:forms"], vec!["Code-Review", "org-pdf-forms"]),
            (vec!["prüfung", "レビュー", "v1.2_x"], vec!["prüfung", "レビュー", "v1.2_x"]),
            (vec!["🎉", "🎉🎉"], vec!["skill", "skill-2"]),
            (vec!["-edge-", "(draft)"], vec!["-edge-", "draft"]),
            // A name that needs no change keeps its spelling, wherever it stands.
            (
                vec!["code review", "code/review", "code-review"],
                vec!["code-review-2", "code-review-3", "code-review"],
            ),
        ] {
            assert_eq!(words(&names), expected, "{names:?}");
        }
    }

    #[test]
    fn descriptions_fit_a_menu() {
        let skill =
            Skill::builder("x", format!("two\n lines {}", "word ".repeat(100))).body("x").build().unwrap();
        let line = description(&skill);
        assert!(line.starts_with("two lines word") && line.ends_with("word…"), "{line}");
        assert!(line.chars().count() <= MAX_DESCRIPTION_CHARS + 1);
    }
}
