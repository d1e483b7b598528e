//! [`Listing`]: the tools of a running server, which are listed once, and again when they have changed.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use skills_core::{text::shown, tool::OfferedTool};
use tokio::sync::Mutex;

use super::ServerError;

/// The maximum number of tools of a server. Others are left out.
const MAX_TOOLS: usize = 500;
/// The maximum length of the description and the schema of one tool, in bytes of JSON. Longer tools are left out.
const MAX_TOOL_BYTES: usize = 64 * 1024;
/// The maximum length of the name of a tool in a message, in bytes.
const MAX_SHOWN: usize = 80;
/// The maximum length of all descriptions and schemas, in bytes of JSON. Further tools are left out.
const MAX_TOOLS_BYTES: usize = 512 * 1024;

/// The tools of a server at one moment.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) tools: Vec<OfferedTool>,
    /// The number of tools that the server has. Those after them stand for its prompts and resources.
    own: usize,
    /// The number of changes that the server had announced before.
    changes: u64,
}

impl Listed {
    /// Returns the tools that the server has, without those that stand for its prompts and resources.
    pub(super) fn own(&self) -> &[OfferedTool] {
        self.tools.get(..self.own).unwrap_or_default()
    }
}

/// The tools of a server, and those before if they were listed again.
pub(super) struct Tools {
    pub(super) now: Arc<Listed>,
    pub(super) before: Option<Arc<Listed>>,
}

/// The tools of a running server, as they were listed last.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Guards the tools. It is held while they are listed, so that other callers wait for them.
    state: Mutex<State>,
    /// The number of times that the tools could not be listed.
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    listed: Option<Arc<Listed>>,
    /// The reason why the tools could not be listed last time.
    failure: Option<ServerError>,
}

impl Listing {
    /// Returns the tools. If they were not listed before, or have changed since, lists them with `list`. `changes` is the number of
    /// changes that the server has announced. Callers that have waited for a list that has failed get its error, so that their waiting
    /// times don't add up.
    pub(super) async fn tools<F>(
        &self,
        changes: &AtomicU64,
        list: impl FnOnce() -> F,
    ) -> Result<Tools, ServerError>
    where
        F: Future<Output = Result<Listed, ServerError>>,
    {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        if failures != self.failures.load(Ordering::Relaxed)
            && let Some(failure) = &state.failure
        {
            return Err(failure.clone());
        }
        // If the listing fails or is cancelled, the next call lists them again.
        let changes = changes.load(Ordering::Relaxed);
        let before = match &state.listed {
            Some(now) if now.changes == changes => {
                return Ok(Tools { now: Arc::clone(now), before: None });
            }
            before => before.clone(),
        };
        let listed = list().await.inspect_err(|error| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            state.failure = Some(error.clone());
        });
        let now = Arc::new(Listed { changes, ..listed? });
        state.listed = Some(Arc::clone(&now));
        Ok(Tools { now, before })
    }
}

/// The tools of a list, within the limits.
#[derive(Default)]
pub(super) struct Tally {
    listed: Listed,
    names: HashSet<String>,
    bytes: usize,
    /// The number of tools that were left out, and the name of the first one.
    left_out: usize,
    first_left_out: String,
}

impl Tally {
    /// Adds a tool, or leaves it out. Returns false if there is no room for further tools.
    pub(super) fn add(&mut self, tool: &Value) -> bool {
        let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty()) else { return true };
        let description = tool["description"].as_str().or_else(|| tool["title"].as_str()).unwrap_or_default();
        let schema = Some(&tool["inputSchema"]).filter(|schema| schema.is_object());
        let bytes = name.len() + description.len() + schema.map_or(0, |schema| schema.to_string().len());
        if bytes > MAX_TOOL_BYTES || !self.names.insert(name.to_owned()) {
            return self.leave_out(name);
        }
        if self.listed.tools.len() == MAX_TOOLS || self.bytes + bytes > MAX_TOOLS_BYTES {
            tracing::warn!(first = %shown_start(name), "left out the last tools: too many");
            return false;
        }
        self.bytes += bytes;
        self.listed.tools.push(OfferedTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema.cloned(),
            read_only: tool["annotations"]["readOnlyHint"] == true,
        });
        true
    }

    /// Counts a tool that is too long, or listed twice. Returns false if there are too many of them.
    fn leave_out(&mut self, name: &str) -> bool {
        if self.left_out == 0 {
            self.first_left_out = shown_start(name);
        }
        self.left_out += 1;
        self.left_out < MAX_TOOLS
    }

    /// Returns the number of tools that were added.
    pub(super) fn len(&self) -> usize {
        self.listed.tools.len()
    }

    /// Returns the tools that were added. The first `own` are those that the server has.
    pub(super) fn into_listed(self, own: usize) -> Listed {
        let Self { left_out, first_left_out, .. } = &self;
        if *left_out > 0 {
            tracing::warn!(left_out, first = %first_left_out, "left out tools: too long, or listed twice");
        }
        Listed { own, ..self.listed }
    }
}

/// Returns the start of a name for a log.
fn shown_start(name: &str) -> String {
    shown(&name[..name.floor_char_boundary(MAX_SHOWN)]).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{future::pending, time::Duration};

    use tokio::time::timeout;

    use super::*;

    /// All callers fail with the first one. A later call lists the tools again.
    #[tokio::test]
    async fn callers_share_the_failure_that_they_have_waited_for() {
        let listing = Listing::default();
        let changes = AtomicU64::default();
        let lists = AtomicU64::default();
        let fails = || async {
            lists.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Err(ServerError::Ended)
        };
        let (first, second, third) = tokio::join!(
            listing.tools(&changes, fails),
            listing.tools(&changes, fails),
            listing.tools(&changes, fails),
        );
        for result in [first, second, third] {
            assert_eq!(result.err(), Some(ServerError::Ended));
        }
        assert_eq!(lists.load(Ordering::Relaxed), 1);
        // A cancelled list is not a failure.
        let cancelled = listing.tools(&changes, pending);
        assert!(timeout(Duration::ZERO, cancelled).await.is_err());
        let listed = listing.tools(&changes, || async { Ok(Listed::default()) }).await;
        assert!(listed.is_ok_and(|tools| tools.before.is_none()));
        // The list is kept until the server announces a change.
        assert!(listing.tools(&changes, fails).await.is_ok());
        changes.fetch_add(1, Ordering::Relaxed);
        assert_eq!(listing.tools(&changes, fails).await.err(), Some(ServerError::Ended));
    }
}
