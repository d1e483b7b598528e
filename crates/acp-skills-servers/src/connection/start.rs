//! The start of a connection: the revision of MCP, and the capabilities of both sides.

use serde_json::{Value, json};

use super::{Ask, Connection, SKILLS, ServerError, client_info};

/// The revision of MCP that we ask for. Servers can answer with an older one.
const REVISION: &str = "2025-11-25";
/// The maximum length of the revision that a server chooses, in bytes. Those of the standard have 10.
const MAX_REVISION_BYTES: usize = 64;
/// The revision of MCP without sessions. Some servers declare extensions only to clients of this revision.
const STATELESS: &str = "2026-07-28";

impl Connection {
    /// Opens a session.
    pub(super) async fn initialize(&self) -> Result<Value, ServerError> {
        let params = json!({
            "protocolVersion": REVISION,
            "capabilities": { "roots": {}, "elicitation": {}, "extensions": { SKILLS: {} } },
            "clientInfo": client_info(),
        });
        let info = self.introduce("initialize", params).await?;
        let revision = info["protocolVersion"].as_str().unwrap_or(REVISION);
        // It becomes a header of each request.
        if revision.len() > MAX_REVISION_BYTES || !revision.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ServerError::Invalid("`protocolVersion` is not a revision of MCP"));
        }
        self.rpc.set_revision(revision);
        self.rpc.notify("notifications/initialized", &json!({}));
        Ok(info)
    }

    /// Asks for the capabilities without a session.
    pub(super) async fn discover(&self) -> Result<Value, ServerError> {
        let envelope = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": client_info(),
            "io.modelcontextprotocol/clientCapabilities": { "extensions": { SKILLS: {} } },
        });
        self.rpc.set_stateless(STATELESS, envelope);
        self.introduce("server/discover", json!({})).await
    }

    async fn introduce(&self, method: &str, params: Value) -> Result<Value, ServerError> {
        let ask = Ask { method, params, limit: self.limits.start, what: "start", progress: None };
        let info = self.ask(ask).await?;
        if info.is_object() { Ok(info) } else { Err(ServerError::Invalid("result is not an object")) }
    }
}
