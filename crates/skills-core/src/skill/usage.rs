//! [`Usage`]: the parameters of a skill, and examples of its use.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::{sanitize, shorten};

/// The maximum number of parameters, and of examples. The rest is dropped.
const MAX_ENTRIES: usize = 50;
/// The maximum length of each text, in characters. Longer texts are cut, at the end of a word.
const MAX_CHARS: usize = 1_000;
/// The maximum length of a hint, in characters.
const MAX_HINT_CHARS: usize = 120;

/// The parameters of a skill, and examples of its use.
///
/// They can be found by search and are part of the activation text. The hint of a slash command lists the parameters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// `parameters`, in order.
    pub parameters: Vec<Parameter>,
    /// `examples`, in order.
    pub examples: Vec<Example>,
}

/// A parameter that users can pass when they invoke a skill.
///
/// It is documentation for the model and for users. Values are not validated.
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
    /// The name. It is never empty.
    pub name: String,
    /// A description of the parameter.
    #[serde(default)]
    pub description: String,
    /// True if the skill requires a value. The default is `false`.
    #[serde(default)]
    pub required: bool,
    /// The type of the value in any words, such as `string` or `path`.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// An example of a skill's use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Example {
    /// A request or situation in which the skill is used. It is never empty.
    pub scenario: String,
    /// The expected result.
    #[serde(default)]
    pub expected: String,
}

impl Parameter {
    /// Creates an optional parameter.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// Sets the type, in any words.
    #[must_use]
    pub fn of_type(self, kind: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), ..self }
    }

    /// Marks the parameter as required.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Reads a parameter from a JSON object, or from a string with the name only.
    fn of(value: &Value) -> Option<Self> {
        let parameter = match value {
            Value::String(name) => Self::new(name.as_str()),
            Value::Object(map) => Self {
                name: text(map.get("name")),
                description: text(map.get("description")),
                required: map
                    .get("required")
                    .is_some_and(|required| *required == Value::Bool(true) || *required == "true"),
                kind: Some(text(map.get("type"))).filter(|kind| !kind.is_empty()),
            },
            _ => return None,
        };
        Some(parameter).filter(|parameter| !parameter.name.trim().is_empty())
    }
}

impl Example {
    /// Creates an example from a scenario and its expected result.
    pub fn new(scenario: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { scenario: scenario.into(), expected: expected.into() }
    }

    fn of(value: &Value) -> Option<Self> {
        let example = match value {
            Value::String(scenario) => Self::new(scenario.as_str(), ""),
            Value::Object(map) => Self::new(text(map.get("scenario")), text(map.get("expected"))),
            _ => return None,
        };
        Some(example).filter(|example| !example.scenario.trim().is_empty())
    }
}

impl Usage {
    /// Returns the parameters and examples that are not empty, or `None` if none are left.
    pub fn of(parameters: Vec<Parameter>, examples: Vec<Example>) -> Option<Box<Self>> {
        let parameters = parameters.into_iter().filter(|parameter| !parameter.name.trim().is_empty());
        let parameters: Vec<_> = parameters.take(MAX_ENTRIES).collect();
        let examples = examples.into_iter().filter(|example| !example.scenario.trim().is_empty());
        let examples: Vec<_> = examples.take(MAX_ENTRIES).collect();
        let is_empty = parameters.is_empty() && examples.is_empty();
        (!is_empty).then(|| Box::new(Self { parameters, examples }))
    }

    /// Reads the lists `parameters` and `examples` of the frontmatter's `metadata`.
    ///
    /// The elements can be objects, or just names and scenarios. Also returns the names of lists with invalid elements.
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

    /// Returns a hint for the arguments of a slash command, such as `<path> [depth]`.
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

/// Converts a string, a number or a boolean to text. Other values become the empty string.
fn text(value: Option<&Value>) -> String {
    let text = match value {
        Some(Value::String(text)) => text.trim(),
        Some(other @ (Value::Number(_) | Value::Bool(_))) => return other.to_string(),
        _ => "",
    };
    shorten(text, MAX_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_and_examples_are_read_from_metadata() {
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
        let names: Vec<_> =
            usage.parameters.iter().map(|parameter| (parameter.name.as_str(), parameter.required)).collect();
        assert_eq!(names, [("path", true), ("depth", false), ("format", false)]);
        assert_eq!(usage.parameters[1].kind.as_deref(), Some("3"));
        assert_eq!(usage.examples, [Example::new("A review.", "A list."), Example::new("Another.", "")]);
        assert_eq!(usage.hint().as_deref(), Some("<path> [depth] [format]"));
        // If a value is not a list, it is probably used for something else, so we should ignore it without a finding.
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
    fn a_hint_is_short_and_has_no_control_characters() {
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
