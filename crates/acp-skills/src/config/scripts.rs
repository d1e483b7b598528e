//! The options for running scripts, from a configuration.

use std::sync::Arc;

use acp_skills_servers::processes::Processes;
use skills_core::exec::{Executor, Limits, Sandbox, ScriptOptions};
use skills_sources::{
    disk::{cache_dir, config_file, state_dir, without_links},
    lock_beside,
    policy::Policy,
};

use super::{Config, ConfigError, SandboxKind, governed};

/// The maximum number of concurrent scripts.
const CONCURRENCY: usize = 4;

/// Returns the options for scripts, or `None` if scripts are not allowed. Running scripts are registered in `processes`.
///
/// # Errors
/// Returns [`ConfigError::Sandbox`] if the requested sandbox can't be used on this system, and [`ConfigError::Refused`] if the policy
/// needs it and a user can change it.
pub(super) fn options(
    config: &Config,
    policy: Option<&Policy>,
    processes: &Processes,
) -> Result<Option<ScriptOptions>, ConfigError> {
    if !config.allow_scripts {
        return Ok(None);
    }
    let mut limits = Limits::default();
    limits.timeout = config.script_timeout.unwrap_or(limits.timeout);
    limits.max_output_bytes = config.max_output.unwrap_or(limits.max_output_bytes);
    let sandbox = match config.sandbox {
        Some(SandboxKind::Bwrap) => {
            let sandbox = Sandbox::bwrap(config.sandbox_net);
            let sandbox = sandbox.map_err(|error| ConfigError::Sandbox(error.to_string()))?;
            // With these files, a script could make decisions in the name of the user.
            let settings = config_file().and_then(|file| Some(file.parent()?.to_owned()));
            let directories = [settings, cache_dir(), state_dir(), config.state.clone()];
            let directories = directories.into_iter().flatten().map(|dir| without_links(&dir));
            let sandbox = sandbox.protecting(directories);
            let files = config_file()
                .into_iter()
                .chain(config.file.clone())
                .flat_map(|file| [lock_beside(&file), file.with_file_name(".npmrc"), file]);
            let sandbox = sandbox.with_read_only(files);
            governed::check_sandbox(&sandbox, policy)?;
            Some(sandbox)
        }
        None => None,
    };
    Ok(Some(ScriptOptions {
        environment: config.script_env.unwrap_or_default(),
        cwd: config.script_cwd.unwrap_or_default(),
        limits,
        sandbox,
        executor: Executor::new(CONCURRENCY).observed_by(Arc::new(processes.clone())),
    }))
}
