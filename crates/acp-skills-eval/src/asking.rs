//! Asks an agent one question, in a new session without skills and in an empty directory.

use std::io;

use tokio::sync::watch;

use super::{
    AgentCommand, Allow, Cost, End, Evaluation,
    connection::OpenError,
    conversation::{Script, converse},
    scratch::Scratch,
};

/// The answer of an agent.
pub(super) struct Answer {
    pub(super) text: String,
    /// The costs, if the agent reports them.
    pub(super) cost: Option<Cost>,
}

/// An error that occurs when an agent is asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The agent's directory could not be created.
    #[error("cannot create directory: {0}")]
    Directory(#[from] io::Error),
    /// The agent could not be started.
    #[error("cannot start agent: {0}")]
    Start(#[from] OpenError),
    /// The turn did not end normally.
    #[error("{0}")]
    Turn(String),
}

/// Asks the agent. All of its permission requests are refused. Returns `None` if the evaluation was stopped.
pub(super) async fn ask(
    evaluation: &Evaluation,
    agent: &AgentCommand,
    prompt: &str,
    stop: &watch::Receiver<bool>,
) -> Result<Option<Answer>, AskError> {
    let scratch = Scratch::new()?;
    let directory = dunce::canonicalize(scratch.path())?;
    let mut connection = evaluation.open(agent, &directory, None)?;
    let script = Script {
        directory: &directory,
        prompts: &[prompt],
        model: agent.model.as_deref(),
        timeout: evaluation.options.timeout,
        allow: Allow::default(),
        stop_when_loaded: None,
        instructions: &[],
        message_log: None,
    };
    let conversation = converse(&mut connection, &script, stop.clone()).await;
    let ended = connection.close().await;
    if conversation.end == End::Interrupted {
        return Ok(None);
    }
    if let Some(problem) = conversation.end.ended_as(&ended.how).problem() {
        return Err(AskError::Turn(problem));
    }
    let transcript = &conversation.transcript;
    Ok(Some(Answer { text: transcript.answer(), cost: transcript.cost().cloned() }))
}

/// Returns a line that separates material from the rest of a prompt.
pub(super) fn mark() -> String {
    let mut number = [0; 8];
    // If the system can't generate random numbers, we use a constant mark, which would be easier to forge.
    let _ = getrandom::fill(&mut number);
    format!("--- {:016x}", u64::from_le_bytes(number))
}
