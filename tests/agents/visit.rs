//! A visit to a real agent, bare or through the proxy: a whole conversation and its results.

mod sessions;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    catalogue::Spec,
    client::{Client, DEADLINE, Side},
    model::{Call, Model, REPLY},
};

/// A word that occurs only in the instructions of the skill.
pub(crate) const BODY: &str = "MARMALADE-4711";
/// A word that occurs only in a file of the skill.
pub(crate) const FILE: &str = "PUMPERNICKEL-0815";
/// An entry of the catalog.
const ENTRY: &str = "<name>demo</name>";
/// Texts that a client must never see: parts of our marks, of the catalog, and of its instructions.
const OURS: [&str; 3] = ["acp-skills-proxy:", "available_skills", "proven instructions"];

/// The pattern of a UUID.
const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
/// The maximum time for an agent to answer an invalid request.
const SHORT: Duration = Duration::from_secs(8);
/// The maximum time for a cancelled turn to end.
const LONG: Duration = Duration::from_secs(15);
/// The time to wait for an event that may not happen.
const MOMENT: Duration = Duration::from_millis(1500);

/// The place where an agent is visited.
pub(crate) struct Place<'a> {
    spec: &'a Spec,
    installed: &'a Path,
    /// True if the proxy runs in front of the agent.
    proxied: bool,
    /// The grace period for the agent's exit, in seconds. The default is the proxy's.
    pub(crate) exit_wait: Option<&'static str>,
    dir: TempDir,
    pub(crate) model: Model,
}

/// The results of a visit.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer of its own")]
pub(crate) struct Seen {
    /// The answer to `initialize`, unchanged except for its paths.
    pub(crate) initialize: String,
    /// The result of `session/new`, if a session was opened.
    pub(crate) session: Option<Value>,
    pub(crate) catalog: Option<&'static str>,
    /// True if the model got the body through the tool, a file of the skill, and the body by a command.
    pub(crate) by_tool: bool,
    pub(crate) file: bool,
    pub(crate) by_command: bool,
    /// True if the catalog named the files.
    pub(crate) names_files: bool,
    /// The number of times that the agent asked the client for permission.
    pub(crate) asked: u32,
    /// The times that prompts waited in vain, in milliseconds.
    pub(crate) waited: Vec<f64>,
    /// The agent's commands.
    pub(crate) commands: Vec<String>,
    /// Our words that the client saw, and where.
    pub(crate) leaks: Vec<String>,
    /// The form of our server's entry.
    pub(crate) transport: Option<String>,
    pub(crate) cancelled: Option<String>,
    pub(crate) loaded: Option<bool>,
    /// The number of catalogs in the model's input after a load.
    pub(crate) told_after_load: usize,
    pub(crate) second_session: bool,
    /// True if a skill that was added to an open session was announced, and was in the menu until its removal.
    pub(crate) reloaded: bool,
    /// True if the first session could be forked, and the number of catalogs in the input of the fork's model.
    pub(crate) forked: Option<bool>,
    pub(crate) told_in_fork: usize,
    /// True if a session was closed, and the answer to a later prompt in it.
    pub(crate) closed: Option<(bool, String)>,
    /// Requests to a model that contain text of ours but none of the user's.
    pub(crate) ours_alone: Vec<String>,
    pub(crate) code: Option<i32>,
    pub(crate) left: Vec<String>,
    pub(crate) stray: Vec<String>,
    /// Problems during the visit.
    pub(crate) problems: Vec<String>,
}

impl<'a> Place<'a> {
    pub(crate) fn new(spec: &'a Spec, installed: &'a Path, proxied: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let model = Model::start(spec.find.clone(), spec.via.clone(), spec.with.clone());
        let place = Self { spec, installed, proxied, exit_wait: None, dir, model };
        spec.settle(installed, &place.home(), &place.model.url());
        let skill = place.path("skills/demo");
        fs::create_dir_all(skill.join("references")).expect("a directory");
        let body = format!("Say {BODY}, then read references/guide.md.");
        let text = format!(
            "---\nname: demo\ndescription: Demonstrates skills. Use when the user says hello.\n---\n{body}\n"
        );
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        fs::write(skill.join("references/guide.md"), FILE).expect("a file");
        fs::create_dir_all(place.path("project")).expect("a directory");
        fs::write(place.path("project/a.txt"), "A text.\n").expect("a file");
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Returns the working directory of sessions.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Starts the agent. If `proxied` is true, it runs behind the proxy with these flags. `wrap` is put in front of the
    /// agent's command.
    pub(crate) fn start(&self, flags: &[&str], wrap: &[OsString]) -> Client {
        let (words, environment) = self.command(flags, wrap);
        Client::start(&words, &environment, &self.project(), &self.path("stderr"))
    }

    /// Returns the command for [`start`](Self::start), and its complete environment.
    pub(crate) fn command(
        &self,
        flags: &[&str],
        wrap: &[OsString],
    ) -> (Vec<OsString>, Vec<(String, OsString)>) {
        let (command, environment) = self.spec.command(self.installed, &self.home(), &self.model.url());
        let agent = [wrap, &command].concat();
        let words = if self.proxied {
            let mut words: Vec<OsString> = vec![env!("CARGO_BIN_EXE_acp-skills-proxy").into()];
            for (flag, path) in [
                ("--skills", "skills"),
                ("--state", "state"),
                ("--events", "events.jsonl"),
                ("--log-file", "proxy.log"),
            ] {
                words.extend([flag.into(), self.path(path).into()]);
            }
            words.extend(["--log", "debug"].map(OsString::from));
            if let Some(seconds) = self.exit_wait {
                words.extend(["--exit-wait", seconds].map(OsString::from));
            }
            words.extend(flags.iter().map(OsString::from));
            words.push("--".into());
            words.extend(agent);
            words
        } else {
            agent
        };
        (words, environment)
    }

    fn new_session(&self) -> Value {
        json!({ "cwd": self.project(), "mcpServers": [] })
    }

    /// Returns the logs of the proxy and the agent, to explain a failure.
    pub(crate) fn logs(&self) -> String {
        let last = |name: &str| {
            let text = fs::read(self.path(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<_> = text.lines().collect();
            let lines: Vec<_> = lines[lines.len().saturating_sub(12)..]
                .iter()
                .map(|line| line.chars().take(300).collect::<String>())
                .collect();
            format!("--- {name}\n{}\n", lines.join("\n"))
        };
        last("stderr") + &last("proxy.log")
    }

    /// Runs the whole visit.
    pub(crate) fn visit(&self) -> Seen {
        let mut seen = Seen::default();
        if let Err(why) = self.converse(&mut seen) {
            seen.problems.push(why);
        }
        seen
    }

    fn converse(&self, seen: &mut Seen) -> Result<(), String> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        seen.initialize = self.without_names(&line_of(&client, 1));
        let opened = client.ask("session/new", &self.new_session());
        let id = match &opened {
            Ok(result) => result["sessionId"].clone(),
            Err(_) => Value::Null,
        };
        seen.session = opened.as_ref().ok().cloned();
        if let Err(why) = opened {
            seen.problems.push(why);
        } else {
            client.listen(MOMENT, |_| false);
            if self.spec.model {
                self.first_turn(seen, &mut client, &id)?;
                let second = self.second_session(seen, &mut client)?;
                self.cancellation(seen, &mut client)?;
                let can = |what: &str| can(&seen.initialize, what);
                let can_fork = can("fork");
                let can_close = can("close");
                if can_fork {
                    self.fork(seen, &mut client, &id)?;
                }
                if can_close {
                    Self::close(seen, &mut client, &second);
                }
            }
        }
        seen.commands = commands(&client);
        seen.transport = self.logged_transport();
        seen.asked = client.asked;
        look_for_ours(seen, &client, "live");
        let can_load = serde_json::from_str::<Value>(&seen.initialize)
            .is_ok_and(|answer| answer["result"]["agentCapabilities"]["loadSession"] == true);
        let end = client.end();
        (seen.code, seen.left, seen.stray) = (end.status.code(), end.left, end.stray);
        if can_load && self.spec.model && self.spec.load.is_none() && !id.is_null() {
            self.load(seen, &id)?;
        }
        seen.waited = self.waits();
        Ok(())
    }

    /// Tests the catalog, activation by the model and a file; then the same by a command.
    fn first_turn(&self, seen: &mut Seen, client: &mut Client, id: &Value) -> Result<(), String> {
        let calls = [
            Call { tool: "activate_skill", arguments: json!({ "name": "demo" }) },
            Call {
                tool: "read_skill_file",
                arguments: json!({ "skill": "demo", "path": "references/guide.md" }),
            },
        ];
        self.model.calls(if self.proxied { &calls } else { &[] });
        self.model.asked();
        let words = "Hello, please read \u{201c}a.txt\u{201d}";
        Self::prompt(client, id, words)?;
        let asked = self.model.asked();
        let all = text_of(&asked);
        if !all.contains("a.txt") {
            return Err("the model never got the prompt".to_owned());
        }
        seen.catalog =
            all.contains(ENTRY).then(|| if is_in_system(&asked) { "system prompt" } else { "first prompt" });
        seen.names_files = all.contains("SKILL.md");
        let is_ours_alone = |text: &String| text.contains(OURS[0]) && !text.contains("a.txt");
        seen.ours_alone = asked.iter().map(Value::to_string).filter(is_ours_alone).collect();
        seen.by_tool = all.contains(BODY);
        seen.file = all.contains(FILE);
        let reply = client.heard(0).iter().any(|message| message.to_string().contains(REPLY));
        if !reply {
            seen.problems.push("the client never saw the reply".to_owned());
        }
        if self.proxied {
            self.model.calls(&[]);
            // This is a separate session, so that the first turn does not count.
            let session = client.ask("session/new", &self.new_session())?["sessionId"].clone();
            client.listen(MOMENT, |_| false);
            self.model.asked();
            Self::prompt(client, &session, "/demo the thing")?;
            let all = text_of(&self.model.asked());
            seen.by_command = all.contains(BODY) && all.contains("the thing");
        }
        Ok(())
    }

    fn second_session(&self, seen: &mut Seen, client: &mut Client) -> Result<Value, String> {
        self.model.calls(&[]);
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        self.model.asked();
        Self::prompt(client, &id, "Hello again from another session")?;
        seen.second_session = text_of(&self.model.asked()).contains(ENTRY);
        if self.proxied {
            self.reload(seen, client, &id)?;
        }
        Ok(id)
    }

    /// Starts a turn in which the model does not answer until it is unmuted. Returns the id of the prompt.
    fn begin_turn(&self, client: &mut Client, session: &Value) -> u64 {
        self.model.asked();
        self.model.mute(true);
        let blocks = json!([{ "type": "text", "text": "Take your time" }]);
        let request = client.request("session/prompt", &json!({ "sessionId": session, "prompt": blocks }));
        client.listen(DEADLINE, |_| self.model.is_asked());
        request
    }

    /// Cancels a turn while the model does not answer.
    fn cancellation(&self, seen: &mut Seen, client: &mut Client) -> Result<(), String> {
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        let request = self.begin_turn(client, &id);
        client.notify("session/cancel", &json!({ "sessionId": id }));
        // Some agents wait for the model anyway.
        let answer = client.answer(request, LONG);
        self.model.mute(false);
        let reason = match &answer {
            Ok(answer) => answer["result"]["stopReason"].as_str().unwrap_or("an error"),
            Err(_) => "nothing",
        };
        seen.cancelled = Some(reason.to_owned());
        if answer.is_err() {
            client.answer(request, DEADLINE)?;
        }
        Ok(())
    }

    /// Replaces the parts that differ between runs: paths and UUIDs.
    fn without_names(&self, text: &str) -> String {
        let mut text =
            text.replace(&*self.dir.path().to_string_lossy(), "DIR").replace(&self.model.url(), "MODEL");
        let mut start = 0;
        while let Some(candidate) = text.get(start..start + UUID.len()) {
            let fits = candidate.bytes().zip(UUID.bytes()).all(|(byte, place)| match place {
                b'-' => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
            if fits {
                text.replace_range(start..start + UUID.len(), "UUID");
            }
            start += 1;
            while start < text.len() && !text.is_char_boundary(start) {
                start += 1;
            }
        }
        text
    }

    /// Sends a prompt and waits for the end of its turn.
    fn prompt(client: &mut Client, session: &Value, words: &str) -> Result<Value, String> {
        let blocks = json!([{ "type": "text", "text": words }]);
        let result = client.ask("session/prompt", &json!({ "sessionId": session, "prompt": blocks }))?;
        client.listen(Duration::from_millis(300), |_| false);
        Ok(result)
    }

    /// Returns the transport on which our server was offered, according to the proxy's log.
    fn logged_transport(&self) -> Option<String> {
        let log = fs::read_to_string(self.path("proxy.log")).ok()?;
        let line = log.lines().rfind(|line| line.contains("MCP server `acp-skills"))?;
        line.rsplit(" over ").next().map(|text| text.trim().to_owned())
    }

    /// Returns the times that prompts waited in vain, according to the proxy's events.
    fn waits(&self) -> Vec<f64> {
        let record = fs::read_to_string(self.path("events.jsonl")).unwrap_or_default();
        let events = record.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let waits = events.filter(|event| event["event"] == "fallback" && event["reason"] == "not_connected");
        waits.filter_map(|event| event["ms"].as_f64()).collect()
    }
}

pub(crate) fn initialize(client: &mut Client) -> Result<Value, String> {
    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": false });
    let info = json!({ "name": "editor", "title": "editor", "version": "0.1" });
    let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info });
    client.ask("initialize", &params)
}

/// Returns the line that answered the request with this id.
fn line_of(client: &Client, id: u64) -> String {
    let answers = |line: &str| {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|message| message["id"] == id && message.get("method").is_none())
    };
    let line = client.said.iter().find(|(side, line)| *side == Side::Agent && answers(line));
    line.map(|(_, line)| line.clone()).unwrap_or_default()
}

/// Returns true if the agent's answer to `initialize` has this session capability.
fn can(initialize: &str, what: &str) -> bool {
    let answer = serde_json::from_str::<Value>(initialize).unwrap_or_default();
    let capability = &answer["result"]["agentCapabilities"]["sessionCapabilities"][what];
    !capability.is_null() && *capability != false
}

/// Returns the names of all commands that the client received, in any session, because lists arrive at any time.
fn commands(client: &Client) -> Vec<String> {
    let heard = client.heard(0);
    let updates =
        heard.iter().filter_map(|message| message["params"]["update"]["availableCommands"].as_array());
    let names = updates.flatten().filter_map(|command| Some(command["name"].as_str()?.to_owned()));
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns everything that a model received, as text.
fn text_of(asked: &[Value]) -> String {
    asked.iter().map(|asked| asked.to_string() + "\n").collect()
}

/// Returns true if the catalog is among the agent's own instructions.
fn is_in_system(asked: &[Value]) -> bool {
    asked.iter().any(|asked| {
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        let list = |key: &str| asked[key].as_array().cloned().unwrap_or_default();
        let messages = [list("messages"), list("input")].concat();
        let mut system: Vec<String> = messages.iter().filter(is_system).map(Value::to_string).collect();
        system.extend(["system", "instructions", "systemInstruction"].map(|key| asked[key].to_string()));
        system.iter().any(|text| text.contains(ENTRY))
    })
}

fn look_for_ours(seen: &mut Seen, client: &Client, when: &str) {
    for (side, line) in &client.said {
        let found = OURS.iter().find(|word| *side == Side::Agent && line.contains(**word));
        if let Some(word) = found {
            let start: String = line.chars().take(400).collect();
            seen.leaks.push(format!("{when}, {word:?}: {start}"));
        }
    }
}
