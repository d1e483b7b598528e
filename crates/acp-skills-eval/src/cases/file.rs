//! The format of `evals.json`, and the checks of its contents.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{super::error::MAX_ENTRIES, Assertion, OutputCase, TaskError, assertion};

/// The members of `evals.json` that tell which of the published forms it has.
#[derive(Deserialize)]
pub(super) struct Shape {
    question: Option<IgnoredAny>,
    evals: Option<IgnoredAny>,
    cases: Option<IgnoredAny>,
}

impl Shape {
    /// Returns true if the file is a single task instead of a list of tasks.
    pub(super) fn is_single(&self) -> bool {
        self.question.is_some() && self.evals.is_none() && self.cases.is_none()
    }
}

/// The contents of `evals.json`.
#[derive(Deserialize)]
pub(super) struct EvalsFile {
    #[serde(alias = "cases")]
    pub(super) evals: Vec<RawCase>,
}

/// A task as it is written in the file. The aliases are the names in the files of NVIDIA's skills.
#[derive(Deserialize)]
pub(super) struct RawCase {
    id: Value,
    #[serde(alias = "eval_name")]
    name: Option<String>,
    #[serde(alias = "question")]
    prompt: Option<String>,
    #[serde(default)]
    turns: Vec<String>,
    #[serde(default, alias = "ground_truth")]
    expected_output: Option<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    assertions: Vec<Value>,
    #[serde(default)]
    expectations: Vec<Value>,
    #[serde(default)]
    expected_behavior: Vec<Value>,
    #[serde(default)]
    must_not: Vec<String>,
    should_trigger: Option<bool>,
    #[serde(default)]
    expected_skill: Expected,
    #[serde(default)]
    acceptable_skills: Vec<String>,
    #[serde(default)]
    drafted: bool,
}

/// The skill that a task expects.
#[derive(Default, Deserialize)]
#[serde(from = "Option<String>")]
enum Expected {
    /// The task names no skill, so it expects the skill to which it belongs.
    #[default]
    This,
    /// `null`: no skill should be loaded.
    Nothing,
    Skill(String),
}

impl From<Option<String>> for Expected {
    fn from(name: Option<String>) -> Self {
        name.map_or(Self::Nothing, Self::Skill)
    }
}

impl RawCase {
    /// Checks the task of the skill `skill`, and returns it with defaults for missing fields.
    pub(super) fn case(self, skill: &str) -> Result<OutputCase, TaskError> {
        let should_trigger = self.should_trigger.unwrap_or_else(|| self.expects(skill));
        let id = match &self.id {
            Value::Number(number) => number.to_string(),
            Value::String(text) if !text.trim().is_empty() => text.clone(),
            _ => return Err(TaskError::Id),
        };
        let name = directory_name(self.name.as_deref().unwrap_or(&id));
        if name.is_empty() {
            return Err(TaskError::Name);
        }
        let mut prompts = self.prompt.into_iter().chain(self.turns);
        let prompt = prompts.next().ok_or(TaskError::NoPrompt)?;
        let turns: Vec<_> = prompts.collect();
        if [&prompt].into_iter().chain(&turns).any(|prompt| prompt.trim().is_empty()) {
            return Err(TaskError::EmptyPrompt);
        }
        for file in &self.files {
            assertion::check_relative(file)?;
        }
        let assertions = self.assertions.len() + self.expectations.len() + self.expected_behavior.len();
        if self.files.len().max(assertions).max(self.must_not.len()) > MAX_ENTRIES {
            return Err(TaskError::TooMany);
        }
        let raw = self.assertions.into_iter().chain(self.expectations).chain(self.expected_behavior);
        let mut assertions: Vec<_> = raw.map(assertion::read).collect::<Result<_, _>>()?;
        let must_not = self.must_not.into_iter().filter(|text| !text.trim().is_empty());
        assertions
            .extend(must_not.map(|text| Assertion::sentence(format!("The agent did not do this: {text}"))));
        let expected_output = self.expected_output.unwrap_or_default();
        if assertions.is_empty() && !expected_output.trim().is_empty() {
            let sentence = format!("The result is what was expected: {expected_output}");
            assertions.push(Assertion::sentence(sentence));
        }
        Ok(OutputCase {
            id: self.id,
            name,
            prompt,
            turns,
            expected_output,
            files: self.files,
            assertions,
            should_trigger,
            drafted: self.drafted,
        })
    }

    /// Returns true if the task expects the skill.
    fn expects(&self, skill: &str) -> bool {
        match &self.expected_skill {
            Expected::This => true,
            Expected::Nothing => self.acceptable_skills.iter().any(|name| name == skill),
            Expected::Skill(name) => name == skill || self.acceptable_skills.iter().any(|name| name == skill),
        }
    }
}

/// Returns a short directory name that is valid on all systems. It is empty if the text has no suitable character.
fn directory_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(64) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            '_' | '.' if !name.is_empty() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_limits() {
        let read = |member: &str, count: usize| {
            let task = serde_json::json!({ "id": 1, "prompt": "p", member: vec!["Good."; count] });
            serde_json::from_value::<RawCase>(task).unwrap().case("demo").map(drop)
        };
        for member in ["files", "assertions", "expectations", "must_not"] {
            read(member, MAX_ENTRIES).unwrap();
            assert!(matches!(read(member, MAX_ENTRIES + 1), Err(TaskError::TooMany)), "{member}");
        }
    }

    #[test]
    fn directory_names_are_plain() {
        for (text, name) in [
            ("1", "1"),
            ("Top months", "top-months"),
            ("../../etc", "etc"),
            ("a  &  b!", "a-b"),
            ("ünï", "n"),
            ("...", ""),
        ] {
            assert_eq!(directory_name(text), name, "{text}");
        }
    }
}
