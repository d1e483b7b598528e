//! [`run_script`]: a script that comes with a stored skill.

use std::{ffi::OsString, fs, path::PathBuf, sync::Arc};

use serde::Serialize;

use super::{
    Completed, Environment, Executor, Invocation, Limits, Outcome, Sandbox,
    interpreter::{HEAD_BYTES, Interpreter},
};
use crate::{
    files::{Bounds, FileError, SkillFiles},
    skill::Skill,
    tool::CallContext,
};

/// How scripts are run, by whoever allowed them.
#[derive(Debug, Clone, Default)]
pub struct ScriptOptions {
    /// Which of our own variables a script gets, beside `SKILL_DIR` and `SKILL_NAME`.
    pub environment: Environment,
    /// Where it runs.
    pub cwd: ScriptCwd,
    /// Time and output limits.
    pub limits: Limits,
    /// What keeps it from the rest of the machine, if anything does.
    pub sandbox: Option<Sandbox>,
    /// What runs it, and with whom it shares the number of programs at once.
    pub executor: Executor,
}

/// The working directory of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ScriptCwd {
    /// That of the session; that of the skill when there is none.
    #[default]
    Session,
    /// The skill's directory.
    Skill,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScriptCall {
    /// The path of the script below the skill's directory.
    pub script: String,
    /// Its arguments, as they are.
    pub args: Vec<String>,
    /// Its standard input; empty when there is none.
    pub stdin: Option<String>,
}

/// How a run ended. Serializes to `{"success","exitCode","stdout","stderr","durationMs"}`, and `"error"` and `"message"`
/// when it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ScriptResult {
    /// Whether it ended with exit code 0.
    pub success: bool,
    /// Its exit code, unless it never ran, or a signal or the time limit ended it.
    pub exit_code: Option<i32>,
    /// The beginning of its standard output, with a mark where it was cut.
    pub stdout: String,
    /// The beginning of its standard error.
    pub stderr: String,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What kind of failure it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptError>,
    /// What went wrong, and what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ScriptError {
    /// There is no such skill.
    SkillNotFound,
    /// The skill has no such script.
    ScriptNotFound,
    /// The path is not one that may be run.
    ScriptNotAllowed,
    /// The time limit ended it.
    ExecutionTimeout,
    /// It could not be started, or did not end with exit code 0.
    ExecutionFailed,
}

impl ScriptError {
    /// Its name, as in the JSON of a [`ScriptResult`].
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
    /// A run that never began.
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
                Some((ScriptError::ExecutionFailed, format!("the script ended with exit code {code}"))),
            ),
            Outcome::Signal(signal) => (
                None,
                Some((ScriptError::ExecutionFailed, format!("the script was ended by signal {signal}"))),
            ),
            Outcome::Timeout(limit) => (
                None,
                Some((
                    ScriptError::ExecutionTimeout,
                    format!("the script was stopped after its time limit of {} s", limit.as_secs_f64()),
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

/// Runs a script of `skill`. Dropping the future kills it, with all that it started.
///
/// The script must be a file inside the skill, looked at through the directory's handle. It is then run by its path: who
/// can swap it at that moment can write into the skill, and could as well have edited it.
///
/// Whatever goes wrong is in the result. Needs a tokio runtime with time and I/O.
pub async fn run_script(
    skill: &Arc<Skill>,
    call: ScriptCall,
    options: &ScriptOptions,
    context: &CallContext,
) -> ScriptResult {
    let prepared = {
        let (skill, options, context) = (Arc::clone(skill), options.clone(), context.clone());
        tokio::task::spawn_blocking(move || prepare(&skill, call, &options, &context)).await
    };
    let invocation = match prepared {
        Ok(Ok(invocation)) => invocation,
        Ok(Err(failed)) => return failed,
        Err(_) => return ScriptResult::failed(ScriptError::ExecutionFailed, "the call was interrupted"),
    };
    match options.executor.run(invocation, options.limits).await {
        Ok(completed) => ScriptResult::completed(completed),
        Err(error) => {
            let message = format!("the script cannot be started: {error}");
            ScriptResult::failed(ScriptError::ExecutionFailed, message)
        }
    }
}

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
    if let crate::skill::Source::Remote(remote) = &skill.source {
        let message = format!(
            "skill `{}` is on the web ({}), and scripts from there are not run; read the script with `read_skill_file`",
            skill.name, remote.url
        );
        return Err(ScriptResult::failed(ScriptError::ScriptNotAllowed, message));
    }
    let files = SkillFiles::of(skill).map_err(|error| refused(&error))?;
    let head = files.head(&call.script, HEAD_BYTES).map_err(|error| refused(&error))?;
    // It may read or run what lies beside it.
    files.check_all(Bounds::SKILL).map_err(|error| refused(&error))?;
    let interpreter =
        Interpreter::choose(&call.script, &head.bytes).map_err(|error| failed(error.to_string()))?;
    let dir = skill.dir().unwrap_or_else(|| "".as_ref());
    let cwd = match options.cwd {
        ScriptCwd::Session => context.cwd.as_deref().unwrap_or(dir),
        ScriptCwd::Skill => dir,
    };
    if !fs::metadata(cwd).is_ok_and(|it| it.is_dir()) {
        return Err(failed(format!("the working directory {} does not exist", cwd.display())));
    }
    let dir = match &options.sandbox {
        // There, a link in the path may lead to nothing.
        Some(_) => &*dunce::canonicalize(dir)
            .map_err(|error| failed(format!("the directory {}: {error}", dir.display())))?,
        None => dir,
    };
    // With the separators of the system: programs of Windows take `/` for the start of an option.
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
    let mut env = interpreter.env;
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

#[cfg(all(test, unix, feature = "toolbox"))]
mod tests;
