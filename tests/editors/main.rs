//! The proxy in real editors, with a scripted agent, and without a network: what is on the screen is compared with what was
//! there when it was right (`screens`).
//!
//! | file | owns |
//! |---|---|
//! | `agent` | the scripted agent: this program again |
//! | `bench` | a directory of its own for each test, with a skill, the proxy's command and where the editors are |
//! | `terminal` | a terminal that is driven by keys, whose screen can be read |
//! | `acpx`, `emacs`, `neovim`, `toad` | the editors |
//!
//! The editors are looked for in the directory `$EDITORS_HOME`, where `install` puts them. Without it, or where one is not
//! there, its tests say that they are skipped.
//!
//! ```sh
//! export EDITORS_HOME=~/.cache/acp-skills-editors
//! tests/editors/install
//! cargo test -p acp-skills-proxy --test editors
//! ```
//!
//! `UPDATE_EXPECT=1` writes the screens anew, which are then to be looked at.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the scripted agent writes to its own stdout, and who runs the tests is told what is skipped"
)]

mod acpx;
mod agent;
mod bench;
mod emacs;
mod neovim;
mod terminal;
mod toad;

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // Started as an agent and not by a person.
    let mut arguments = env::args().skip(1);
    if arguments.next().is_some_and(|first| first == agent::ARGUMENT) {
        return agent::run(&arguments.next().unwrap_or_default());
    }
    let mut trials = Vec::new();
    let editors = [
        ("acpx", acpx::trials()),
        ("emacs", emacs::trials()),
        ("neovim", neovim::trials()),
        ("toad", toad::trials()),
    ];
    for (editor, tests) in editors {
        match tests {
            Ok(tests) => trials.extend(tests),
            Err(missing) => eprintln!("SKIPPED: {editor}: {missing}"),
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test that fails by panicking.
fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
