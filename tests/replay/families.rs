//! [`Family`]: generates valid messages from the JSON Schema of the SDK's types.

use fastrand::Rng;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The maximum depth of optional parts of a message.
const MAX_DEPTH: usize = 5;
/// The strings of generated messages.
const TEXTS: [&str; 8] = [
    "",
    "a",
    "two words",
    "é\u{1f600}\u{2028}",
    "\"quoted\" \\ back",
    "line\nline\ttab",
    "<b>&amp;</b>",
    "1e400",
];

/// Returns a random element.
fn choose<'a, T>(numbers: &mut Rng, of: &'a [T]) -> &'a T {
    &of[numbers.usize(..of.len())]
}

/// All messages of one kind, for example all requests of clients.
pub(super) struct Family {
    pub(super) schema: Value,
    /// Deserializes a value as one of the messages with the SDK.
    deserialize: fn(Value) -> Result<(), serde_json::Error>,
}

impl Family {
    /// Reads the schema of a type of the SDK.
    pub(super) fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self {
            schema: schema_for!(T).to_value(),
            deserialize: |value| serde_json::from_value::<T>(value).map(|_| ()),
        }
    }

    /// Returns the methods with their schemas.
    pub(super) fn members(&self) -> Vec<(String, &Value)> {
        let variants = self.schema["anyOf"].as_array().expect("a choice").iter();
        let resolved = variants.filter_map(|variant| {
            let all = variant["allOf"].as_array().and_then(|all| all.first());
            let reference = all.unwrap_or(variant)["$ref"].as_str()?;
            self.schema.pointer(reference.strip_prefix('#')?)
        });
        // Skip extension messages, because the schema doesn't have a method for them.
        resolved.filter_map(|schema| Some((schema["x-method"].as_str()?.to_owned(), schema))).collect()
    }

    /// Generates a message with this method.
    pub(super) fn make(&self, numbers: &mut Rng, method: &str) -> Value {
        let members = self.members();
        let schema = members.iter().find(|(name, _)| name == method);
        let (_, schema) = schema.unwrap_or_else(|| panic!("no schema for {method}"));
        let value = self.value(numbers, schema, 0);
        (self.deserialize)(value.clone()).unwrap_or_else(|error| panic!("{method}: {error} in {value}"));
        value
    }

    /// Generates a value of a schema.
    fn value(&self, numbers: &mut Rng, schema: &Value, depth: usize) -> Value {
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return choose(numbers, values).clone();
        }
        let mut parts = Vec::new();
        if let Some(reference) = schema["$ref"].as_str() {
            let path = reference.strip_prefix('#').expect("within the schema");
            let target = self.schema.pointer(path).unwrap_or_else(|| panic!("no {reference}"));
            parts.push(self.value(numbers, target, depth));
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(options) = schema[choice].as_array() {
                let null = options.iter().find(|option| option["type"] == "null" && depth >= MAX_DEPTH);
                let option = null.unwrap_or_else(|| choose(numbers, options));
                parts.push(self.value(numbers, option, depth));
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            parts.push(self.value(numbers, part, depth));
        }
        if schema.get("properties").is_some() || parts.is_empty() {
            parts.push(self.plain(numbers, schema, depth));
        }
        let is_object = parts.iter().all(Value::is_object);
        if !is_object {
            return parts.remove(0);
        }
        let all = parts.into_iter().flat_map(|part| part.as_object().cloned().unwrap_or_default());
        Value::Object(all.collect())
    }

    /// Generates a value of a schema with a type.
    fn plain(&self, numbers: &mut Rng, schema: &Value, depth: usize) -> Value {
        let kind = match &schema["type"] {
            Value::Array(kinds) if depth >= MAX_DEPTH && kinds.contains(&json!("null")) => "null",
            Value::Array(kinds) => choose(numbers, kinds).as_str().expect("a type"),
            Value::String(kind) => kind,
            _ if schema.get("properties").is_some() => "object",
            // Without a type in the schema, any value will do.
            _ => *choose(numbers, &["null", "boolean", "integer", "string"]),
        };
        match kind {
            "null" => Value::Null,
            "boolean" => json!(numbers.bool()),
            "integer" | "number" => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                json!(least + numbers.i64(0..100))
            }
            "string" if schema["format"] == "date-time" => json!("2026-11-22T12:00:00Z"),
            "string" if schema["format"] == "uri" || schema["format"] == "url" => {
                json!("https://example.org/a?b")
            }
            "string" => json!(*choose(numbers, &TEXTS)),
            "array" => {
                let count = if depth >= MAX_DEPTH { 0 } else { numbers.usize(..3) };
                let least = usize::try_from(schema["minItems"].as_u64().unwrap_or(0)).expect("it is small");
                let items = schema.get("items").unwrap_or(&Value::Null);
                (0..count.max(least)).map(|_| self.value(numbers, items, depth + 1)).collect()
            }
            _ => self.object(numbers, schema, depth),
        }
    }

    fn object(&self, numbers: &mut Rng, schema: &Value, depth: usize) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut members = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_wanted = depth < MAX_DEPTH && numbers.bool();
            if is_wanted || required.contains(&name.as_str()) {
                members.insert(name.clone(), self.value(numbers, property, depth + 1));
            }
        }
        if depth < MAX_DEPTH
            && numbers.usize(..4) == 0
            && schema.get("additionalProperties").is_none_or(|allowed| *allowed == true)
        {
            // Also add something that isn't in the schema, to make sure that we don't drop it.
            members.insert("_meta".to_owned(), json!({ "x": [1.50, { "y": null }] }));
        }
        Value::Object(members)
    }
}
