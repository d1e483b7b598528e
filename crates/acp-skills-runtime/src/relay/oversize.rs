//! Messages that exceed the maximum size: they are skipped, and waiting requests get an error.

use acp_skills_wire::{INTERNAL_ERROR, INVALID_REQUEST, Kind, Skim, build};

/// The default maximum size of a message, in bytes.
pub const DEFAULT_MAX_MESSAGE: usize = 256 << 20;

/// The line that a message is replaced with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// An error response for the side that sent the request.
    Answer(Vec<u8>),
    /// An error response that takes the place of the response, for the side that sent the request.
    Response(Vec<u8>),
    /// A notification, or a message whose id can't be read, is dropped.
    Nothing,
}

/// Returns the replacement for a message of `from` that is longer than `max_message` bytes, and logs it.
pub(super) fn replace(skim: &Skim, from: &str, max_message: usize) -> Replacement {
    let limit = if max_message.is_multiple_of(1 << 20) {
        format!("{} MiB", max_message >> 20)
    } else {
        format!("{max_message} bytes")
    };
    let text = format!("the message is longer than {limit}, the limit of acp-skills-proxy (`--max-message`)");
    let (replacement, outcome) = match skim.addressee() {
        Some((id, Kind::Request)) => {
            (Replacement::Answer(build::error(&id, INVALID_REQUEST, &text)), "it was answered with an error")
        }
        Some((id, Kind::Response)) => (
            Replacement::Response(build::error(&id, INTERNAL_ERROR, &text)),
            "an error was sent in its place",
        ),
        Some((_, Kind::Notification)) | None => (Replacement::Nothing, "it was dropped"),
    };
    tracing::warn!(
        "a message of {from} is longer than {limit}, so {outcome}; raise the limit with `--max-message`"
    );
    replacement
}

/// Returns true if one of these lines is longer than `max_message` bytes, without its line break.
pub(super) fn any_is_too_long(lines: &[u8], max_message: usize) -> bool {
    lines.len() > max_message && lines.split(|&byte| byte == b'\n').any(|line| line.len() > max_message)
}
