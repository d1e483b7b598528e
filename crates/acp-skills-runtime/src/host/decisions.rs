//! Changes the user's decisions about the skills of projects.

use std::time::Duration;

use acp_skills_intercept::{HostError, Reason, Refreshed, TrustOutcome, Workspace};
use skills_sources::trust;

use super::{RunningHost, blocking};

impl RunningHost {
    /// Changes the user's decisions, and returns the outcome and the skills of `workspaces` after it.
    pub(super) async fn decided(
        &self,
        workspaces: Vec<Workspace>,
        decide: impl FnOnce(&Self) -> trust::Decided + Send + 'static,
    ) -> (TrustOutcome, Refreshed) {
        let _refreshing = self.0.refreshing.lock().await;
        let reason = Reason::Changed(Duration::ZERO);
        let host = self.clone();
        let work = blocking(move || (decide(&host), host.refresh(workspaces, reason)));
        let (decided, refreshed) =
            work.await.unwrap_or_else(|_| (trust::Decided::default(), Refreshed::nothing(reason)));
        let trust::Decided { done, failed, unsaved, unknown, remaining } = decided;
        let saved = unsaved.map_or(Ok(()), |error| Err(HostError(error)));
        (TrustOutcome { done, failed, unknown, remaining, saved }, refreshed)
    }
}
