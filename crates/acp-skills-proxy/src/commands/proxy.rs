//! Runs the proxy itself, if the command line has no command: in front of an agent, or under a conductor. `terminal` has the messages for
//! a person who types the command in a terminal.

mod terminal;

use std::{ffi::OsString, path::Path, process::ExitCode};

use super::{record, skills};
use crate::{
    args::ProxyArgs,
    error::{self, UsageError},
    log, output, refusal, runtime, stdio, system,
};
use acp_skills::{
    config::{Config, Settings, bytes_of_mebibytes},
    events::EventFile,
    intercept::OnDemand,
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
};

/// Returns the command line that tries the same skills in a terminal, with an agent.
pub(crate) type ToTry = fn(&[OsString]) -> String;

/// Runs the agent behind the proxy and returns the agent's exit code. Without an agent, runs as a proxy under a conductor. On a
/// terminal, runs only the agent, with the additional arguments `login`.
///
/// If the start fails, the error is written to stderr and to the file of `--log-file`, and is sent to the client as the response to its
/// first request.
pub(crate) fn run(args: ProxyArgs, login: Vec<OsString>, to_try: ToTry) -> ExitCode {
    // The relay must continue even if the client doesn't read our stderr.
    output::never_block();
    let code = run_to_end(args, login, to_try);
    output::flush();
    code
}

fn run_to_end(args: ProxyArgs, login: Vec<OsString>, to_try: ToTry) -> ExitCode {
    run_for_client(args, stdio::spare(), |config| start(config, login, to_try))
}

/// Reads the configuration and passes it to `start`. If this fails, reports the error to stderr, to the log file and to `client`.
pub(super) fn run_for_client(
    args: ProxyArgs,
    client: Option<stdio::Spare>,
    start: impl FnOnce(Config) -> anyhow::Result<ExitCode>,
) -> ExitCode {
    let mut messages = Config::default();
    args.log.clone().override_in(&mut messages);
    let started =
        system::check_address_space().map_err(Into::into).and_then(|()| args.config()).and_then(|config| {
            messages.log = config.log;
            messages.log_file.clone_from(&config.log_file);
            start(config)
        });
    let error = match started {
        Ok(code) => return code,
        Err(error) => error,
    };
    let code = error::report(&error);
    let message = error::message(&error);
    let hint = error::hint(&error);
    log::failure(&messages, &message, hint.as_deref());
    if let Some(client) = client.filter(|_| !error.is::<AlreadyAnswered>()) {
        refusal::answer(client.reader, client.writer, &message, hint.as_deref());
    }
    code
}

/// An error that was already sent to the client as a response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct AlreadyAnswered(#[source] UsageError);

fn start(config: Config, login: Vec<OsString>, to_try: ToTry) -> anyhow::Result<ExitCode> {
    log::start(&config)?;
    let events = config.events.clone();
    let state = config.state.clone();
    let exit_wait = config.exit_wait;
    let max_message = config.max_message;
    let mut settings = Settings::resolve(config)?;
    // If no agent is given, we should be running under a conductor, which would use pipes. But if this is a terminal,
    // the user just forgot the agent.
    if settings.agent.is_empty() && stdio::stdin_is_terminal() {
        return Err(terminal::no_agent(&to_try(&[])).into());
    }
    if stdio::stdin_is_terminal() && login.is_empty() && !terminal::is_login(&settings.agent) {
        output::note(&terminal::note(&to_try(&settings.agent)));
    }
    // If there is an agent and we're on a terminal, we may have been started by a client to let the user log in to the agent.
    if stdio::is_terminal() {
        settings.agent.extend(login);
        // The agent replaces this process, so write our messages first.
        output::flush();
        std::process::exit(agent::run_in_terminal(&settings.agent)?);
    }
    let program = std::env::current_exe()?;
    if !settings.agent.is_empty() {
        // Do this first, because it takes longer than all of the work we need to do before the agent is started.
        settings.processes.prepare_agent(&program);
    }
    let library = settings.skills.load()?;
    let (events, memory) = open_files(events.as_deref(), state.as_deref())?;
    let telemetry = record::start_telemetry(settings.telemetry)?;
    let switches = record::open_switches(state.as_deref())?;
    let agents = open_agents(state.as_deref())?;
    let has_servers = [&settings.policy.mcp_on_demand, &settings.policy.mcp_skills]
        .into_iter()
        .any(|servers| *servers != OnDemand::None);
    if library.is_empty() && !has_servers && !settings.agent.is_empty() {
        tracing::warn!("no skills selected for the agent; {}", skills::WHERE);
    }
    let mut client = stdio::take()?;
    if let Some(mebibytes) = max_message {
        client.max_message = usize::try_from(bytes_of_mebibytes(mebibytes)).unwrap_or(usize::MAX);
    }
    let runtime = runtime::new()?;
    let code: anyhow::Result<i32> = runtime.block_on(async {
        let host = Host::new(library.into_library())
            .toolbox(settings.toolbox)
            .bridge(program)
            .sandbox(settings.sandbox)
            .processes(settings.processes.clone())
            .secret_in(settings.state)
            .observer(record::observer(events.as_ref(), telemetry.as_ref()))
            .activation_store(memory.clone())
            .switch_store(switches)
            .agent_store(agents.clone());
        let command = settings.agent;
        let policy = settings.policy;
        if command.is_empty() {
            return match chain::run(policy, host, client).await? {
                ChainEnd::Closed => Ok(0),
                ChainEnd::NoConductor => Err(anyhow::Error::new(AlreadyAnswered(no_agent()))),
            };
        }
        Ok(Standalone::new(command, policy, host, client).exit_wait(exit_wait).run().await?)
    });
    // Make sure that all events and the state are written before we exit.
    drop(events);
    drop(telemetry);
    if let Some(memory) = memory {
        memory.finish();
    }
    if let Some(agents) = agents {
        agents.finish();
    }
    // Exit now instead of waiting for threads, which can be blocked in a read forever if the client doesn't close the
    // pipe.
    runtime.shutdown_background();
    let code = code?;
    output::flush();
    std::process::exit(code);
}

fn no_agent() -> UsageError {
    UsageError::new("no agent to run").hint(
        "put the agent command after `--`, for example `acp-skills-proxy --skill DIR -- claude-agent-acp`, or set \
         `agent` in the configuration file; only an ACP conductor can run the proxy without an agent",
    )
}

/// Opens the store for agents that never connect.
fn open_agents(state: Option<&Path>) -> Result<Option<AgentStore>, UsageError> {
    state.map(|dir| AgentStore::open(dir).map_err(|error| record::cannot_store(dir, error))).transpose()
}

/// Opens the event file and the store for active skills.
fn open_files(
    events: Option<&Path>,
    state: Option<&Path>,
) -> Result<(Option<EventFile>, Option<ActivationStore>), UsageError> {
    let events = events.map(record::open);
    let memory =
        state.map(|dir| ActivationStore::open(dir).map_err(|error| record::cannot_store(dir, error)));
    Ok((events.transpose()?, memory.transpose()?))
}
