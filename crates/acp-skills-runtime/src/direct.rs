//! [`Direct`]: the MCP server for clients that connect to us directly, without ACP.
//!
//! Each connection of a client is a session. It uses the same queries and effects of the [host](crate::host) as a session of the
//! proxy, so trust, switches, the record, scripts and reloads work in the same way. Without ACP, there are no messages in which the
//! model could be told about skills. So the catalog is a part of the server's instructions or of a tool's description, and changes
//! are announced as changes of the lists of tools, prompts and resources.
//!
//! | file | owns |
//! |---|---|
//! | `connection` | the MCP handler of one connection |
//! | `sessions` | the sessions, and their skills after a change |
//! | `settling` | the rounds in which a session learns its directories |
//! | `skills` | the skills of a session, and which of them the client gets |
//! | `catalog` | the texts with the catalog |
//! | `own_skills` | the skills that a client loads itself |
//! | `roots` | the directories that a client offers as roots |
//! | `forms` | forms that a client shows to the user |
//! | `permission` | calls of MCP servers behind skills that the user has to allow |
//! | `trust` | asking the user about skills of a project |
//! | `stdio` | the connection over stdin and stdout |
//! | `http` | the connections over HTTP |

mod catalog;
mod connection;
mod forms;
mod http;
mod own_skills;
mod permission;
mod roots;
mod sessions;
mod settling;
mod skills;
mod stdio;
mod trust;

use std::{io, path::PathBuf, time::Duration};

use acp_skills_intercept::{Input, McpCatalog};
use skills_core::CatalogOptions;
use tokio::{
    sync::mpsc::{Receiver, UnboundedReceiver},
    time::timeout,
};

use self::sessions::Sessions;
use crate::{
    agent::{self, Signal},
    host::Host,
    relay::Ends,
};

pub use self::http::{Listener, Token};

/// The time in which the answers to the last requests are written after the client has closed its output.
const LAST_ANSWERS: Duration = Duration::from_secs(7);

/// The settings of the server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The place of the catalog. `None` selects the place by the client.
    pub catalog: Option<McpCatalog>,
    /// The format of the catalog.
    pub text: CatalogOptions,
    /// True if skills are left out that the client loads itself.
    pub hide_own: bool,
    /// The user's home directory, to find the skills that a client loads itself.
    pub home: Option<PathBuf>,
    /// The directory of the sessions of clients that offer no roots.
    pub cwd: PathBuf,
}

/// The MCP server for clients without ACP, ready to run.
pub struct Direct {
    host: Host,
    options: Options,
}

impl Direct {
    /// Creates a server.
    pub fn new(host: Host, options: Options) -> Self {
        Self { host, options }
    }

    /// Serves the client at the other end of `client` until it disconnects or a signal asks this process to end. Returns the exit code.
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses a thread or a signal handler.
    pub async fn run(self, client: Ends) -> io::Result<i32> {
        let mut signals = agent::signals()?;
        let processes = self.host.own_processes().clone();
        let sessions = self.start(true);
        let mut connection = stdio::Connection::start(client)?;
        let gone = connection.gone.take();
        let disconnected = async {
            let is_gone = match gone {
                Some(gone) => gone.await.is_ok(),
                None => false,
            };
            if !is_gone {
                std::future::pending::<()>().await;
            }
        };
        let served = connection.serve(sessions);
        tokio::pin!(served);
        let code = tokio::select! {
            () = &mut served => 0,
            () = disconnected => {
                // Some messages may not have been read yet. A client that no longer reads our answers would block us forever.
                let _ = timeout(LAST_ANSWERS, served).await;
                0
            }
            signal = next(&mut signals) => signal.exit_code().into(),
        };
        processes.end().await;
        Ok(code)
    }

    /// Serves clients over HTTP until a signal asks this process to end. `started` is called once clients can connect and signals are
    /// received. Returns the exit code. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the operating system refuses a signal handler.
    pub async fn listen(self, listener: Listener, started: impl FnOnce()) -> io::Result<i32> {
        let mut signals = agent::signals()?;
        started();
        let processes = self.host.own_processes().clone();
        let sessions = self.start(false);
        let code = tokio::select! {
            () = listener.serve(sessions) => 0,
            signal = next(&mut signals) => signal.exit_code().into(),
        };
        processes.end().await;
        Ok(code)
    }

    /// Starts the host, and the task that handles its inputs. With `asks_about_trust`, clients may decide about skills of projects.
    fn start(self, asks_about_trust: bool) -> Sessions {
        let (host, inputs) = self.host.start();
        let sessions = Sessions::new(host, self.options, asks_about_trust);
        tokio::spawn(handle(sessions.clone(), inputs));
        sessions
    }
}

/// Waits for a signal. Never returns if none can be received any more.
async fn next(signals: &mut Receiver<Signal>) -> Signal {
    match signals.recv().await {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}

/// Handles what the host reports: calls for the record, and changes of the skills.
async fn handle(sessions: Sessions, mut inputs: UnboundedReceiver<Input>) {
    while let Some(input) = inputs.recv().await {
        match input {
            Input::Recorded(session, kind) => sessions.record(session, kind),
            Input::UserAsked { session, number, question } => {
                permission::asked(&sessions, session, number, question);
            }
            Input::SkillsChanged(took) => {
                let sessions = sessions.clone();
                tokio::spawn(async move {
                    for changed in sessions.refresh(took).await {
                        trust::ask(&sessions, &changed);
                    }
                });
            }
            _ => {}
        }
    }
}
