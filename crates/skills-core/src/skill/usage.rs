//! [`Usage`]: what a skill takes, and examples of what it does.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::sanitize;

/// How many parameters and how many examples are kept, at most.
const MAX_ENTRIES: usize = 50;
/// How much of each text is kept, in characters.
const MAX_CHARS: usize = 1_000;
/// How much of a hint is shown, in characters.
const MAX_HINT_CHARS: usize = 120;

/// What a skill takes, and examples of what it does. Search weighs them, activation shows them, and a slash command's hint
/// is made of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// `parameters`, in order.
    pub parameters: Vec<Parameter>,
    /// `examples`, in order.
    pub examples: Vec<Example>,
}

/// Something that a user may say when they invoke a skill. For the model and for people; nothing enforces it.
///
/// ```
/// use skills_core::skill::Parameter;
///
/// let parameter = Parameter::new("path").description("The file to review.").of_type("string").required();
/// assert_eq!((parameter.name.as_str(), parameter.required), ("path", true));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name; not empty.
    pub name: String,
    /// What it means.
    #[serde(default)]
    pub description: String,
    /// Whether the skill needs it.
    #[serde(default)]
    pub required: bool,
    /// What kind of value it is, such as `string` or `path`; any word.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// What happens when the skill is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Example {
    /// What somebody wants, or says; not empty.
    pub scenario: String,
    /// What the skill then does.
    #[serde(default)]
    pub expected: String,
}

impl Parameter {
    /// A parameter that may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same with a description.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// The same with a type, in any words.
    #[must_use]
    pub fn of_type(self, kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..self }
    }

    /// The same, and the skill needs it.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// What a mapping, or a name alone, says.
    fn of(value: &Value) -> Option<Self> {
        let parameter = match value {
            Value::String(name) => Self::new(name.as_str()),
            Value::Object(map) => Self {
                name: text(map.get("name")),
                description: text(map.get("description")),
                required: map.get("required").is_some_and(|it| *it == Value::Bool(true) || *it == "true"),
                kind: Some(text(map.get("type"))).filter(|kind| !kind.is_empty()),
            },
            _ => return None,
        };
        Some(parameter).filter(|it| !it.name.trim().is_empty())
    }
}

impl Example {
    /// What somebody wants, and what the skill then does.
    pub fn new(scenario: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { scenario: scenario.into(), expected: expected.into() }
    }

    fn of(value: &Value) -> Option<Self> {
        let example = match value {
            Value::String(scenario) => Self::new(scenario.as_str(), ""),
            Value::Object(map) => Self::new(text(map.get("scenario")), text(map.get("expected"))),
            _ => return None,
        };
        Some(example).filter(|it| !it.scenario.trim().is_empty())
    }
}

impl Usage {
    /// These, without what says nothing; `None` when nothing is left.
    pub fn of(parameters: Vec<Parameter>, examples: Vec<Example>) -> Option<Box<Self>> {
        let parameters: Vec<_> =
            parameters.into_iter().filter(|it| !it.name.trim().is_empty()).take(MAX_ENTRIES).collect();
        let examples: Vec<_> =
            examples.into_iter().filter(|it| !it.scenario.trim().is_empty()).take(MAX_ENTRIES).collect();
        let is_empty = parameters.is_empty() && examples.is_empty();
        (!is_empty).then(|| Box::new(Self { parameters, examples }))
    }

    /// What `metadata` says, and the names of entries in it that are lists and say nothing. A list of names, or of scenarios,
    /// will do.
    pub(crate) fn in_metadata(metadata: &Value) -> (Option<Box<Self>>, Vec<&'static str>) {
        let mut unusable = Vec::new();
        let mut list = |name: &'static str| {
            let list = metadata.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let is_usable = |value: &Value| match name {
                "parameters" => Parameter::of(value).is_some(),
                _ => Example::of(value).is_some(),
            };
            if !list.iter().all(is_usable) {
                unusable.push(name);
            }
            list
        };
        let parameters = list("parameters").iter().filter_map(Parameter::of).collect();
        let examples = list("examples").iter().filter_map(Example::of).collect();
        (Self::of(parameters, examples), unusable)
    }

    /// What to type behind a command, such as `<path> [depth]`.
    pub(crate) fn hint(&self) -> Option<String> {
        let mut hint = String::new();
        for parameter in &self.parameters {
            let (open, close) = if parameter.required { ('<', '>') } else { ('[', ']') };
            let name = sanitize(parameter.name.trim());
            if hint.chars().count() + name.chars().count() + 5 > MAX_HINT_CHARS {
                hint.push_str(" …");
                break;
            }
            let space = if hint.is_empty() { "" } else { " " };
            let _ = write!(hint, "{space}{open}{name}{close}");
        }
        (!hint.is_empty()).then_some(hint)
    }
}

/// A text or a number; nothing for anything else.
fn text(value: Option<&Value>) -> String {
    let text = match value {
        Some(Value::String(text)) => text.trim(),
        Some(other @ (Value::Number(_) | Value::Bool(_))) => return other.to_string(),
        _ => "",
    };
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_metadata_says() {
        let metadata = json!({
            "parameters": [
                { "name": "path", "description": "The file.", "type": "string", "required": true },
                { "name": "depth", "type": 3, "required": "yes", "other": 1 },
                "format",
                { "description": "no name" },
                7,
            ],
            "examples": [{ "scenario": "A review.", "expected": "A list." }, "Another."],
        });
        let (usage, unusable) = Usage::in_metadata(&metadata);
        let usage = usage.unwrap();
        assert_eq!(unusable, ["parameters"]);
        let names: Vec<_> = usage.parameters.iter().map(|it| (it.name.as_str(), it.required)).collect();
        assert_eq!(names, [("path", true), ("depth", false), ("format", false)]);
        assert_eq!(usage.parameters[1].kind.as_deref(), Some("3"));
        assert_eq!(usage.examples, [Example::new("A review.", "A list."), Example::new("Another.", "")]);
        assert_eq!(usage.hint().as_deref(), Some("<path> [depth] [format]"));
        // What others mean by the same words is theirs.
        for other in [
            json!({}),
            json!("x"),
            json!({ "parameters": "a, b", "examples": 3 }),
            json!({ "parameters": [] }),
        ] {
            assert_eq!(Usage::in_metadata(&other), (None, Vec::new()), "{other}");
        }
    }

    #[test]
    fn a_hint_is_short_and_plain() {
        let many = (0..100).map(|number| Parameter::new(format!("name-{number}"))).collect();
        let usage = Usage::of(many, Vec::new()).unwrap();
        assert_eq!(usage.parameters.len(), MAX_ENTRIES);
        let hint = usage.hint().unwrap();
        assert!(hint.chars().count() <= MAX_HINT_CHARS && hint.ends_with("] …"), "{hint}");
        let usage =
            Usage::of(vec![Parameter::new(" a\u{202e}\nb "), Parameter::new(" ")], Vec::new()).unwrap();
        assert_eq!(usage.hint().as_deref(), Some("[a b]"));
        assert_eq!(Usage::of(Vec::new(), vec![Example::new("x", "y")]).unwrap().hint(), None);
    }
}
