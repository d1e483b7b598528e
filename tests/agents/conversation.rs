//! Has a whole conversation with a real agent, directly or through the proxy, and collects observations.

mod sessions;
mod transcript;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use self::transcript::{can, commands, find_leaks, is_in_system, line_of, text_of};
use crate::{
    catalogue::Spec,
    client::{Client, DEADLINE},
    model::{Call, Model, REPLY},
};

/// A word that only the instructions of the skill contain.
pub(crate) const BODY: &str = "MARMALADE-4711";
/// A word that only a file of the skill contains.
pub(crate) const FILE: &str = "PUMPERNICKEL-0815";
/// The entry of the skill in the catalog.
const ENTRY: &str = "<name>demo</name>";
/// Texts that must never reach the client: parts of our markers, of the catalog, and of its instructions.
const OURS: [&str; 3] = ["acp-skills-proxy:", "available_skills", "proven instructions"];

/// The format of a UUID.
const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
/// The timeout for the answer to an invalid request.
const INVALID_REQUEST_TIMEOUT: Duration = Duration::from_secs(8);
/// The timeout for the end of a cancelled turn.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(15);
/// The time to wait for messages that may or may not arrive.
const PAUSE: Duration = Duration::from_millis(1500);

/// A temporary directory with a skill, a project and a home directory for the agent, and a scripted model.
pub(crate) struct Fixture<'a> {
    spec: &'a Spec,
    installed: &'a Path,
    /// True if the agent runs behind the proxy.
    proxied: bool,
    /// The value of `--exit-wait`: the time that the agent has to exit by itself, in seconds. The default is the proxy's own.
    pub(crate) exit_wait: Option<&'static str>,
    dir: TempDir,
    pub(crate) model: Model,
}

/// The observations of one run.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent observation")]
pub(crate) struct Observations {
    /// The exact answer to `initialize`, with paths and addresses replaced.
    pub(crate) initialize: String,
    /// The result of `session/new`, if it succeeded.
    pub(crate) session: Option<Value>,
    pub(crate) catalog: Option<&'static str>,
    /// True if the skill's instructions reached the model through our tool.
    pub(crate) by_tool: bool,
    /// True if a file of the skill reached the model through our tool.
    pub(crate) file: bool,
    /// True if the skill's instructions reached the model through the skill's command.
    pub(crate) by_command: bool,
    /// True if the catalog has the paths of the skill files.
    pub(crate) names_files: bool,
    /// The number of permission requests from the agent.
    pub(crate) permission_requests: u32,
    /// The times that prompts waited for an agent that did not connect to our server, in milliseconds.
    pub(crate) waited: Vec<f64>,
    /// The names of all commands that the client received.
    pub(crate) commands: Vec<String>,
    /// The lines in which text of ours reached the client.
    pub(crate) leaks: Vec<String>,
    /// The transport over which our MCP server was offered.
    pub(crate) transport: Option<String>,
    pub(crate) cancelled: Option<String>,
    pub(crate) loaded: Option<bool>,
    /// The maximum number of catalogs in a request to the model after `session/load`.
    pub(crate) catalogs_after_load: usize,
    pub(crate) second_session: bool,
    /// True if a skill that was added to an open session reached the model, and appeared in and disappeared from the menu.
    pub(crate) reloaded: bool,
    /// True if `session/fork` succeeded. `None` if the agent does not support it.
    pub(crate) forked: Option<bool>,
    /// The maximum number of catalogs in a request to the model from the forked session.
    pub(crate) catalogs_in_fork: usize,
    /// True if `session/close` succeeded, with the answer to a prompt in that session afterwards.
    pub(crate) closed: Option<(bool, String)>,
    /// Requests to the model that contained text of ours without the user's prompt.
    pub(crate) ours_alone: Vec<String>,
    pub(crate) code: Option<i32>,
    pub(crate) left: Vec<String>,
    pub(crate) stray: Vec<String>,
    /// Errors during the conversation.
    pub(crate) problems: Vec<String>,
}

impl<'a> Fixture<'a> {
    pub(crate) fn new(spec: &'a Spec, installed: &'a Path, proxied: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let model = Model::start(spec.find.clone(), spec.via.clone(), spec.with.clone());
        let fixture = Self { spec, installed, proxied, exit_wait: None, dir, model };
        spec.settle(installed, &fixture.home(), &fixture.model.url());
        let skill = fixture.path("skills/demo");
        fs::create_dir_all(skill.join("references")).expect("a directory");
        let body = format!("Say {BODY}, then read references/guide.md.");
        let text = format!(
            "---\nname: demo\ndescription: Demonstrates skills. Use when the user says hello.\n---\n{body}\n"
        );
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        fs::write(skill.join("references/guide.md"), FILE).expect("a file");
        fs::create_dir_all(fixture.path("project")).expect("a directory");
        fs::write(fixture.path("project/a.txt"), "A text.\n").expect("a file");
        fixture
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The working directory of all sessions.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Starts the agent, or the proxy with these flags in front of it. `wrap` is put in front of the agent's command line.
    pub(crate) fn start(&self, flags: &[&str], wrap: &[OsString]) -> Client {
        let (words, environment) = self.command(flags, wrap);
        Client::start(&words, &environment, &self.project(), &self.path("stderr"))
    }

    /// Returns the command line that [`start`](Self::start) runs, and its whole environment.
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

    /// Returns the last lines of stderr and of the proxy's log, to help with finding the cause of a failure.
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

    /// Has the whole conversation. Errors are part of the observations.
    pub(crate) fn converse(&self) -> Observations {
        let mut seen = Observations::default();
        if let Err(why) = self.try_converse(&mut seen) {
            seen.problems.push(why.to_string());
        }
        seen
    }

    fn try_converse(&self, seen: &mut Observations) -> Result<()> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        seen.initialize = self.normalize(&line_of(&client, 1));
        let opened = client.ask("session/new", &self.new_session());
        let id = match &opened {
            Ok(result) => result["sessionId"].clone(),
            Err(_) => Value::Null,
        };
        seen.session = opened.as_ref().ok().cloned();
        if let Err(why) = opened {
            seen.problems.push(why.to_string());
        } else {
            client.listen(PAUSE, |_| false);
            if self.spec.model {
                self.first_turn(seen, &mut client, &id)?;
                let second = self.second_session(seen, &mut client)?;
                self.cancellation(seen, &mut client)?;
                if can(&seen.initialize, "fork") {
                    self.fork(seen, &mut client, &id)?;
                }
                if can(&seen.initialize, "close") {
                    Self::close(seen, &mut client, &second);
                }
            }
        }
        seen.commands = commands(&client);
        seen.transport = self.logged_transport();
        seen.permission_requests = client.permission_requests;
        find_leaks(seen, &client, "live");
        let can_load = serde_json::from_str::<Value>(&seen.initialize)
            .is_ok_and(|answer| answer["result"]["agentCapabilities"]["loadSession"] == true);
        let end = client.end();
        seen.code = end.status.code();
        seen.left = end.left;
        seen.stray = end.stray;
        if can_load && self.spec.model && self.spec.load.is_none() && !id.is_null() {
            self.load(seen, &id)?;
        }
        seen.waited = self.waits();
        Ok(())
    }

    /// Checks that the catalog, the skill and one of its files reach the model, then that the skill does so through its command.
    fn first_turn(&self, seen: &mut Observations, client: &mut Client, id: &Value) -> Result<()> {
        let calls = [
            Call { tool: "activate_skill", arguments: json!({ "name": "demo" }) },
            Call {
                tool: "read_skill_file",
                arguments: json!({ "skill": "demo", "path": "references/guide.md" }),
            },
        ];
        self.model.set_calls(if self.proxied { &calls } else { &[] });
        self.model.take_requests();
        let words = "Hello, please read \u{201c}a.txt\u{201d}";
        Self::prompt(client, id, words)?;
        let asked = self.model.take_requests();
        let all = text_of(&asked);
        if !all.contains("a.txt") {
            bail!("the model never got the prompt");
        }
        seen.catalog =
            all.contains(ENTRY).then(|| if is_in_system(&asked) { "system prompt" } else { "first prompt" });
        seen.names_files = all.contains("SKILL.md");
        let is_ours_alone = |text: &String| text.contains(OURS[0]) && !text.contains("a.txt");
        seen.ours_alone = asked.iter().map(Value::to_string).filter(is_ours_alone).collect();
        seen.by_tool = all.contains(BODY);
        seen.file = all.contains(FILE);
        let reply = client.agent_messages(0).iter().any(|message| message.to_string().contains(REPLY));
        if !reply {
            seen.problems.push("the client never saw the reply".to_owned());
        }
        if self.proxied {
            self.model.set_calls(&[]);
            // We can't use the first session for this, because the skill is already in the history.
            let session = client.ask("session/new", &self.new_session())?["sessionId"].clone();
            client.listen(PAUSE, |_| false);
            self.model.take_requests();
            Self::prompt(client, &session, "/demo the thing")?;
            let all = text_of(&self.model.take_requests());
            seen.by_command = all.contains(BODY) && all.contains("the thing");
        }
        Ok(())
    }

    fn second_session(&self, seen: &mut Observations, client: &mut Client) -> Result<Value> {
        self.model.set_calls(&[]);
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        self.model.take_requests();
        Self::prompt(client, &id, "Hello again from another session")?;
        seen.second_session = text_of(&self.model.take_requests()).contains(ENTRY);
        if self.proxied {
            self.reload(seen, client, &id)?;
        }
        Ok(id)
    }

    /// Begins a turn in which the model does not answer until it is unmuted. Returns the request id of the prompt.
    fn begin_turn(&self, client: &mut Client, session: &Value) -> u64 {
        self.model.take_requests();
        self.model.set_muted(true);
        let blocks = json!([{ "type": "text", "text": "Take your time" }]);
        let request = client.request("session/prompt", &json!({ "sessionId": session, "prompt": blocks }));
        client.listen(DEADLINE, |_| self.model.has_requests());
        request
    }

    /// Cancels a turn before the model answers.
    fn cancellation(&self, seen: &mut Observations, client: &mut Client) -> Result<()> {
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        let request = self.begin_turn(client, &id);
        client.notify("session/cancel", &json!({ "sessionId": id }));
        // Some agents don't end the turn until they get an answer from the model.
        let answer = client.answer(request, CANCEL_TIMEOUT);
        self.model.set_muted(false);
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

    /// Replaces everything that differs from run to run: the directory, the model's address, and UUIDs.
    fn normalize(&self, text: &str) -> String {
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
    fn prompt(client: &mut Client, session: &Value, words: &str) -> Result<Value> {
        let blocks = json!([{ "type": "text", "text": words }]);
        let result = client.ask("session/prompt", &json!({ "sessionId": session, "prompt": blocks }))?;
        client.listen(Duration::from_millis(300), |_| false);
        Ok(result)
    }

    /// Returns the transport over which our MCP server was offered, from the proxy's log.
    fn logged_transport(&self) -> Option<String> {
        let log = fs::read_to_string(self.path("proxy.log")).ok()?;
        let line = log.lines().rfind(|line| line.contains("MCP server `acp-skills"))?;
        line.rsplit(" over ").next().map(|text| text.trim().to_owned())
    }

    /// Returns the times that prompts waited for an agent that did not connect, in milliseconds, from the proxy's events.
    fn waits(&self) -> Vec<f64> {
        let text = fs::read_to_string(self.path("events.jsonl")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let waits = events.filter(|event| event["event"] == "fallback" && event["reason"] == "not_connected");
        waits.filter_map(|event| event["ms"].as_f64()).collect()
    }
}

pub(crate) fn initialize(client: &mut Client) -> Result<Value> {
    let capabilities = json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": false });
    let info = json!({ "name": "editor", "title": "editor", "version": "0.1" });
    let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info });
    client.ask("initialize", &params)
}
