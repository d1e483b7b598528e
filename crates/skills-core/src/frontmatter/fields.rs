//! Converts the entries of a YAML mapping to a [`Frontmatter`].

mod metadata;

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use super::{
    Frontmatter, MAX_COMPATIBILITY_CHARS, MAX_DESCRIPTION_CHARS, ParseContext,
    findings::Findings,
    keys::{Field, MAX_WORDS, apply, kebab, split_tools},
    recover::{Entries, literal_after},
    text::readable,
    yaml::{Kind, Node},
};
use crate::{
    diagnostic::Diagnostic,
    name::{MAX_LOADED_NAME_CHARS, NameRule, SkillName},
    skill::Properties,
    text::has_hidden,
};

/// Converts `entries`, whose positions refer to `source`. Returns `None` if the skill has no name or no description.
pub(super) fn read(
    entries: &Entries<'_>,
    source: &str,
    context: &ParseContext<'_>,
    findings: &mut Findings,
) -> Option<Frontmatter> {
    let mut reader = Reader { entries, source, slots: [None; Field::COUNT], findings };
    let assigned = reader.assign();
    let name = reader.name(context);
    let description = reader.description();
    let mut properties = reader.properties();
    properties.extra = reader.extra(assigned);
    Some(Frontmatter { name: name?, description: description?, properties })
}

struct Reader<'r, 'a> {
    entries: &'r Entries<'a>,
    source: &'r str,
    /// For each field, the index of its entry in `entries`, or `None` if the field is missing.
    slots: [Option<usize>; Field::COUNT],
    findings: &'r mut Findings,
}

impl<'r, 'a> Reader<'r, 'a> {
    /// Finds the entry of each field, exact spellings first. Returns the number of entries that are known fields.
    fn assign(&mut self) -> usize {
        let mut exact = 0;
        for (index, (key, _)) in self.entries.iter().enumerate() {
            if let Some(field) = key.text().and_then(Field::named) {
                self.slots[field as usize].get_or_insert(index);
                exact += 1;
            }
        }
        if exact == self.entries.len() {
            return exact;
        }
        for (index, (key, _)) in self.entries.iter().enumerate() {
            let Some(text) = key.text() else { continue };
            if let Cow::Owned(spelled) = kebab(text)
                && let Some(field) = Field::named(&spelled)
                && self.slots[field as usize].is_none()
            {
                self.slots[field as usize] = Some(index);
                exact += 1;
                if field.in_specification() {
                    let finding = Diagnostic::warning(
                        "field-spelling",
                        format!("field `{text}` should be spelled `{spelled}`"),
                    )
                    .help(format!("use `{spelled}:`"));
                    self.findings.broken(self.findings.at(key.start, finding));
                }
            }
        }
        exact
    }

    fn entry(&self, field: Field) -> Option<&'r (Node<'a>, Node<'a>)> {
        self.slots[field as usize].map(|index| &self.entries[index])
    }

    /// Returns the text of `field`. If YAML would interpret it differently, this is the literal text in the file. Returns `None`
    /// if there is no value.
    fn text(&mut self, field: Field) -> Option<Cow<'r, str>> {
        let (key, value) = self.entry(field)?;
        let source = self.source;
        let literal = || {
            literal_after(source, key.start)
                .or_else(|| source.get(value.start.byte..value.end).map(|text| Cow::Borrowed(text.trim())))
        };
        let name = key.text().unwrap_or_default();
        match &value.kind {
            Kind::Text { .. } if value.is_null() && !value.marked => {
                // In `description: #1 tool for …`, the value is a comment for YAML. We use it as the value, since the author probably meant that.
                let text = literal().filter(|text| text.starts_with('#'))?;
                self.cut(value, name, "value is empty, because `#` after a space starts a comment in YAML");
                Some(text)
            }
            Kind::Text { text, plain } if !value.marked => {
                if *plain && is_cut(source, value) {
                    self.cut(
                        value,
                        name,
                        "value ends before `#`, because `#` after a space starts a comment in YAML",
                    );
                }
                Some(Cow::Borrowed(text.as_ref()))
            }
            _ => {
                let message = if value.marked {
                    format!("`{name}` contains a YAML tag or anchor; using the literal text instead")
                } else {
                    format!("`{name}` should be a string; using the literal text instead")
                };
                let finding = Diagnostic::warning("not-text", message).help("put the value in quotes");
                self.findings.broken(self.findings.at(value.start, finding));
                literal()
            }
        }
        .filter(|text| !text.trim().is_empty())
    }

    fn cut(&mut self, value: &Node<'_>, name: &str, message: &str) {
        let finding = Diagnostic::warning("cut-by-comment", format!("`{name}`: {message}"))
            .help("put the value in quotes, or remove the comment");
        self.findings.advice(self.findings.at(value.start, finding));
    }

    fn name(&mut self, context: &ParseContext<'_>) -> Option<SkillName> {
        let written = self.text(Field::Name);
        if let Some(written) = &written
            && let Some(name) = SkillName::new(written)
        {
            let position = self.entry(Field::Name).map(|(_, value)| value.start).unwrap_or_default();
            if name.as_str().chars().count() > MAX_LOADED_NAME_CHARS {
                let rule = NameRule::Length;
                let finding = Diagnostic::error(rule.code(), rule.message(written, None));
                self.findings.fatal(self.findings.at(position, finding.help(rule.help(written, None))));
                return None;
            }
            for rule in NameRule::broken_by(written, context.directory) {
                let mut finding = Diagnostic::warning(rule.code(), rule.message(written, context.directory));
                finding.help = Some(rule.help(written, context.directory));
                self.findings.broken(self.findings.at(position, finding));
            }
            return Some(name);
        }
        let missing =
            Diagnostic::warning("name-missing", "skill has no name").at(self.findings.lines_before, 0);
        let Some(name) = context.directory.and_then(SkillName::new) else {
            self.findings.fatal(missing.help("add `name:`, using lower-case letters, digits and hyphens"));
            return None;
        };
        self.findings.broken(missing.help(format!("add `name: {name}` to match the directory")));
        Some(name)
    }

    fn description(&mut self) -> Option<String> {
        let description =
            self.text(Field::Description).map(|text| readable(&text)).filter(|text| !text.is_empty());
        let Some(description) = description else {
            let finding = Diagnostic::error("description-missing", "skill has no description")
                .help("add `description:` to describe the skill and when to use it");
            let finding = match self.entry(Field::Description) {
                Some((key, _)) => self.findings.at(key.start, finding),
                // This is the line of the opening fence.
                None => finding.at(self.findings.lines_before, 0),
            };
            self.findings.fatal(finding);
            return None;
        };
        self.length(Field::Description, "description-too-long", &description, MAX_DESCRIPTION_CHARS);
        if !description.is_ascii() && has_hidden(&description) {
            let finding = Diagnostic::warning(
                "deceptive-characters",
                "description contains invisible or text-reordering characters, which are removed from catalogs",
            );
            let (_, value) = self.entry(Field::Description)?;
            self.findings.advice(self.findings.at(value.start, finding));
        }
        Some(description)
    }

    /// Reports a text of more than `max` characters.
    fn length(&mut self, field: Field, code: &'static str, text: &str, max: usize) {
        if text.len() <= max {
            return;
        }
        let count = text.chars().count();
        if count > max
            && let Some((key, value)) = self.entry(field)
        {
            let name = key.text().unwrap_or_default();
            let finding = Diagnostic::warning(
                code,
                format!("`{name}` has {count} characters, but should have at most {max}"),
            )
            .help("move details from this field to the body");
            self.findings.broken(self.findings.at(value.start, finding));
        }
    }

    fn properties(&mut self) -> Properties {
        let mut properties = Properties { license: self.short(Field::License), ..Properties::default() };
        if self.slots.iter().skip(Field::License as usize).all(Option::is_none) {
            return properties;
        }
        properties.compatibility = self.compatibility();
        properties.version = self.short(Field::Version);
        properties.argument_hint = self.argument_hint();
        properties.allowed_tools = self.allowed_tools();
        for field in [
            Field::Tags,
            Field::Priority,
            Field::UserInvocable,
            Field::DisableModelInvocation,
            Field::HideFromDiscovery,
            Field::Paths,
        ] {
            if let Some((key, value)) = self.entry(field)
                && !value.is_null()
                && let Err(expected) = apply(&mut properties, field, &value.to_value())
            {
                self.unusable(key, value, expected);
            }
        }
        self.metadata(&mut properties);
        properties
    }

    fn unusable(&mut self, key: &Node<'_>, value: &Node<'_>, expected: &str) {
        let message = format!("ignoring `{}`: expected {expected}", key.text().unwrap_or_default());
        self.findings.advice(self.findings.at(value.start, Diagnostic::warning("field-left-out", message)));
    }

    fn short(&mut self, field: Field) -> Option<Box<str>> {
        let text = self.text(field)?;
        Some(readable(&text)).filter(|text| !text.is_empty()).map(Into::into)
    }

    /// Returns the argument hint. A hint such as `[file] [--fast]` is a list in YAML, so the literal text is used.
    fn argument_hint(&mut self) -> Option<Box<str>> {
        let (key, value) = self.entry(Field::ArgumentHint)?;
        match &value.kind {
            Kind::Text { .. } => self.short(Field::ArgumentHint),
            _ => literal_after(self.source, key.start).map(|text| readable(&text).into()),
        }
    }

    fn compatibility(&mut self) -> Option<Box<str>> {
        let (key, _) = self.entry(Field::Compatibility)?;
        let Some(text) = self.short(Field::Compatibility) else {
            let finding = Diagnostic::warning("compatibility-empty", "`compatibility` is empty")
                .help("add the requirements of the skill, or remove the field");
            self.findings.broken(self.findings.at(key.start, finding));
            return None;
        };
        self.length(Field::Compatibility, "compatibility-too-long", &text, MAX_COMPATIBILITY_CHARS);
        Some(text)
    }

    fn allowed_tools(&mut self) -> Vec<String> {
        let Some((key, value)) = self.entry(Field::AllowedTools) else {
            return Vec::new();
        };
        if value.is_null() {
            return Vec::new();
        }
        let (tools, separated) = match &value.kind {
            Kind::List { items, .. } if !value.marked => (
                items
                    .iter()
                    .filter_map(Node::text)
                    .map(readable)
                    .filter(|tool| !tool.is_empty())
                    .take(MAX_WORDS)
                    .collect(),
                false,
            ),
            Kind::Map { .. } => {
                self.unusable(key, value, "a list of tools");
                return Vec::new();
            }
            _ => match self.text(Field::AllowedTools) {
                Some(text) => split_tools(&text),
                None => return Vec::new(),
            },
        };
        if !separated && self.findings.wants_spec() {
            let finding = Diagnostic::warning(
                "allowed-tools-format",
                "`allowed-tools` should be a string with tools separated by spaces",
            )
            .help(format!("use `allowed-tools: {}`", tools.join(" ")));
            self.findings.broken(self.findings.at(value.start, finding));
        }
        tools
    }

    /// Returns the entries that are not known fields, in order.
    fn extra(&mut self, assigned: usize) -> Option<Arc<str>> {
        if self.findings.wants_spec() {
            self.unknown_fields();
        }
        if assigned == self.entries.len() {
            return None;
        }
        let mut extra = Map::new();
        for (index, (key, value)) in self.entries.iter().enumerate() {
            if !self.slots.contains(&Some(index)) {
                let key = key.text().map_or_else(|| key.to_value().to_string(), str::to_owned);
                extra.entry(key).or_insert_with(|| value.to_value());
            }
        }
        Some(Value::Object(extra).to_string().into())
    }

    fn unknown_fields(&mut self) {
        for (index, (key, _)) in self.entries.iter().enumerate() {
            let name = key.text().unwrap_or("…");
            let field = self.slots.iter().position(|slot| *slot == Some(index));
            if field.is_none_or(|field| field > Field::AllowedTools as usize) {
                let help = match Field::misspelled(name).filter(|_| field.is_none()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => {
                        format!(
                            "move this field to `metadata`, because some clients reject unknown fields: `metadata:` / `  {name}: …`"
                        )
                    }
                };
                let message = format!("field `{name}` is not in the specification");
                let finding = Diagnostic::warning("unknown-field", message).help(help);
                self.findings.advice(self.findings.at(key.start, finding));
            }
        }
    }
}

/// Returns true if a comment follows `value` in the same line.
fn is_cut(source: &str, value: &Node<'_>) -> bool {
    let rest = source.get(value.end..).unwrap_or_default();
    rest.trim_start_matches([' ', '\t']).starts_with('#')
}
