//! Tests in toad, an agent client for the terminal.

use std::path::Path;

use anyhow::Result;
use libtest_mimic::Trial;

use crate::{
    fixture::{Fixture, installed, on_path},
    terminal::Terminal,
    trial,
};

/// The placeholder of the input line.
const READY: &str = "How can I help you today?";

type Test = fn(&Path);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    on_path("tmux")?;
    let toad = installed("toad/bin/toad")?;
    let tests: [(&str, Test); 6] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("permission_is_granted_or_refused", permission_is_granted_or_refused),
        ("a_turn_is_cancelled", a_turn_is_cancelled),
        ("a_killed_editor_leaves_no_process", a_killed_editor_leaves_no_process),
        ("a_failed_start_is_shown", a_failed_start_is_shown),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let toad = toad.clone();
        trial(&format!("toad::{name}"), move || test(&toad))
    });
    Ok(tests.collect())
}

fn start<'b>(toad: &Path, fixture: &'b Fixture, agent: &[String]) -> Terminal<'b> {
    let mut command = fixture.command(toad);
    let agent = agent.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    command.args(["acp", "--title", "Scripted", &agent]).arg(fixture.project());
    Terminal::start(fixture, &command)
}

/// Types a prompt and sends it.
fn send(terminal: &Terminal<'_>, text: &str) {
    terminal.shows(READY);
    terminal.types(text);
    terminal.shows(text);
    // We may have to press the key more than once, because it doesn't do anything until the session is open. A question that
    // replaces the input line must not be answered.
    terminal.presses_while(&["Enter"], &format!("▊ ❯ {text}"));
}

fn a_skill_is_activated_by_the_model(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.proxy());
    send(&terminal, "review it");
    terminal.shows("I loaded the skill");
    terminal.compare("toad-model");
}

fn a_skill_is_activated_by_a_command(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.proxy());
    terminal.shows(READY);
    // We need to open a session first, since the menu is empty before that.
    send(&terminal, "hello");
    terminal.shows("I have no skill");
    terminal.shows(READY);
    terminal.types("/");
    terminal.shows("/code-review");
    terminal.compare("toad-menu");
    terminal.types("code");
    terminal.shows_no_longer("/compact");
    terminal.presses(&["Enter"]);
    // Wait for the menu to be closed.
    terminal.shows("⏎ Send");
    terminal.types("look at @");
    // Wait for the list of files, and then type the start of the name to select one.
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

/// Cancelling needs two presses of the key.
fn a_turn_is_cancelled(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.proxy());
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.presses(&["Escape"]);
    terminal.shows("again to cancel");
    terminal.presses(&["Escape"]);
    fixture.wait_for_message("session/cancel");
    terminal.compare("toad-cancelled");
    send(&terminal, "hello");
    terminal.shows("I have no skill");
}

fn permission_is_granted_or_refused(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.proxy());
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

fn a_killed_editor_leaves_no_process(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.proxy());
    send(&terminal, "wait");
    terminal.shows("I wait until somebody stops me.");
    terminal.kill();
    fixture.wait_until_stopped();
}

fn a_failed_start_is_shown(toad: &Path) {
    let fixture = Fixture::new();
    let terminal = start(toad, &fixture, &fixture.broken_proxy());
    terminal.shows("The agent failed to start.");
    // The reason is above what toad suggests. toad breaks it into two lines.
    terminal.scrolls_up_to("error: no such");
    terminal.shows("skill directory: ~/skills/no-such-skill");
}
