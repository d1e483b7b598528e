//! What a record says when it is added up: which skills are used, by whom, how well and how fast.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | adding up |
//! | `durations` | how long things take |
//! | `page` | the same as an HTML page, with `page.html` and `page.css` |
//! | `chart` | the page's charts |

mod chart;
mod durations;
mod page;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use skills_core::name::sanitize;

pub(crate) use self::{durations::Durations, page::page};
use crate::words::plural;
use acp_skills::events::{
    ActivatedBy, Decision, EventKind, FallbackReason, Outcome, Record, Rule, read::Line,
};

/// How many lines that are no events are named one by one.
const MAX_NAMED_LINES: usize = 20;

/// The events that are calls: those with an outcome and a duration, in the order in which they are shown.
pub(crate) const CALLS: [(&str, &str); 5] = [
    ("skill_activated", "activations"),
    ("file_read", "files read"),
    ("tool_called", "tool calls"),
    ("script_run", "scripts"),
    ("search", "searches"),
];

/// Who activates skills, in the order in which it is shown.
pub(crate) const AUTHORS: [(ActivatedBy, &str); 3] =
    [(ActivatedBy::Model, "model"), (ActivatedBy::User, "user"), (ActivatedBy::Prompt, "proxy")];

/// Everything that the events say.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// How many events there are.
    pub events: u64,
    /// The first and the last.
    pub span: Option<(Timestamp, Timestamp)>,
    /// The sessions with an id.
    pub sessions: BTreeSet<String>,
    /// How many times a session was opened, also again.
    pub started: u64,
    /// The agents by the name that they give themselves, with their sessions.
    pub agents: BTreeMap<String, u64>,
    /// All skills that sessions had, and those that were used.
    pub skills: BTreeMap<String, Use>,
    /// Calls by the place of their kind in [`CALLS`].
    pub calls: [Calls; CALLS.len()],
    /// When calls ended, and the place of their kind.
    pub times: Vec<(Timestamp, usize)>,
    /// What failed: the place of its kind, the code and the skill.
    pub errors: BTreeMap<(usize, String, String), u64>,
    /// Requests for permission.
    pub permissions: BTreeMap<(Decision, Option<Rule>), u64>,
    /// What did not work.
    pub fallbacks: BTreeMap<FallbackReason, u64>,
    /// How many times the skills of a session were looked for again.
    pub reloads: u64,
    /// How many events were not written.
    pub dropped: u64,
    /// Events that we do not know, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Lines that are no events: the first ones, and how many there are.
    pub bad: (Vec<String>, u64),
}

/// How one skill is used.
#[derive(Debug, Default)]
pub(crate) struct Use {
    /// Activations that worked, in the order of [`AUTHORS`].
    pub activations: [u64; AUTHORS.len()],
    /// Other calls that worked, in the order of [`CALLS`]; the first stays empty.
    pub calls: [u64; CALLS.len()],
    /// Calls that failed.
    pub errors: u64,
    /// About how many tokens the model was given by activations.
    pub tokens: u64,
    /// How long everything took.
    pub time: Durations,
    /// When it was used last.
    pub last: Option<Timestamp>,
}

impl Use {
    /// How many times it was activated.
    pub(crate) fn activated(&self) -> u64 {
        self.activations.iter().sum()
    }

    /// How many times anything of it was used.
    pub(crate) fn used(&self) -> u64 {
        self.activated() + self.calls.iter().sum::<u64>()
    }
}

/// Calls of one kind.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// How many there are of each outcome: ok, error, cancelled.
    pub outcomes: [u64; 3],
    /// How long those took that ended by themselves.
    pub time: Durations,
}

impl Calls {
    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.outcomes.iter().sum()
    }
}

impl Summary {
    /// Adds a line of a file.
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

    fn event(&mut self, record: Record) {
        let Record { time, what, session, .. } = record;
        self.events += 1;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        self.sessions.extend(session);
        self.call(time, &what);
        match what {
            EventKind::SessionStarted { agent, skills, .. } => {
                self.started += 1;
                let agent = agent.map_or_else(|| "(without a name)".to_owned(), |agent| shown(&agent));
                *self.agents.entry(agent).or_default() += 1;
                self.know(&skills);
            }
            EventKind::Reload { added, .. } => {
                self.reloads += 1;
                self.know(&added);
            }
            EventKind::Permission { decision, rule, .. } => {
                *self.permissions.entry((decision, rule)).or_default() += 1;
            }
            EventKind::Fallback { reason, .. } => *self.fallbacks.entry(reason).or_default() += 1,
            EventKind::EventsDropped { count } => self.dropped = self.dropped.saturating_add(count),
            EventKind::SkillActivated { .. }
            | EventKind::FileRead { .. }
            | EventKind::ToolCalled { .. }
            | EventKind::ScriptRun { .. }
            | EventKind::Search { .. }
            // Kinds that a newer library has say nothing here.
            | _ => {}
        }
    }

    /// These are skills, whether they are used or not.
    fn know(&mut self, skills: &[String]) {
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

    /// The skills that were used or failed, the most used first.
    pub(crate) fn used(&self) -> Vec<(&str, &Use)> {
        let used = self.skills.iter().filter(|(_, skill)| skill.used() + skill.errors > 0);
        let mut used: Vec<_> = used.map(|(name, skill)| (name.as_str(), skill)).collect();
        used.sort_by_key(|(_, skill)| std::cmp::Reverse((skill.activated(), skill.used(), skill.errors)));
        used
    }

    /// The skills that nobody used.
    pub(crate) fn never_used(&self) -> Vec<&str> {
        let unused = self.skills.iter().filter(|(_, skill)| skill.used() == 0);
        unused.map(|(name, _)| name.as_str()).collect()
    }

    /// The errors, the most frequent first: what was called, the code, the skill and how many.
    pub(crate) fn failures(&self) -> Vec<(&'static str, &str, &str, u64)> {
        let all = self.errors.iter();
        let mut all: Vec<_> =
            all.map(|((kind, code, skill), count)| (CALLS[*kind].1, &**code, &**skill, *count)).collect();
        all.sort_by_key(|(_, _, _, count)| std::cmp::Reverse(*count));
        all
    }

    /// What else there is to say: what happened, and how many times.
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
                FallbackReason::Refused => "that the agent refused with the skills server",
                FallbackReason::NoServer => "without a skills server",
            };
            format!("{} {what}", plural(count, "session"))
        };
        let unknown = |event: &str, count| {
            format!("{} `{event}` of a newer version, passed over", plural(count, "event"))
        };
        let mut notes: Vec<(String, u64)> =
            self.permissions.iter().map(|(key, &count)| (permission(key, count), count)).collect();
        notes.extend(self.fallbacks.iter().map(|(reason, &count)| (fallback(reason, count), count)));
        notes.push((plural(self.reloads, "reload") + " that a session saw", self.reloads));
        let were = if self.dropped == 1 { "was" } else { "were" };
        notes.push((format!("{} that {were} dropped", plural(self.dropped, "event")), self.dropped));
        notes.extend(self.unknown.iter().map(|(event, &count)| (unknown(event, count), count)));
        let bad = self.bad.1;
        let are_none = if bad == 1 { "that is no event" } else { "that are no events" };
        notes.push((format!("{} {are_none}", plural(bad, "line")), bad));
        notes.retain(|(_, count)| *count > 0);
        notes
    }
}

/// A text of somebody else's, for people to look at: on one line, and not endless.
fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let text = sanitize(text);
    if text.chars().nth(MAX_CHARS).is_none() {
        return text;
    }
    text.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

/// A moment for people: to the minute, in UTC.
pub(crate) fn minute(time: Timestamp) -> String {
    let text = time.to_string();
    text.get(..16).unwrap_or(&text).replace('T', " ")
}
