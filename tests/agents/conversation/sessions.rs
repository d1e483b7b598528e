//! Parts of the conversation about sessions: added and removed skills, forking, closing and loading, invalid requests, and an
//! agent that is killed.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    DEADLINE, ENTRY, Fixture, INVALID_REQUEST_TIMEOUT, Observations, PAUSE, find_leaks, initialize, text_of,
};
use crate::client::Client;

/// The timeout for a change on disk to appear in the menu.
const RELOAD: Duration = Duration::from_secs(10);
/// A word that only the description of the skill that is added later contains.
const LATER: &str = "CAULIFLOWER-1138";

impl Fixture<'_> {
    /// Adds a skill to an open session, and removes it again.
    pub(super) fn reload(&self, seen: &mut Observations, client: &mut Client, id: &Value) -> Result<()> {
        let dir = self.path("skills/later");
        let text = format!("---\nname: later\ndescription: Comes later, {LATER}.\n---\nBe late.\n");
        fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join("SKILL.md"), text)).expect("a file");
        let is_listed = |client: &Client| menu(client, id).iter().any(|name| name.ends_with("later"));
        client.listen(RELOAD, is_listed);
        let appeared = is_listed(client);
        Self::prompt(client, id, "What is new?")?;
        let reached_model = text_of(&self.model.take_requests()).contains(LATER);
        fs::remove_dir_all(&dir).expect("it is there");
        client.listen(RELOAD, |client| !is_listed(client));
        seen.reloaded = appeared && reached_model && !is_listed(client);
        Ok(())
    }

    /// Forks the first session, and sends a prompt to the fork.
    pub(super) fn fork(&self, seen: &mut Observations, client: &mut Client, id: &Value) -> Result<()> {
        let mut params = self.new_session();
        params["sessionId"] = id.clone();
        let forked = client.ask("session/fork", &params);
        seen.forked = Some(forked.is_ok());
        if let Ok(forked) = forked {
            client.listen(PAUSE, |_| false);
            self.model.take_requests();
            Self::prompt(client, &forked["sessionId"], "And now in a copy")?;
            let asked = self.model.take_requests();
            let counts = asked.iter().map(|asked| asked.to_string().matches(ENTRY).count());
            seen.catalogs_in_fork = counts.max().unwrap_or_default();
        }
        Ok(())
    }

    /// Closes a session, and sends a prompt to it afterwards.
    pub(super) fn close(seen: &mut Observations, client: &mut Client, id: &Value) {
        let closed = client.ask("session/close", &json!({ "sessionId": id })).is_ok();
        let blocks = json!([{ "type": "text", "text": "Is anybody there?" }]);
        let request = client.request("session/prompt", &json!({ "sessionId": id, "prompt": blocks }));
        let answer = match client.answer(request, INVALID_REQUEST_TIMEOUT) {
            Ok(answer) => match answer.get("error") {
                Some(error) => error["code"].to_string(),
                None => answer["result"]["stopReason"].to_string(),
            },
            Err(_) => "nothing".to_owned(),
        };
        seen.closed = Some((closed, answer));
    }

    /// Loads the first session in a new process, and sends a prompt to it.
    pub(super) fn load(&self, seen: &mut Observations, id: &Value) -> Result<()> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        let mut params = self.new_session();
        params["sessionId"] = id.clone();
        let loaded = client.ask("session/load", &params);
        seen.loaded = Some(loaded.is_ok());
        if loaded.is_ok() {
            client.listen(PAUSE, |_| false);
            self.model.set_calls(&[]);
            self.model.take_requests();
            Self::prompt(&mut client, id, "And now the second turn")?;
            let asked = self.model.take_requests();
            let counts = asked.iter().map(|asked| asked.to_string().matches(ENTRY).count());
            seen.catalogs_after_load = counts.max().unwrap_or_default();
            if let Err(why) = client.ask("session/list", &json!({}))
                && !why.to_string().contains("-32601")
            {
                seen.problems.push(why.to_string());
            }
        }
        find_leaks(seen, &client, "after a load");
        seen.left.extend(client.end().left);
        Ok(())
    }

    /// Sends invalid requests. Returns each request with its answer.
    pub(crate) fn invalid_requests(&self) -> Vec<(String, String)> {
        let mut client = self.start(&[], &[]);
        // Some agents need a long time to start, so we use the longer timeout for this request, but not for the invalid ones.
        if let Err(why) = initialize(&mut client) {
            return vec![("initialize".to_owned(), why.to_string())];
        }
        let cwd = self.project();
        let session = json!("no-such-session");
        let requests = [
            ("_no/such/method", json!({})),
            ("initialize", json!({})),
            ("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })),
            ("authenticate", json!({ "methodId": "no-such-method" })),
            ("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] })),
            ("session/prompt", json!({})),
            ("session/new", json!({ "mcpServers": [] })),
            ("session/new", json!({ "cwd": 7, "mcpServers": [] })),
            ("session/load", json!({ "sessionId": session, "cwd": cwd, "mcpServers": [] })),
            ("session/load", json!({})),
            ("session/resume", json!({ "sessionId": session, "cwd": cwd })),
            ("session/fork", json!({ "sessionId": session, "cwd": cwd })),
            ("session/set_mode", json!({ "sessionId": session, "modeId": "x" })),
            ("session/close", json!({ "sessionId": session })),
        ];
        let mut answers = Vec::new();
        for (method, params) in requests {
            let id = client.request(method, &params);
            let answer = match client.answer(id, INVALID_REQUEST_TIMEOUT) {
                // We cannot compare the results, because they might be different in each run.
                Ok(answer) => match answer.get("error") {
                    Some(error) => {
                        format!("{} {}", error["code"], self.normalize(&error["message"].to_string()))
                    }
                    None => "a result".to_owned(),
                },
                Err(_) => "nothing".to_owned(),
            };
            answers.push((format!("{method} {params}"), answer));
        }
        answers
    }

    /// Kills the agent in the middle of a turn. Returns the answer to the prompt, the proxy's exit code, and the command lines of
    /// processes that still run.
    pub(crate) fn crash(&self) -> Result<(Value, Option<i32>, Vec<String>)> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        let request = self.begin_turn(&mut client, &id);
        let agent = child_of(client.id()).context("the proxy has no child process")?;
        rustix::process::kill_process(agent, rustix::process::Signal::KILL)
            .context("cannot kill the agent")?;
        let answer = client.answer(request, DEADLINE)?;
        let end = client.end();
        Ok((answer, end.status.code(), end.left))
    }
}

/// Returns the process of the agent: the child of the proxy that runs another program.
fn child_of(proxy: u32) -> Option<rustix::process::Pid> {
    let program = fs::read_link(format!("/proc/{proxy}/exe")).ok()?;
    let children = fs::read_to_string(format!("/proc/{proxy}/task/{proxy}/children")).ok();
    let all =
        children.into_iter().flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    // On Linux, each thread has a list of the children that it has started, so we need to look at all of the threads.
    let others = fs::read_dir(format!("/proc/{proxy}/task")).ok()?.flatten().flat_map(|task| {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let mut ids = all.chain(others).filter_map(|id| id.parse::<i32>().ok());
    let id = ids.find(|id| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe != program))?;
    rustix::process::Pid::from_raw(id)
}

/// Returns the commands of a session, from the last list that the client received.
fn menu(client: &Client, id: &Value) -> Vec<String> {
    let messages = client.agent_messages(0);
    let mut updates = messages.iter().rev().filter(|message| message["params"]["sessionId"] == *id);
    let last = updates.find_map(|message| message["params"]["update"]["availableCommands"].as_array());
    last.into_iter().flatten().filter_map(|command| Some(command["name"].as_str()?.to_owned())).collect()
}
