//! The scripted agent's MCP client. It sends stateless requests (2026-07-28) over the ACP connection, or over the
//! stdin and stdout of a server process.

use std::{
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use skills_core::toolbox;

/// A tool that belongs to no skill.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
}

impl Tool {
    /// Returns the tools of a list that belong to no skill.
    fn plain(list: &Value) -> Vec<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tools = list["result"]["tools"].as_array().into_iter().flatten().map(|tool| Self {
            name: text(&tool["name"]),
            description: text(&tool["description"]),
            schema: tool["inputSchema"].clone(),
        });
        tools.filter(|tool| !toolbox::BUILT_IN_TOOLS.contains(&tool.name.as_str())).collect()
    }
}

/// Creates an input that matches a schema. Each string in it is the request.
pub(super) fn input(schema: &Value, request: &str) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let required = schema["required"].as_array();
            let needed = properties.filter(|(name, _)| {
                required.is_some_and(|required| required.iter().any(|required| required == name.as_str()))
            });
            needed.map(|(name, schema)| (name.clone(), input(schema, request))).collect()
        }
        Some("array") => json!([]),
        Some("integer" | "number") => 0.into(),
        Some("boolean") => false.into(),
        _ => request.into(),
    }
}

/// A connected server.
pub(super) enum Server {
    Acp { id: Value, next: u64 },
    Stdio(Box<Process>),
}

pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// The server's list of tools.
    list: Value,
}

impl Drop for Process {
    fn drop(&mut self) {
        // This can fail if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Connects to the server of an entry in `mcpServers`. Returns `None` if the entry is not ours.
    pub(super) fn connect(entry: &Value) -> Option<io::Result<Self>> {
        if !entry["name"].as_str()?.starts_with(acp_skills_intercept::SERVER_NAME) {
            return None;
        }
        match entry["type"].as_str() {
            Some("acp") => Some(Ok(Self::Acp { id: entry["serverId"].clone(), next: 0 })),
            Some("http" | "sse") => Some(Err(io::Error::other("this agent does not support MCP over HTTP"))),
            _ => Some(Self::start(entry)),
        }
    }

    fn start(entry: &Value) -> io::Result<Self> {
        let words = |key: &str| entry[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        let variables = entry["env"].as_array().into_iter().flatten();
        let variables = variables.filter_map(|pair| Some((pair["name"].as_str()?, pair["value"].as_str()?)));
        let mut child = Command::new(entry["command"].as_str().unwrap_or_default())
            .args(words("args"))
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("server has no pipes"));
        };
        let stdout = BufReader::new(stdout);
        let mut process = Process { child, stdin, stdout, next: 0, list: Value::Null };
        // List the tools when we connect, like an agent that shows its tools to a model.
        process.list = process.request("tools/list", &json!({ "_meta": meta() }))?;
        Ok(Self::Stdio(Box::new(process)))
    }

    /// Returns the tools that belong to no skill. `request` sends a request to the client.
    pub(super) fn plain_tools(
        &mut self,
        request: impl FnOnce(&str, &Value) -> io::Result<Value>,
    ) -> io::Result<Vec<Tool>> {
        match self {
            Self::Acp { id, next } => {
                let list = over_acp(id, next, "tools/list", &json!({ "_meta": meta() }), request)?;
                Ok(Tool::plain(&list))
            }
            Self::Stdio(process) => Ok(Tool::plain(&process.list)),
        }
    }

    /// Calls a tool. `request` sends a request to the client.
    pub(super) fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        request: impl FnOnce(&str, &Value) -> io::Result<Value>,
    ) -> io::Result<Value> {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta() });
        let answer = match self {
            Self::Acp { id, next } => over_acp(id, next, "tools/call", &params, request)?,
            Self::Stdio(process) => process.request("tools/call", &params)?,
        };
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(io::Error::other(answer["error"].to_string())),
        }
    }
}

/// Sends a request to a server over the ACP connection.
fn over_acp(
    id: &Value,
    next: &mut u64,
    method: &str,
    params: &Value,
    request: impl FnOnce(&str, &Value) -> io::Result<Value>,
) -> io::Result<Value> {
    *next += 1;
    let message =
        json!({ "serverId": id, "requestId": next.to_string(), "method": method, "params": params });
    request("mcp/message", &message)
}

/// Returns the metadata that every stateless request needs.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": super::NAME, "version": env!("CARGO_PKG_VERSION") },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

impl Process {
    fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        writeln!(self.stdin, "{request}")?;
        self.stdin.flush()?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match serde_json::from_str::<Value>(&line) {
                Ok(answer) if answer["id"] == self.next => return Ok(answer),
                _ => {}
            }
        }
    }
}
