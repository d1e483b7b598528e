//! Generates conversations with every message of the schema, in both versions of the protocol, from the JSON Schema of the SDK's
//! types.
//!
//! Each generated message is valid: the SDK can deserialize it. Some values, such as ids, sessions and stop reasons, are then
//! replaced so that the messages form a conversation.

use std::collections::BTreeSet;

use agent_client_protocol::{v1::schema as v1, v2::schema as v2};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{
    families::Family,
    recording::{Recording, Side},
};

/// The number of occurrences of each message in a conversation.
const ROUNDS: usize = 3;

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
