//! The prompts and resources of a server, as tools for the model: one tool for each prompt, and one that reads all resources.
//!
//! The names contain a colon, which names of tools should not have
//! ([MCP: tools](https://modelcontextprotocol.io/specification/2025-11-25/server/tools)). If a server has such a tool anyway, it is used.

use std::time::Duration;

use serde_json::{Map, Value, json};
use skills_core::{ToolOutput, text::sanitize, tool::Content};

use super::{super::ServerError, Tally, tools::part};

/// The prefix of the name of a prompt.
const PROMPT: &str = "prompt:";
/// The tool that reads resources.
const READ: &str = "resource:read";
/// The scheme of the files of skills, which are only served after the user has approved them.
const SKILL_SCHEME: &str = "skill";
/// The time limit for each list except that of the tools. If a server is slower, the model gets the tools without the rest.
pub(super) const EXTRAS_LIMIT: Duration = Duration::from_secs(3);
/// The maximum number of prompts.
const MAX_PROMPTS: usize = 50;
/// The maximum number of resources that are listed. Others can be read, too.
const MAX_RESOURCES: usize = 20;
/// The maximum length of a listed address, in bytes. Resources with a longer one are not listed, because a part is of no use.
const MAX_URI: usize = 200;
/// The maximum length of a resource's name, in characters.
const MAX_NAME: usize = 60;

/// A list of a server.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) method: &'static str,
    /// The member of the result that contains the items.
    pub(super) key: &'static str,
}

/// The lists in the order in which they are requested.
pub(super) const LISTS: [List; 4] = [
    List { method: "tools/list", key: "tools" },
    List { method: "prompts/list", key: "prompts" },
    List { method: "resources/list", key: "resources" },
    List { method: "resources/templates/list", key: "resourceTemplates" },
];

impl List {
    /// Returns true for the list of the tools that the server has.
    pub(super) fn is_of_tools(self) -> bool {
        self.key == "tools"
    }
}

/// Returns the request for a tool that stands for a prompt or for resources.
pub(super) fn request(
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<(&'static str, Value), ServerError> {
    if let Some(prompt) = tool.strip_prefix(PROMPT) {
        return Ok(("prompts/get", json!({ "name": prompt, "arguments": arguments })));
    }
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
    if !is_resource(uri) {
        return Err(ServerError::NoResource);
    }
    Ok(("resources/read", json!({ "uri": uri })))
}

/// Returns true if an address is not that of a file of a skill. Parsers of URLs remove white space and control characters, so the scheme must
/// have none.
fn is_resource(uri: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    uri.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(is_plain) && !scheme.eq_ignore_ascii_case(SKILL_SCHEME)
    })
}

/// Converts the messages of a prompt, or the contents of resources.
pub(super) fn output(result: Value) -> Result<ToolOutput, ServerError> {
    let mut output = ToolOutput::text("");
    output.content = if result["contents"].is_array() { contents(result)? } else { messages(result)? };
    Ok(output)
}

/// The prompts and resources of a server, as they are listed.
#[derive(Default)]
pub(super) struct Extras {
    /// The number of tools that the server has.
    tools: usize,
    prompts: usize,
    resources: Vec<String>,
    /// True if there are resources that are not listed.
    more: bool,
}

/// Returns the definition of a tool that takes these arguments: the name, a description, and true if it is required.
fn tool(name: &str, description: &str, arguments: &[(&str, &str, bool)]) -> Value {
    let mut properties = Map::new();
    for (name, description, _) in arguments {
        let mut schema = json!({ "type": "string" });
        if !description.is_empty() {
            schema["description"] = (*description).into();
        }
        properties.insert((*name).to_owned(), schema);
    }
    let required: Vec<_> =
        arguments.iter().filter(|(.., required)| *required).map(|(name, ..)| *name).collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": properties, "required": required },
        "annotations": { "readOnlyHint": true },
    })
}

fn prompt_tool(prompt: &Value) -> Option<Value> {
    let name = prompt["name"].as_str().filter(|name| !name.is_empty())?;
    let text = |key: &str| prompt[key].as_str().filter(|text| !text.is_empty());
    let description = text("description").or_else(|| text("title")).unwrap_or("Returns a prompt.");
    let arguments: Vec<_> = prompt["arguments"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|argument| {
            let description = argument["description"].as_str().unwrap_or_default();
            Some((argument["name"].as_str()?, description, argument["required"] == true))
        })
        .collect();
    Some(tool(&format!("{PROMPT}{name}"), description, &arguments))
}

impl Extras {
    /// Adds an item of a list. Tools and prompts are added to `tally`. Returns false if there is no room for further items.
    pub(super) fn add(&mut self, list: List, item: &Value, tally: &mut Tally) -> bool {
        match list.key {
            "tools" => {
                let has_room = tally.add(item);
                self.tools = tally.len();
                has_room
            }
            "prompts" => {
                self.prompts += 1;
                prompt_tool(item).is_none_or(|tool| tally.add(&tool)) && self.prompts < MAX_PROMPTS
            }
            "resources" => self.add_resource(item, "uri"),
            _ => self.add_resource(item, "uriTemplate"),
        }
    }

    /// Returns the number of tools that the server has.
    pub(super) fn tools(&self) -> usize {
        self.tools
    }

    /// Adds a resource or a template, whose address is in `key`. Returns false if there are enough.
    fn add_resource(&mut self, resource: &Value, key: &str) -> bool {
        let Some(uri) = resource[key].as_str().filter(|uri| is_resource(uri)) else { return true };
        if uri.len() > MAX_URI || self.resources.len() == MAX_RESOURCES {
            self.more = true;
            return self.resources.len() < MAX_RESOURCES;
        }
        let name = resource["title"].as_str().or_else(|| resource["name"].as_str()).unwrap_or_default();
        let name: String = sanitize(name).chars().take(MAX_NAME).collect();
        // Many servers use the end of the address as the name.
        let is_same = uri.ends_with(&*name);
        self.resources.push(if is_same { uri.to_owned() } else { format!("{uri} ({name})") });
        true
    }

    /// Returns the tool that reads resources. `None` if there are none.
    pub(super) fn reader(&self) -> Option<Value> {
        let listed = self.resources.join(", ");
        let description = match (listed.is_empty(), self.more) {
            (true, false) => return None,
            (true, true) => "Reads a resource of the server.".to_owned(),
            (false, false) => format!("Reads a resource of the server: {listed}."),
            (false, true) => format!("Reads a resource of the server: {listed}, and others."),
        };
        Some(tool(READ, &description, &[("uri", "", true)]))
    }
}

/// Converts the messages of a prompt. If there are several, each is introduced by its role.
fn messages(mut result: Value) -> Result<Vec<Content>, ServerError> {
    let invalid = ServerError::Invalid("prompt has no messages");
    let Some(Value::Array(messages)) = result.get_mut("messages").map(Value::take) else {
        return Err(invalid);
    };
    let has_roles = messages.len() > 1;
    let mut content = Vec::new();
    for mut message in messages {
        let role = if message["role"] == "assistant" { "Assistant:" } else { "User:" };
        content.extend(has_roles.then(|| Content::Text(role.to_owned())));
        let body = message.get_mut("content").map(Value::take);
        content
            .push(part(body.filter(Value::is_object).ok_or(ServerError::Invalid("prompt has no content"))?));
    }
    Ok(content)
}

/// Converts the contents of a resource. Text is passed on as text, because some agents don't show embedded resources to the model.
fn contents(mut result: Value) -> Result<Vec<Content>, ServerError> {
    let Some(Value::Array(contents)) = result.get_mut("contents").map(Value::take) else {
        return Err(ServerError::Invalid("resource has no content"));
    };
    let convert = |mut item: Value| {
        if let Some(Value::String(text)) = item.get_mut("text").map(Value::take) {
            return Content::Text(text);
        }
        let mime = item["mimeType"].as_str().unwrap_or_default();
        let kind = mime.split('/').next().unwrap_or_default();
        Content::Raw(match kind {
            "image" | "audio" => json!({ "type": kind, "data": item["blob"], "mimeType": mime }),
            _ => json!({ "type": "resource", "resource": item }),
        })
    };
    Ok(contents.into_iter().filter(Value::is_object).map(convert).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(resources: &[Value]) -> Option<String> {
        let mut list = Extras::default();
        for resource in resources {
            if !list.add_resource(resource, "uri") {
                break;
            }
        }
        Some(list.reader()?["description"].as_str()?.to_owned())
    }

    #[test]
    fn files_of_skills_are_not_resources() {
        for (uri, expected) in [
            ("test://a", true),
            ("file:///a b", true),
            ("a+b.c-d:x", true),
            ("skills://a", true),
            ("", false),
            ("a", false),
            ("://a", false),
            ("skill://a/SKILL.md", false),
            ("SKILL:a/SKILL.md", false),
            (" skill://a/SKILL.md", false),
            ("sk\nill://a/SKILL.md", false),
            ("skill\t://a/SKILL.md", false),
            ("%73kill://a/SKILL.md", false),
        ] {
            assert_eq!(is_resource(uri), expected, "{uri:?}");
        }
    }

    #[test]
    fn resources_are_listed_within_limits() {
        assert_eq!(described(&[]), None);
        assert_eq!(described(&[json!({ "uri": "skill://a/SKILL.md" }), json!({ "uri": 7 }), json!(1)]), None);
        let some = [
            json!({ "uri": "test://a", "name": "A", "title": "The \u{202e}A" }),
            json!({ "uri": "test://b/c.md", "name": "c.md" }),
        ];
        let expected = "Reads a resource of the server: test://a (The A), test://b/c.md.";
        assert_eq!(described(&some).as_deref(), Some(expected));
        let long = json!({ "uri": format!("test://{}", "x".repeat(MAX_URI)), "name": "x" });
        assert_eq!(described(&[long]).as_deref(), Some("Reads a resource of the server."));
        let many: Vec<_> =
            (0..1_000).map(|n| json!({ "uri": format!("test://{n}"), "name": "x".repeat(500) })).collect();
        let text = described(&many).unwrap();
        assert!(text.ends_with(", and others.") && text.len() < 2_000, "{text}");
    }

    #[test]
    fn prompts_are_tools() {
        let prompt = json!({ "name": "review", "arguments": [{ "name": "file", "required": true }, { "name": "how" }, 7] });
        let tool = prompt_tool(&prompt).unwrap();
        assert_eq!(tool["name"], "prompt:review");
        assert_eq!(tool["inputSchema"]["required"], json!(["file"]));
        assert_eq!(prompt_tool(&json!({ "name": "" })), None);
        assert_eq!(prompt_tool(&json!(["name"])), None);
    }

    #[test]
    fn invalid_results_are_errors() {
        for result in [json!(1), json!([]), json!({}), json!({ "messages": 1, "contents": {} })] {
            assert!(messages(result.clone()).is_err() && contents(result).is_err());
        }
        for message in [json!(1), json!([]), json!({ "role": "user" }), json!({ "content": ["x"] })] {
            assert!(messages(json!({ "messages": [message] })).is_err());
        }
        assert_eq!(contents(json!({ "contents": [1, [], null] })).unwrap(), []);
    }
}
