//! [`Format`]: renders a catalog as XML, JSON or Markdown, and escapes the texts of skills.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{Item, shorten};

/// The format of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// An element `<available_skills>` with a `<skill>` for each skill.
    #[default]
    Xml,
    /// An object `{"available_skills":[…]}` with one skill per line.
    Json,
    /// A heading `## Available skills` and a list.
    Markdown,
}

impl Format {
    /// Renders the catalog with descriptions cut to `cap` characters, and the sentence `omitted` at the end.
    pub(super) fn render(
        self,
        items: &[Item],
        is_grouped: bool,
        cap: usize,
        omitted: Option<&str>,
    ) -> String {
        let entries: Vec<String> = if is_grouped {
            self.groups(items, cap)
        } else {
            items.iter().map(|item| self.entry(item, cap)).collect()
        };
        let (open, between, close) = match self {
            Self::Xml => ("<available_skills>\n", "\n", "\n</available_skills>"),
            Self::Json => ("{\"available_skills\":[\n", ",\n", "\n]"),
            Self::Markdown => ("## Available skills\n\n", "\n", ""),
        };
        let mut text = format!("{open}{}", entries.join(between));
        match (self, omitted) {
            (Self::Xml, Some(sentence)) => {
                text.push_str("\n  ");
                text.push_str(sentence);
                text.push_str(close);
            }
            (Self::Json, Some(sentence)) => {
                text.push_str(close);
                text.push_str(",\"more\":");
                text.push_str(&json(sentence));
                text.push('}');
            }
            (Self::Json, None) => {
                text.push_str(close);
                text.push('}');
            }
            (Self::Markdown, Some(sentence)) => {
                text.push_str("\n\n");
                text.push_str(sentence);
            }
            (Self::Xml | Self::Markdown, None) => text.push_str(close),
        }
        text
    }

    /// Renders the entries in groups, in the order of their first skills.
    fn groups(self, items: &[Item], cap: usize) -> Vec<String> {
        let mut groups: IndexMap<&str, Vec<String>> = IndexMap::new();
        for item in items {
            groups.entry(&item.group).or_default().push(self.entry(item, cap));
        }
        let render = |(name, entries): (&str, Vec<String>)| match self {
            Self::Xml => {
                format!("<group name=\"{}\">\n{}\n</group>", escape_attribute(name), entries.join("\n"))
            }
            Self::Json => format!("{{\"group\":{},\"skills\":[\n{}\n]}}", json(name), entries.join(",\n")),
            Self::Markdown => format!("### {}\n\n{}\n", escape_markdown(name), entries.join("\n")),
        };
        groups.into_iter().map(render).collect()
    }

    /// Renders the entry of one skill.
    pub(super) fn entry(self, item: &Item, cap: usize) -> String {
        let description = shorten(&item.description, cap);
        match self {
            Self::Xml => xml_entry(item, &description),
            Self::Json => json_entry(item, &description),
            Self::Markdown => markdown_entry(item, &description),
        }
    }
}

fn xml_entry(item: &Item, description: &str) -> String {
    let mut fields = vec![format!("<name>{}</name>", escape_xml(&item.name))];
    if !description.is_empty() {
        fields.push(format!("<description>{}</description>", escape_xml(description)));
    }
    if let Some(location) = &item.location {
        fields.push(format!("<location>{}</location>", escape_xml(location)));
    }
    if description.is_empty() {
        return format!("  <skill>{}</skill>", fields.concat());
    }
    format!("  <skill>\n    {}\n  </skill>", fields.join("\n    "))
}

fn json_entry(item: &Item, description: &str) -> String {
    let mut entry = Map::new();
    entry.insert("name".into(), item.name.as_str().into());
    if !description.is_empty() {
        entry.insert("description".into(), description.into());
    }
    if let Some(location) = &item.location {
        entry.insert("location".into(), location.as_str().into());
    }
    Value::Object(entry).to_string()
}

fn markdown_entry(item: &Item, description: &str) -> String {
    let mut line = format!("- {}", code_span(&item.name));
    if !description.is_empty() {
        line.push_str(": ");
        line.push_str(&escape_markdown(description));
    }
    if let Some(location) = &item.location {
        line.push_str(" (");
        line.push_str(&code_span(location));
        line.push(')');
    }
    line
}

fn json(text: &str) -> String {
    Value::from(text).to_string()
}

/// Escapes `text` for the content of an XML element.
pub(crate) fn escape_xml(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>']) {
        return text.into();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").into()
}

/// Escapes `text` for the value of an XML attribute in double quotes.
pub(crate) fn escape_attribute(text: &str) -> String {
    escape_xml(text).replace('"', "&quot;")
}

/// Escapes `text` for Markdown. An underscore within a word needs no escape.
fn escape_markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut previous = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let within_word =
            previous.is_alphanumeric() && chars.peek().is_some_and(|next| next.is_alphanumeric());
        if matches!(c, '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '~') || (c == '_' && !within_word) {
            escaped.push('\\');
        }
        escaped.push(c);
        previous = c;
    }
    escaped
}

/// Formats `text` as a Markdown code span. The fence is one backtick longer than the longest run of backticks in `text`.
fn code_span(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}
