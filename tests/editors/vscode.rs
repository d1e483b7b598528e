//! Tests in VS Code with the extension ACP Client. VS Code is a web application here.

use std::{fs, path::PathBuf};

use anyhow::Result;
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    browser::{Browser, Page, Server},
    fixture::{Fixture, installed},
    trial,
};

/// The directory of settings below the home directory.
const SETTINGS: &str = ".config/Code";
/// The title of the list of agents.
const AGENTS: &str = ".pane-header[aria-label='Agents Section']";
/// The conversation.
const MESSAGES: &str = "#messages";
/// The list of commands above the input.
const MENU: &str = "#slashPopup.open";
const INPUT: &str = "#promptInput";
/// A list to choose from.
const CHOICE: &str = ".quick-input-widget";

type Test = fn(&Code);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    let code = Code {
        browser: Browser::find()?,
        program: installed("vscode/package/out/node/entry.js")?,
        extensions: installed("vscode/ext")?,
    };
    let tests: [(&str, Test); 5] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("permission_is_granted_or_refused", permission_is_granted_or_refused),
        ("a_turn_is_cancelled", a_turn_is_cancelled),
        ("a_failed_start_is_shown", a_failed_start_is_shown),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let code = code.clone();
        trial(&format!("vscode::{name}"), move || test(&code))
    });
    Ok(tests.collect())
}

#[derive(Clone)]
struct Code {
    browser: Browser,
    program: PathBuf,
    extensions: PathBuf,
}

impl Code {
    /// Starts VS Code with this agent in its settings, and opens the project.
    fn start(&self, fixture: &Fixture, agent: &[String]) -> (Server, Page) {
        let settings = fixture.path(SETTINGS).join("User");
        fs::create_dir_all(&settings).expect("a directory");
        let agents = json!({ "Scripted": { "command": agent[0], "args": agent[1..], "env": {} } });
        let values = json!({
            "acp.agents": agents,
            "telemetry.telemetryLevel": "off",
            "remote.autoForwardPorts": false,
            "workbench.startupEditor": "none",
            "workbench.colorTheme": "Default Dark Modern",
            "workbench.secondarySideBar.defaultVisibility": "hidden",
        });
        fs::write(settings.join("settings.json"), values.to_string()).expect("a file");
        let server = Server::start(|port| {
            let mut command = fixture.command(self.browser.node());
            command.arg(&self.program).args([
                "--auth",
                "none",
                "--disable-workspace-trust",
                "--disable-telemetry",
            ]);
            command.args(["--disable-update-check", "--bind-addr", &format!("127.0.0.1:{port}")]);
            command.arg("--user-data-dir").arg(fixture.path(SETTINGS));
            command.arg("--extensions-dir").arg(&self.extensions).arg(fixture.project());
            command
        });
        let folder = fixture.project();
        let mut page =
            Page::open(&self.browser, fixture, &server.url(&format!("/?folder={}", folder.display())));
        page.shows(".monaco-workbench", "main.rs");
        // The icon appears when the extension has started.
        page.clicks_until(".activitybar [aria-label^='ACP Client']", AGENTS);
        // Close the list of agents above the chat, to make room.
        page.clicks(AGENTS);
        run(&mut page, "ACP: Connect to Agent");
        page.shows(CHOICE, "Scripted");
        page.types("Scripted");
        page.presses("Enter");
        (server, page)
    }

    /// Starts VS Code with the proxy, and waits until the session is open.
    fn ready(&self, fixture: &Fixture) -> (Server, Page) {
        let (server, mut page) = self.start(fixture, &fixture.proxy());
        page.clicks(INPUT);
        fixture.wait_for_message("available_commands_update");
        (server, page)
    }
}

/// Runs a command of the palette.
fn run(page: &mut Page, command: &str) {
    page.presses("F1");
    page.shows(CHOICE, "Results");
    page.types(command);
    page.shows(CHOICE, &format!("Results\n{command}"));
    page.presses("Enter");
}

/// Sends a message.
fn send(page: &mut Page, text: &str) {
    page.shows("#sendStopBtn", "Send");
    page.clicks(INPUT);
    page.types(text);
    // Close the menu, because Enter would complete the command.
    page.presses("Escape");
    page.presses("Enter");
}

fn a_skill_is_activated_by_the_model(code: &Code) {
    let fixture = Fixture::new();
    let (_server, mut page) = code.ready(&fixture);
    send(&mut page, "review it");
    page.compare(MESSAGES, "vscode-model");
}

fn a_skill_is_activated_by_a_command(code: &Code) {
    let fixture = Fixture::new();
    let (_server, mut page) = code.ready(&fixture);
    page.types("/");
    page.compare(MENU, "vscode-menu");
    page.presses("Backspace");
    send(&mut page, "/code-review look at main.rs");
    page.compare(MESSAGES, "vscode-command");
    send(&mut page, "/skills");
    page.compare(MESSAGES, "vscode-skills");
}

fn permission_is_granted_or_refused(code: &Code) {
    let fixture = Fixture::new();
    let (_server, mut page) = code.ready(&fixture);
    send(&mut page, "delete build");
    page.shows(CHOICE, "Reject");
    page.compare(CHOICE, "vscode-asked");
    page.presses("Enter");
    page.shows(MESSAGES, "It is deleted.");
    send(&mut page, "delete target");
    page.shows(CHOICE, "Reject");
    page.presses("ArrowDown");
    page.presses("Enter");
    page.compare(MESSAGES, "vscode-refused");
}

fn a_turn_is_cancelled(code: &Code) {
    let fixture = Fixture::new();
    let (_server, mut page) = code.ready(&fixture);
    send(&mut page, "wait");
    page.shows(MESSAGES, "I wait until somebody stops me.");
    page.clicks("#sendStopBtn.stop");
    fixture.wait_for_message("session/cancel");
    page.shows("#sendStopBtn", "Send");
    page.compare(MESSAGES, "vscode-cancelled");
}

fn a_failed_start_is_shown(code: &Code) {
    let fixture = Fixture::new();
    let (_server, mut page) = code.start(&fixture, &fixture.broken_proxy());
    page.shows(".notifications-toasts", "no such skill directory: ~/skills/no-such-skill");
}
