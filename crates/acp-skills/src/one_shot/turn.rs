//! [`Turn`]: an answer as a stream of pieces.

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
    client::{ClientError, ClientWriter, Update},
    trace::Trace,
};

/// The maximum number of unread pieces. If it is reached, the client stops reading and the agent has to wait.
const QUEUE_CAPACITY: usize = 64;

/// A piece of the agent's answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// More text of the agent's message.
    Text(String),
    /// Any other [update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate), such as a thought, a tool call or
    /// a plan.
    Update(Value),
}

impl Piece {
    fn of(update: &Value) -> Self {
        match Update::read(update) {
            Update::Message(text) => Self::Text(text.to_owned()),
            _ => Self::Update(update.clone()),
        }
    }
}

/// A message from the task to the reader of the stream.
enum Message {
    Piece(Piece),
    End(Result<Answer, OneShotError>),
}

/// A turn in progress: a stream of the pieces of the answer. It ends with the turn or after the first error.
///
/// Dropping it earlier cancels the turn and ends the agent.
#[must_use = "dropping a turn cancels it"]
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
        let (sender, messages) = mpsc::channel(QUEUE_CAPACITY);
        let writer = one_shot.writer.clone();
        let task = tokio::spawn(run(one_shot, sender));
        Self { messages, writer, answer: None, is_over: false, task }
    }

    /// Returns the next piece, or `None` at the end of the turn.
    pub async fn next(&mut self) -> Option<Result<Piece, OneShotError>> {
        StreamExt::next(self).await
    }

    /// Returns the whole answer. It is `None` until the stream has ended, and if it ended with an error.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Waits for the end of the turn and of the agent's process, and returns the whole answer.
    ///
    /// # Errors
    /// See [`OneShot::run`]. If the stream has already returned an error, this returns [`ClientError::Cancelled`].
    pub async fn collect(mut self) -> Result<Answer, OneShotError> {
        while let Some(piece) = self.next().await {
            piece?;
        }
        // If there is no answer, the stream has already returned an error.
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

/// Sends the prompt and forwards the pieces of the answer to `sender`.
async fn run(mut one_shot: OneShot, sender: mpsc::Sender<Message>) {
    let cwd = match &one_shot.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = match cwd {
        Ok(cwd) => cwd,
        Err(error) => {
            let _ = sender.send(Message::End(Err(error.into()))).await;
            return;
        }
    };
    let prompt = mem::take(&mut one_shot.prompt);
    let tracer = one_shot.tracer.take();
    let pieces = sender.clone();
    let end = sender.clone();
    let one_shot = one_shot.trace(move |trace| {
        if let Trace::Update(update) = trace {
            // We're on the client's thread here, so it's fine to block. If this fails, the reader was dropped, which
            // cancels the turn.
            let _ = pieces.blocking_send(Message::Piece(Piece::of(update)));
        }
        if let Some(tracer) = &tracer {
            tracer(trace);
        }
    });
    let outcome = one_shot.converse(move |client| match ask(client, &cwd, &prompt) {
        // Send the answer now, without waiting for the agent's process, which can take a while to end.
        Ok(answer) => {
            let _ = end.blocking_send(Message::End(Ok(answer)));
            None
        }
        Err(error) => Some(error),
    });
    let error = match outcome.await {
        Ok((error, _code)) => error.map(OneShotError::from),
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        let _ = sender.send(Message::End(Err(error))).await;
    }
}
