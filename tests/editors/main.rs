//! Tests the proxy in real editors with a scripted agent, without a network. The editor's screen is compared with a recorded
//! one in `screens`.
//!
//! | file | owns |
//! |---|---|
//! | `agent` | the scripted agent, for which this binary is started again |
//! | `fixture` | a home directory for each test with a skill, the proxy's command line, and the paths of editors |
//! | `terminal` | a terminal that is controlled with keys and whose screen can be read |
//! | `browser`, `browser.mjs` | a web application and a page in a browser, which can be controlled and read as well |
//! | `acpx`, `avante`, `emacs`, `jupyter`, `neovim`, `toad`, `vscode` | the editors |
//!
//! The script `install` installs the editors in the directory `$EDITORS_HOME`. If the variable is not set or an editor is
//! missing, its tests are skipped with a message.
//!
//! ```sh
//! export EDITORS_HOME=~/.cache/acp-skills-editors
//! tests/editors/install
//! cargo test -p acp-skills-proxy --test editors
//! ```
//!
//! `UPDATE_EXPECT=1` overwrites the recorded screens. Review the changes before you commit them.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the scripted agent writes to its own stdout, and skipped tests are reported"
)]

mod acpx;
mod agent;
mod avante;
#[cfg(unix)]
mod browser;
mod emacs;
mod fixture;
#[cfg(unix)]
mod jupyter;
mod neovim;
mod terminal;
mod toad;
#[cfg(unix)]
mod vscode;

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // If this argument is set, we were started by the editor or the proxy, and should run as the agent.
    let mut arguments = env::args().skip(1);
    if arguments.next().is_some_and(|first| first == agent::ARGUMENT) {
        return agent::run(&arguments.next().unwrap_or_default());
    }
    let mut trials = Vec::new();
    let editors = [
        ("acpx", acpx::trials()),
        ("avante", avante::trials()),
        ("emacs", emacs::trials()),
        #[cfg(unix)]
        ("jupyter", jupyter::trials()),
        ("neovim", neovim::trials()),
        ("toad", toad::trials()),
        #[cfg(unix)]
        ("vscode", vscode::trials()),
    ];
    for (editor, tests) in editors {
        match tests {
            Ok(tests) => trials.extend(tests),
            Err(missing) => eprintln!("SKIPPED: {editor}: {missing}"),
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Returns a test that fails if the function panics.
fn trial(name: &str, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
