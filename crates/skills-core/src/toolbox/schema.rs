//! JSON schemas of tool inputs.

use serde_json::{Map, Value};

/// An object with these properties, of which some are required.
pub(super) fn object(properties: &Value, required: &[&str]) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), properties.clone());
    schema.insert("required".into(), required.into());
    schema
}
