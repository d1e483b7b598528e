//! Generates conversations with every message of the schema, in both versions of the protocol, from the JSON Schema of the SDK's
//! types.
//!
//! Each generated message is valid: the SDK can deserialize it. Some values, such as ids, sessions and stop reasons, are then
//! replaced so that the messages form a conversation.

use std::collections::BTreeSet;

use agent_client_protocol::{v1::schema as v1, v2::schema as v2};
use fastrand::Rng;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::recording::{Recording, Side};

/// The maximum depth of optional parts of a message.
const MAX_DEPTH: usize = 5;
/// The number of occurrences of each message in a conversation.
const ROUNDS: usize = 3;
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

fn choose<'a, T>(numbers: &mut Rng, of: &'a [T]) -> &'a T {
    &of[numbers.usize(..of.len())]
}

/// All messages of one kind, for example all requests of clients.
struct Family {
    schema: Value,
    /// Deserializes a value as one of the messages with the SDK.
    deserialize: fn(Value) -> Result<(), serde_json::Error>,
}

impl Family {
    fn of<T: JsonSchema + DeserializeOwned>() -> Self {
        Self {
            schema: schema_for!(T).to_value(),
            deserialize: |value| serde_json::from_value::<T>(value).map(|_| ()),
        }
    }

    /// Returns the methods with their schemas.
    fn members(&self) -> Vec<(String, &Value)> {
        let variants = self.schema["anyOf"].as_array().expect("a choice").iter();
        let resolved = variants.filter_map(|variant| {
            let all = variant["allOf"].as_array().and_then(|all| all.first());
            let reference = all.unwrap_or(variant)["$ref"].as_str()?;
            self.schema.pointer(reference.strip_prefix('#')?)
        });
        // Skip extension messages, because the schema doesn't have a method for them.
        resolved.filter_map(|schema| Some((schema["x-method"].as_str()?.to_owned(), schema))).collect()
    }

    fn make(&self, numbers: &mut Rng, method: &str) -> Value {
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

/// The messages of one version of the protocol.
struct Schema {
    version: u64,
    client_requests: Family,
    client_notifications: Family,
    agent_responses: Family,
    agent_requests: Family,
    agent_notifications: Family,
    client_responses: Family,
}

fn schemas() -> [Schema; 2] {
    [
        Schema {
            version: 1,
            client_requests: Family::of::<v1::ClientRequest>(),
            client_notifications: Family::of::<v1::ClientNotification>(),
            agent_responses: Family::of::<v1::AgentResponse>(),
            agent_requests: Family::of::<v1::AgentRequest>(),
            agent_notifications: Family::of::<v1::AgentNotification>(),
            client_responses: Family::of::<v1::ClientResponse>(),
        },
        Schema {
            version: 2,
            client_requests: Family::of::<v2::ClientRequest>(),
            client_notifications: Family::of::<v2::ClientNotification>(),
            agent_responses: Family::of::<v2::AgentResponse>(),
            agent_requests: Family::of::<v2::AgentRequest>(),
            agent_notifications: Family::of::<v2::AgentNotification>(),
            client_responses: Family::of::<v2::ClientResponse>(),
        },
    ]
}

/// Generates conversations with every message, one for each version and seed.
pub(super) fn conversations(seeds: std::ops::Range<u64>) -> Vec<Recording> {
    let schemas = schemas();
    let cases = schemas.iter().flat_map(|schema| seeds.clone().map(move |seed| (schema, seed)));
    cases
        .map(|(schema, seed)| {
            Conversation { schema, numbers: Rng::with_seed(seed), lines: Vec::new(), next: 0 }.play(seed)
        })
        .collect()
}

struct Conversation<'s> {
    schema: &'s Schema,
    numbers: Rng,
    lines: Vec<(Side, String)>,
    next: u64,
}

impl Conversation<'_> {
    fn play(mut self, seed: u64) -> Recording {
        let schema = self.schema;
        self.request("initialize");
        self.request("session/new");
        let mut methods = Vec::new();
        for _ in 0..ROUNDS {
            methods.extend(
                schema.client_requests.members().into_iter().map(|(method, _)| (Kind::ClientRequest, method)),
            );
            methods.extend(
                schema
                    .client_notifications
                    .members()
                    .into_iter()
                    .map(|(method, _)| (Kind::ClientNotification, method)),
            );
            methods.extend(
                schema.agent_requests.members().into_iter().map(|(method, _)| (Kind::AgentRequest, method)),
            );
            methods.extend(
                schema
                    .agent_notifications
                    .members()
                    .into_iter()
                    .map(|(method, _)| (Kind::AgentNotification, method)),
            );
        }
        let updates = self.updates();
        methods.extend(updates.iter().map(|kind| (Kind::Update, kind.clone())));
        while !methods.is_empty() {
            let index = self.numbers.usize(..methods.len());
            let (kind, method) = methods.swap_remove(index);
            match kind {
                // Don't use these here: `initialize` can only be sent once, and the others would end the session.
                Kind::ClientRequest
                    if matches!(&*method, "initialize" | "session/close" | "session/delete") => {}
                Kind::ClientRequest => self.request(&method),
                Kind::ClientNotification => {
                    let params = schema.client_notifications.make(&mut self.numbers, &method);
                    self.notify(Side::Client, &method, params);
                }
                Kind::AgentRequest => self.ask(&method),
                Kind::AgentNotification => {
                    let params = schema.agent_notifications.make(&mut self.numbers, &method);
                    self.notify(Side::Agent, &method, params);
                }
                Kind::Update => self.update(&method),
            }
        }
        for method in ["session/close", "session/delete"] {
            if schema.client_requests.members().iter().any(|(name, _)| name == method) {
                self.request(method);
            }
        }
        Recording { name: format!("version {} seed {seed}", schema.version), lines: self.lines }
    }

    /// Adds a request of the client with its answer.
    fn request(&mut self, method: &str) {
        let schema = self.schema;
        let mut params = schema.client_requests.make(&mut self.numbers, method);
        let mut result = schema.agent_responses.make(&mut self.numbers, method);
        Self::set_session(&mut params);
        match method {
            "initialize" => {
                params["protocolVersion"] = json!(schema.version);
                result["protocolVersion"] = json!(schema.version);
                // We need a transport for our server, so pretend that the agent supports one.
                if schema.version == 2 {
                    result["capabilities"] = json!({ "session": { "mcp": { "stdio": {} } } });
                }
            }
            "session/new" | "session/fork" => {
                let first = self.next == 1;
                result["sessionId"] = if first { json!("s") } else { json!(format!("new {}", self.next)) };
            }
            "session/load" | "session/resume" => params["sessionId"] = json!(format!("old {}", self.next)),
            // If the turn was cancelled or refused, the agent might remove the prompt from its history. This is covered by
            // other tests, so we always end the turn here.
            "session/prompt" if result.get("stopReason").is_some() => {
                result["stopReason"] = json!("end_turn");
            }
            _ => {}
        }
        if let Some(params) = params.as_object_mut() {
            // Remove this, because we would append our text to it. This is covered by another test.
            params.remove("systemPrompt");
        }
        let id = self.id();
        self.push(Side::Client, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.push(Side::Agent, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Adds a request of the agent with its answer.
    fn ask(&mut self, method: &str) {
        let mut params = self.schema.agent_requests.make(&mut self.numbers, method);
        let result = self.schema.client_responses.make(&mut self.numbers, method);
        Self::set_session(&mut params);
        let id = self.id();
        self.push(Side::Agent, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.push(Side::Client, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn notify(&mut self, side: Side, method: &str, mut params: Value) {
        Self::set_session(&mut params);
        // Always end the turn here as well, for the same reason as in `request`.
        if let Some(reason) = params.pointer_mut("/update/stopReason") {
            *reason = json!("end_turn");
        }
        // After a compaction, the catalog is sent again. This is covered by other tests, too.
        if params.pointer("/update/sessionUpdate") == Some(&json!("compaction_update")) {
            params["update"]["status"] = json!("failed");
        }
        if let Some(used) = params.pointer_mut("/update/used") {
            *used = json!(1);
        }
        self.push(side, json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Returns all kinds of session updates.
    fn updates(&self) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        constants(&self.schema.agent_notifications.schema, "sessionUpdate", &mut kinds);
        kinds
    }

    /// Adds an update of this kind. Updates are generated until one has it.
    fn update(&mut self, kind: &str) {
        for _ in 0..2_000 {
            let params = self.schema.agent_notifications.make(&mut self.numbers, "session/update");
            if params["update"]["sessionUpdate"] == kind {
                return self.notify(Side::Agent, "session/update", params);
            }
        }
        panic!("no update of kind {kind} was generated");
    }

    /// Replaces the session id, so that all messages belong to one session.
    fn set_session(params: &mut Value) {
        if let Some(session) = params.get_mut("sessionId").filter(|id| id.is_string()) {
            *session = json!("s");
        }
    }

    fn id(&mut self) -> Value {
        self.next += 1;
        if self.numbers.usize(..3) == 0 { json!(format!("é \"{}\"", self.next)) } else { json!(self.next) }
    }

    fn push(&mut self, side: Side, message: Value) {
        self.lines.push((side, message.to_string()));
    }
}

/// The kind of a message.
enum Kind {
    ClientRequest,
    ClientNotification,
    AgentRequest,
    AgentNotification,
    Update,
}

/// Collects the constants of all properties with this name in a schema.
fn constants(schema: &Value, name: &str, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let value =
                members.get("properties").and_then(|properties| properties.get(name)?.get("const")?.as_str());
            found.extend(value.map(str::to_owned));
            members.values().for_each(|value| constants(value, name, found));
        }
        Value::Array(values) => values.iter().for_each(|value| constants(value, name, found)),
        _ => {}
    }
}

/// Returns the number of messages of each kind in the schema of each version.
pub(super) fn counts() -> Vec<[usize; 5]> {
    let count = |schema: &Schema| {
        let mut updates = BTreeSet::new();
        constants(&schema.agent_notifications.schema, "sessionUpdate", &mut updates);
        let families = [
            &schema.client_requests,
            &schema.client_notifications,
            &schema.agent_requests,
            &schema.agent_notifications,
        ];
        let [a, b, c, d] = families.map(|family| family.members().len());
        [a, b, c, d, updates.len()]
    };
    schemas().iter().map(count).collect()
}
