//! toad, an editor for the terminal.

use std::path::Path;

use libtest_mimic::Trial;

use crate::{
    bench::{Bench, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The prompt at which the user types.
const READY: &str = "How can I help you today?";

type Test = fn(&Path);

pub(crate) fn trials() -> Result<Vec<Trial>, String> {
    on_path("tmux")?;
    let toad = installed("toad/bin/toad")?;
    let tests: [(&str, Test); 6] = [
        ("a_skill_by_the_model", by_the_model),
        ("a_skill_by_command", by_command),
        ("permission", permission),
        ("cancelled", cancelled),
        ("killed", killed),
        ("a_start_that_fails", fails),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let toad = toad.clone();
        trial(&format!("toad::{name}"), move || test(&toad))
    });
    Ok(tests.collect())
}

fn start<'b>(toad: &Path, bench: &'b Bench, agent: &[String]) -> Terminal<'b> {
    let mut command = bench.command(toad);
    let agent = agent.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    command.args(["acp", "--title", "Scripted", &agent]).arg(bench.project());
    Terminal::start(bench, &command)
}

/// Types a prompt and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.shows(READY);
    terminal.types(text);
    terminal.shows(text);
    // The key has no effect until the agent has a session.
    terminal.presses_until(&["Enter"], READY);
}

fn by_the_model(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.proxy());
    send(&terminal, "review it");
    terminal.shows("I loaded the skill");
    terminal.compare("toad-model");
}

fn by_command(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.proxy());
    terminal.shows(READY);
    // The menu has the commands once the session is open.
    send(&terminal, "hello");
    terminal.shows("I have no skill");
    terminal.shows(READY);
    terminal.types("/");
    terminal.shows("/code-review");
    terminal.compare("toad-menu");
    terminal.types("code");
    terminal.shows_no_longer("/compact");
    terminal.presses(&["Enter"]);
    // The menu is closed.
    terminal.shows("⏎ Send");
    terminal.types("look at @");
    // These are the files. The typed text now matches one of them.
    terminal.shows("tree view");
    terminal.types("mai");
    terminal.shows("   mai");
    terminal.presses(&["Enter"]);
    terminal.shows("look at @main.rs");
    terminal.shows("⏎ Send");
    terminal.presses(&["Enter"]);
    terminal.shows("I follow the skill");
    terminal.compare("toad-command");
}

/// The key has to be pressed twice.
fn cancelled(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.proxy());
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.presses(&["Escape"]);
    terminal.shows("again to cancel");
    terminal.presses(&["Escape"]);
    bench.hears("session/cancel");
    terminal.compare("toad-cancelled");
    send(&terminal, "hello");
    terminal.shows("I have no skill");
}

fn permission(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.proxy());
    send(&terminal, "delete build");
    terminal.shows("Reject");
    terminal.compare("toad-asked");
    terminal.types("a");
    terminal.shows("It is deleted.");
    send(&terminal, "delete target");
    terminal.shows("Reject");
    terminal.types("r");
    terminal.shows("It is still there.");
    terminal.compare("toad-refused");
}

fn killed(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.proxy());
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    bench.is_left();
}

fn fails(toad: &Path) {
    let bench = Bench::new();
    let terminal = start(toad, &bench, &bench.broken_proxy());
    terminal.shows("The agent failed to start.");
    // The reason is shown above the advice.
    terminal.compare("toad-fails");
}
