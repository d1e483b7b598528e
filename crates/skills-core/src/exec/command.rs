//! [`CommandTool`]: a tool of a virtual skill that runs a program.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{CapturedText, Completed, Environment, Executor, Invocation, Limits, Outcome, find_program};
use crate::tool::{CallContext, ToolError, ToolHandler};

/// A tool handler that runs a program.
///
/// The program receives the tool's input as JSON on its standard input, and its standard output is the result. If the output
/// is valid JSON, the result is that JSON value. Otherwise it's a string, without the newline at its end. If the tool is
/// called without input, standard input is empty (and not `null`). Any exit code except 0 is an error that contains the
/// program's standard error.
///
/// ```
/// use skills_core::{Skill, SkillTool, exec::CommandTool};
///
/// let tool = SkillTool::new("today", "Prints the date.", CommandTool::new("date").arg("+%F"));
/// let skill = Skill::builder("calendar", "Knows the date.").body("Call `today`.").add_tool(tool).build()?;
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandTool {
    /// The program: a name to find on the search path, or a path.
    pub program: PathBuf,
    /// The arguments. They are passed unchanged; there is no shell that could expand them.
    pub args: Vec<OsString>,
    /// The working directory. The default (`None`) is the working directory of the session.
    pub cwd: Option<PathBuf>,
    /// Environment variables to set, in addition to the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// The variables to inherit. The default is all of them.
    pub environment: Environment,
    /// The timeout and the output limit.
    pub limits: Limits,
    /// The executor that runs the program. The default is the shared executor of this process.
    pub executor: Executor,
}

impl CommandTool {
    /// Creates a tool that runs `program` without arguments and with default settings.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Vec::new(),
            environment: Environment::default(),
            limits: Limits::default(),
            executor: Executor::default(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Checks that the program exists. Returns a message for [`SkillTool::missing`](crate::SkillTool) if it doesn't.
    pub fn missing(&self) -> Option<String> {
        match find_program(&self.program, self.cwd.as_deref()) {
            Some(_) => None,
            None => Some(format!("program `{}` not found", self.program.display())),
        }
    }
}

impl ToolHandler for CommandTool {
    fn call(
        &self,
        input: Option<Value>,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        let tool = self.clone();
        Box::pin(async move {
            let cwd = tool.cwd.or(context.cwd);
            let caller = context.caller;
            let name = tool.program.display().to_string();
            let not_started = |error| format!("failed to start program `{name}`: {error}");
            let permit = tool.executor.permit(&caller).await.map_err(not_started)?;
            let Some(program) = find_program(&tool.program, cwd.as_deref()) else {
                return Err(format!("program `{name}` not found").into());
            };
            let invocation = Invocation {
                program,
                args: tool.args,
                cwd,
                environment: tool.environment,
                env: tool.env,
                stdin: input.map(|input| input.to_string().into_bytes()).unwrap_or_default(),
                ..Invocation::default()
            };
            let completed = tool.executor.run(permit, invocation, tool.limits, &caller).await;
            result_of(&name, &completed.map_err(not_started)?)
        })
    }
}

fn result_of(name: &str, completed: &Completed) -> Result<Value, ToolError> {
    let problem = match completed.outcome {
        Outcome::Exit(0) => {
            let text = completed.stdout.marked();
            return Ok(serde_json::from_str(&text)
                .unwrap_or_else(|_| Value::String(text.strip_suffix('\n').unwrap_or(&text).to_owned())));
        }
        Outcome::Exit(code) => format!("program `{name}` failed with exit code {code}"),
        Outcome::Signal(signal) => format!("program `{name}` was killed by signal {signal}"),
        Outcome::Timeout(limit) => {
            format!("program `{name}` timed out after {} s", limit.as_secs_f64())
        }
    };
    let outputs = [&completed.stderr, &completed.stdout].map(CapturedText::marked);
    match outputs.iter().map(|text| text.trim()).find(|text| !text.is_empty()) {
        Some(text) => Err(format!("{problem}:\n{text}").into()),
        None => Err(problem.into()),
    }
}
