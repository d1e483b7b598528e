//! The events of tool calls, for the record.
//!
//! To keep contents out of the record, text from the model is only used if it is the name of a skill that exists, or
//! of a tool or file in that skill.

use std::time::Duration;

use serde_json::{Map, Value};
use skills_core::{
    CallContext, Skill, Source, ToolOutput, Toolbox,
    toolbox::{ACTIVATE_SKILL, Content, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS},
};

use crate::events::{ActivatedBy, End, EventKind, Outcome, TraceContext};

/// A call of one of our tools, at its start.
pub(super) struct Call<'a> {
    pub(super) toolbox: &'a Toolbox,
    pub(super) context: &'a CallContext,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
    /// The trace of the agent that the call belongs to.
    pub(super) trace: Option<Box<TraceContext>>,
}

impl<'a> Call<'a> {
    /// Returns the skill that the call is about, if it exists and the model may use it.
    pub(super) fn skill(&self) -> Option<&'a Skill> {
        let argument = if self.tool == ACTIVATE_SKILL { "name" } else { "skill" };
        self.toolbox.usable(self.text(argument)?, self.context).map(|skill| &**skill)
    }

    /// Returns an argument if it is a string.
    pub(super) fn text(&self, argument: &str) -> Option<&'a str> {
        self.arguments.get(argument)?.as_str()
    }

    /// Returns the event of a finished call. `output` is `None` if the call was cancelled.
    pub(super) fn event(&self, output: Option<&ToolOutput>, time: Duration) -> EventKind {
        let found = self.skill();
        let skill = found.map(|skill| skill.name.to_string());
        let is_ok = output.is_some_and(|output| !output.is_error);
        let code = output.and_then(|output| output.code);
        let structured = |key| output.and_then(|output| output.structured.as_ref()?.get(key)?.as_i64());
        let end = End {
            outcome: match output {
                None => Outcome::Cancelled,
                Some(output) if output.is_error => Outcome::Error,
                Some(_) => Outcome::Ok,
            },
            error: code.map(str::to_owned),
            bytes: output.map_or(0, bytes),
            ms: time.into(),
            trace: self.trace.clone(),
        };
        match self.tool {
            ACTIVATE_SKILL => EventKind::SkillActivated {
                skill,
                path: found.and_then(path),
                root: found.and_then(root),
                by: ActivatedBy::Model,
                tokens: output.map_or(0, |output| tokens(&output.to_text())),
                end,
            },
            READ_SKILL_FILE => {
                let file = self.text("path").filter(|_| is_ok).map(str::to_owned);
                EventKind::FileRead { skill, file, end }
            }
            RUN_SKILL_SCRIPT => {
                let is_there = is_ok || matches!(code, Some("ExecutionFailed" | "ExecutionTimeout"));
                let script = self.text("script").filter(|_| is_there).map(str::to_owned);
                EventKind::ScriptRun { skill, script, exit_code: structured("exitCode"), end }
            }
            SEARCH_SKILLS => {
                let found = structured("total").and_then(|total| total.try_into().ok());
                EventKind::Search { found: found.unwrap_or(0), end }
            }
            _ => {
                let tool = found.zip(self.text("tool")).and_then(|(skill, tool)| skill.tool(tool));
                EventKind::ToolCalled { skill, tool: tool.map(|tool| tool.name.clone()), end }
            }
        }
    }
}

/// Returns the event of an activation. The model received the instructions as `text`.
pub(super) fn activated(skill: &Skill, by: ActivatedBy, text: &str, time: Duration) -> EventKind {
    let bytes = text.len() as u64;
    let end = End { outcome: Outcome::Ok, error: None, bytes, ms: time.into(), trace: None };
    let skill_name = Some(skill.name.to_string());
    let (path, root) = (path(skill), root(skill));
    EventKind::SkillActivated { skill: skill_name, path, root, by, tokens: tokens(text), end }
}

/// Returns the event of a file that the model has read.
pub(super) fn read(skill: &Skill, file: String, bytes: usize, time: Duration) -> EventKind {
    let end = End { outcome: Outcome::Ok, error: None, bytes: bytes as u64, ms: time.into(), trace: None };
    EventKind::FileRead { skill: Some(skill.name.to_string()), file: Some(file), end }
}

/// Returns the event of a file that was read as a resource. `bytes` is its length, or `None` if it could not be read.
pub(super) fn resource(skill: &Skill, file: String, bytes: Option<u64>, time: Duration) -> EventKind {
    let error = bytes.is_none().then(|| "ResourceNotFound".to_owned());
    let outcome = if error.is_none() { Outcome::Ok } else { Outcome::Error };
    let file = Some(file).filter(|_| error.is_none());
    let end = End { outcome, error, bytes: bytes.unwrap_or(0), ms: time.into(), trace: None };
    EventKind::FileRead { skill: Some(skill.name.to_string()), file, end }
}

/// Returns the event of an activation that failed.
pub(super) fn not_activated(skill: &Skill, by: ActivatedBy, time: Duration) -> EventKind {
    let error = Some("ActivationFailed".to_owned());
    let end = End { outcome: Outcome::Error, error, bytes: 0, ms: time.into(), trace: None };
    let skill_name = Some(skill.name.to_string());
    let (path, root) = (path(skill), root(skill));
    EventKind::SkillActivated { skill: skill_name, path, root, by, tokens: 0, end }
}

fn path(skill: &Skill) -> Option<String> {
    match &skill.source {
        Source::Stored(stored) => Some(stored.file().to_string_lossy().into_owned()),
        _ => None,
    }
}

/// Returns the root of the session to whose project the skill belongs.
fn root(skill: &Skill) -> Option<String> {
    Some(skill.session_root.as_ref()?.to_string_lossy().into_owned())
}

fn tokens(text: &str) -> u64 {
    skills_core::estimate_tokens(text) as u64
}

fn bytes(output: &ToolOutput) -> u64 {
    let parts = output.content.iter().map(|part| match part {
        Content::Text(text) => text.len(),
        Content::Image { data, .. } => data.len(),
        Content::Raw(part) => part.to_string().len(),
        _ => 0,
    });
    parts.sum::<usize>() as u64
}
