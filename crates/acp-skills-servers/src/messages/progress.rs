//! [`Progress`]: the progress of a call.

use serde_json::Value;
use skills_core::text::shorten;
use tokio::sync::mpsc;

/// The maximum number of reports of progress that wait to be passed on. Further ones are dropped.
const MAX_REPORTS: usize = 64;
/// The maximum length of the text of a report, in characters. The rest is cut off.
const MAX_CHARS: usize = 1_000;

/// Creates a channel for the progress of a call.
pub fn progress_channel() -> (mpsc::Sender<Progress>, mpsc::Receiver<Progress>) {
    mpsc::channel(MAX_REPORTS)
}

/// The progress of a call, as a server reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The progress so far, in a unit that the server chooses.
    pub value: f64,
    /// The value at the end of the call, if the server knows it.
    pub total: Option<f64>,
    /// A text for the user.
    pub message: Option<String>,
}

impl Progress {
    /// Reads a notification. Returns `None` if it has no value.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let message = params["message"].as_str().map(|text| shorten(text, MAX_CHARS).into_owned());
        Some(Self { value: params["progress"].as_f64()?, total: params["total"].as_f64(), message })
    }
}
