//! Tests of sessions: skills that are added and removed, forks, closing and loading. Also invalid requests, and an agent
//! that crashes.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use super::{DEADLINE, ENTRY, MOMENT, Place, SHORT, Seen, initialize, look_for_ours, text_of};
use crate::client::Client;

/// The maximum time until a change on disk appears in the menu.
const RELOAD: Duration = Duration::from_secs(10);
/// A word in the description of a skill that is added later.
const LATER: &str = "CAULIFLOWER-1138";

impl Place<'_> {
    /// Adds a skill while the session is open, and removes it again.
    pub(super) fn reload(&self, seen: &mut Seen, client: &mut Client, id: &Value) -> Result<(), String> {
        let dir = self.path("skills/later");
        let text = format!("---\nname: later\ndescription: Comes later, {LATER}.\n---\nBe late.\n");
        fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join("SKILL.md"), text)).expect("a file");
        let has_it = |client: &Client| menu(client, id).iter().any(|name| name.ends_with("later"));
        client.listen(RELOAD, has_it);
        let came = has_it(client);
        Self::prompt(client, id, "What is new?")?;
        let told = text_of(&self.model.asked()).contains(LATER);
        fs::remove_dir_all(&dir).expect("it is there");
        client.listen(RELOAD, |client| !has_it(client));
        seen.reloaded = came && told && !has_it(client);
        Ok(())
    }

    /// Forks the first session and sends a prompt to the fork.
    pub(super) fn fork(&self, seen: &mut Seen, client: &mut Client, id: &Value) -> Result<(), String> {
        let mut params = self.new_session();
        params["sessionId"] = id.clone();
        let forked = client.ask("session/fork", &params);
        seen.forked = Some(forked.is_ok());
        if let Ok(forked) = forked {
            client.listen(MOMENT, |_| false);
            self.model.asked();
            Self::prompt(client, &forked["sessionId"], "And now in a copy")?;
            let asked = self.model.asked();
            let told = asked.iter().map(|asked| asked.to_string().matches(ENTRY).count());
            seen.told_in_fork = told.max().unwrap_or_default();
        }
        Ok(())
    }

    /// Closes a session, and then sends a prompt to it.
    pub(super) fn close(seen: &mut Seen, client: &mut Client, id: &Value) {
        let closed = client.ask("session/close", &json!({ "sessionId": id })).is_ok();
        let blocks = json!([{ "type": "text", "text": "Is anybody there?" }]);
        let request = client.request("session/prompt", &json!({ "sessionId": id, "prompt": blocks }));
        let answer = match client.answer(request, SHORT) {
            Ok(answer) => match answer.get("error") {
                Some(error) => error["code"].to_string(),
                None => answer["result"]["stopReason"].to_string(),
            },
            Err(_) => "nothing".to_owned(),
        };
        seen.closed = Some((closed, answer));
    }

    /// Loads the first session in another process, and continues it.
    pub(super) fn load(&self, seen: &mut Seen, id: &Value) -> Result<(), String> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        let mut params = self.new_session();
        params["sessionId"] = id.clone();
        let loaded = client.ask("session/load", &params);
        seen.loaded = Some(loaded.is_ok());
        if loaded.is_ok() {
            client.listen(MOMENT, |_| false);
            self.model.calls(&[]);
            self.model.asked();
            Self::prompt(&mut client, id, "And now the second turn")?;
            let asked = self.model.asked();
            let told = asked.iter().map(|asked| asked.to_string().matches(ENTRY).count());
            seen.told_after_load = told.max().unwrap_or_default();
            if let Err(why) = client.ask("session/list", &json!({}))
                && !why.contains("-32601")
            {
                seen.problems.push(why);
            }
        }
        look_for_ours(seen, &client, "after a load");
        seen.left.extend(client.end().left);
        Ok(())
    }

    /// Sends invalid requests. Returns the answers, by request.
    pub(crate) fn mistakes(&self) -> Vec<(String, String)> {
        let mut client = self.start(&[], &[]);
        // Some agents are slow to start.
        if let Err(why) = initialize(&mut client) {
            return vec![("initialize".to_owned(), why)];
        }
        let cwd = self.project();
        let session = json!("no-such-session");
        let mistakes = [
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
        for (method, params) in mistakes {
            let id = client.request(method, &params);
            let answer = match client.answer(id, SHORT) {
                // The agent's description of itself differs between runs.
                Ok(answer) => match answer.get("error") {
                    Some(error) => {
                        format!("{} {}", error["code"], self.without_names(&error["message"].to_string()))
                    }
                    None => "a result".to_owned(),
                },
                Err(_) => "nothing".to_owned(),
            };
            answers.push((format!("{method} {params}"), answer));
        }
        answers
    }

    /// Kills the agent in the middle of a turn. Returns the answer to the prompt, and the proxy's exit code and remaining
    /// processes.
    pub(crate) fn crash(&self) -> Result<(Value, Option<i32>, Vec<String>), String> {
        let mut client = self.start(&[], &[]);
        initialize(&mut client)?;
        let id = client.ask("session/new", &self.new_session())?["sessionId"].clone();
        let request = self.begin_turn(&mut client, &id);
        let agent = child_of(client.id()).ok_or("the agent is not there")?;
        rustix::process::kill_process(agent, rustix::process::Signal::KILL)
            .map_err(|error| error.to_string())?;
        let answer = client.answer(request, DEADLINE)?;
        let end = client.end();
        Ok((answer, end.status.code(), end.left))
    }
}

/// Returns the agent of a proxy: the child that is not the proxy's program.
fn child_of(proxy: u32) -> Option<rustix::process::Pid> {
    let program = fs::read_link(format!("/proc/{proxy}/exe")).ok()?;
    let children = fs::read_to_string(format!("/proc/{proxy}/task/{proxy}/children")).ok();
    let all =
        children.into_iter().flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    // Any thread of a process may have started the child.
    let others = fs::read_dir(format!("/proc/{proxy}/task")).ok()?.flatten().flat_map(|task| {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    let mut ids = all.chain(others).filter_map(|id| id.parse::<i32>().ok());
    let id = ids.find(|id| fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe != program))?;
    rustix::process::Pid::from_raw(id)
}

/// Returns the commands of a session, from the latest menu.
fn menu(client: &Client, id: &Value) -> Vec<String> {
    let heard = client.heard(0);
    let mut updates = heard.iter().rev().filter(|message| message["params"]["sessionId"] == *id);
    let last = updates.find_map(|message| message["params"]["update"]["availableCommands"].as_array());
    last.into_iter().flatten().filter_map(|command| Some(command["name"].as_str()?.to_owned())).collect()
}
