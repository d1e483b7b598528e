//! Tests in Emacs with agent-shell.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    fixture::{Fixture, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The oldest version of Emacs that agent-shell supports.
const OLDEST: [u32; 2] = [29, 1];
/// The prompt of the input line.
const READY: &str = "Claude Code>";

type Test = fn(&Emacs);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    on_path("tmux")?;
    let program = installed("emacs/emacs").or_else(|_| on_path("emacs"))?;
    let version = version(&program)?;
    if version < OLDEST {
        bail!("{} has version {}.{}, but agent-shell needs 29.1", program.display(), version[0], version[1]);
    }
    let plugins = installed("plugins/agent-shell")?;
    let emacs = Emacs { program, plugins: plugins.parent().expect("a directory").to_owned() };
    let tests: [(&str, Test); 6] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("permission_is_granted_or_refused", permission_is_granted_or_refused),
        ("a_turn_is_cancelled", a_turn_is_cancelled),
        ("a_killed_editor_leaves_no_process", a_killed_editor_leaves_no_process),
        ("a_failed_start_is_shown", a_failed_start_is_shown),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let emacs = emacs.clone();
        trial(&format!("emacs::{name}"), move || test(&emacs))
    });
    Ok(tests.collect())
}

fn version(program: &Path) -> Result<[u32; 2]> {
    let output = Command::new(program).args(["--batch", "--eval"]).arg("(princ emacs-version)").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = printed.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok([major, minor]),
        _ => bail!("{} printed no version: {printed}", program.display()),
    }
}

#[derive(Clone)]
struct Emacs {
    program: PathBuf,
    plugins: PathBuf,
}

impl Emacs {
    /// Starts Emacs with a session of this agent.
    fn start<'b>(&self, fixture: &'b Fixture, agent: &[String]) -> Terminal<'b> {
        let mut command = fixture.command(&self.program);
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/emacs.el");
        command.args(["-nw", "-Q", "-l"]).arg(init);
        command.env("PLUGINS", &self.plugins).env("AGENT", json!(agent).to_string());
        Terminal::start(fixture, &command)
    }

    /// Starts Emacs with the proxy, and waits until the commands are available.
    fn ready<'b>(&self, fixture: &'b Fixture) -> Terminal<'b> {
        let terminal = self.start(fixture, &fixture.proxy());
        terminal.shows("Available /commands");
        terminal.shows(READY);
        terminal
    }
}

/// Waits for the end of the last turn, then types a prompt and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.wait_until("the input line is not ready", |screen| {
        // Only look at the lines above the mode line.
        let lines = screen.lines().take_while(|line| !line.starts_with("-UUU:"));
        lines.map(str::trim).filter(|line| !line.is_empty()).last() == Some(READY)
    });
    enter(terminal, text);
}

fn enter(terminal: &Terminal<'_>, text: &str) {
    terminal.types(text);
    terminal.shows(text);
    terminal.presses(&["Enter"]);
}

fn a_skill_is_activated_by_the_model(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.ready(&fixture);
    send(&terminal, "review it");
    terminal.shows("I loaded the skill");
    terminal.compare("emacs-model");
}

fn a_skill_is_activated_by_a_command(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.ready(&fixture);
    // The list may not open while agent-shell is still drawing what it received, so we may have to type it again.
    terminal.types_until("/", "4 possible completions");
    terminal.compare("emacs-menu");
    enter(&terminal, "code-review look at @main.rs");
    terminal.shows("I follow the skill");
    terminal.compare("emacs-command");
    send(&terminal, "/skills");
    terminal.shows("turn one off and on");
    terminal.compare("emacs-skills");
}

fn permission_is_granted_or_refused(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.ready(&fixture);
    send(&terminal, "delete build");
    terminal.shows("Reject (");
    terminal.compare("emacs-asked");
    terminal.types("y");
    terminal.shows("It is deleted.");
    send(&terminal, "delete target");
    terminal.shows("Reject (");
    // Move to the next option.
    terminal.types("n");
    terminal.shows("to Reject");
    terminal.presses(&["Enter"]);
    terminal.shows("It is still there.");
    terminal.compare("emacs-refused");
}

fn a_turn_is_cancelled(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.ready(&fixture);
    send(&terminal, "/code-review look");
    terminal.shows("I follow the skill");
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.presses(&["C-c", "C-c"]);
    terminal.shows("Interrupt? (y or n)");
    terminal.types("y");
    fixture.wait_for_message("session/cancel");
    terminal.compare("emacs-cancelled");
    terminal.presses(&["C-x", "C-c"]);
    fixture.wait_until_stopped();
}

fn a_killed_editor_leaves_no_process(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.ready(&fixture);
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    fixture.wait_until_stopped();
}

fn a_failed_start_is_shown(emacs: &Emacs) {
    let fixture = Fixture::new();
    let terminal = emacs.start(&fixture, &fixture.broken_proxy());
    terminal.shows("no such skill directory");
    terminal.compare("emacs-fails");
}
