//! Where messages for people go: stderr, or a file.

use acp_skills::{
    config::{Config, LogLevel},
    private,
};
use skills_core::text::shown_path;
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
    let ours = Targets::new()
        .with_default(others)
        .with_target("acp_skills", level)
        .with_target("acp_skills_proxy", level)
        .with_target("skills_core", level);
    let layer = fmt::layer().with_target(false).with_ansi(false);
    // A second call in one process (tests, embedding) keeps the first log.
    match &config.log_file {
        Some(path) => {
            let failed =
                |error| UsageError::new(format!("cannot write the log to {}: {error}", shown_path(path)));
            let file = private::append(path).map_err(failed)?;
            let layer = layer.with_writer(std::sync::Mutex::new(LogLines(file))).with_filter(ours);
            drop(registry().with(layer).try_init());
        }
        None => {
            drop(
                registry()
                    .with(layer.with_writer(output::log_to_stderr).without_time().with_filter(ours))
                    .try_init(),
            );
        }
    }
    Ok(())
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
