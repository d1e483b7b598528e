//! [`Turn`]: an answer as it comes.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::{Stream, StreamExt};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Answer, OneShot, OneShotError, ask};
use crate::{
    client::{ClientError, ClientWriter},
    trace::Trace,
};

/// How many pieces wait to be read; then the agent waits.
const MAX_WAITING: usize = 64;

/// A piece of what the agent says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// More of its message.
    Text(String),
    /// Any other [update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate): a thought, a tool call, a
    /// plan.
    Update(Value),
}

impl Piece {
    fn of(update: &Value) -> Self {
        match update["content"]["text"].as_str() {
            Some(text) if update["sessionUpdate"] == "agent_message_chunk" => Self::Text(text.to_owned()),
            _ => Self::Update(update.clone()),
        }
    }
}

/// What the task sends to the reader.
enum Message {
    Piece(Piece),
    End(Result<Answer, OneShotError>),
}

/// A turn that is under way: a stream of what the agent says. It ends with the turn, or with an error.
///
/// Dropping it before its end cancels the turn and ends the agent.
#[must_use = "a turn that is dropped is cancelled"]
#[derive(Debug)]
pub struct Turn {
    messages: mpsc::Receiver<Message>,
    writer: ClientWriter,
    answer: Option<Answer>,
    is_over: bool,
    task: JoinHandle<()>,
}

impl Turn {
    pub(super) fn start(one_shot: OneShot) -> Self {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let writer = one_shot.writer.clone();
        let task = tokio::spawn(run(one_shot, sender));
        Self { messages, writer, answer: None, is_over: false, task }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Piece, OneShotError>> {
        StreamExt::next(self).await
    }

    /// The whole answer, once the turn is over.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Waits for the end of the turn, and of the agent.
    ///
    /// # Errors
    /// Something cannot be attached; the agent does not start, refuses, or goes away.
    pub async fn collect(mut self) -> Result<Answer, OneShotError> {
        while let Some(piece) = self.next().await {
            piece?;
        }
        // Without one the stream has ended with an error, here or before.
        let answer = self.answer.take().ok_or(ClientError::Cancelled)?;
        if let Err(error) = (&mut self.task).await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
        Ok(answer)
    }
}

impl Stream for Turn {
    type Item = Result<Piece, OneShotError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let message = ready!(self.messages.poll_recv(context));
        if let Some(Message::Piece(piece)) = message {
            return Poll::Ready(Some(Ok(piece)));
        }
        self.is_over = true;
        Poll::Ready(match message {
            Some(Message::End(Ok(answer))) => {
                self.answer = Some(answer);
                None
            }
            Some(Message::End(Err(error))) => Some(Err(error)),
            _ => Some(Err(ClientError::Cancelled.into())),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.writer.cancel();
        }
    }
}

/// Has the conversation, and sends what is said.
async fn run(mut one_shot: OneShot, sender: mpsc::Sender<Message>) {
    let cwd = match &one_shot.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = match cwd {
        Ok(cwd) => cwd,
        Err(error) => return drop(sender.send(Message::End(Err(error.into()))).await),
    };
    let (prompt, tracer) = (mem::take(&mut one_shot.prompt), one_shot.tracer.take());
    let (pieces, end) = (sender.clone(), sender.clone());
    let one_shot = one_shot.trace(move |trace| {
        if let Trace::Update(update) = trace {
            // On the client's own thread, which may wait. A reader that is gone has cancelled the turn.
            drop(pieces.blocking_send(Message::Piece(Piece::of(update))));
        }
        if let Some(tracer) = &tracer {
            tracer(trace);
        }
    });
    let outcome = one_shot.converse(move |client| match ask(client, &cwd, &prompt) {
        // At once: the agent takes its time to leave.
        Ok(answer) => {
            drop(end.blocking_send(Message::End(Ok(answer))));
            None
        }
        Err(error) => Some(error),
    });
    let error = match outcome.await {
        Ok((error, _code)) => error.map(OneShotError::from),
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        drop(sender.send(Message::End(Err(error))).await);
    }
}
