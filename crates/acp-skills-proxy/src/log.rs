//! Where messages for people go: stderr, or a file.

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

/// Where messages for people go, from now on.
///
/// # Errors
/// The log file cannot be opened.
pub(crate) fn start(config: &Config) -> Result<(), UsageError> {
    use tracing_subscriber::{
        Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt,
    };
    let level = level_filter(config.log.unwrap_or(LogLevel::Warn));
    // Others tell what they do in detail, and may tell contents; and they warn of what is in order, as when a client
    // asks again for a stream that has ended.
    let others = level.min(match level {
        LevelFilter::TRACE => LevelFilter::TRACE,
        LevelFilter::DEBUG => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    });
    // The MCP library calls it an error when a session ends before its last answer was fetched.
    let library = if level < LevelFilter::DEBUG { LevelFilter::OFF } else { others };
    let ours = Targets::new()
        .with_default(others)
        .with_target("rmcp", library)
        .with_target("acp_skills", level)
        .with_target("acp_skills_proxy", level)
        .with_target("skills_core", level);
    let layer = fmt::layer().with_target(false).with_ansi(false);
    // A second call in one process (tests, embedding) keeps the first log.
    match &config.log_file {
        Some(path) => {
            let failed = |error| {
                UsageError::failed(format_args!("cannot write the log to {}", shown_path(path)), error)
            };
            let file = private::append(path).map_err(failed)?;
            let file = LogFile { lines: LogLines(file), path: path.clone(), has_failed: false };
            let layer = layer.with_writer(std::sync::Mutex::new(file)).with_filter(ours);
            drop(registry().with(layer).try_init());
        }
        // Whoever looks for a bug wants to see how often.
        None if level > LevelFilter::WARN => {
            let layer = layer.with_writer(output::log_to_stderr).without_time();
            drop(registry().with(layer.with_filter(ours)).try_init());
        }
        None => {
            let logged = Arc::default();
            let layer = layer.with_writer(move || output::log_once_to_stderr(&logged)).without_time();
            drop(registry().with(layer.with_filter(ours)).try_init());
        }
    }
    Ok(())
}

/// Tells the file for messages that the start failed, if there is one: stderr has been told, which editors drop.
pub(crate) fn failure(config: &Config, message: &str, hint: Option<&str>) {
    // It has been opened already unless the configuration is what is wrong; where it cannot be, that is what has been told.
    if config.log_file.is_some() && start(config).is_ok() {
        let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        tracing::error!("{message}{hint}");
    }
}

/// A file for messages. Those that it cannot take go to stderr.
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
            let told =
                format!(" WARN cannot write the log to {path}: {error}; what it cannot take comes here");
            // Whole: each write is a message.
            stderr.write_all(told.as_bytes())?;
        }
        stderr.write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }
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
