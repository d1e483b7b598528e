//! [`Turn`]: an answer as it comes.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use anyhow::anyhow;
use futures::{Stream, StreamExt};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Answer, OneShot, Seen, Watch, talk};
use crate::client::Line;

/// How many pieces wait for whoever reads them; then the agent waits.
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

/// What the reader hears.
enum Heard {
    Piece(Piece),
    End(anyhow::Result<Answer>),
}

/// A turn that goes on: a stream of what the agent says. It ends with the turn, or with an error.
///
/// Dropping it before its end cancels the turn and ends the agent.
#[must_use = "a turn that is dropped is cancelled"]
#[derive(Debug)]
pub struct Turn {
    heard: mpsc::Receiver<Heard>,
    line: Line,
    answer: Option<Answer>,
    is_over: bool,
    task: JoinHandle<()>,
}

impl Turn {
    pub(super) fn start(one_shot: OneShot) -> Self {
        let (say, heard) = mpsc::channel(MAX_WAITING);
        let line = one_shot.line.clone();
        let task = tokio::spawn(converse(one_shot, say));
        Self { heard, line, answer: None, is_over: false, task }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<anyhow::Result<Piece>> {
        StreamExt::next(self).await
    }

    /// What the agent said, once the turn is over.
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Waits for the end of the turn, and of the agent.
    ///
    /// # Errors
    /// The agent does not start, refuses, or goes away.
    pub async fn collect(mut self) -> anyhow::Result<Answer> {
        while let Some(piece) = self.next().await {
            piece?;
        }
        let answer = self.answer.take().ok_or_else(|| anyhow!("the turn has no end"))?;
        (&mut self.task).await?;
        Ok(answer)
    }
}

impl Stream for Turn {
    type Item = anyhow::Result<Piece>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let heard = ready!(self.heard.poll_recv(context));
        if let Some(Heard::Piece(piece)) = heard {
            return Poll::Ready(Some(Ok(piece)));
        }
        self.is_over = true;
        Poll::Ready(match heard {
            Some(Heard::End(Ok(answer))) => {
                self.answer = Some(answer);
                None
            }
            Some(Heard::End(Err(error))) => Some(Err(error)),
            _ => Some(Err(anyhow!("the conversation was given up"))),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.line.cancel();
        }
    }
}

/// Has the conversation, and says what is heard.
async fn converse(mut one_shot: OneShot, say: mpsc::Sender<Heard>) {
    let cwd = match &one_shot.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = match cwd {
        Ok(cwd) => cwd,
        Err(error) => return drop(say.send(Heard::End(Err(error.into()))).await),
    };
    let (prompt, also) = (std::mem::take(&mut one_shot.prompt), one_shot.watch.take());
    let pieces = say.clone();
    let watch: Watch = std::sync::Arc::new(move |seen| {
        if let Seen::Update(update) = seen {
            // The client's own thread, which may wait. Whoever does not listen any more has cancelled the turn.
            drop(pieces.blocking_send(Heard::Piece(Piece::of(update))));
        }
        if let Some(also) = &also {
            also(seen);
        }
    });
    let end = say.clone();
    let said = one_shot.watch(watch).converse(move |client| match talk(client, &cwd, &prompt) {
        // The agent takes its time to leave, and the answer is there.
        Ok(answer) => {
            drop(end.blocking_send(Heard::End(Ok(answer))));
            None
        }
        Err(error) => Some(error),
    });
    let error = match said.await {
        Ok((error, _code)) => error,
        Err(error) => Some(error),
    };
    if let Some(error) = error {
        drop(say.send(Heard::End(Err(error))).await);
    }
}
