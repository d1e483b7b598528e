//! [`CallError`]: the errors of tool calls. Their texts tell the model what failed and what it can do next.

use std::fmt;

use super::Toolbox;
use crate::{
    activation::ActivationError,
    catalog::one_line,
    files::{FileError, bundled},
    skill::Skill,
    text::shorten,
    tool::{InvalidInput, SkillTool},
};

pub(super) const SKILL_NOT_FOUND: &str = "SkillNotFound";

/// The maximum number of names that an error lists.
const MAX_NAMES: usize = 20;
/// The maximum number of files that an error lists.
const MAX_FILES: usize = 50;

/// The error of a tool call. It is displayed as `Code: sentence`.
#[derive(Debug)]
pub(super) struct CallError {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl CallError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn arguments(message: impl Into<String>) -> Self {
        Self::new("InvalidArguments", message)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<ActivationError> for CallError {
    fn from(error: ActivationError) -> Self {
        Self::new("ActivationFailed", error.to_string())
    }
}

/// Creates the error for a name that is not the name of a skill that the model may use.
pub(super) fn skill_not_found(toolbox: &Toolbox, name: &str) -> CallError {
    let names: Vec<&str> = toolbox.skills().listed().map(|skill| skill.name.as_str()).collect();
    let mut sentences = vec![format!("no skill {} found.", quote(name))];
    sentences.extend(similar(name, &names).map(did_you_mean));
    sentences.push(match names.as_slice() {
        [] => "No skills can be activated by name.".to_owned(),
        names => format!("Available skills: {}.", list(names, MAX_NAMES)),
    });
    if toolbox.options().search {
        sentences.push("Use `search_skills` to find skills for a task.".to_owned());
    }
    CallError::new(SKILL_NOT_FOUND, sentences.join(" "))
}

/// Creates the error for a tool that the skill doesn't have.
pub(super) fn tool_not_found(skill: &Skill, name: &str) -> CallError {
    let names: Vec<&str> = skill.tools().iter().map(|tool| tool.name.as_str()).collect();
    tool_not_among(skill, name, &names)
}

/// Creates the error for a tool that is not one of `names`, the tools of the skill.
pub(super) fn tool_not_among(skill: &Skill, name: &str, names: &[&str]) -> CallError {
    let message = if names.is_empty() {
        format!(
            "skill {} has no tools. Use `activate_skill` and follow the instructions instead.",
            quote(skill.name.as_str())
        )
    } else {
        let mut sentences =
            vec![format!("skill {} has no tool {}.", quote(skill.name.as_str()), quote(name))];
        sentences.extend(similar(name, names).map(did_you_mean));
        sentences.push(format!("Available tools: {}.", list(names, MAX_NAMES)));
        sentences.join(" ")
    };
    CallError::new("ToolNotFound", message)
}

/// Creates the error for an input that doesn't match the type of a tool's input.
pub(super) fn invalid_input(tool: &SkillTool, invalid: &InvalidInput) -> CallError {
    let mut message = format!("invalid input for {}: {invalid}.", quote(&tool.name));
    if let Some(schema) = &tool.input_schema {
        message = format!("{message} Expected schema: {schema}");
    }
    CallError::new("InvalidInput", message)
}

/// Creates the error for a file that can't be read. Lists the skill's files if that helps. This may block.
pub(super) fn file(skill: &Skill, error: &FileError) -> CallError {
    let code = match error {
        FileError::NoFiles(_) => "SkillHasNoFiles",
        FileError::Invalid { .. } | FileError::Outside { .. } => "FileNotAllowed",
        FileError::NotFound { .. } => "FileNotFound",
        FileError::IsDirectory { .. } | FileError::NotAFile { .. } => "NotAFile",
        FileError::TooLarge { .. } => "FileTooLarge",
        FileError::PastEnd { .. } => "PastEnd",
        FileError::Fetch { .. } => "FileNotFetched",
        _ => "FileUnreadable",
    };
    let mut sentences = vec![format!("{error}.").replace("?.", "?")];
    match error {
        FileError::NoFiles(_) if !skill.tools().is_empty() => {
            let names: Vec<&str> = skill.tools().iter().map(|tool| tool.name.as_str()).collect();
            sentences.push(format!("Tools for `call_skill_tool`: {}.", list(&names, MAX_NAMES)));
        }
        FileError::NotFound { .. } | FileError::Invalid { .. } | FileError::Outside { .. } => {
            sentences.push(files_of(skill));
        }
        _ => {}
    }
    CallError::new(code, sentences.join(" "))
}

/// Returns a sentence that lists the skill's files. This may block.
pub(super) fn files_of(skill: &Skill) -> String {
    let Ok(bundled) = bundled(skill, MAX_FILES) else { return String::new() };
    let paths: Vec<&str> = bundled.files.iter().map(|(path, _)| path.as_str()).collect();
    if paths.is_empty() && !bundled.complete {
        return "Only files from the instructions are known.".to_owned();
    }
    if paths.is_empty() {
        return "The skill has no files besides SKILL.md.".to_owned();
    }
    let more = if bundled.more > 0 { format!(" and {} more", bundled.more) } else { String::new() };
    format!("Available files: {}{more}.", list(&paths, MAX_FILES))
}

/// Creates the error for an unknown tool.
pub(super) fn unknown_tool(toolbox: &Toolbox, name: &str) -> CallError {
    let definitions = toolbox.definitions();
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_ref()).collect();
    let message = match names.as_slice() {
        [] => format!("no tool {} found, because no skills are available.", quote(name)),
        names => format!("no tool {} found. Available tools: {}.", quote(name), list(names, MAX_NAMES)),
    };
    CallError::new("UnknownTool", message)
}

/// Joins the first `max` names, in quotes.
fn list(names: &[&str], max: usize) -> String {
    let text = names.iter().take(max).map(|name| quote(name)).collect::<Vec<_>>().join(", ");
    if names.len() > max { format!("{text} and {} more", names.len() - max) } else { text }
}

fn did_you_mean(name: &str) -> String {
    format!("Did you mean {}?", quote(name))
}

/// Quotes a text from the model, shortened and in one line.
fn quote(name: &str) -> String {
    format!("\"{}\"", shorten(&one_line(name), 100))
}

/// Returns the name that is most similar to `name`, if it is similar enough.
fn similar<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    const LIKELY: f64 = 0.75;
    // Don't compare long names, since this takes time proportional to the product of both lengths.
    if name.len() > 200 {
        return None;
    }
    let name = name.trim().to_lowercase();
    let score = |other: &str| {
        let other = other.to_lowercase();
        let contains = other.len() >= 3 && name.contains(&other) || name.len() >= 3 && other.contains(&name);
        strsim::normalized_damerau_levenshtein(&name, &other).max(if contains { LIKELY } else { 0.0 })
    };
    names
        .iter()
        .map(|other| (score(other), *other))
        .filter(|(score, _)| *score >= LIKELY - 0.15)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, other)| other)
}
