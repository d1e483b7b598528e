//! How scripts are run, from flags and configuration file.

use std::time::Duration;

use skills_core::exec::{Environment, Executor, Limits, Sandbox, ScriptCwd, ScriptOptions};

use crate::{
    cli::{SandboxKind, ScriptArgs, ScriptDirectory, ScriptVariables, UsageError},
    config::Config,
};

/// How many scripts run at once.
const CONCURRENCY: usize = 4;

/// The options; `None` when scripts are not allowed.
///
/// # Errors
/// A sandbox was asked for and does not work here, or a value is wrong.
pub(super) fn scripts(args: &ScriptArgs, config: &Config) -> anyhow::Result<Option<ScriptOptions>> {
    if !(args.allow_scripts || config.allow_scripts) {
        return Ok(None);
    }
    let mut limits = Limits::default();
    let configured = config.script_timeout.map(Duration::try_from_secs_f64).transpose();
    let configured = configured.map_err(|error| UsageError::new(format!("`script_timeout`: {error}")))?;
    if let Some(timeout) = args.script_timeout.or(configured) {
        limits.timeout = timeout;
    }
    if let Some(bytes) = args.max_output.or(config.max_output) {
        limits.max_output_bytes = bytes;
    }
    let network = args.sandbox_net || config.sandbox_net;
    let sandbox = match args.sandbox.or(config.sandbox) {
        Some(SandboxKind::Bwrap) => {
            let sandbox = Sandbox::bwrap(network).map_err(|error| {
                UsageError::new(format!("--sandbox bwrap: {error}"))
                    .hint("install bubblewrap, or leave --sandbox out to run scripts without a sandbox")
            })?;
            Some(sandbox)
        }
        None => None,
    };
    Ok(Some(ScriptOptions {
        environment: match args.script_env.or(config.script_env) {
            Some(ScriptVariables::Clean) => Environment::Clean,
            _ => Environment::Inherit,
        },
        cwd: match args.script_cwd.or(config.script_cwd) {
            Some(ScriptDirectory::Skill) => ScriptCwd::Skill,
            _ => ScriptCwd::Session,
        },
        limits,
        sandbox,
        executor: Executor::new(CONCURRENCY),
    }))
}
