//! Builds the JSON schemas of the built-in tools.

use serde_json::{Map, Value};

/// Returns the schema of an object with these properties. `required` contains the names of the required properties.
pub(super) fn object(properties: &Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.clone());
    schema.insert("required".into(), required.into());
    schema
}
