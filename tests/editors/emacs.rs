//! Emacs with agent-shell.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use libtest_mimic::Trial;
use serde_json::json;

use crate::{
    bench::{Bench, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The minimum version of Emacs for agent-shell.
const OLDEST: [u32; 2] = [29, 1];
/// The prompt at which the user types.
const READY: &str = "Claude Code>";

type Test = fn(&Emacs);

pub(crate) fn trials() -> Result<Vec<Trial>, String> {
    on_path("tmux")?;
    let program = installed("emacs/emacs").or_else(|_| on_path("emacs"))?;
    let version = version(&program)?;
    if version < OLDEST {
        return Err(format!(
            "{} is of version {}.{}, agent-shell needs 29.1",
            program.display(),
            version[0],
            version[1]
        ));
    }
    let plugins = installed("plugins/agent-shell")?;
    let emacs = Emacs { program, plugins: plugins.parent().expect("a directory").to_owned() };
    let tests: [(&str, Test); 6] = [
        ("a_skill_by_the_model", by_the_model),
        ("a_skill_by_command", by_command),
        ("permission", permission),
        ("cancelled", cancelled),
        ("killed", killed),
        ("a_start_that_fails", fails),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let emacs = emacs.clone();
        trial(&format!("emacs::{name}"), move || test(&emacs))
    });
    Ok(tests.collect())
}

fn version(program: &Path) -> Result<[u32; 2], String> {
    let unknown = |_| format!("{} does not tell its version", program.display());
    let output = Command::new(program).args(["--batch", "--eval"]).arg("(princ emacs-version)").output();
    let said = output.map_err(|error| unknown(error.to_string()))?.stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let mut numbers = said.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok([major, minor]),
        _ => Err(unknown(said)),
    }
}

#[derive(Clone)]
struct Emacs {
    program: PathBuf,
    plugins: PathBuf,
}

impl Emacs {
    /// Starts Emacs with a session of this agent.
    fn start<'b>(&self, bench: &'b Bench, agent: &[String]) -> Terminal<'b> {
        let mut command = bench.command(&self.program);
        let init = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/emacs.el");
        command.args(["-nw", "-Q", "-l"]).arg(init);
        command.env("PLUGINS", &self.plugins).env("AGENT", json!(agent).to_string());
        Terminal::start(bench, &command)
    }

    /// Starts Emacs with the proxy, and waits until its commands are available.
    fn ready<'b>(&self, bench: &'b Bench) -> Terminal<'b> {
        let terminal = self.start(bench, &bench.proxy());
        terminal.shows("Available /commands");
        terminal.shows(READY);
        terminal
    }
}

/// Types a prompt and sends it, once the previous one is answered.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.is("there is no prompt", |screen| {
        // The prompt is above the mode line.
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

fn by_the_model(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.ready(&bench);
    send(&terminal, "review it");
    terminal.shows("I loaded the skill");
    terminal.compare("emacs-model");
}

fn by_command(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.ready(&bench);
    terminal.types("/");
    terminal.shows("4 possible completions");
    terminal.compare("emacs-menu");
    enter(&terminal, "code-review look at @main.rs");
    terminal.shows("I follow the skill");
    terminal.compare("emacs-command");
    send(&terminal, "/skills");
    terminal.shows("turn one off and on");
    terminal.compare("emacs-skills");
}

fn permission(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.ready(&bench);
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

fn cancelled(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.ready(&bench);
    send(&terminal, "/code-review look");
    terminal.shows("I follow the skill");
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.presses(&["C-c", "C-c"]);
    terminal.shows("Interrupt? (y or n)");
    terminal.types("y");
    bench.hears("session/cancel");
    terminal.compare("emacs-cancelled");
    terminal.presses(&["C-x", "C-c"]);
    bench.is_left();
}

fn killed(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.ready(&bench);
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    bench.is_left();
}

fn fails(emacs: &Emacs) {
    let bench = Bench::new();
    let terminal = emacs.start(&bench, &bench.broken_proxy());
    terminal.shows("there is no such directory");
    terminal.compare("emacs-fails");
}
