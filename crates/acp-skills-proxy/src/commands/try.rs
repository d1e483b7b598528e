//! `try`: runs one prompt through the proxy and prints each step.

use std::{
    fmt::Write,
    io, mem,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::Args;
use serde_json::Value;
use skills_core::{text, toolbox::Content};
use tokio::sync::oneshot;

use super::{permission, record, skills};
use crate::{
    args::{AgentArgs, LogArgs, ProxyArgs, RecordArgs, SessionArgs, UserArgs, path},
    log, output, runtime,
    words::count,
};
use acp_skills::{
    activity::{Activity, Observer, ToolCall},
    client::Update,
    config::Settings,
    one_shot::{Answer, OneShot, Trace},
};
use acp_skills_runtime::agent::{self, Signal};

/// The default prompt.
const PROMPT: &str = "Please use the skill that fits best.";

/// The maximum number of lines of a tool's result without `--full`.
const SHOWN_LINES: usize = 24;

/// The time without a message of the agent after which the user is told what `try` waits for.
const SILENCE: Duration = Duration::from_secs(10);
/// The maximum time to tell the agent that the turn is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// The flags of `try`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs'
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs' -- claude-agent-acp")]
pub(crate) struct TryArgs {
    /// The prompt for the agent.
    #[arg(long, value_name = "TEXT", default_value = PROMPT)]
    prompt: String,
    /// Show the complete results of tools.
    #[arg(long)]
    full: bool,
    /// Grant each permission request of the agent once. Without this flag, all requests are refused.
    #[arg(long)]
    yes: bool,
    /// Append events about skills to a file, as the proxy does.
    #[arg(long, value_name = "FILE", value_parser = path())]
    events: Option<PathBuf>,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    agent: AgentArgs,
}

/// Runs the prompt and prints each step.
///
/// # Errors
/// Returns an error if an argument, the configuration or a skill is invalid, if the agent can't be started, if it answers a request
/// with an error, or if stdout can't be written.
pub(crate) fn run(args: TryArgs) -> anyhow::Result<ExitCode> {
    let TryArgs { prompt, full, yes, events, session, user, log, agent } = args;
    let record = RecordArgs { events, ..RecordArgs::default() };
    let config = ProxyArgs { session, user, record, log, agent, ..ProxyArgs::default() };
    let config = config.config()?;
    log::start(&config)?;
    let events = config.events.clone();
    let settings = Settings::resolve(config)?;
    let toolbox = settings.toolbox;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        return Err(loaded.none().into());
    }
    let events = events.as_deref().map(record::open).transpose()?;
    let telemetry = record::start_telemetry(settings.telemetry)?;
    let runtime = runtime::new()?;
    let (output_end, output_ended) = oneshot::channel();
    let show = Show {
        full,
        last: Mutex::new(Kind::Nothing),
        output_end: Mutex::new(Some(output_end)),
        record: record::observer(events.as_ref(), telemetry.as_ref()),
    };
    let steps = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&steps);
    let turn = OneShot::with_library(loaded.library.into_library())
        .toolbox(toolbox)
        .policy(settings.policy)
        .agent(settings.agent)
        .bridge(std::env::current_exe()?)
        .prompt(prompt)
        .on_permission(permission::decide(yes))
        // The text is printed as it comes, so it may be of any length.
        .discard_text()
        .trace(move |trace| {
            seen.fetch_add(1, Ordering::Relaxed);
            show.trace(&trace);
        })
        .run();
    let end = runtime.block_on(async {
        let mut turn = Box::pin(turn);
        let mut signals = agent::signals()?;
        let end = tokio::select! {
            biased;
            // The agent also receives the signal, and its end would look like an error.
            Some(signal) = signals.recv() => Ok(End::Signal(signal)),
            answer = &mut turn => answer.map(End::Answer).map_err(anyhow::Error::from),
            // If stdout is closed, stop the turn and the agent, so that the user doesn't have to pay for output that
            // is not used.
            Ok(end) = output_ended => end.map(|()| End::OutputClosed).map_err(Into::into),
            never = report_silence(&steps) => never,
        };
        // This cancels the turn, which can block if the agent doesn't read.
        let cancelled = tokio::task::spawn_blocking(move || drop(turn));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancelled).await;
        end
    });
    // This also kills the agent if it is still running.
    runtime.shutdown_background();
    // Make sure that all events are written before we exit.
    drop(events);
    drop(telemetry);
    match end? {
        End::Answer(answer) => {
            output::print(&format!("\n\n── turn ended: {}\n", answer.stop_reason))?;
            Ok(ExitCode::SUCCESS)
        }
        End::OutputClosed => Ok(ExitCode::SUCCESS),
        End::Signal(signal) => Ok(ExitCode::from(signal.exit_code())),
    }
}

/// The reason why `try` ends.
enum End {
    Answer(Answer),
    OutputClosed,
    Signal(Signal),
}

/// Prints a note each time that the agent has been silent for a while. `steps` counts what it does.
async fn report_silence<T>(steps: &AtomicU64) -> T {
    let mut before = 0;
    let mut is_noted = false;
    loop {
        tokio::time::sleep(SILENCE).await;
        let now = steps.load(Ordering::Relaxed);
        if now != before {
            is_noted = false;
        } else if !mem::replace(&mut is_noted, true) {
            let seconds = SILENCE.as_secs();
            output::note(&format!(
                "waiting for the agent, which has sent nothing for {seconds} seconds; press Ctrl-C to stop"
            ));
        }
        before = now;
    }
}

/// Prints the steps of a turn.
struct Show {
    full: bool,
    last: Mutex<Kind>,
    /// Sends the result of the first write to stdout that failed. `Ok` means that the reader has closed the pipe.
    output_end: Mutex<Option<oneshot::Sender<io::Result<()>>>>,
    /// Writes events to the file of `--events`, and sends telemetry.
    record: Option<Observer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Received,
    Call,
    Answer,
    Thought,
    Permission,
}

impl Show {
    fn trace(&self, trace: &Trace<'_>) {
        match trace {
            Trace::ToAgent(message) => self.received(message),
            Trace::Activity(Activity::Called(call)) => self.called(call),
            Trace::Activity(activity) => {
                if let Some(record) = &self.record {
                    record(activity);
                }
            }
            Trace::Update(update) => self.update(update),
            Trace::Permission(request, chosen) => {
                self.section(Kind::Permission, &permission::describe(request, *chosen));
            }
            _ => {}
        }
    }

    /// Prints `text`. Ends the turn if stdout is closed.
    fn put(&self, text: &str) {
        let end = match output::print(text) {
            Ok(true) => return,
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Some(ends) = lock(&self.output_end).take() {
            // This fails if the turn is already over.
            let _ = ends.send(end);
        }
    }

    /// Starts a section, unless the current section has the same kind.
    fn section(&self, kind: Kind, title: &str) {
        let mut last = lock(&self.last);
        if *last != kind || matches!(kind, Kind::Call | Kind::Permission) {
            let space = if *last == Kind::Nothing { "" } else { "\n" };
            self.put(&format!("{space}── {title}\n"));
        }
        *last = kind;
    }

    fn received(&self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/new" => {
                self.section(Kind::Received, "agent received session/new with");
                for server in params["mcpServers"].as_array().into_iter().flatten() {
                    let how = server["type"].as_str().unwrap_or("stdio");
                    let name = server["name"].as_str().unwrap_or_default();
                    self.put(&format!("   MCP server `{name}` ({how})\n"));
                }
                for block in params["systemPrompt"]["content"].as_array().into_iter().flatten() {
                    self.put("   in the system prompt:\n");
                    self.indented(block["text"].as_str().unwrap_or_default(), usize::MAX);
                }
                if let Some(text) = params["_meta"]["systemPrompt"]["append"].as_str() {
                    self.put("   in the system prompt:\n");
                    self.indented(text, usize::MAX);
                }
            }
            "session/prompt" => {
                self.section(Kind::Nothing, "agent received the prompt");
                for block in params["prompt"].as_array().into_iter().flatten() {
                    match block["text"].as_str() {
                        Some(text) => self.indented(text, usize::MAX),
                        None => self.indented(&block.to_string(), usize::MAX),
                    }
                }
                self.section(Kind::Received, "the agent works");
            }
            _ => {}
        }
    }

    fn called(&self, call: &ToolCall) {
        let how = if call.output.is_error { " failed" } else { "" };
        let arguments = Value::Object(call.arguments.clone());
        let time = call.duration.as_secs_f64() * 1000.0;
        self.section(Kind::Call, &format!("tool call: {} {arguments}{how} ({time:.1} ms)", call.tool));
        let lines = if self.full { usize::MAX } else { SHOWN_LINES };
        for content in &call.output.content {
            match content {
                Content::Text(text) => self.indented(text, lines),
                Content::Image { media_type, data } => {
                    self.put(&format!("   ({media_type}, {} bytes)\n", data.len()));
                }
                _ => self.put("   (content that cannot be displayed)\n"),
            }
        }
    }

    fn update(&self, update: &Value) {
        match Update::read(update) {
            Update::Message(text) => {
                self.section(Kind::Answer, "the answer");
                self.put(text);
            }
            Update::Thought(text) => {
                self.section(Kind::Thought, "a thought");
                self.put(text);
            }
            _ => {}
        }
    }

    fn indented(&self, text: &str, lines: usize) {
        let all: Vec<_> = text.trim_end().lines().collect();
        let mut shown = String::new();
        for line in all.iter().take(lines) {
            let _ = writeln!(shown, "   {}", text::shown(line));
        }
        if all.len() > lines {
            let _ =
                writeln!(shown, "   … {} (use --full to show all)", count(all.len() - lines, "more line"));
        }
        self.put(&shown);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
