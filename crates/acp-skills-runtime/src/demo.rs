//! The built-in scripted agent. It is deterministic and needs no model, no account and no network.
//!
//! The agent uses skills like a model would. It reads the catalog, activates the skill with the best match for the
//! prompt, reads a file if the instructions mention one, passes the prompt to a tool of the skill, and responds with
//! the results. If a tool that belongs to no skill matches better, the agent calls that tool instead. It connects to
//! the skills server over the ACP connection or as a stdio server. Without either, it reads the files that the
//! catalog names.

mod catalog;
mod grader;
mod tools;
pub mod wording;
mod writer;

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

use self::tools::Server;

/// The name of the agent in `agentInfo`.
const NAME: &str = "acp-skills-demo-agent";

/// Serves ACP until `reader` ends.
///
/// # Errors
/// Returns an error if reading or writing fails.
pub fn serve(reader: impl Read, writer: impl Write) -> io::Result<()> {
    Agent::new(reader, writer).serve()
}

/// Serves ACP until `reader` ends, and uses a skill only if it shares a word with the prompt, as evaluations need it.
/// With [`serve`], the agent uses the first skill if there is no match, so that there is always something to show.
///
/// # Errors
/// Returns an error if reading or writing fails.
pub fn serve_selectively(reader: impl Read, writer: impl Write) -> io::Result<()> {
    Agent { is_selective: true, ..Agent::new(reader, writer) }.serve()
}

struct Agent<R, W> {
    wire: Wire<R, W>,
    session: Option<Session>,
    count: u32,
    /// True if the agent ignores skills that share no word with the prompt.
    is_selective: bool,
}

struct Session {
    id: String,
    /// The connected servers, by name.
    servers: Vec<(String, Server)>,
}

/// The connection to the client.
struct Wire<R, W> {
    reader: BufReader<R>,
    writer: W,
    next: u64,
}

impl<R: Read, W: Write> Wire<R, W> {
    fn read(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if let Ok(message) = serde_json::from_str(&line) {
                return Ok(Some(message));
            }
        }
    }

    fn write(&mut self, message: &Value) -> io::Result<()> {
        writeln!(self.writer, "{message}")?;
        self.writer.flush()
    }

    /// Sends a request to the client and waits for the answer. All other messages are ignored meanwhile.
    fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.next += 1;
        let id = format!("demo-{}", self.next);
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let Some(message) = self.read()? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            if message["id"] == id.as_str() && message.get("method").is_none() {
                return match message.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(io::Error::other(message["error"].to_string())),
                };
            }
        }
    }
}

impl<R: Read, W: Write> Agent<R, W> {
    fn new(reader: R, writer: W) -> Self {
        let wire = Wire { reader: BufReader::new(reader), writer, next: 0 };
        Self { wire, session: None, count: 0, is_selective: false }
    }

    fn serve(mut self) -> io::Result<()> {
        while let Some(message) = self.wire.read()? {
            if message.get("method").is_some() {
                self.handle(&message)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, message: &Value) -> io::Result<()> {
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": false,
                    "mcpCapabilities": { "acp": true, "http": false, "sse": false },
                },
                "agentInfo": { "name": NAME, "version": env!("CARGO_PKG_VERSION") },
                "authMethods": [],
            })),
            "session/new" => self.new_session(params),
            "session/prompt" => self.prompt(params).map(|()| json!({ "stopReason": "end_turn" })),
            method => Err(io::Error::new(io::ErrorKind::Unsupported, format!("no method `{method}`"))),
        };
        let Some(id) = message.get("id") else { return Ok(()) };
        let answer = match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(error),
            Err(error) => {
                let code = if error.kind() == io::ErrorKind::Unsupported { -32601 } else { -32603 };
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": error.to_string() } })
            }
        };
        self.wire.write(&answer)
    }

    fn new_session(&mut self, params: &Value) -> io::Result<Value> {
        self.count += 1;
        let id = format!("demo-session-{}", self.count);
        let entries = params["mcpServers"].as_array();
        let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
        let connect = |entry| Some(Server::connect(entry)?.map(|server| (name(entry), server)));
        let servers = entries.into_iter().flatten().filter_map(connect).collect::<io::Result<_>>()?;
        self.session = Some(Session { id: id.clone(), servers });
        Ok(json!({ "sessionId": id }))
    }

    fn prompt(&mut self, params: &Value) -> io::Result<()> {
        let Some(mut session) =
            self.session.take().filter(|session| params["sessionId"] == session.id.as_str())
        else {
            return Err(io::Error::other("no such session"));
        };
        let texts: Vec<_> =
            params["prompt"].as_array().into_iter().flatten().filter_map(|b| b["text"].as_str()).collect();
        let (skills, request) = catalog::read(&texts);
        let skill = catalog::choose(&skills, &request);
        let skill = skill.filter(|skill| !self.is_selective || catalog::fits(skill, &request));
        let by_tool = match grader::verdicts(&request).or_else(|| writer::answer(&request)) {
            Some(answer) => Some(answer),
            None => self.with_plain_tool(&mut session, skill, &request)?,
        };
        let answer = match (by_tool, skill) {
            (Some(answer), _) => answer,
            (None, None) if skills.is_empty() => "I see no skills.".to_owned(),
            (None, None) => "I see no skill that fits.".to_owned(),
            (None, Some(skill)) => match server_for(skill, &mut session.servers) {
                Some(server) => self.with_tools(&session.id, server, skill, &request)?,
                None => with_files(skill),
            },
        };
        let update =
            json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": answer } });
        self.update(&session.id, &update)?;
        self.session = Some(session);
        Ok(())
    }

    /// Calls a tool that belongs to no skill, if one matches the request better than `skill` does.
    fn with_plain_tool(
        &mut self,
        session: &mut Session,
        skill: Option<&catalog::Skill>,
        request: &str,
    ) -> io::Result<Option<String>> {
        for (_, server) in &mut session.servers {
            let tools = server.plain_tools(|method, params| self.wire.request(method, params))?;
            if let Some(tool) = catalog::choose_tool(&tools, skill, request) {
                let input = tools::input(&tool.schema, request);
                let result = self.call(&session.id, server, &tool.name, input)?;
                return Ok(Some(format!(
                    "I called the tool `{}`. It answered: {}",
                    tool.name,
                    result.trim()
                )));
            }
        }
        Ok(None)
    }

    fn with_tools(
        &mut self,
        session: &str,
        server: &mut Server,
        skill: &catalog::Skill,
        request: &str,
    ) -> io::Result<String> {
        let name = &skill.name;
        let instructions = self.call(session, server, "activate_skill", json!({ "name": name }))?;
        let mut answer = format!("I activated the skill `{name}`: {}.", first_heading(&instructions));
        if let Some(path) = catalog::mentioned_file(&instructions) {
            let text =
                self.call(session, server, "read_skill_file", json!({ "skill": name, "path": path }))?;
            let found = format!(" It told me to read `{path}`, which begins: {}", first_heading(&text));
            answer.push_str(&found);
        }
        if let Some((tool, schema)) = catalog::offered_tool(&instructions) {
            let input = match schema {
                Some(schema) => tools::input(&schema, request),
                None => request.into(),
            };
            let arguments = json!({ "skill": name, "tool": tool, "input": input });
            let result = self.call(session, server, "call_skill_tool", arguments)?;
            let found = format!(" Its tool `{tool}` answered: {}", result.trim());
            answer.push_str(&found);
        }
        Ok(answer)
    }

    fn call(
        &mut self,
        session: &str,
        server: &mut Server,
        tool: &str,
        arguments: Value,
    ) -> io::Result<String> {
        self.wire.next += 1;
        let id = format!("call-{}", self.wire.next);
        let start = json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": tool, "kind": "other", "status": "in_progress", "rawInput": arguments });
        self.update(session, &start)?;
        let result = server.call(tool, arguments, |method, params| self.wire.request(method, params))?;
        let failed = result["isError"] == true;
        let status = if failed { "failed" } else { "completed" };
        self.update(
            session,
            &json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status }),
        )?;
        Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    fn update(&mut self, session: &str, update: &Value) -> io::Result<()> {
        let params = json!({ "sessionId": session, "update": update });
        self.wire.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
    }
}

/// Returns the server with the tools of a skill: the server that the catalog names, or else the first one.
fn server_for<'a>(skill: &catalog::Skill, servers: &'a mut [(String, Server)]) -> Option<&'a mut Server> {
    let named = servers.iter().position(|(name, _)| Some(name) == skill.server.as_ref());
    servers.get_mut(named.unwrap_or(0)).map(|(_, server)| server)
}

fn with_files(skill: &catalog::Skill) -> String {
    let name = &skill.name;
    match skill.location.as_ref().map(std::fs::read_to_string) {
        Some(Ok(text)) => {
            format!("I have no skill tools, so I read the file of `{name}`: {}.", first_heading(&text))
        }
        Some(Err(error)) => format!("I have no skill tools, and cannot read the file of `{name}`: {error}."),
        None => format!("I have no skill tools, and do not know where the file of `{name}` is."),
    }
}

/// Returns the first heading of a text, or else its first line of text.
fn first_heading(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('<'));
    let heading = lines().find(|line| line.starts_with('#')).or_else(|| lines().next()).unwrap_or_default();
    heading.trim_start_matches('#').trim().to_owned()
}
