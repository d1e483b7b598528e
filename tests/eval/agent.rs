//! The scripted agent, which follows the orders in a prompt.
//!
//! A prompt is a list of orders, separated by `;`. `with ORDER` is only followed if there is a skills server.
//!
//! | order | does |
//! |---|---|
//! | `say TEXT` | answers with the text |
//! | `load NAME` | calls `activate_skill` |
//! | `resource NAME` | reads the skill's SKILL.md as an MCP resource |
//! | `file NAME` | reports that its own tool read a file next to the SKILL.md that the catalog names |
//! | `write FILE TEXT` | writes a file in the session's directory without reporting it |
//! | `edit PATH` | writes a file and reports it afterwards |
//! | `command` | reports that it runs a command |
//! | `ask KIND PATH` | asks for permission, and writes the file if it is granted |
//! | `model` | answers with the session's model |
//! | `cost AMOUNT` | reports these costs of the session in USD |
//! | `home FILE` | answers with the contents of a file in the home directory |
//! | `renew FILE TEXT` | replaces a file in the home directory |
//! | `daemon FILE` | starts a process in a session of its own, with a child, and writes their ids to the file |
//! | `tokens NUMBER` | reports this number of tokens at the end of the turn |
//! | `stop REASON` | ends the turn with another reason |
//! | `fail NUMBER FILE` | exits the first few times; the file counts the attempts |
//! | `crash`, `hang`, `refuse` | exits, never answers, answers with an error |
//! | `endless`, `flood FILE`, `deaf FILE`, `calls`, `values` | sends more than is kept, see [`flood`] |
//!
//! If the prompt asks for grades, the agent answers according to its argument. With `writer:LOG:TEXT`, it answers each prompt with
//! TEXT as a description, which must not contain a `:`.

mod flood;

use std::{
    fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use serde_json::{Value, json};

pub(crate) const ARGUMENT: &str = "scripted-agent";

/// Runs the agent. `grades` selects its answer to prompts that ask for grades.
pub(crate) fn run(grades: &str) -> ExitCode {
    let mut agent = Agent {
        cwd: String::new(),
        location: PathBuf::new(),
        server: None,
        next: 0,
        calls: 0,
        grades: grades.to_owned(),
        told: String::new(),
        model: "scripted-model".to_owned(),
    };
    while let Some(message) = read() {
        let params = &message["params"];
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => answer(
                id,
                &json!({
                    "protocolVersion": 1,
                    "agentCapabilities": { "mcpCapabilities": { "acp": true } },
                    "agentInfo": { "name": "scripted", "version": "1.0" },
                }),
            ),
            Some("session/new") if grades == "no-session" => write(
                &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32000, "message": "not logged in" } }),
            ),
            Some("session/new") => {
                params["cwd"].as_str().expect("a directory").clone_into(&mut agent.cwd);
                let servers = params["mcpServers"].as_array().expect("servers");
                agent.server = servers
                    .iter()
                    .find(|server| server["type"] == "acp")
                    .map(|server| server["serverId"].clone());
                let models = [("scripted-model", "Scripted"), ("other-model", "Other")]
                    .map(|(id, name)| json!({ "modelId": id, "name": name }));
                let models = json!({ "currentModelId": agent.model, "availableModels": models });
                answer(id, &json!({ "sessionId": "s", "models": models }));
            }
            Some("session/set_model") => {
                params["modelId"].as_str().expect("a model").clone_into(&mut agent.model);
                answer(id, &json!({}));
            }
            Some("session/prompt") => {
                let blocks = params["prompt"].as_array().expect("blocks").iter();
                let named =
                    blocks.clone().filter_map(|block| block["text"].as_str()?.split_once("<location>"));
                let location = { named }.find_map(|(_, rest)| rest.split_once("</location>"));
                agent.location = location.map(|(path, _)| path.into()).unwrap_or_default();
                // The proxy adds its text to the start of the prompt, so the last block is what the user has typed.
                let text = blocks.filter_map(|block| block["text"].as_str()).next_back().unwrap_or_default();
                let texts = params["prompt"].as_array().expect("blocks").iter();
                agent.told = texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
                agent.told.truncate(agent.told.len() - text.len());
                match agent.obey(text) {
                    Some(result) => answer(id, &result),
                    None => write(
                        &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "no credit" } }),
                    ),
                }
            }
            _ => {}
        }
    }
    ExitCode::SUCCESS
}

struct Agent {
    cwd: String,
    /// The SKILL.md that the catalog names.
    location: PathBuf,
    server: Option<Value>,
    /// The text that the proxy added to the prompt.
    told: String,
    next: u64,
    calls: u64,
    grades: String,
    model: String,
}

impl Agent {
    /// Follows the orders and returns the result of the turn, or `None` if the agent refuses.
    fn obey(&mut self, text: &str) -> Option<Value> {
        // On Windows, the path of the log contains a `:`.
        if let Some((log, answer)) =
            self.grades.strip_prefix("writer:").and_then(|rest| rest.rsplit_once(':'))
        {
            write_description(log, answer, text);
            return Some(json!({ "stopReason": "end_turn" }));
        }
        if text.starts_with("You are grading") {
            let verdicts = self.verdicts(text);
            say(&verdicts);
            return Some(json!({ "stopReason": "end_turn" }));
        }
        let mut reason = "end_turn".to_owned();
        let mut usage = Value::Null;
        for order in text.split(';').map(str::trim) {
            let order = match order.strip_prefix("with ") {
                Some(_) if self.server.is_none() => continue,
                Some(rest) => rest,
                None => order,
            };
            let (word, rest) = order.split_once(' ').unwrap_or((order, ""));
            match word {
                "say" => say(rest),
                "load" => self.load(rest),
                // `if WORDS then SKILL` loads the skill if the proxy has added the words to the prompt.
                "if" => {
                    let (words, skill) = rest.split_once(" then ").expect("a condition");
                    if self.told.contains(words) {
                        self.load(skill);
                    }
                }
                "resource" => self.resource(rest),
                "file" => {
                    let path = self.location.with_file_name(rest);
                    self.tool("read", path.to_str().expect("text"), "completed");
                }
                "command" => self.tool("execute", "/bin/ls", "in_progress"),
                "write" => {
                    let (file, text) = rest.split_once(' ').expect("a file and a text");
                    fs::write(format!("{}/{file}", self.cwd), text).expect("the directory can be written");
                }
                "edit" => {
                    fs::write(rest, "edited").expect("the file can be written");
                    self.tool("edit", rest, "completed");
                }
                "ask" => self.ask_permission(rest),
                "model" => say(&self.model),
                "cost" => {
                    let cost = json!({ "amount": rest.parse::<f64>().expect("a number"), "currency": "USD" });
                    update(
                        &json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost }),
                    );
                }
                "home" => {
                    let text = fs::read_to_string(home().join(rest));
                    say(&format!("{rest}: {}", text.unwrap_or_else(|_| "absent".to_owned())));
                }
                "renew" => {
                    let (file, text) = rest.split_once(' ').expect("a file and a text");
                    fs::write(home().join("new"), text).expect("the home directory can be written");
                    fs::rename(home().join("new"), home().join(file)).expect("the file can be replaced");
                }
                "daemon" => {
                    let inner = format!(
                        "sleep 600 & first=$!; env -i sleep 600 & echo $$ $first $! > {rest}; exec sleep 600"
                    );
                    let script = format!(
                        "setsid sh -c '{inner}' </dev/null >/dev/null 2>&1 & while [ ! -s {rest} ]; do :; done"
                    );
                    let status = std::process::Command::new("sh").args(["-c", &script]).status();
                    assert!(status.expect("a shell").success());
                }
                "tokens" => usage = json!({ "totalTokens": rest.parse::<u64>().expect("a number") }),
                "stop" => rest.clone_into(&mut reason),
                "crash" => {
                    eprintln!("boom: the disk is on fire");
                    std::process::exit(3);
                }
                "fail" => {
                    let (times, file) = rest.split_once(' ').expect("a number and a file");
                    let made = fs::read(file).unwrap_or_default().len();
                    fs::write(file, vec![b'x'; made + 1]).expect("the file can be written");
                    if made < times.parse().expect("a number") {
                        std::process::exit(3);
                    }
                }
                "hang" => loop {
                    thread::park();
                },
                "refuse" => return None,
                "endless" => flood::endless(),
                "flood" => flood::updates(rest),
                "deaf" => flood::requests(rest),
                "calls" => flood::calls(),
                "values" => flood::values(),
                _ => {}
            }
        }
        Some(json!({ "stopReason": reason, "usage": usage }))
    }

    fn verdicts(&self, text: &str) -> String {
        let count = text.lines().filter(|line| line.starts_with("Assertion ")).count();
        let all = |passed: bool, evidence: &str| {
            let verdicts = (1..=count)
                .map(|number| json!({ "assertion": number, "passed": passed, "evidence": evidence }));
            json!({ "verdicts": verdicts.collect::<Vec<_>>() }).to_string()
        };
        match self.grades.as_str() {
            "nonsense" => "All good, 10/10!".to_owned(),
            "no-evidence" => all(true, " "),
            "other-type" => r#"{"verdicts": "passed"}"#.to_owned(),
            "twice" => {
                let verdict = json!({ "assertion": 1, "passed": true, "evidence": "it says so" });
                json!({ "verdicts": [verdict, verdict] }).to_string()
            }
            "strict" => all(false, "it is not good enough"),
            "score" => {
                let verdict =
                    json!({ "assertion": 1, "passed": false, "evidence": "a part of it", "score": 0.25 });
                json!({ "verdicts": [verdict] }).to_string()
            }
            "quality" => all(text.contains("The file `out.txt`"), "out.txt says: good work"),
            "crash" => std::process::exit(4),
            _ => format!("Here you are:\n```json\n{}\n```", all(true, "it says so")),
        }
    }

    fn load(&mut self, name: &str) {
        self.tool("other", "activate_skill", "in_progress");
        let got = self.mcp("tools/call", &json!({ "name": "activate_skill", "arguments": { "name": name } }));
        self.tool("other", "activate_skill", "completed");
        update(
            &json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": got.to_string() } }),
        );
    }

    fn resource(&mut self, name: &str) {
        self.mcp("resources/read", &json!({ "uri": format!("skill://{name}/SKILL.md") }));
    }

    /// Sends a request to the skills server. Returns null if there is no server.
    fn mcp(&mut self, method: &str, params: &Value) -> Value {
        let Some(server) = self.server.clone() else { return Value::Null };
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "scripted", "version": "1.0" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        self.next += 1;
        let number = self.next.to_string();
        let message = json!({ "serverId": server, "requestId": number, "method": method, "params": params });
        self.ask("mcp/message", &message)
    }

    fn tool(&mut self, kind: &str, path: &str, status: &str) {
        self.calls += 1;
        let locations = if Path::new(path).is_absolute() { json!([{ "path": path }]) } else { json!([]) };
        update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": format!("call-{}", self.calls), "title": format!("{kind} {path}"),
            "kind": kind, "status": status, "locations": locations,
        }));
    }

    fn ask_permission(&mut self, rest: &str) {
        let (kind, path) = rest.split_once(' ').expect("a kind and a path");
        let path =
            if Path::new(path).is_absolute() { path.to_owned() } else { format!("{}/{path}", self.cwd) };
        let outcome = self.ask("session/request_permission", &json!({
            "sessionId": "s",
            "toolCall": { "toolCallId": "asked", "title": format!("{kind} {path}"), "kind": kind, "rawInput": { "file_path": path } },
            "options": [
                { "optionId": "always", "name": "Always", "kind": "allow_always" },
                { "optionId": "once", "name": "Once", "kind": "allow_once" },
                { "optionId": "no", "name": "No", "kind": "reject_once" },
            ],
        }));
        let chosen = outcome["outcome"]["optionId"].as_str().unwrap_or_default();
        assert_ne!(chosen, "always", "permissions are never granted permanently");
        if chosen == "once" {
            fs::write(&path, "granted").expect("the file can be written");
        }
        say(&format!("The answer was {chosen}."));
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = format!("agent-{}", self.next);
        write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            match read() {
                Some(message) if message["id"] == id.as_str() => return message["result"].clone(),
                Some(_) => {}
                None => std::process::exit(0),
            }
        }
    }
}

fn home() -> PathBuf {
    std::env::home_dir().expect("a home directory")
}

/// Answers with a description. `COUNT` is replaced by the size of the log, and `LONG` by a text that is too long. An answer
/// with `COST` reports costs.
fn write_description(log: &str, answer: &str, prompt: &str) {
    let logged = fs::read_to_string(log).unwrap_or_default();
    fs::write(log, format!("{logged}{prompt}\n")).expect("the log can be written");
    if answer.contains("COST") {
        let cost = json!({ "amount": 0.5, "currency": "USD" });
        update(&json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost }));
    }
    let answer = answer.replace("COUNT", &logged.len().to_string()).replace("LONG", &"x ".repeat(600));
    say(&json!({ "description": answer }).to_string());
}

fn say(text: &str) {
    update(
        &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": format!("{text}\n") } }),
    );
}

fn update(update: &Value) {
    write(
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } }),
    );
}

fn answer(id: &Value, result: &Value) {
    write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn write(message: &Value) {
    let mut stdout = io::stdout().lock();
    // If this fails, the client is gone, and it will kill this process soon.
    let _ = writeln!(stdout, "{message}").and_then(|()| stdout.flush());
}

fn read() -> Option<Value> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(1..) => Some(serde_json::from_str(&line).expect("a message")),
        _ => None,
    }
}
