//! A client that starts `mcp`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::fixture::Fixture;

/// Returns the program with the skills of a fixture.
pub(crate) fn program(fixture: &Fixture, arguments: &[&str]) -> Command {
    configured(fixture, &[&["--no-config"], arguments].concat())
}

/// Returns the program, which may use a configuration file.
pub(crate) fn configured(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.arg("mcp").args(arguments).current_dir(&fixture.dir);
    command.env("HOME", fixture.dir.join("home")).env("USERPROFILE", fixture.dir.join("home"));
    command.env("XDG_STATE_HOME", fixture.dir.join("state")).env("LOCALAPPDATA", fixture.dir.join("state"));
    command.env_remove("ACP_SKILLS_LOG").env_remove("ACP_SKILLS_MCP_TOKEN");
    command
}

/// A client that starts the program.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: BufReader<ChildStdout>,
    /// The messages that are no responses.
    pub(crate) notices: Vec<Value>,
}

impl Client {
    pub(crate) fn start(fixture: &Fixture, arguments: &[&str]) -> Self {
        Self::of(program(fixture, arguments))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, notices: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the server has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Receives messages up to one for which `is_wanted` returns true. Answers a question about roots.
    pub(crate) fn receive_until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.receive();
            if is_wanted(&message) {
                return message;
            }
            self.notices.push(message);
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
        let answer = self.receive_until(|message| message["id"] == method && message["method"].is_null());
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Begins the session. Returns the instructions of the server.
    pub(crate) fn initialize(&mut self, name: &str, capabilities: Value) -> String {
        let info = json!({ "name": name, "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info });
        let result = self.request("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        result["instructions"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the description of `activate_skill`. Empty if there is no such tool.
    pub(crate) fn description(&mut self) -> String {
        let tools = self.request("tools/list", json!({}));
        let tools = tools["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "activate_skill");
        tool.map(|tool| tool["description"].as_str().unwrap().to_owned()).unwrap_or_default()
    }

    pub(crate) fn activate(&mut self, name: &str) -> Value {
        self.request("tools/call", json!({ "name": "activate_skill", "arguments": { "name": name } }))
    }

    /// Closes the connection. Returns the exit code and stderr.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}
