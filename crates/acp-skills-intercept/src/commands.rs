//! Recognizes our slash commands, and handles them.
//!
//! `/NAME`, `/skill:NAME` and, if the user enabled it, `$NAME` invoke a skill. The skill's text is fetched, and `expansion`
//! writes the prompt for the agent, which never sees the command. `/skills` is answered here, without the agent. `/agent:NAME` is
//! a command of the agent.

pub(crate) mod agents;

use acp_skills_wire::{Id, Message};
use skills_core::SkillName;

use crate::{
    Interceptor, active,
    active_skills::ActivatedBy,
    keys::{SessionKey, Ticket},
    menu::names::{Names, PREFIX, SKILLS},
    outputs::Actions,
    overview,
    policy::{CommandNames, Policy},
    queries::{Reason, Wanted},
    record,
    session::Session,
    slash_command::SlashCommand,
    switches::{Switch, SwitchError},
    trust,
    version::Reply,
};

/// A command that is handled by the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// `/skills`, with its arguments.
    Skills(String),
    /// The invocation of a skill.
    Invoke(SkillName),
    /// A command of the agent, and the line of the prompt without our prefix.
    Agents(Vec<u8>),
}

impl Command {
    /// Returns our command in a prompt. Returns `None` if there is no command, or if it is one of the agent's without a prefix.
    pub(crate) fn of(session: &mut Session, message: &Message<'_>, policy: &Policy) -> Option<Self> {
        let command = SlashCommand::read(message.param(&["prompt"])?)?;
        let names = Names::of(session, policy.commands);
        if !session.has_menu() {
            // We answer `/skills` even if there are no skills, because otherwise the model would have to guess.
            let is_asked = command.sigil == '/' && command.word == SKILLS && !names.are_agents(SKILLS);
            return is_asked.then_some(Self::Skills(command.rest));
        }
        let invoke = |word: &str| names.skill(word).map(|skill| Self::Invoke(skill.name.clone()));
        if command.sigil == '$' {
            return if policy.dollar { invoke(&command.word) } else { None };
        }
        if let Some(found) = command.word.strip_prefix(PREFIX).and_then(invoke) {
            return Some(found);
        }
        if let Some(agents) = names.behind_prefix(&command.word) {
            return agents::without_prefix(session, message, &command, agents).map(Self::Agents);
        }
        if command.word == SKILLS {
            // Another proxy in the chain also handles `/skills`, but it doesn't know our skills. So we only take the command if
            // it names one of them.
            let is_ours = !names.are_agents(SKILLS)
                || Switch::is_ours(session, &command.rest)
                || trust::is_ours(session, &command.rest)
                || active::is_ours(session, &command.rest);
            return is_ours.then_some(Self::Skills(command.rest));
        }
        let invoked = names.skill_of(&command.word).map(|skill| Self::Invoke(skill.name.clone()));
        if invoked.is_none() {
            session.menu.sent_as_typed(&command.word);
        }
        invoked
    }
}

/// Returns the text to fetch for a prompt that invokes a skill.
pub(crate) fn wanted(session: &Session, skill: &SkillName, message: &Message<'_>) -> Wanted {
    Wanted::Skill { name: skill.as_str().to_owned(), arguments: arguments(message), guide: session.guide() }
}

/// Returns the text after the command.
pub(crate) fn arguments(message: &Message<'_>) -> String {
    let command = message.param(&["prompt"]).and_then(SlashCommand::read);
    command.map(|command| command.rest.trim_end().to_owned()).unwrap_or_default()
}

/// Returns the answer to `/skills`. The unapproved skills in it count as listed.
fn overview(session: &mut Session, names: CommandNames) -> String {
    let text = overview::session(session, names);
    let all = session.switches.all().unapproved();
    session.listed.replace(overview::first_unapproved(all), all);
    text
}

impl Interceptor {
    /// Sends a message to the user and ends the turn, as an agent would.
    pub(crate) fn reply(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        text: &str,
        actions: &mut Actions,
    ) {
        let message_id = self.ids.new_message();
        let Some(session) = self.sessions.get(key) else { return };
        let reply = Reply {
            session: session.id(),
            is_busy: session.turns.is_busy(),
            background: session.turns.background(),
            prompt,
            message_id: &message_id,
            text,
        };
        actions.to_client.extend(self.agent.version.reply(id, &reply));
    }

    /// Answers `/skills`. Returns true if the answer comes later.
    pub(crate) fn skills_command(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        words: &str,
        actions: &mut Actions,
    ) -> bool {
        let (what, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        if what == "reload" && rest.trim().is_empty() {
            let ticket = self.pending.new_ticket();
            self.hold_command(key, ticket, id, prompt);
            self.ask_for_reload(key, ticket, actions);
            return true;
        }
        if what == trust::TRUST {
            return self.trust_command(key, prompt, id, rest.trim(), actions);
        }
        if let Some(is_held) = self.untrust_command(key, prompt, id, words, actions) {
            return is_held;
        }
        if words.trim() == active::ACTIVE {
            return self.list_active(key, prompt, id, actions);
        }
        if let Some(text) = self.drop_active(key, words, actions) {
            self.reply(key, prompt, id, &text, actions);
            return false;
        }
        let Some(session) = self.sessions.get(key) else { return false };
        if words.trim().is_empty() && !session.switches.all().unapproved().is_empty() {
            self.list_after_search(key, prompt, id, actions);
            return true;
        }
        let text = match Switch::read(session, words) {
            Some(Ok(switch)) if switch.is_on() && !SlashCommand::is_alone(prompt, self.client) => {
                SwitchError::OtherText.to_string()
            }
            Some(Ok(switch)) => return self.switch(key, prompt, id, switch, actions),
            Some(Err(error)) => error.to_string(),
            None => match what {
                "" => overview(session, self.policy.commands),
                "search" if !rest.trim().is_empty() => overview::search(session, rest.trim()),
                _ => format!("{} {}", overview::USAGE, active::USAGE),
            },
        };
        self.reply(key, prompt, id, &text, actions);
        false
    }

    /// Holds a command that lists unapproved skills until they were searched again. Otherwise, a command that approves a listed skill
    /// would fail if its files have changed since the last search.
    pub(crate) fn list_after_search(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) {
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        self.ask_for_skills(Reason::Listing(key, ticket), actions);
    }

    /// Answers a command that lists unapproved skills, after the search.
    pub(crate) fn listing_answered(&mut self, key: SessionKey, ticket: Ticket, actions: &mut Actions) {
        let held = self.pending.fetching_prompt(ticket);
        let words = held.and_then(|held| Some(arguments(&Message::parse(&held.line)?)));
        let Some((words, session)) = words.zip(self.sessions.get(key)) else { return };
        let text = match words.trim().strip_prefix(trust::TRUST) {
            Some(words) => trust::list(session, words.trim()),
            None => overview(session, self.policy.commands),
        };
        self.answer_command(key, ticket, &text, actions);
    }

    /// Activates a skill that a prompt invokes, once its text was fetched. If only the user can have written the command
    /// (`is_alone`), the model may then use the skill, too, and the skill has its rights. It receives the text later, when the
    /// prompt is sent.
    pub(crate) fn invoked(
        &mut self,
        key: SessionKey,
        skill: &SkillName,
        is_alone: bool,
        actions: &mut Actions,
    ) {
        if let Some(session) = self.sessions.get(key) {
            let by = if is_alone { ActivatedBy::User } else { ActivatedBy::Prompt };
            record::activate(session, skill, by, actions);
            actions.effects.push(session.serve(false));
        }
    }
}
