//! Tests in Neovim with avante.

use std::path::{Path, PathBuf};

use anyhow::Result;
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    fixture::{Fixture, compare, installed, on_path},
    terminal::Terminal,
    trial,
};

type Test = fn(&Avante);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    on_path("tmux")?;
    for plugin in ["avante.nvim", "plenary.nvim", "nui.nvim", "nvim-cmp"] {
        installed(&format!("plugins/{plugin}"))?;
    }
    let avante = Avante { program: installed("neovim/bin/nvim")?, plugins: installed("plugins")? };
    let tests: [(&str, Test); 3] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("a_killed_editor_leaves_no_process", a_killed_editor_leaves_no_process),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let avante = avante.clone();
        trial(&format!("avante::{name}"), move || test(&avante))
    });
    Ok(tests.collect())
}

#[derive(Clone)]
struct Avante {
    program: PathBuf,
    plugins: PathBuf,
}

impl Avante {
    /// Starts Neovim with the proxy, a file and a chat, and waits until the session is open.
    fn ready<'b>(&self, fixture: &'b Fixture) -> Terminal<'b> {
        let mut command = fixture.command(&self.program);
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/avante.lua");
        command.arg("-u").arg(init).arg("main.rs");
        command.env("PLUGINS", &self.plugins).env("AGENT", json!(fixture.proxy()).to_string());
        let terminal = Terminal::start(fixture, &command);
        terminal.shows("fn main() {");
        terminal.types(":AvanteChat\n");
        terminal.shows("Chat with");
        fixture.wait_for_message("available_commands_update");
        terminal
    }
}

/// Writes a message and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.presses(&["F2"]);
    terminal.types(text);
    terminal.shows(text);
    // This submits the message in insert mode. avante may start that mode again at any time, so don't depend on another one.
    terminal.presses(&["C-s"]);
}

/// Compares the conversation, without the time. The mode in the input below it can change at any time.
fn compare_screen(terminal: &Terminal<'_>, name: &str) {
    const TIME: &str = "Datetime: ";
    compare(name, || {
        let screen = terminal.screen();
        let lines = screen.lines().take_while(|line| !line.contains("Chat with"));
        let lines = lines.map(|line| line.split_once(TIME).map_or(line, |(before, _)| before));
        lines.flat_map(|line| [line, "\n"]).collect()
    });
}

fn a_skill_is_activated_by_the_model(avante: &Avante) {
    let fixture = Fixture::new();
    let terminal = avante.ready(&fixture);
    send(&terminal, "review it");
    terminal.shows("I loaded the skill");
    compare_screen(&terminal, "avante-model");
}

/// avante sends a command only if it knows it, and it learns the commands with nvim-cmp.
fn a_skill_is_activated_by_a_command(avante: &Avante) {
    let fixture = Fixture::new();
    let terminal = avante.ready(&fixture);
    send(&terminal, "hello");
    terminal.shows("I have no skill");
    terminal.presses(&["F2"]);
    terminal.types("/co");
    terminal.presses_until(&["C-n"], "/code-review");
    terminal.presses(&["C-e", "C-u"]);
    send(&terminal, "/code-review look at it");
    terminal.shows("I follow the skill");
    compare_screen(&terminal, "avante-command");
}

fn a_killed_editor_leaves_no_process(avante: &Avante) {
    let fixture = Fixture::new();
    let terminal = avante.ready(&fixture);
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    fixture.wait_until_stopped();
}
