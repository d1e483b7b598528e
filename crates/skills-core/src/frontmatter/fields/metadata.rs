//! Reads the field `metadata`, which can also contain fields that are not in the specification.

use serde_json::{Map, Value};

use super::Reader;
use crate::{
    diagnostic::Diagnostic,
    frontmatter::{
        keys::{Field, apply, kebab, scalar},
        yaml::{Kind, Node},
    },
    skill::{Properties, Usage},
};

impl<'r, 'a> Reader<'r, 'a> {
    /// Sets the metadata. Entries such as `metadata.priority` also set the property, unless the frontmatter has a field
    /// for it.
    pub(super) fn metadata(&mut self, properties: &mut Properties) {
        let Some((key, node)) = self.entry(Field::Metadata) else {
            return;
        };
        if node.is_null() {
            return;
        }
        let value = node.to_value();
        match &node.kind {
            Kind::Map { entries, .. } if self.findings.wants_spec() => self.check_texts(entries),
            Kind::Map { .. } => {}
            _ => {
                let finding = Diagnostic::warning("metadata-not-a-mapping", "`metadata` should be a mapping")
                    .help("use indented `key: value` lines after `metadata:`");
                self.findings.broken(self.findings.at(node.start, finding));
            }
        }
        if let Value::Object(map) = &value {
            self.nested_fields(key, node, map, properties);
        }
        let (usage, unusable) = Usage::in_metadata(&value);
        properties.usage = usage;
        for name in unusable {
            let required = if name == "parameters" { "a `name`" } else { "a `scenario`" };
            self.unusable(key, node, &format!("{required} for all entries of `{name}`"));
        }
        properties.metadata = Some(value.to_string().into());
    }

    /// Reports values that are not texts, because the specification maps strings to strings.
    fn check_texts(&mut self, entries: &[(Node<'a>, Node<'a>)]) {
        for (key, value) in entries {
            if value.text().is_some() {
                continue;
            }
            let message = format!("`metadata.{}` should be a string", key.text().unwrap_or("…"));
            let finding = Diagnostic::warning("metadata-not-text", message)
                .help("put the value in quotes, because `metadata` should only contain strings");
            let finding = self.findings.at(value.start, finding);
            // We support lists for these two keys, even though the specification doesn't allow them.
            if matches!(key.text(), Some("parameters" | "examples")) {
                self.findings.advice(finding);
            } else {
                self.findings.broken(finding);
            }
        }
    }

    /// Sets properties from entries such as `metadata.priority`.
    fn nested_fields(
        &mut self,
        key: &'r Node<'a>,
        node: &'r Node<'a>,
        map: &Map<String, Value>,
        properties: &mut Properties,
    ) {
        for (name, value) in map {
            let Some(field) = Field::named(&kebab(name)) else { continue };
            if field.in_specification() || self.slots[field as usize].is_some() || value.is_null() {
                continue;
            }
            match (field, scalar(value)) {
                (Field::Version, Some(text)) => properties.version = Some(text.into()),
                (Field::ArgumentHint, Some(text)) => properties.argument_hint = Some(text.into()),
                (Field::Version | Field::ArgumentHint, None) => {}
                _ => {
                    if let Err(expected) = apply(properties, field, value) {
                        self.unusable(key, node, &format!("{expected} for `{name}`"));
                    }
                }
            }
        }
    }
}
