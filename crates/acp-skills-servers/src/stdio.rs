//! The transport of servers that are programs: one message per line.

use acp_skills_wire::Skim;
use skills_core::json::MAX_SHORT_BYTES;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader},
    process::{ChildStdin, ChildStdout},
    sync::mpsc::Receiver,
};

use super::messages::{Outgoing, Rpc};

/// The maximum length of a message in bytes. The request of a longer answer fails.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Connects `rpc` with the pipes of a program.
pub(super) fn connect(rpc: &Rpc, outgoing: Receiver<Outgoing>, stdin: ChildStdin, stdout: ChildStdout) {
    let (reader, writer) = (rpc.clone(), rpc.clone());
    tokio::spawn(async move {
        // When this ends, the program's input is closed.
        tokio::select! {
            () = write(outgoing, stdin) => {}
            () = writer.ended() => {}
        }
        writer.end();
    });
    tokio::spawn(async move {
        tokio::select! {
            () = read(&reader, stdout) => {}
            () = reader.ended() => {}
        }
        reader.end();
    });
}

/// Writes messages until the program closes its input.
async fn write(mut outgoing: Receiver<Outgoing>, mut stdin: ChildStdin) {
    while let Some(mut message) = outgoing.recv().await {
        message.line.push(b'\n');
        if stdin.write_all(&message.line).await.is_err() {
            break;
        }
    }
}

/// Reads messages until the end of the stream.
async fn read(rpc: &Rpc, stream: impl AsyncRead + Unpin) {
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    let mut line = Vec::new();
    // The message, if it is too long. Its bytes are not kept.
    let mut skipped: Option<Skim> = None;
    loop {
        let Ok(bytes) = reader.fill_buf().await else { return };
        if bytes.is_empty() {
            return;
        }
        let end = memchr::memchr(b'\n', bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        match &mut skipped {
            Some(skim) => skim.read(part),
            None if line.len() + part.len() > MAX_LINE_BYTES => {
                let mut skim = Skim::default();
                skim.read(&line);
                skim.read(part);
                skipped = Some(skim);
                line = Vec::new();
            }
            None => line.extend_from_slice(part),
        }
        let read = part.len() + usize::from(end.is_some());
        reader.consume(read);
        if end.is_none() {
            continue;
        }
        match skipped.take() {
            Some(skim) => rpc.refuse(&skim, "it is too long"),
            None if line.is_empty() => {}
            None if line.len() > MAX_SHORT_BYTES => rpc.receive_long(std::mem::take(&mut line)).await,
            None => rpc.receive(&line),
        }
        line.clear();
        line.shrink_to(64 * 1024);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{process::Stdio, time::Duration};

    use serde_json::json;
    use tokio::{process::Command, task::yield_now, time::timeout};
    use tokio_util::sync::CancellationToken;

    use super::{super::messages::Ignored, *};

    #[tokio::test]
    async fn a_program_that_does_not_read_any_more_has_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec <&-; echo '{}'; exec sleep 1000"]).kill_on_drop(true);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (rpc, outgoing) = Rpc::new(Box::new(Ignored), CancellationToken::new());
        connect(&rpc, outgoing, program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let writing = async {
            while !rpc.has_ended() {
                rpc.notify("notifications/test", &json!({}));
                yield_now().await;
            }
        };
        assert!(timeout(Duration::from_mins(1), writing).await.is_ok(), "the connection is still open");
    }
}
