//! Both ends in one hand: the editor's, and through it the scripted agent.

use serde_json::{Value, json};

use crate::{
    agent::{MARK, MARK_REPORTED},
    editor::{Editor, Ended, Proxy},
};

/// The revision of MCP that most agents speak.
pub(crate) const MCP_2025: &str = "2025-06-18";

/// A proxy with a scripted editor and a scripted agent.
pub(crate) struct Stage {
    pub(crate) editor: Editor,
    next: u64,
}

/// What a scripted agent found when it connected to the skills server.
pub(crate) struct Connection {
    pub(crate) number: Value,
    pub(crate) server: Value,
    pub(crate) tools: Vec<Value>,
}

impl Stage {
    /// Starts everything.
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self::of(proxy.agent("scripted"))
    }

    /// A stage for a proxy that runs already.
    pub(crate) fn of(editor: Editor) -> Self {
        Self { editor, next: 0 }
    }

    /// The same, with `initialize` over; the agent advertises `capabilities`.
    pub(crate) fn initialized(proxy: Proxy, capabilities: &Value) -> Self {
        Self::introduced(proxy, capabilities, &Value::Null)
    }

    /// The same for an agent that says this of itself, as `agentInfo`.
    pub(crate) fn introduced(proxy: Proxy, capabilities: &Value, info: &Value) -> Self {
        let mut stage = Self::new(proxy);
        let mut result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities });
        if !info.is_null() {
            result["agentInfo"] = info.clone();
        }
        stage.exchange(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": {} }),
            json!({ "result": result }),
        );
        stage
    }

    /// The same for an agent that takes MCP servers over HTTP.
    pub(crate) fn over_http(proxy: Proxy) -> Self {
        Self::initialized(proxy, &json!({ "mcpCapabilities": { "http": true }, "loadSession": true }))
    }

    /// Waits for a list of commands that has this one.
    pub(crate) fn menu_has(&mut self, name: &str) {
        loop {
            let menu = self.editor.menu();
            let commands = menu["params"]["update"]["availableCommands"].as_array().expect("commands").iter();
            if commands.into_iter().any(|command| command["name"] == name) {
                return;
            }
        }
    }

    /// What the user of the session `s` is told in answer to a command that the agent never sees.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": command }] });
        let id = self.editor.request("session/prompt", prompt);
        assert_eq!(self.editor.answer(&id)["result"]["stopReason"], "end_turn");
        let said = self.editor.unread();
        let text = said.iter().find_map(|it| it["params"]["update"]["content"]["text"].as_str());
        text.expect("text").to_owned()
    }

    /// Gives the scripted agent an order.
    pub(crate) fn order(&mut self, order: &str, params: Value) -> Result<Value, Value> {
        // Ids of a kind that no test uses for its own requests.
        self.next += 1;
        let id = json!(format!("order {}", self.next));
        let method = format!("_agent/{order}");
        self.editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut answer = self.editor.answer(&id);
        if answer.get("error").is_some() { Err(answer["error"].take()) } else { Ok(answer["result"].take()) }
    }

    /// The next line that the agent receives.
    pub(crate) fn line(&mut self) -> String {
        let line = self.order("take", json!({})).expect("a line");
        told(&line)
    }

    /// The next message that the agent receives.
    pub(crate) fn takes(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the agent received {line}"))
    }

    /// Everything that the agent has received by now. What was sent before and is not here has been held back.
    pub(crate) fn received(&mut self) -> Vec<Value> {
        let lines = self.order("drain", json!({})).expect("lines");
        let lines = lines.as_array().expect("a list").iter();
        lines.map(|line| serde_json::from_str(&told(line)).expect("a message")).collect()
    }

    /// Has the agent write these lines.
    pub(crate) fn says_lines(&mut self, lines: &[&str]) {
        self.order("say", json!({ "lines": lines })).expect("nothing to fail");
    }

    /// Has the agent send a message.
    pub(crate) fn says(&mut self, message: &Value) {
        self.says_lines(&[&message.to_string()]);
    }

    /// Has the agent answer a request.
    pub(crate) fn replies(&mut self, request: &Value, mut outcome: Value) {
        outcome["jsonrpc"] = "2.0".into();
        outcome["id"] = request["id"].clone();
        self.says(&outcome);
    }

    /// A request of the editor's and its answer: returns what the agent received and what the editor got.
    pub(crate) fn exchange(&mut self, method: &str, params: Value, outcome: Value) -> (Value, Value) {
        let id = self.editor.request(method, params);
        let received = self.takes();
        assert_eq!((&received["method"], &received["id"]), (&json!(method), &id), "another message");
        self.replies(&received, outcome);
        (received, self.editor.answer(&id))
    }

    /// Opens a session. Returns the params that the agent received.
    pub(crate) fn new_session(&mut self, id: &str) -> Value {
        let params = json!({ "cwd": cwd(), "mcpServers": [] });
        let (mut received, _) =
            self.exchange("session/new", params, json!({ "result": { "sessionId": id } }));
        received["params"].take()
    }

    /// Sends a prompt of one text and ends the turn. Returns the blocks that the agent received.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Vec<Value> {
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let outcome = json!({ "result": { "stopReason": "end_turn" } });
        let (received, _) = self.exchange("session/prompt", params, outcome);
        received["params"]["prompt"].as_array().expect("blocks").clone()
    }

    /// Connects the agent to the server of an entry.
    pub(crate) fn connect(&mut self, entry: &Value, revision: &str) -> Connection {
        let params = json!({ "entry": entry, "revision": revision });
        let mut seen = self.order("connect", params).unwrap_or_else(|error| panic!("{error}"));
        Connection {
            number: seen["connection"].take(),
            server: seen["server"].take(),
            tools: seen["tools"].as_array().expect("tools").clone(),
        }
    }

    /// Calls a tool. Returns its text and whether it is an error.
    pub(crate) fn call(&mut self, connection: &Connection, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({ "connection": connection.number, "tool": tool, "arguments": arguments });
        outcome(&self.order("call", params).unwrap_or_else(|error| panic!("{tool}: {error}")))
    }

    /// Waits until the server of a connection says that a list has changed. Returns which.
    pub(crate) fn heard(&mut self, connection: &Connection) -> String {
        let heard = self.order("heard", json!({ "connection": connection.number }));
        heard.expect("the server is there").as_str().expect("text").to_owned()
    }

    /// The names that `activate_skill` takes now.
    pub(crate) fn names(&mut self, connection: &Connection) -> Value {
        let seen =
            self.order("look", json!({ "connection": connection.number })).expect("the server is there");
        seen["tools"][0]["inputSchema"]["properties"]["name"]["enum"].clone()
    }

    /// The editor leaves; nothing must have been said that no test asked for, and nobody may be left.
    pub(crate) fn finish(self) -> Ended {
        let ended = self.editor.finish();
        assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
        assert_eq!(ended.messages, Vec::<Value>::new(), "messages that nobody expected");
        ended
    }
}

/// Text of a tool's result, and whether it is an error.
pub(crate) fn outcome(result: &Value) -> (String, bool) {
    let blocks = result["content"].as_array().expect("content").iter();
    let text =
        blocks.map(|block| block["text"].as_str().unwrap_or("(no text)")).collect::<Vec<_>>().join("\n");
    (text, result["isError"].as_bool().unwrap_or(false))
}

/// Our entry in the `mcpServers` of these params.
pub(crate) fn entry(params: &Value) -> Value {
    let servers = params["mcpServers"].as_array().expect("servers");
    let ours: Vec<_> = servers.iter().filter(|server| server["name"] == "acp-skills").collect();
    assert_eq!(ours.len(), 1, "one entry of ours in {servers:?}");
    ours[0].clone()
}

/// Texts of blocks.
pub(crate) fn texts(blocks: &[Value]) -> Vec<&str> {
    blocks.iter().map(|block| block["text"].as_str().expect("a text block")).collect()
}

/// An absolute path for sessions.
pub(crate) fn cwd() -> String {
    std::env::temp_dir().to_str().expect("text").to_owned()
}

/// A line that the agent was told, from its report.
fn told(report: &Value) -> String {
    report.as_str().expect("text").replace(MARK_REPORTED, MARK)
}
