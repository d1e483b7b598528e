//! The fixture of most tests: a proxy, its scripted editor, and through it the scripted agent.

use serde_json::{Value, json};

use crate::{
    agent::{MARK, MARK_REPORTED},
    editor::{Editor, Ended, Proxy},
};

/// The revision of MCP that most agents speak.
pub(crate) const MCP_2025: &str = "2025-06-18";

/// A proxy with a scripted editor and a scripted agent.
pub(crate) struct Fixture {
    pub(crate) editor: Editor,
    next: u64,
}

/// The result of connecting the scripted agent to the skills server.
pub(crate) struct Connection {
    pub(crate) number: Value,
    pub(crate) server: Value,
    pub(crate) tools: Vec<Value>,
}

impl Fixture {
    /// Starts the proxy and its scripted agent.
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self::of(proxy.agent("scripted"))
    }

    /// Wraps a proxy that is already running.
    pub(crate) fn of(editor: Editor) -> Self {
        Self { editor, next: 0 }
    }

    /// Starts the proxy and completes `initialize`. The agent advertises `capabilities`.
    pub(crate) fn initialized(proxy: Proxy, capabilities: &Value) -> Self {
        Self::with_agent_info(proxy, capabilities, &Value::Null)
    }

    /// Starts the proxy and completes `initialize`. The agent also sends `info` as its `agentInfo`, unless it is null.
    pub(crate) fn with_agent_info(proxy: Proxy, capabilities: &Value, info: &Value) -> Self {
        let mut fixture = Self::new(proxy);
        let mut result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities });
        if !info.is_null() {
            result["agentInfo"] = info.clone();
        }
        fixture.exchange(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": {} }),
            json!({ "result": result }),
        );
        fixture
    }

    /// Starts the proxy with an agent that accepts MCP servers over HTTP, and completes `initialize`.
    pub(crate) fn over_http(proxy: Proxy) -> Self {
        Self::initialized(proxy, &json!({ "mcpCapabilities": { "http": true }, "loadSession": true }))
    }

    /// Waits for a command menu that contains the command `name`.
    pub(crate) fn wait_for_command(&mut self, name: &str) {
        loop {
            let menu = self.editor.menu();
            let commands = menu["params"]["update"]["availableCommands"].as_array().expect("commands").iter();
            if commands.into_iter().any(|command| command["name"] == name) {
                return;
            }
        }
    }

    /// Sends a command that the proxy answers itself, in the session `s`. Returns the text that the user sees.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": command }] });
        let id = self.editor.request("session/prompt", prompt);
        assert_eq!(self.editor.answer(&id)["result"]["stopReason"], "end_turn");
        let said = self.editor.unread();
        let text = said.iter().find_map(|message| message["params"]["update"]["content"]["text"].as_str());
        text.expect("text").to_owned()
    }

    /// Sends an order to the scripted agent and returns the result or the error.
    pub(crate) fn order(&mut self, order: &str, params: Value) -> Result<Value, Value> {
        // Use a string here to make sure that we don't reuse an id of the test, because those are all numbers.
        self.next += 1;
        let id = json!(format!("order {}", self.next));
        let method = format!("_agent/{order}");
        self.editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut answer = self.editor.answer(&id);
        if answer.get("error").is_some() { Err(answer["error"].take()) } else { Ok(answer["result"].take()) }
    }

    /// Waits for the next line that the agent receives.
    pub(crate) fn line(&mut self) -> String {
        let line = self.order("take", json!({})).expect("a line");
        received_line(&line)
    }

    /// Waits for the next message that the agent receives.
    pub(crate) fn agent_receives(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the agent received {line}"))
    }

    /// Returns the messages that the agent has received so far. A message that was sent before this call and is missing
    /// was held back.
    pub(crate) fn received(&mut self) -> Vec<Value> {
        let lines = self.order("drain", json!({})).expect("lines");
        let lines = lines.as_array().expect("a list").iter();
        lines.map(|line| serde_json::from_str(&received_line(line)).expect("a message")).collect()
    }

    /// Makes the agent write these lines.
    pub(crate) fn agent_writes(&mut self, lines: &[&str]) {
        self.order("say", json!({ "lines": lines })).expect("nothing to fail");
    }

    /// Makes the agent send a message.
    pub(crate) fn agent_sends(&mut self, message: &Value) {
        self.agent_writes(&[&message.to_string()]);
    }

    /// Makes the agent answer a request.
    pub(crate) fn agent_replies(&mut self, request: &Value, mut outcome: Value) {
        outcome["jsonrpc"] = "2.0".into();
        outcome["id"] = request["id"].clone();
        self.agent_sends(&outcome);
    }

    /// Sends a request from the editor and answers it from the agent. Returns the request as the agent received it, and
    /// the answer as the editor got it.
    pub(crate) fn exchange(&mut self, method: &str, params: Value, outcome: Value) -> (Value, Value) {
        let id = self.editor.request(method, params);
        let received = self.agent_receives();
        assert_eq!(
            (&received["method"], &received["id"]),
            (&json!(method), &id),
            "the agent received another message"
        );
        self.agent_replies(&received, outcome);
        (received, self.editor.answer(&id))
    }

    /// Opens a session and returns the params that the agent received.
    pub(crate) fn new_session(&mut self, id: &str) -> Value {
        let params = json!({ "cwd": cwd(), "mcpServers": [] });
        let (mut received, _) =
            self.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
        received["params"].take()
    }

    /// Sends a prompt with a single text and ends the turn. Returns the blocks that the agent received.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Vec<Value> {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let outcome = json!({ "result": { "stopReason": "end_turn" } });
        let (received, _) = self.exchange("session/prompt", params, outcome);
        received["params"]["prompt"].as_array().expect("blocks").clone()
    }

    /// Connects the agent to the MCP server that `entry` describes.
    pub(crate) fn connect(&mut self, entry: &Value, revision: &str) -> Connection {
        let params = json!({ "entry": entry, "revision": revision });
        let mut seen = self.order("connect", params).unwrap_or_else(|error| panic!("{error}"));
        Connection {
            number: seen["connection"].take(),
            server: seen["server"].take(),
            tools: seen["tools"].as_array().expect("tools").clone(),
        }
    }

    /// Calls a tool and returns the text, and true if the result is an error.
    pub(crate) fn call(&mut self, connection: &Connection, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({ "connection": connection.number, "tool": tool, "arguments": arguments });
        outcome(&self.order("call", params).unwrap_or_else(|error| panic!("{tool}: {error}")))
    }

    /// Waits until the server of a connection reports a changed list. Returns which list it was.
    pub(crate) fn list_changed(&mut self, connection: &Connection) -> String {
        let heard = self.order("heard", json!({ "connection": connection.number }));
        heard.expect("the server is running").as_str().expect("text").to_owned()
    }

    /// Returns the skill names that `activate_skill` accepts, from its answer to another name.
    pub(crate) fn skill_names(&mut self, connection: &Connection) -> Value {
        let (text, is_error) = self.call(connection, "activate_skill", json!({ "name": "?" }));
        assert!(is_error, "{text}");
        let names = text.split_once("Available skills: ").map_or("", |(_, names)| names);
        let names = names.trim_end_matches('.').split(", ").filter(|name| !name.is_empty());
        names.map(|name| name.trim_matches('"')).collect()
    }

    /// Returns the skill names in the schema of `activate_skill`.
    pub(crate) fn listed_names(&mut self, connection: &Connection) -> Value {
        let seen =
            self.order("look", json!({ "connection": connection.number })).expect("the server is running");
        seen["tools"][0]["inputSchema"]["properties"]["name"]["enum"].clone()
    }

    /// Closes the editor's end. Fails if there are messages that the test did not ask for, or if a process is left.
    pub(crate) fn finish(self) -> Ended {
        let ended = self.editor.finish();
        assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
        assert_eq!(ended.messages, Vec::<Value>::new(), "unexpected messages");
        ended
    }
}

/// Returns the text of a tool's result, and true if the result is an error.
pub(crate) fn outcome(result: &Value) -> (String, bool) {
    let blocks = result["content"].as_array().expect("content").iter();
    let text =
        blocks.map(|block| block["text"].as_str().unwrap_or("(no text)")).collect::<Vec<_>>().join("\n");
    (text, result["isError"].as_bool().unwrap_or(false))
}

/// Returns our entry in the `mcpServers` of these params.
pub(crate) fn entry(params: &Value) -> Value {
    let servers = params["mcpServers"].as_array().expect("servers");
    let ours: Vec<_> = servers.iter().filter(|server| server["name"] == "acp-skills").collect();
    assert_eq!(ours.len(), 1, "expected one entry of ours in {servers:?}");
    ours[0].clone()
}

/// Returns the text of each block.
pub(crate) fn texts(blocks: &[Value]) -> Vec<&str> {
    blocks.iter().map(|block| block["text"].as_str().expect("a text block")).collect()
}

/// Returns an absolute path to use as a session's working directory.
pub(crate) fn cwd() -> String {
    std::env::temp_dir().to_str().expect("text").to_owned()
}

/// Restores a line that the agent received from the agent's report of it.
fn received_line(report: &Value) -> String {
    report.as_str().expect("text").replace(MARK_REPORTED, MARK)
}
