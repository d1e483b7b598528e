//! No command: the proxy itself, in front of an agent or under a conductor.

use std::{ffi::OsString, io, path::Path, process::ExitCode};

use super::{record, skills};
use crate::{
    args::ProxyArgs,
    error::{self, UsageError},
    log, refusal, runtime, stdio,
};
use acp_skills::{
    activity,
    config::{Config, Settings},
    events::EventFile,
};
use acp_skills_runtime::{
    activation_store::ActivationStore,
    agent,
    agent_store::AgentStore,
    host::Host,
    relay::{
        chain::{self, ChainEnd},
        standalone::Standalone,
    },
    switch_store::SwitchStore,
};

/// Runs the agent behind the proxy; on a terminal, alone and with the words of `login`. The exit code is the agent's.
/// Without an agent, runs as a proxy under a conductor.
///
/// A start that fails is told on stderr, in the file of `--log-file`, and to a client that speaks ACP.
pub(crate) fn run(args: ProxyArgs, login: Vec<OsString>) -> ExitCode {
    // Before they are taken.
    let client = stdio::spare();
    let mut messages = Config::default();
    args.log.clone().override_in(&mut messages);
    let started = args.config().and_then(|config| {
        (messages.log, messages.log_file) = (config.log, config.log_file.clone());
        start(config, login)
    });
    let error = match started {
        Ok(code) => return code,
        Err(error) => error,
    };
    let code = error::report(&error);
    let (message, hint) = (error::message(&error), error::hint(&error));
    log::failure(&messages, &message, hint.as_deref());
    if let Some(client) = client.filter(|_| !error.is::<NobodyToTell>()) {
        refusal::answer(client.reader, client.writer, &message, hint.as_deref());
    }
    code
}

/// What went wrong is an answer to what the client said, which has its answer already.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NobodyToTell(#[source] UsageError);

fn start(config: Config, login: Vec<OsString>) -> anyhow::Result<ExitCode> {
    log::start(&config)?;
    let (events, state, exit_wait) = (config.events.clone(), config.state.clone(), config.exit_wait);
    let mut settings = Settings::resolve(config)?;
    // Without an agent the proxy is one of several under a conductor; nobody starts a conductor's components by hand.
    if settings.agent.is_empty() && stdio::is_terminal() {
        return Err(no_agent().into());
    }
    // A client runs the command on a terminal for one thing: to let its user log in to the agent.
    if stdio::is_terminal() {
        settings.agent.extend(login);
        std::process::exit(agent::run_in_terminal(&settings.agent)?);
    }
    let program = std::env::current_exe()?;
    if !settings.agent.is_empty() {
        // First, because it takes longer than all else until the agent starts.
        settings.processes.prepare_agent(&program);
    }
    let library = settings.skills.load()?;
    let (events, memory) = keep(events.as_deref(), state.as_deref())?;
    let switches = state
        .as_deref()
        .map(SwitchStore::open)
        .transpose()
        .map_err(|error| cannot_keep(state.as_deref(), error))?;
    let agents = state
        .as_deref()
        .map(AgentStore::open)
        .transpose()
        .map_err(|error| cannot_keep(state.as_deref(), error))?;
    if library.is_empty() && !settings.agent.is_empty() {
        tracing::warn!("no skills are named, so the agent gets none: {}", skills::WHERE);
    }
    let client = stdio::take()?;
    let runtime = runtime::new()?;
    let code: anyhow::Result<i32> = runtime.block_on(async {
        let host = Host::new(library.into_library())
            .toolbox(settings.toolbox)
            .bridge(program)
            .sandbox(settings.sandbox)
            .processes(settings.processes.clone())
            .observer(events.as_ref().map(activity::record_to))
            .activation_store(memory.clone())
            .switch_store(switches)
            .agent_store(agents.clone());
        let (command, policy) = (settings.agent, settings.policy);
        if command.is_empty() {
            return match chain::run(policy, host, client).await? {
                ChainEnd::Closed => Ok(0),
                ChainEnd::NoConductor => Err(anyhow::Error::new(NobodyToTell(no_agent()))),
            };
        }
        Ok(Standalone::new(command, policy, host, client).exit_wait(exit_wait).run().await?)
    });
    // Before we go: what is kept is to be whole.
    drop(events);
    if let Some(memory) = memory {
        memory.finish();
    }
    if let Some(agents) = agents {
        agents.finish();
    }
    // A thread may still be blocked in a read or a write that nobody will end.
    runtime.shutdown_background();
    std::process::exit(code?);
}

fn no_agent() -> UsageError {
    UsageError::new("there is no agent to run").hint(
        "the agent command goes after `--`, for example `acp-skills-proxy --skill DIR -- claude-agent-acp`, or into \
         `agent` of --config FILE; only an ACP conductor starts the proxy without one",
    )
}

fn cannot_keep(dir: Option<&Path>, error: io::Error) -> UsageError {
    let dir = dir.unwrap_or(Path::new("."));
    UsageError::failed(format_args!("cannot keep state in {}", dir.display()), error)
}

/// Opens what the record and the memory are kept in.
fn keep(
    events: Option<&Path>,
    state: Option<&Path>,
) -> Result<(Option<EventFile>, Option<ActivationStore>), UsageError> {
    let events = events.map(record::open);
    let memory = state.map(|dir| ActivationStore::open(dir).map_err(|error| cannot_keep(Some(dir), error)));
    Ok((events.transpose()?, memory.transpose()?))
}
