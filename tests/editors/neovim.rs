//! Neovim with CodeCompanion.

use std::{
    fs,
    path::{Path, PathBuf},
};

use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    bench::{Bench, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The file with the number of commands in the session.
const COMMANDS: &str = ".commands";

type Test = fn(&Neovim);

pub(crate) fn trials() -> Result<Vec<Trial>, String> {
    on_path("tmux")?;
    let neovim = Neovim { program: installed("neovim/bin/nvim")?, plugins: installed("plugins")? };
    let tests: [(&str, Test); 6] = [
        ("a_skill_by_the_model", by_the_model),
        ("a_skill_by_command", by_command),
        ("permission", permission),
        ("cancelled_and_resumed", cancelled_and_resumed),
        ("killed", killed),
        ("a_start_that_fails", fails),
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
    /// Starts Neovim with a file, and a chat next to it.
    fn chat<'b>(&self, bench: &'b Bench, agent: &[String]) -> Terminal<'b> {
        let mut command = bench.command(&self.program);
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/neovim.lua");
        command.arg("-u").arg(init).arg("main.rs");
        command.env("PLUGINS", &self.plugins).env("AGENT", json!(agent).to_string());
        let terminal = Terminal::start(bench, &command);
        terminal.shows("fn main() {");
        terminal.types(":CodeCompanionChat\n");
        terminal.shows("Welcome to CodeCompanion");
        terminal
    }

    /// Starts a chat and waits for its commands. Only then does Neovim accept a backslash as the start of a command.
    fn ready<'b>(&self, bench: &'b Bench) -> Terminal<'b> {
        let terminal = self.chat(bench, &bench.proxy());
        bench.has(COMMANDS, "4 commands");
        terminal
    }
}

/// Appends a message to the chat and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.presses(&["G", "o"]);
    terminal.types(text);
    terminal.presses(&["Escape"]);
    // An escape that is directly followed by a key counts as that key with Alt.
    terminal.shows(text);
    terminal.presses(&["Enter"]);
}

fn by_the_model(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.ready(&bench);
    send(&terminal, "review it");
    terminal.compare("neovim-model");
}

fn by_command(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.ready(&bench);
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

fn permission(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.ready(&bench);
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

fn cancelled_and_resumed(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.ready(&bench);
    send(&terminal, "\\code-review look");
    terminal.shows("I follow the skill");
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.types("q");
    terminal.compare("neovim-cancelled");
    bench.hears("session/cancel");
    terminal.types(":qa!\n");
    bench.is_left();
    drop(terminal);
    fs::remove_file(bench.path(COMMANDS)).expect("it was there");
    // The conversation is shown again, without the text that the proxy added.
    assert!(bench.heard().contains("<skill_content name=\\\"code-review\\\">"));
    let terminal = neovim.ready(&bench);
    // The warning about a missing parser has several lines, and would wait for a key.
    terminal.types(":set messagesopt=wait:0,history:500\n");
    terminal.presses(&["G", "o"]);
    terminal.types("/resume");
    terminal.presses(&["C-x", "C-o"]);
    terminal.shows("The only match");
    terminal.presses(&["C-y"]);
    terminal.shows("The session-1");
    terminal.types("1\n");
    terminal.shows("I wait until somebody stops me.");
    // These are the commands of the skills. The agent sends its own commands only for a new session.
    bench.has(COMMANDS, "2 commands");
    terminal.compare("neovim-resumed");
    terminal.presses(&["Escape"]);
    send(&terminal, "\\code-review again");
    terminal.shows("“again”");
    terminal.types(":qa!\n");
    bench.is_left();
}

fn killed(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.ready(&bench);
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    bench.is_left();
}

fn fails(neovim: &Neovim) {
    let bench = Bench::new();
    let terminal = neovim.chat(&bench, &bench.broken_proxy());
    send(&terminal, "hello");
    terminal.shows("cannot load the skill in");
    terminal.shows("there is no such directory");
}
