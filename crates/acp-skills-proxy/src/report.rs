//! Summarizes the events of `--events`: which skills are used, by the model or by users, with which outcomes and durations.
//!
//! | file | owns |
//! |---|---|
//! | `report` | the summary |
//! | `durations` | durations and percentiles |
//! | `page` | the summary as an HTML page |
//! | `chart` | the page's charts |

mod chart;
mod durations;
mod page;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use skills_core::{name::sanitize, order};

pub(crate) use self::{durations::Durations, page::page};
use crate::words::{count, plural};
use acp_skills::events::{
    ActivatedBy, Decision, Event, EventKind, FallbackReason, Outcome, Rule, read::Line,
};

/// The maximum number of lines that are listed because they are not events.
const MAX_NAMED_LINES: usize = 20;

/// The name of an agent that reports none.
const UNNAMED: &str = "(unnamed)";

/// The kinds of events that are calls, which have an outcome and a duration, in display order.
pub(crate) const CALLS: [(&str, &str); 5] = [
    ("skill_activated", "activations"),
    ("file_read", "files read"),
    ("tool_called", "tool calls"),
    ("script_run", "scripts"),
    ("search", "searches"),
];

/// The sources of activations, in display order.
pub(crate) const AUTHORS: [(ActivatedBy, &str); 3] =
    [(ActivatedBy::Model, "model"), (ActivatedBy::User, "user"), (ActivatedBy::Prompt, "proxy")];

/// A summary of events.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The number of events.
    pub events: u64,
    /// The times of the first and the last event.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The ids of sessions.
    pub sessions: BTreeSet<String>,
    /// The number of times that a session was opened or reopened.
    pub started: u64,
    /// The number of sessions of each agent, by the name that the agent reports.
    pub agents: BTreeMap<String, u64>,
    /// All skills that sessions offered or that were used.
    pub skills: BTreeMap<String, Usage>,
    /// Calls, by the index of their kind in [`CALLS`].
    pub calls: [Calls; CALLS.len()],
    /// The time at which each call ended, with the index of its kind.
    pub times: Vec<(Timestamp, usize)>,
    /// The number of failed calls, by the index of the kind, the error code and the skill.
    pub errors: BTreeMap<(usize, String, String), u64>,
    /// The number of permission requests, by decision and rule.
    pub permissions: BTreeMap<(Decision, Option<Rule>), u64>,
    /// The number of sessions without a working skills server, by reason.
    pub fallbacks: BTreeMap<FallbackReason, u64>,
    /// The restorations after compactions, by the name of the agent.
    pub restored: BTreeMap<String, Restored>,
    /// The agent of each session.
    agent_of: BTreeMap<String, String>,
    /// The number of sessions whose first request was shorter because of MCP servers behind skills, and by how many tokens in total.
    pub saved: (u64, u64),
    /// The number of times that the skills of a session were reloaded.
    pub reloads: u64,
    /// The number of events that were dropped instead of written.
    pub dropped: u64,
    /// The number of unknown events, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Lines that are not events: descriptions of the first ones, and the number of all.
    pub bad: (Vec<String>, u64),
}

/// The usage of a skill.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// The number of successful activations, in the order of [`AUTHORS`].
    pub activations: [u64; AUTHORS.len()],
    /// The number of other successful calls, in the order of [`CALLS`]. The first one is always 0.
    pub calls: [u64; CALLS.len()],
    /// The number of failed calls.
    pub errors: u64,
    /// The estimated number of tokens that activations gave to the model.
    pub tokens: u64,
    /// The durations of all calls.
    pub time: Durations,
    /// The time of the last call.
    pub last: Option<Timestamp>,
}

impl Usage {
    /// Returns the number of activations.
    pub(crate) fn activated(&self) -> u64 {
        self.activations.iter().sum()
    }

    /// Returns the number of successful calls, including activations.
    pub(crate) fn used(&self) -> u64 {
        self.activated() + self.calls.iter().sum::<u64>()
    }
}

/// The restorations of one agent.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    /// The number of prompts that restored something.
    pub count: u64,
    /// The estimated number of tokens that were added to these prompts.
    pub tokens: u64,
}

/// Calls of one kind.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// The number of calls with each outcome: ok, error, cancelled.
    pub outcomes: [u64; 3],
    /// The durations of calls that were not cancelled.
    pub time: Durations,
}

impl Calls {
    /// Returns the number of calls.
    pub(crate) fn count(&self) -> u64 {
        self.outcomes.iter().sum()
    }
}

impl Summary {
    /// Adds a line of a file. `number` counts from 1.
    pub(crate) fn add(&mut self, file: &str, number: usize, line: Line) {
        match line {
            Line::Event(record) => self.event(*record),
            Line::Unknown { event, .. } => *self.unknown.entry(shown(&event)).or_default() += 1,
            Line::Bad(why) => {
                let (named, count) = &mut self.bad;
                *count += 1;
                if named.len() < MAX_NAMED_LINES {
                    named.push(shown(&format!("{file}:{number}: {why}")));
                }
            }
        }
    }

    fn event(&mut self, event: Event) {
        let Event { time, what, session, .. } = event;
        self.events += 1;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        self.sessions.extend(session.clone());
        self.call(time, &what);
        match what {
            EventKind::SessionStarted { agent, skills, saved_tokens, .. } => {
                self.started += 1;
                let agent = agent.map_or_else(|| UNNAMED.to_owned(), |agent| shown(&agent));
                *self.agents.entry(agent.clone()).or_default() += 1;
                self.agent_of.extend(session.map(|session| (session, agent)));
                self.add_skills(&skills);
                if let Some(tokens) = saved_tokens {
                    self.saved = (self.saved.0 + 1, self.saved.1.saturating_add(tokens));
                }
            }
            EventKind::Reload { added, .. } => {
                self.reloads += 1;
                self.add_skills(&added);
            }
            EventKind::Permission { decision, rule, .. } => {
                *self.permissions.entry((decision, rule)).or_default() += 1;
            }
            EventKind::Fallback { reason, .. } => *self.fallbacks.entry(reason).or_default() += 1,
            EventKind::Restored { tokens, .. } => {
                let agent = session.and_then(|session| self.agent_of.get(&session).cloned());
                let agent = agent.unwrap_or_else(|| UNNAMED.to_owned());
                let restored = self.restored.entry(agent).or_default();
                restored.count += 1;
                restored.tokens = restored.tokens.saturating_add(tokens);
            }
            EventKind::EventsDropped { count } => self.dropped = self.dropped.saturating_add(count),
            EventKind::SkillActivated { .. }
            | EventKind::FileRead { .. }
            | EventKind::ToolCalled { .. }
            | EventKind::ScriptRun { .. }
            | EventKind::Search { .. }
            // This can be any kind of event that is added by a newer version of the library.
            | _ => {}
        }
    }

    /// Adds skills that may not have been used.
    fn add_skills(&mut self, skills: &[String]) {
        for skill in skills {
            self.skills.entry(shown(skill)).or_default();
        }
    }

    fn call(&mut self, time: Timestamp, what: &EventKind) {
        let kind = CALLS.iter().position(|(name, _)| *name == what.name());
        let (Some(kind), Some(end)) = (kind, what.end()) else { return };
        let calls = &mut self.calls[kind];
        calls.outcomes[end.outcome as usize] += 1;
        self.times.push((time, kind));
        if end.outcome != Outcome::Cancelled {
            calls.time.add(end.ms);
        }
        let skill = what.skill().map(shown);
        if end.outcome == Outcome::Error {
            let code = shown(end.error.as_deref().unwrap_or("Error"));
            *self.errors.entry((kind, code, skill.clone().unwrap_or_default())).or_default() += 1;
        }
        let Some(skill) = skill.map(|skill| self.skills.entry(skill).or_default()) else { return };
        match (end.outcome, what) {
            (Outcome::Ok, EventKind::SkillActivated { by, tokens, .. }) => {
                skill.activations[*by as usize] += 1;
                skill.tokens = skill.tokens.saturating_add(*tokens);
            }
            (Outcome::Ok, _) => skill.calls[kind] += 1,
            (Outcome::Error, _) => skill.errors += 1,
            (Outcome::Cancelled, _) => {}
        }
        skill.time.add(end.ms);
        skill.last = skill.last.max(Some(time));
    }

    /// Returns the skills with successful or failed calls, most used first.
    pub(crate) fn used(&self) -> Vec<(&str, &Usage)> {
        let used = self.skills.iter().filter(|(_, skill)| skill.used() + skill.errors > 0);
        let mut used: Vec<_> = used.map(|(name, skill)| (name.as_str(), skill)).collect();
        order::sort_by_key(&mut used, |(_, skill)| {
            std::cmp::Reverse((skill.activated(), skill.used(), skill.errors))
        });
        used
    }

    /// Returns the skills without a successful call.
    pub(crate) fn never_used(&self) -> Vec<&str> {
        let unused = self.skills.iter().filter(|(_, skill)| skill.used() == 0);
        unused.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the number of lines that are not events and are not in the list of these.
    pub(crate) fn unnamed_lines(&self) -> u64 {
        self.bad.1 - self.bad.0.len() as u64
    }

    /// Returns failures, most frequent first, as kind, error code, skill and count.
    pub(crate) fn failures(&self) -> Vec<(&'static str, &str, &str, u64)> {
        let all = self.errors.iter();
        let mut all: Vec<_> =
            all.map(|((kind, code, skill), count)| (CALLS[*kind].1, &**code, &**skill, *count)).collect();
        order::sort_by_key(&mut all, |(_, _, _, count)| std::cmp::Reverse(*count));
        all
    }

    /// Returns everything else as a text and a count, such as `permissions granted` and 3.
    pub(crate) fn notes(&self) -> Vec<(String, u64)> {
        let permission = |(decision, rule): &(Decision, Option<Rule>), count| {
            let decision = match decision {
                Decision::Allowed => "granted",
                Decision::Refused => "refused",
                Decision::Asked => "left to the user",
            };
            let why = match rule {
                Some(Rule::Own) => " for tools of the skills server",
                Some(Rule::AllowedTools) => " because of `allowed-tools`",
                None => "",
            };
            format!("{} {decision}{why}", plural(count, "permission"))
        };
        let fallback = |reason: &FallbackReason, count| {
            let what = match reason {
                FallbackReason::NotConnected => "whose agent did not fetch the tools in time",
                FallbackReason::Refused => "whose agent rejected the skills server",
                FallbackReason::NoServer => "without a skills server",
            };
            format!("{} {what}", plural(count, "session"))
        };
        let unknown =
            |event: &str, count| format!("unknown {} `{event}` of a newer version", plural(count, "event"));
        let mut notes: Vec<(String, u64)> =
            self.permissions.iter().map(|(key, &count)| (permission(key, count), count)).collect();
        notes.extend(self.fallbacks.iter().map(|(reason, &count)| (fallback(reason, count), count)));
        let restored = |(agent, restored): (&String, &Restored)| {
            let what = plural(restored.count, "restoration");
            let tokens = count(restored.tokens, "token");
            (format!("{what} after a compaction by `{agent}`, with about {tokens}"), restored.count)
        };
        notes.extend(self.restored.iter().map(restored));
        let (sessions, tokens) = self.saved;
        let what = plural(sessions, "session");
        let tokens = count(tokens, "token");
        notes.push((
            format!("{what} without the tools of MCP servers, which saved about {tokens} at the start"),
            sessions,
        ));
        notes.push((plural(self.reloads, "reload") + " of skills during a session", self.reloads));
        let were = if self.dropped == 1 { "was" } else { "were" };
        notes.push((format!("{} that {were} dropped", plural(self.dropped, "event")), self.dropped));
        notes.extend(self.unknown.iter().map(|(event, &count)| (unknown(event, count), count)));
        let bad = self.bad.1;
        let are_not = if bad == 1 { "that is not an event" } else { "that are not events" };
        notes.push((format!("{} {are_not}", plural(bad, "line")), bad));
        notes.retain(|(_, count)| *count > 0);
        notes
    }
}

/// Returns an untrusted text for display: on one line, and with at most 300 characters.
fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = sanitize(text);
    if text.chars().nth(MAX_CHARS).is_none() {
        return text;
    }
    text.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

/// Formats a time in UTC, without seconds.
pub(crate) fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}
