//! Approval of a project's skills: with `/skills trust`, or in a form if the client supports
//! [elicitation](https://agentclientprotocol.com/protocol/v1/elicitation).
//!
//! The user is asked once for each version of a skill. Approvals and refusals are saved, but a closed form is neither. The
//! decision applies to the version that the user was shown. A command approves only versions that were listed in its session
//! ([`Listed`](crate::session::Listed)), and the host compares the files before it saves the decision.

mod named;
mod untrust;

use std::path::{Path, PathBuf};

use acp_skills_wire::{Id, Message, Node};
use serde_json::{Map, Value, json};
use skills_core::{
    set::Unapproved,
    text::{markdown, markdown_code, markdown_message, markdown_path},
};

pub(crate) use self::named::{TrustError, named};
use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::spelling,
    outputs::{Actions, Level, Pass},
    overview,
    pending::{Kind, Question},
    queries::{Query, Refreshed, TrustOutcome},
    session::Session,
    slash_command::SlashCommand,
};

/// The word after `/skills`.
pub(crate) const TRUST: &str = "trust";

/// The maximum number of skills in a question.
const MAX_NAMED: usize = 20;

/// The field of the form.
const ANSWER: &str = "trust";

/// A version of a skill: its directory and the checksum of its files.
pub(crate) type SkillVersion = (Option<PathBuf>, String);

/// Returns true if the words after `/skills` name unapproved skills of this proxy, so that the command is not for another
/// proxy.
pub(crate) fn is_ours(session: &Session, words: &str) -> bool {
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let is_known = |words: &str| match named(session, words) {
        Ok(_) | Err(TrustError::Ambiguous { .. } | TrustError::Several { .. }) => true,
        Err(_) => false,
    };
    let is_any_known = || is_known(rest.trim()) || rest.split_whitespace().any(is_known);
    verb == TRUST && is_any_known() || untrust::is_ours(session, verb, rest)
}

/// Lists the unapproved skills that `words` name, without those that were listed before in this version. From now on, they count as
/// listed.
pub(crate) fn list(session: &mut Session, words: &str) -> String {
    let skills = match named(session, words) {
        Ok(skills) => skills,
        Err(error) => return error.to_string(),
    };
    let all = session.switches.all().unapproved();
    let unlisted: Vec<_> = skills.into_iter().filter(|entry| !session.listed.has(entry, all)).collect();
    let text = overview::list_before_trust(session, &unlisted);
    let all = session.switches.all().unapproved();
    session.listed.add(overview::first_unapproved(&unlisted), all);
    text
}

impl Interceptor {
    /// Handles `/skills trust`: approves the skills that `words` name, or all skills, in the versions that the user was shown.
    /// If nothing can be approved, lists the skills instead. If the command names a skill that was not listed as it is now,
    /// none of the named skills is approved. Returns true if the answer is held until the host has saved the decision.
    pub(crate) fn trust_command(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        words: &str,
        actions: &mut Actions,
    ) -> bool {
        if !SlashCommand::is_alone(prompt, self.client) {
            self.reply(key, prompt, id, &TrustError::OtherText.to_string(), actions);
            return false;
        }
        let Some(session) = self.sessions.get(key) else { return false };
        let all = session.switches.all().unapproved();
        let (listed, unlisted): (Vec<_>, Vec<_>) = match named(session, words) {
            Ok(skills) => skills.into_iter().partition(|entry| session.listed.has(entry, all)),
            Err(error) => {
                self.reply(key, prompt, id, &error.to_string(), actions);
                return false;
            }
        };
        if listed.is_empty() || !(words.is_empty() || unlisted.is_empty()) {
            self.list_after_search(key, prompt, id, actions);
            return true;
        }
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        self.decide(key, ticket, listed, true, actions);
        true
    }

    fn decide(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        skills: Vec<Unapproved>,
        trusted: bool,
        actions: &mut Actions,
    ) {
        let workspace = self.sessions.get(key).map(|session| {
            // The skills in a form only count as listed when the user answers the form. Before that, the user may still
            // be typing a command about an earlier list.
            let all = session.switches.all().unapproved();
            if trusted {
                session.listed.remove(&skills, all);
            } else {
                session.listed.add(&skills, all);
            }
            session.workspace.clone()
        });
        let workspace = workspace.unwrap_or_default();
        let workspaces = self.workspaces().into_iter().collect();
        actions.ask(Query::Trust { session: key, ticket, workspace, skills, trusted, workspaces });
    }

    /// Applies the skills after a decision to all sessions, and answers the command.
    pub(crate) fn trust_saved(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        trusted: bool,
        outcome: &TrustOutcome,
        refreshed: Refreshed,
        actions: &mut Actions,
    ) {
        self.refreshed(refreshed, actions);
        let unlisted = self.sessions.get(key).map_or(0, |session| {
            let all = session.switches.all().unapproved();
            all.iter().filter(|entry| !session.listed.has(entry, all)).count()
        });
        let text = if trusted {
            overview::trust_outcome(outcome, unlisted)
        } else {
            untrust::outcome(self.sessions.get(key).map(|session| &*session), outcome)
        };
        // If the user decided in a form, there is no command to respond to, so we log any failure instead.
        if self.answer_command(key, ticket, &text, actions) {
            return;
        }
        match &outcome.saved {
            Err(error) if !trusted => {
                let why = markdown_message(&error.0);
                actions.warn_user(
                    key,
                    format!("Could not save that you declined skills, so you will be asked again: {why}."),
                );
            }
            Ok(()) if !trusted && !outcome.failed.is_empty() => {
                actions.warn_user(key, overview::not_declined(outcome));
            }
            saved if trusted && !(outcome.failed.is_empty() && saved.is_ok()) => actions.warn_user(key, text),
            _ => {}
        }
    }

    /// Returns a request to the client that asks the user about new skills. Returns `None` if there are no new skills, or if the
    /// client shows no forms.
    pub(crate) fn question(&mut self, key: SessionKey) -> Option<Vec<u8>> {
        if !self.client.shows_forms() {
            return None;
        }
        let session = self.sessions.get(key)?;
        let id = session.id()?.to_owned();
        let unapproved = session.switches.all().unapproved().iter();
        let is_new =
            |skill: &&Unapproved| !skill.is_refused && !self.memory.asked_about.contains(&version(skill));
        let new = TrustForm::first(unapproved.filter(is_new));
        if new.is_empty() {
            return None;
        }
        self.memory.asked_about.extend(new.iter().map(version));
        let request = self.ids.new_question();
        let mut params = Map::from_iter([("sessionId".to_owned(), id.into())]);
        params.extend(TrustForm { skills: &new, has_commands: true }.params());
        let ticket = self.pending.new_ticket();
        let question = Kind::Question(Question { id: request.clone(), skills: new });
        self.pending.insert(ticket, Some(key), None, question);
        Some(acp_skills_wire::build::request(&request, "elicitation/create", &params.into()))
    }

    /// Handles a response of the client. A response to a question from the proxy is not forwarded to the agent.
    pub(crate) fn user_answered(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(Id::Text(id)) = message.id() else { return Pass::Untouched };
        let Some((key, skills)) = self.pending.take_question(id.as_str()) else { return Pass::Untouched };
        if skills.is_empty() {
            actions.log(Level::Info, "ignored the answer to a form, because its skills have changed since");
            return Pass::Consumed;
        }
        let action = message.result.and_then(|result| result.str("action"));
        let is_ticked = message.result.and_then(|result| result.at(&["content", ANSWER]));
        let is_ticked = is_ticked.and_then(|node: Node<'_>| node.as_bool());
        let Some(trusted) = decision(action.as_deref(), is_ticked) else { return Pass::Consumed };
        let ticket = self.pending.new_ticket();
        self.decide(key, ticket, skills, trusted, actions);
        Pass::Consumed
    }
}

/// A form that asks the user about skills of a project, with the members of an elicitation request in ACP and in MCP.
pub struct TrustForm<'a> {
    /// The skills that need approval.
    pub skills: &'a [Unapproved],
    /// True if the user can enter `/skills trust NAME`.
    pub has_commands: bool,
}

impl TrustForm<'_> {
    /// Returns the first skills for a form. Skills of each project and of each MCP server have forms of their own.
    pub fn first<'s>(unapproved: impl Iterator<Item = &'s Unapproved>) -> Vec<Unapproved> {
        let mut skills: Vec<Unapproved> = unapproved.cloned().collect();
        let owner = |entry: &Unapproved| {
            let service = entry.skill.service().map(|service| service.identity().to_owned());
            (service, entry.skill.session_root.clone())
        };
        if let Some(first) = skills.first().map(owner) {
            skills.retain(|entry| owner(entry) == first);
        }
        skills.truncate(MAX_NAMED);
        skills
    }

    /// Returns a key for the user's question about a skill, so that it is asked only once. For a skill of a project, it contains the
    /// `version`. A skill of an MCP server has the key of the server, which could otherwise ask again and again.
    pub fn asked_about(unapproved: &Unapproved, version: String) -> (Option<PathBuf>, String) {
        match unapproved.skill.service() {
            Some(service) => (Some(PathBuf::from(service.identity())), String::new()),
            None => (unapproved.skill.dir().map(Path::to_owned), version),
        }
    }

    /// Returns the parameters of the request: the mode, the text, and the schema of the answer.
    pub fn params(&self) -> Map<String, Value> {
        let title = if self.skills.len() == 1 { "Trust this skill" } else { "Trust these skills" };
        let mut params = Map::new();
        params.insert("mode".to_owned(), "form".into());
        params.insert("message".to_owned(), message(self.skills, self.has_commands).into());
        params.insert(
            "requestedSchema".to_owned(),
            json!({
                "type": "object",
                "properties": { ANSWER: { "type": "boolean", "title": title, "default": false } },
                "required": [ANSWER],
            }),
        );
        params
    }
}

/// Returns the user's decision in the answer to a [`TrustForm`]. `content` is the content of the answer. `None` if the user closed the
/// form.
pub fn trust_decision(action: &str, content: Option<&Value>) -> Option<bool> {
    decision(Some(action), content.and_then(|content| content.get(ANSWER)?.as_bool()))
}

/// Returns the decision for the action of an answer, and the value of its field.
fn decision(action: Option<&str>, is_ticked: Option<bool>) -> Option<bool> {
    match action {
        Some("accept") => Some(is_ticked == Some(true)),
        Some("decline") => Some(false),
        // The form was closed, or we don't know this answer, so we don't have a decision.
        _ => None,
    }
}

/// Returns the version of a skill, which is different from the same skill in another project.
fn version(unapproved: &Unapproved) -> SkillVersion {
    TrustForm::asked_about(unapproved, unapproved.digest.clone())
}

/// Returns the text of the form.
fn message(skills: &[Unapproved], has_commands: bool) -> String {
    let service = skills.first().and_then(|entry| entry.skill.service());
    let from = match service {
        Some(service) => format!("The {} offers", markdown(service.label())),
        None => "This project contains".to_owned(),
    };
    let mut lines = vec![match skills {
        [_] => {
            format!("{from} a skill. If you trust this skill, your agent will follow the instructions:")
        }
        _ => format!(
            "{from} {} skills. If you trust these skills, your agent will follow the instructions:",
            skills.len()
        ),
    }];
    for entry in skills {
        let skill = &entry.skill;
        let place = skill.dir().map(markdown_path).unwrap_or_default();
        let name = markdown_code(skill.name.as_str());
        let description = markdown(&spelling::description(skill));
        let changed = if entry.has_changed { "changed since last trusted" } else { "" };
        let notes: Vec<_> = [place.as_str(), changed].into_iter().filter(|note| !note.is_empty()).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        lines.push(format!("- {name}{notes}: {description}"));
    }
    let first = match service {
        Some(_) => "The agent only gets files that are the same as in the list of the server.",
        None => "Review the files before you agree.",
    };
    let command = if has_commands { " Use `/skills trust NAME` to trust a single skill." } else { "" };
    lines.push(format!("{first}{command}"));
    lines.join("\n")
}
