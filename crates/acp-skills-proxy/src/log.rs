//! Configures the log, which is written to stderr or to a file.

use std::{
    io::{self, Write},
    mem,
    path::PathBuf,
    sync::Arc,
};

use acp_skills::config::{Config, LogLevel};
use skills_core::text::shown_path;
use skills_sources::disk::private;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    error::UsageError,
    output::{self, LogLines},
};

/// Starts the log. A second call in the same process has no effect.
///
/// # Errors
/// Returns an error if the log file cannot be opened.
pub(crate) fn start(config: &Config) -> Result<(), UsageError> {
    use tracing_subscriber::{
        Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt,
    };
    let level = level_filter(config.log.unwrap_or(LogLevel::Warn));
    // Use a lower level for dependencies, because their detailed messages may include the contents of protocol
    // messages. Some of their warnings are also about normal situations, such as when a client asks for a stream that
    // has already ended.
    let dependencies = level.min(match level {
        LevelFilter::TRACE => LevelFilter::TRACE,
        LevelFilter::DEBUG => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    });
    // This is not a problem for us, but the MCP library logs an error if a session ends before the client has
    // received the last answer.
    let rmcp = if level < LevelFilter::DEBUG { LevelFilter::OFF } else { dependencies };
    let ours = Targets::new()
        .with_default(dependencies)
        .with_target("rmcp", rmcp)
        .with_target("acp_skills", level)
        .with_target("acp_skills_proxy", level)
        .with_target("skills_core", level)
        .with_target("skills_sources", level);
    let layer = fmt::layer().with_target(false).with_ansi(false);
    // If this is called twice in the same process, such as in tests, we keep the first log.
    match &config.log_file {
        Some(path) => {
            let failed = |error| UsageError::at("cannot write log", path, error);
            let file = private::append(path).map_err(failed)?;
            private::check_start(&file, path, is_message).map_err(failed)?;
            let was_exposed = private::tighten(&file).map_err(failed)?;
            let file = LogFile { lines: LogLines(file), path: path.clone(), has_failed: false };
            let layer = layer.with_writer(std::sync::Mutex::new(file)).with_filter(ours);
            let _ = registry().with(layer).try_init();
            if was_exposed {
                let path = shown_path(path);
                tracing::warn!("{path} was readable by other users; changed its mode to 0600");
            }
        }
        // If the user asks for `info` or more, we show repeated messages as well.
        None if level > LevelFilter::WARN => {
            let layer = layer.with_writer(output::log_to_stderr).without_time();
            let _ = registry().with(layer.with_filter(ours)).try_init();
        }
        None => {
            let logged = Arc::default();
            let layer = layer.with_writer(move || output::log_once_to_stderr(&logged)).without_time();
            let _ = registry().with(layer.with_filter(ours)).try_init();
        }
    }
    Ok(())
}

/// Runs `work` with its warnings on stderr, for work before the log is started and for commands without a log.
pub(crate) fn with_warnings_on_stderr<T>(work: impl FnOnce() -> T) -> T {
    use tracing_subscriber::{filter::LevelFilter, fmt};
    let log = fmt().with_max_level(LevelFilter::WARN).with_target(false).with_ansi(false).without_time();
    tracing::subscriber::with_default(log.with_writer(output::log_to_stderr).finish(), work)
}

/// Logs a failed start to the log file, if there is one. It was already written to stderr, which editors discard.
pub(crate) fn failure(config: &Config, message: &str, hint: Option<&str>) {
    // At this point the log should already be running. If it could not be started, we've already reported the error.
    if config.log_file.is_some() && start(config).is_ok() {
        let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        tracing::error!("{message}{hint}");
    }
}

/// A log file. Messages that cannot be written to it go to stderr.
struct LogFile<W> {
    lines: LogLines<W>,
    path: PathBuf,
    has_failed: bool,
}

impl<W: Write> Write for LogFile<W> {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let Err(error) = self.lines.write(message) else { return Ok(message.len()) };
        let mut stderr = output::log_to_stderr();
        if !mem::replace(&mut self.has_failed, true) {
            let path = shown_path(&self.path);
            let warning = format!(" WARN cannot write log to {path}: {error}; logging to stderr instead");
            // Write this in a single call, because each write is shown as a message.
            stderr.write_all(warning.as_bytes())?;
        }
        stderr.write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }
}

/// Returns true if a file that begins with `start` is a log, whose first message begins with a time such as `2026-11-27T09:30:00`.
fn is_message(start: &[u8]) -> bool {
    let time = b"0000-00-00T00:00:00";
    let fits = |(found, expected): (&u8, &u8)| match expected {
        b'0' => found.is_ascii_digit(),
        _ => found == expected,
    };
    start.iter().zip(time).all(fits)
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
