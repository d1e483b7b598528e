//! [`run_script`]: runs a script of a stored skill.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{
    Completed, Environment, Executor, Invocation, Limits, Outcome, Sandbox,
    interpreter::{HEAD_BYTES, Interpreter, Surroundings, VARIABLES},
};
use crate::{
    files::{Bounds, FileError, SkillFiles},
    skill::{Skill, Source},
    tool::CallContext,
};

/// The settings with which scripts are run.
#[derive(Debug, Clone, Default)]
pub struct ScriptOptions {
    /// The variables that a script inherits. `SKILL_DIR` and `SKILL_NAME` are always set. The default is all variables.
    pub environment: Environment,
    /// The working directory. The default is the directory of the session.
    pub cwd: ScriptCwd,
    /// The timeout and the output limit.
    pub limits: Limits,
    /// The sandbox to run scripts in. The default (`None`) runs them with all rights of the user.
    pub sandbox: Option<Sandbox>,
    /// The executor that runs scripts. The default is the shared executor of this process.
    pub executor: Executor,
}

/// The working directory of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ScriptCwd {
    /// The working directory of the session, or the directory of the skill if the session has none.
    #[default]
    Session,
    /// The directory of the skill.
    Skill,
}

/// A request to run a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptCall {
    /// The path of the script, relative to the skill's directory and separated by `/`.
    pub script: String,
    /// The arguments. They are passed unchanged; there is no shell that could expand them.
    pub args: Vec<String>,
    /// The text for the script's standard input. `None` is the same as an empty text.
    pub stdin: Option<String>,
}

/// The result of running a script.
///
/// Serializes to `{"success","exitCode","stdout","stderr","durationMs"}`, plus `"error"` and `"message"` if the run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptResult {
    /// True if the script ended with exit code 0.
    pub success: bool,
    /// The exit code. `None` if the script was not started, was killed by a signal, or exceeded its timeout.
    pub exit_code: Option<i32>,
    /// The beginning of standard output, followed by [`TRUNCATED`](super::TRUNCATED) if output is missing.
    pub stdout: String,
    /// The beginning of standard error, truncated like `stdout`.
    pub stderr: String,
    /// The duration of the run in milliseconds. Zero if the script was not started.
    pub duration_ms: u64,
    /// The kind of failure; `None` if the run succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptError>,
    /// A description of the failure for the model; `None` if the run succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The kind of failure of a [`ScriptResult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ScriptError {
    /// No skill has the requested name.
    SkillNotFound,
    /// The skill has no file with the requested path.
    ScriptNotFound,
    /// Scripts at this path, or of this skill, may not be run.
    ScriptNotAllowed,
    /// The script exceeded its timeout.
    ExecutionTimeout,
    /// The script could not be started, was killed by a signal, or ended with an exit code other than 0.
    ExecutionFailed,
}

impl ScriptError {
    /// Returns the name of this kind, as in the JSON of a [`ScriptResult`].
    pub fn code(self) -> &'static str {
        match self {
            Self::SkillNotFound => "SkillNotFound",
            Self::ScriptNotFound => "ScriptNotFound",
            Self::ScriptNotAllowed => "ScriptNotAllowed",
            Self::ExecutionTimeout => "ExecutionTimeout",
            Self::ExecutionFailed => "ExecutionFailed",
        }
    }
}

impl ScriptResult {
    /// Creates the result of a script that was not started.
    pub fn failed(error: ScriptError, message: impl Into<String>) -> Self {
        Self {
            success: false,
            exit_code: None,
            stdout: String::new(),
            stderr: String::new(),
            duration_ms: 0,
            error: Some(error),
            message: Some(message.into()),
        }
    }

    fn completed(completed: Completed) -> Self {
        let (exit_code, failure) = match completed.outcome {
            Outcome::Exit(0) => (Some(0), None),
            Outcome::Exit(code) => (
                Some(code),
                Some((
                    ScriptError::ExecutionFailed,
                    format!("script failed with exit code {code}; check `stdout` and `stderr` for details"),
                )),
            ),
            Outcome::Signal(signal) => {
                (None, Some((ScriptError::ExecutionFailed, format!("script was killed by signal {signal}"))))
            }
            Outcome::Timeout(limit) => (
                None,
                Some((
                    ScriptError::ExecutionTimeout,
                    format!(
                        "script timed out after {} s; retry with less work, or ask the user to increase the timeout",
                        limit.as_secs_f64()
                    ),
                )),
            ),
        };
        let (error, message) = failure.unzip();
        Self {
            success: error.is_none(),
            exit_code,
            stdout: completed.stdout.marked(),
            stderr: completed.stderr.marked(),
            duration_ms: completed.duration.as_millis().try_into().unwrap_or(u64::MAX),
            error,
            message,
        }
    }
}

/// Runs a script of `skill`. All failures are part of the result, so this function returns no error.
///
/// The script must be a file inside the skill's directory; this is checked through a handle of the directory. The script is
/// then run by its path. A process that could replace the file in between has write access to the skill, so it could also
/// have edited the script.
///
/// Dropping the future kills the script and all processes that it started. Needs a tokio runtime with the time and I/O
/// drivers enabled.
pub async fn run_script(
    skill: &Arc<Skill>,
    call: ScriptCall,
    options: &ScriptOptions,
    context: &CallContext,
) -> ScriptResult {
    let done = run(skill, call, options, context).await;
    done.map_or_else(|failed| failed, ScriptResult::completed)
}

async fn run(
    skill: &Arc<Skill>,
    call: ScriptCall,
    options: &ScriptOptions,
    context: &CallContext,
) -> Result<Completed, ScriptResult> {
    let failed = |message| ScriptResult::failed(ScriptError::ExecutionFailed, message);
    let not_started = |error| failed(format!("failed to start script: {error}"));
    let prepared = || {
        let (skill, call, options, context) =
            (Arc::clone(skill), call.clone(), options.clone(), context.clone());
        let prepared = tokio::task::spawn_blocking(move || prepare(&skill, call, &options, &context));
        let interrupted = |_| failed("call was interrupted before the script started".to_owned());
        async move { prepared.await.map_err(interrupted)? }
    };
    let mut values = Vec::new();
    if let Some(variables) = &skill.variables {
        // Check the call first, because the user may have to unlock the secrets. Other scripts must not have to wait for the user, so
        // this is done before the script takes its place among those that run.
        prepared().await?;
        values = variables.resolve().await.map_err(|error| {
            failed(format!("environment of skill `{}` is not available: {error}", skill.name))
        })?;
    }
    // The files may change while the call waits, so we wait before we check them.
    let permit = options.executor.permit(&context.caller).await.map_err(not_started)?;
    let mut invocation = prepared().await?;
    invocation.add_variables(values).map_err(not_started)?;
    options.executor.run(permit, invocation, options.limits, &context.caller).await.map_err(not_started)
}

/// Checks the call and builds the command. Blocks on the file system.
fn prepare(
    skill: &Skill,
    call: ScriptCall,
    options: &ScriptOptions,
    context: &CallContext,
) -> Result<Invocation, ScriptResult> {
    let failed = |message: String| ScriptResult::failed(ScriptError::ExecutionFailed, message);
    let refused = |error: &FileError| {
        let kind = match error {
            FileError::Invalid { .. } | FileError::Outside { .. } => ScriptError::ScriptNotAllowed,
            FileError::NoFiles(_)
            | FileError::NotFound { .. }
            | FileError::IsDirectory { .. }
            | FileError::NotAFile { .. } => ScriptError::ScriptNotFound,
            _ => ScriptError::ExecutionFailed,
        };
        ScriptResult::failed(kind, error.to_string())
    };
    #[cfg(feature = "fetch")]
    if let Source::Remote(_) = &skill.source {
        let message = format!(
            "cannot run scripts from remote skill `{}`; use `read_skill_file` to read the script instead",
            skill.name
        );
        return Err(ScriptResult::failed(ScriptError::ScriptNotAllowed, message));
    }
    let files = SkillFiles::of(skill).map_err(|error| refused(&error))?;
    let head = files.head(&call.script, HEAD_BYTES).map_err(|error| refused(&error))?;
    // The script may read or run any other file of the skill, so we need to check all of them.
    files.check_all(Bounds::SKILL).map_err(|error| refused(&error))?;
    let dir = skill.dir().unwrap_or_else(|| "".as_ref());
    let dir = match &options.sandbox {
        // Resolve links here, since their targets might not exist inside the sandbox.
        Some(_) => &*resolved(skill, dir).map_err(|error| {
            failed(format!("failed to resolve skill directory {}: {error}", dir.display()))
        })?,
        None => dir,
    };
    let cwd = match options.cwd {
        ScriptCwd::Session => context.cwd.as_deref().unwrap_or(dir),
        ScriptCwd::Skill => dir,
    };
    if !fs::metadata(cwd).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(failed(format!("working directory {} does not exist", cwd.display())));
    }
    let interpreter = Interpreter::choose(&call.script, &head.bytes, Surroundings::of(cwd, dir))
        .map_err(|error| failed(error.to_string()))?;
    // Collect the components again to get the system's separators, since Windows programs would take `/` for the start of an
    // option.
    let script: PathBuf = dir.join(&call.script).components().collect();
    let mut args = interpreter.args;
    let program = match interpreter.program {
        Some(program) => {
            args.push(script.into());
            program
        }
        None => script,
    };
    args.extend(call.args.into_iter().map(OsString::from));
    let mut env: Vec<_> = VARIABLES.iter().map(|(name, value)| (name.into(), value.into())).collect();
    env.extend(interpreter.env);
    env.push(("SKILL_DIR".into(), dir.into()));
    env.push(("SKILL_NAME".into(), skill.name.as_str().into()));
    let invocation = Invocation {
        program,
        args,
        cwd: Some(cwd.to_owned()),
        environment: options.environment,
        env,
        stdin: call.stdin.unwrap_or_default().into_bytes(),
        ..Invocation::default()
    };
    match &options.sandbox {
        Some(sandbox) => sandbox.wrap(invocation, dir).map_err(|error| failed(error.to_string())),
        None => Ok(invocation),
    }
}

/// Returns the canonical path of the directory of a skill.
///
/// # Errors
/// Returns an error if a link has replaced a part of a path that was canonical when the skill was found. The files were checked by that
/// path, and a script of another skill could lead the sandbox to other ones.
fn resolved(skill: &Skill, dir: &Path) -> io::Result<PathBuf> {
    let real = dunce::canonicalize(dir)?;
    match &skill.source {
        Source::Stored(stored) if stored.was_found() && real != dir => {
            Err(io::Error::other("a part of the path is now a link"))
        }
        _ => Ok(real),
    }
}

#[cfg(all(test, unix, feature = "toolbox"))]
mod tests;
