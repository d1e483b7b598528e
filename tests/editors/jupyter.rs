//! Tests in JupyterLab with Jupyter AI, which starts the agent by its name.

use std::{env, fs, os::unix::fs::PermissionsExt, path::PathBuf};

use anyhow::Result;
use libtest_mimic::Trial;

use crate::{
    browser::{Browser, Page, Server},
    fixture::{Fixture, compare, installed},
    trial,
};

/// The name of the agent's program.
const AGENT: &str = "claude-agent-acp";
/// The conversation.
const MESSAGES: &str = ".jp-chat-messages-container";
const INPUT: &str = ".jp-chat-input-textfield textarea";
/// The list of commands above the input.
const MENU: &str = "[role=listbox]";

type Test = fn(&Jupyter);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    let jupyter = Jupyter { browser: Browser::find()?, program: installed("jupyter/bin/jupyter-lab")? };
    let tests: [(&str, Test); 2] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let jupyter = jupyter.clone();
        trial(&format!("jupyter::{name}"), move || test(&jupyter))
    });
    Ok(tests.collect())
}

#[derive(Clone)]
struct Jupyter {
    browser: Browser,
    program: PathBuf,
}

impl Jupyter {
    /// Starts JupyterLab with a script of the agent's name in front of the `PATH`, and opens a chat.
    fn ready(&self, fixture: &Fixture) -> (Server, Page) {
        let scripts = fixture.path("bin");
        fs::create_dir_all(&scripts).expect("a directory");
        let words: Vec<_> = fixture.proxy().iter().map(|word| format!("'{word}'")).collect();
        let script = scripts.join(AGENT);
        fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).expect("a file");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
        fs::write(fixture.project().join("talk.chat"), "{}").expect("a file");
        let old_path = env::var_os("PATH").unwrap_or_default();
        let own = self.program.parent().expect("a directory").to_owned();
        let path = env::join_paths([scripts, own].into_iter().chain(env::split_paths(&old_path)));
        let server = Server::start(|port| {
            let mut command = fixture.command(&self.program);
            command.args(["--no-browser", "--allow-root", "--ServerApp.token=", "--ServerApp.password="]);
            command
                .arg(format!("--ServerApp.port={port}"))
                .arg("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate");
            command.arg("--LabApp.news_url=None").env("PATH", path.expect("a list"));
            command
        });
        let mut page = Page::open(&self.browser, fixture, &server.url("/lab/tree/talk.chat"));
        page.clicks(INPUT);
        (server, page)
    }
}

/// Sends a message.
fn send(page: &mut Page, text: &str) {
    page.clicks(INPUT);
    page.types(text);
    page.presses("Enter");
}

/// Compares the conversation, without the times.
fn compare_messages(page: &mut Page, name: &str) {
    let is_time = |line: &str| line.ends_with(" AM") || line.ends_with(" PM");
    compare(name, || {
        let text = page.text(MESSAGES);
        text.lines().filter(|line| !line.is_empty() && !is_time(line)).flat_map(|line| [line, "\n"]).collect()
    });
}

fn a_skill_is_activated_by_the_model(jupyter: &Jupyter) {
    let fixture = Fixture::new();
    let (_server, mut page) = jupyter.ready(&fixture);
    send(&mut page, "review it");
    page.shows(MESSAGES, "I loaded the skill");
    compare_messages(&mut page, "jupyter-model");
}

/// The first message begins with a note of Jupyter AI.
fn a_skill_is_activated_by_a_command(jupyter: &Jupyter) {
    let fixture = Fixture::new();
    let (_server, mut page) = jupyter.ready(&fixture);
    fixture.wait_for_message("available_commands_update");
    page.types("/co");
    page.shows(MENU, "/code-review");
    page.compare(MENU, "jupyter-menu");
    page.types("de-review look at main.rs");
    page.presses("Enter");
    page.shows(MESSAGES, "I follow the skill");
}
