//! [`CommandTool`]: a tool of a virtual skill that is a program.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{CapturedText, Completed, Environment, Executor, Invocation, Limits, Outcome, find_program};
use crate::tool::{CallContext, ToolError, ToolHandler};

/// Runs a program: the input arrives as JSON on its standard input, its standard output is the answer.
///
/// Output that is JSON is given as JSON, other output as text. No input is an empty standard input, so that it can be
/// told from `null`. Anything but exit code 0 is an error with what the program wrote to its standard error.
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
    /// A name that is looked up on the search path, or a path.
    pub program: PathBuf,
    /// Its arguments, as they are.
    pub args: Vec<OsString>,
    /// The working directory; by default that of the session.
    pub cwd: Option<PathBuf>,
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    /// Which of our own variables it gets.
    pub environment: Environment,
    /// Time and output limits.
    pub limits: Limits,
    /// What runs it, and with whom it shares the number of programs at once.
    pub executor: Executor,
}

impl CommandTool {
    /// A tool that runs `program` without arguments.
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

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    /// Why the tool cannot work, when its program does not exist; fits [`SkillTool::missing`](crate::SkillTool).
    pub fn missing(&self) -> Option<String> {
        match find_program(&self.program, self.cwd.as_deref()) {
            Some(_) => None,
            None => Some(format!("the program `{}` was not found", self.program.display())),
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
            let name = tool.program.display().to_string();
            let Some(program) = find_program(&tool.program, cwd.as_deref()) else {
                return Err(format!("the program `{name}` was not found").into());
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
            match tool.executor.run(invocation, tool.limits).await {
                Ok(completed) => answer(&name, &completed),
                Err(error) => Err(format!("the program `{name}` cannot be started: {error}").into()),
            }
        })
    }
}

fn answer(name: &str, completed: &Completed) -> Result<Value, ToolError> {
    let problem = match completed.outcome {
        Outcome::Exit(0) => {
            let text = completed.stdout.marked();
            return Ok(serde_json::from_str(&text)
                .unwrap_or_else(|_| Value::String(text.strip_suffix('\n').unwrap_or(&text).to_owned())));
        }
        Outcome::Exit(code) => format!("the program `{name}` failed with exit code {code}"),
        Outcome::Signal(signal) => format!("the program `{name}` was ended by signal {signal}"),
        Outcome::Timeout(limit) => {
            format!("the program `{name}` was stopped after its time limit of {} s", limit.as_secs_f64())
        }
    };
    let said = [&completed.stderr, &completed.stdout].map(CapturedText::marked);
    match said.iter().map(|text| text.trim()).find(|text| !text.is_empty()) {
        Some(text) => Err(format!("{problem}:\n{text}").into()),
        None => Err(problem.into()),
    }
}
