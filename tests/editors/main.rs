//! The proxy in real editors, with a scripted agent and without a network. Tests compare the screen with the expected one
//! in `screens`.
//!
//! | file | contents |
//! |---|---|
//! | `agent` | the scripted agent: this program again |
//! | `bench` | a directory for each test, with a skill, the proxy's command and the paths of the editors |
//! | `terminal` | a terminal that is controlled by keys, and whose screen can be read |
//! | `acpx`, `emacs`, `neovim`, `toad` | the editors |
//!
//! The editors are expected in the directory `$EDITORS_HOME`, where `install` puts them. Without it, or if an editor is
//! missing, its tests are skipped with a message.
//!
//! ```sh
//! export EDITORS_HOME=~/.cache/acp-skills-editors
//! tests/editors/install
//! cargo test -p acp-skills-proxy --test editors
//! ```
//!
//! `UPDATE_EXPECT=1` rewrites the screens, which then have to be reviewed.

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
    // An editor or the proxy started this binary as its agent.
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

/// Returns a test that fails by panicking.
fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
