//! An agent that acts only on orders: requests named `_agent/…`, which pass through the proxy like any other request.
//!
//! | order | effect |
//! |---|---|
//! | `take` | answers with the next line that the agent receives, as soon as there is one |
//! | `drain` | answers with all lines that the agent has received and that were not taken yet |
//! | `say {lines}` | writes these lines |
//! | `connect {entry, revision}` | connects to an MCP server; answers with the connection's number, the server's `initialize` result and its tools |
//! | `call {connection, tool, arguments}` | calls a tool |
//! | `look {connection}` | reads the server's `initialize` result and its tools again |
//! | `resources {connection}` | lists the resources |
//! | `prompt {connection, name}` | gets a prompt of the server |
//! | `heard {connection}` | answers with `tools`, `prompts` or `resources` as soon as the server reports that this list has changed |
//! | `disconnect {connection}` | closes a connection |
//! | `spawn {script}` | starts a child with another role, which inherits the agent's stdout and stderr |
//! | `exit {code}`, `abort` (notifications) | ends the agent |
//!
//! When its stdin ends, the agent reports the lines that were not taken, and exits.

use std::{
    collections::{HashMap, VecDeque},
    env,
    io::{self, BufRead, Write},
    process::{Command, ExitCode, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    LONG, MARK, MARK_REPORTED, SCRIPT,
    client::{self, Client},
    long_text, report,
};

#[derive(Default)]
struct ScriptedAgent {
    /// Lines that were received but not taken yet.
    received: VecDeque<String>,
    /// Ids of `take` orders that wait for a line.
    takers: VecDeque<Value>,
    clients: Clients,
    connections: u64,
}

type Clients = Arc<Mutex<HashMap<u64, Arc<Client>>>>;

pub(super) fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let mut agent = ScriptedAgent::default();
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    while stdin.read_until(b'\n', &mut line).expect("stdin can be read") > 0 {
        let text = String::from_utf8_lossy(&line).into_owned();
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        match message["method"].as_str().and_then(|method| method.strip_prefix("_agent/")) {
            Some("exit") => {
                let code = message["params"]["code"].as_i64().unwrap_or(0);
                std::process::exit(i32::try_from(code).unwrap_or(1));
            }
            Some("abort") => std::process::abort(),
            Some(order) => agent.obey(order, &message["params"], message["id"].clone(), &tasks),
            None => agent.receive(text),
        }
        line.clear();
    }
    for line in &agent.received {
        report(&format!("not taken: {}", line.trim_end()));
    }
    ExitCode::SUCCESS
}

impl ScriptedAgent {
    fn receive(&mut self, line: String) {
        // We can't just report the line with the mark in it, since the proxy removes marked text from everything that the agent
        // sends.
        let line = line.replace(MARK, MARK_REPORTED);
        match self.takers.pop_front() {
            Some(taker) => answer(&taker, Ok(line.into())),
            None => self.received.push_back(line),
        }
    }

    fn obey(&mut self, order: &str, params: &Value, id: Value, tasks: &Handle) {
        let params = params.clone();
        match order {
            "take" => match self.received.pop_front() {
                Some(line) => answer(&id, Ok(line.into())),
                None => self.takers.push_back(id),
            },
            "drain" => answer(&id, Ok(self.received.drain(..).collect())),
            "say" => {
                for line in params["lines"].as_array().expect("lines") {
                    // The order itself must not be too long for the proxy.
                    say(&line.as_str().expect("a line").replace(LONG, &long_text()));
                }
                answer(&id, Ok(Value::Null));
            }
            "spawn" => {
                let this = env::current_exe().expect("this program has a path");
                let mut child = Command::new(this);
                child.env(SCRIPT, params["script"].as_str().expect("a script")).stdin(Stdio::null());
                answer(&id, child.spawn().map(|child| child.id().into()).map_err(|error| error.to_string()));
            }
            "connect" => {
                self.connections += 1;
                let number = self.connections;
                let clients = Arc::clone(&self.clients);
                tasks.spawn(async move {
                    let revision = params["revision"].as_str().expect("a revision");
                    answer(&id, connect(number, &clients, &params["entry"], revision).await);
                });
            }
            "call" => {
                let client = self.client(&params);
                tasks.spawn(async move {
                    let tool = params["tool"].as_str().expect("a tool");
                    let trace = params["traceparent"].as_str();
                    answer(&id, client::call(&client, tool, &params["arguments"], trace).await);
                });
            }
            "look" => {
                let client = self.client(&params);
                tasks.spawn(async move { answer(&id, client::look(&client).await) });
            }
            "resources" => {
                let client = self.client(&params);
                tasks.spawn(async move { answer(&id, client::resources(&client).await) });
            }
            "prompt" => {
                let client = self.client(&params);
                tasks.spawn(async move {
                    let name = params["name"].as_str().expect("a name");
                    answer(&id, client::prompt(&client, name).await);
                });
            }
            "heard" => {
                let client = self.client(&params);
                tasks.spawn(async move { answer(&id, client::heard(&client).await) });
            }
            "disconnect" => {
                let number = params["connection"].as_u64().unwrap_or(0);
                let client = self.clients.lock().expect("no panic").remove(&number);
                drop(client);
                answer(&id, Ok(Value::Null));
            }
            other => panic!("no order is called {other}"),
        }
    }

    fn client(&self, params: &Value) -> Arc<Client> {
        let number = params["connection"].as_u64().expect("a connection");
        Arc::clone(self.clients.lock().expect("no panic").get(&number).expect("an open connection"))
    }
}

async fn connect(number: u64, clients: &Clients, entry: &Value, revision: &str) -> Result<Value, String> {
    let client = client::connect(entry, revision).await?;
    let mut seen = client::look(&client).await?;
    seen["connection"] = number.into();
    clients.lock().expect("no panic").insert(number, Arc::new(client));
    Ok(seen)
}

fn answer(id: &Value, outcome: Result<Value, String>) {
    let message = match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(message) => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": message } }),
    };
    say(&message.to_string());
}

fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).expect("stdout is open");
}
