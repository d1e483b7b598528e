//! Runs the binary as a component of a chain under the SDK's conductor.

use std::{
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use agent_client_protocol::{ByteStreams, Conductor, ConnectTo, Error, Proxy};
use agent_client_protocol_conductor::{ConductorImpl, ProxiesAndAgent};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::fixture::{DEADLINE, Log, agent, with_client, within};

/// The binary with one skill, as a component.
struct Program {
    command: Command,
    /// The process, so that a test can kill it.
    child: Arc<Mutex<Option<Child>>>,
}

impl Program {
    fn new(directory: &TempDir, name: &str) -> Self {
        let skill = directory.path().join(name);
        std::fs::create_dir(&skill).expect("a directory");
        let text = format!("---\nname: {name}\ndescription: Knows {name}.\n---\n# The body of {name}\n");
        std::fs::write(skill.join("SKILL.md"), text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        // Don't use the directories of the user.
        command.env("XDG_STATE_HOME", directory.path().join("state"));
        command.args(["--mcp-wait", "0", "--skill"]).arg(skill);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        Self { command, child: Arc::default() }
    }
}

impl ConnectTo<Conductor> for Program {
    async fn connect_to(mut self, conductor: impl ConnectTo<Proxy>) -> Result<(), Error> {
        let mut child = self.command.spawn().map_err(Error::into_internal_error)?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("pipes");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let streams = ByteStreams::new(stdin.compat_write(), stdout.compat());
        ConnectTo::<Conductor>::connect_to(streams, conductor).await
    }
}

#[tokio::test]
async fn two_programs_in_a_chain() {
    let log = Log::default();
    let directory = TempDir::new().expect("a directory");
    let chain = ProxiesAndAgent::new(agent(log.clone()))
        .proxy(Program::new(&directory, "alpha"))
        .proxy(Program::new(&directory, "beta"));
    within(with_client(ConductorImpl::new_agent("conductor", chain), async |mut client| {
        assert_eq!(client.turn("hello").await?.user, "hello");
        for (server, name) in [("acp-skills", "alpha"), ("acp-skills-2", "beta")] {
            let call = format!(r#"call {server} activate_skill {{"name":"{name}"}}"#);
            let turn = client.turn(&call).await?;
            assert!(turn.agent.contains(&format!("# The body of {name}")), "{turn:?}");
        }
        client.shows(&["alpha", "beta"]).await;
        Ok(())
    }))
    .await;
    let first = log.prompt(0);
    assert!(first[0].contains("Knows beta.") && first[1].contains("Knows alpha."), "{first:?}");
    assert_eq!(first[2], "hello");
}

#[tokio::test]
async fn killing_the_program_fails_the_pending_prompt() {
    let directory = TempDir::new().expect("a directory");
    let program = Program::new(&directory, "alpha");
    let child = Arc::clone(&program.child);
    let chain = ProxiesAndAgent::new(agent(Log::default())).proxy(program);
    let end = with_client(ConductorImpl::new_agent("conductor", chain), async |client| {
        client.turn("hello").await?;
        let parked = client.prompt("park");
        let killed = child.lock().unwrap_or_else(PoisonError::into_inner).take();
        killed.expect("the program runs").kill().await.map_err(Error::into_internal_error)?;
        parked.block_task().await.map(|_| ())
    });
    let end = tokio::time::timeout(DEADLINE, end).await;
    end.expect("the client gets an answer").expect_err("the answer is an error");
}
