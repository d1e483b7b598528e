//! Tests in Neovim with CodeCompanion.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Result;
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    fixture::{Fixture, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The file with the number of the session's commands, which `neovim.lua` writes.
const COMMANDS: &str = ".commands";

type Test = fn(&Neovim);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    on_path("tmux")?;
    let neovim = Neovim { program: installed("neovim/bin/nvim")?, plugins: installed("plugins")? };
    let tests: [(&str, Test); 6] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("permission_is_granted_or_refused", permission_is_granted_or_refused),
        ("a_session_is_cancelled_and_resumed", a_session_is_cancelled_and_resumed),
        ("a_killed_editor_leaves_no_process", a_killed_editor_leaves_no_process),
        ("a_failed_start_is_shown", a_failed_start_is_shown),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let neovim = neovim.clone();
        trial(&format!("neovim::{name}"), move || test(&neovim))
    });
    Ok(tests.collect())
}

#[derive(Clone)]
struct Neovim {
    program: PathBuf,
    plugins: PathBuf,
}

impl Neovim {
    /// Starts Neovim with a file and a chat window.
    fn chat<'b>(&self, fixture: &'b Fixture, agent: &[String]) -> Terminal<'b> {
        let mut command = fixture.command(&self.program);
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/neovim.lua");
        command.arg("-u").arg(init).arg("main.rs");
        command.env("PLUGINS", &self.plugins).env("AGENT", json!(agent).to_string());
        let terminal = Terminal::start(fixture, &command);
        terminal.shows("fn main() {");
        terminal.types(":CodeCompanionChat\n");
        terminal.shows("Welcome to CodeCompanion");
        terminal
    }

    /// Starts Neovim with the proxy, and waits until the commands are available. CodeCompanion treats a backslash as the start
    /// of a command only if it knows the command.
    fn ready<'b>(&self, fixture: &'b Fixture) -> Terminal<'b> {
        let terminal = self.chat(fixture, &fixture.proxy());
        fixture.wait_for_text(COMMANDS, "4 commands");
        terminal
    }
}

/// Writes a message at the end of the chat, and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.presses(&["G", "o"]);
    terminal.types(text);
    terminal.presses(&["Escape"]);
    // Wait for the text to be shown, since otherwise the next key would be taken as Alt and that key.
    terminal.shows(text);
    terminal.presses(&["Enter"]);
}

fn a_skill_is_activated_by_the_model(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.ready(&fixture);
    send(&terminal, "review it");
    terminal.compare("neovim-model");
}

fn a_skill_is_activated_by_a_command(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.ready(&fixture);
    terminal.presses(&["G", "o"]);
    terminal.types("\\");
    terminal.presses(&["C-x", "C-o"]);
    terminal.compare("neovim-menu");
    terminal.presses(&["C-e", "Escape"]);
    terminal.types("S");
    terminal.types("\\code-review look at #{buffer}");
    terminal.presses(&["Escape"]);
    terminal.shows("#{buffer}");
    terminal.presses(&["Enter"]);
    terminal.shows("I follow the skill");
    terminal.compare("neovim-command");
    send(&terminal, "\\skills");
    terminal.compare("neovim-skills");
}

fn permission_is_granted_or_refused(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.ready(&fixture);
    send(&terminal, "delete build");
    terminal.shows("Please select an option");
    terminal.compare("neovim-asked");
    terminal.types("g2");
    terminal.shows("It is deleted.");
    send(&terminal, "delete target");
    terminal.shows("Execute: delete target");
    terminal.shows("`g3` - Reject");
    terminal.types("g3");
    terminal.compare("neovim-refused");
}

fn a_session_is_cancelled_and_resumed(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.ready(&fixture);
    send(&terminal, "\\code-review look");
    terminal.shows("I follow the skill");
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.types("q");
    terminal.compare("neovim-cancelled");
    fixture.wait_for_message("session/cancel");
    terminal.types(":qa!\n");
    fixture.wait_until_stopped();
    drop(terminal);
    fs::remove_file(fixture.path(COMMANDS)).expect("the file exists");
    // Now resume the session. We expect to see the history, but without the skill that was added to the prompt.
    assert!(fixture.wire().contains("<skill_content name=\\\"code-review\\\">"));
    let terminal = neovim.ready(&fixture);
    // There will be a message about a missing parser here. It has more than one line, so by default Neovim would wait for a
    // key.
    terminal.types(":set messagesopt=wait:0,history:500\n");
    terminal.presses(&["G", "o"]);
    terminal.types("/resume");
    terminal.presses(&["C-x", "C-o"]);
    terminal.shows("The only match");
    terminal.presses(&["C-y"]);
    terminal.shows("The session-1");
    terminal.types("1\n");
    terminal.shows("I wait until somebody stops me.");
    // Only our commands are expected here, because the agent doesn't send any if the session isn't new.
    fixture.wait_for_text(COMMANDS, "2 commands");
    terminal.compare("neovim-resumed");
    terminal.presses(&["Escape"]);
    send(&terminal, "\\code-review again");
    terminal.shows("“again”");
    terminal.types(":qa!\n");
    fixture.wait_until_stopped();
}

fn a_killed_editor_leaves_no_process(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.ready(&fixture);
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    fixture.wait_until_stopped();
}

fn a_failed_start_is_shown(neovim: &Neovim) {
    let fixture = Fixture::new();
    let terminal = neovim.chat(&fixture, &fixture.broken_proxy());
    send(&terminal, "hello");
    terminal.shows("no such skill directory: ~/skills/no-such-skill");
}
