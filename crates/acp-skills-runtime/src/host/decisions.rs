//! Changes the user's decisions: trust in skills of projects, and skills that are off.

use std::{io, path::Path, time::Duration};

use acp_skills_intercept::{HostError, Reason, Refreshed, TrustOutcome, Workspace};
use skills_core::SkillName;
use skills_sources::trust;
use tokio::task::JoinError;

use super::{RunningHost, blocking};

/// The reasons why a decision about skills could not be saved.
#[derive(Debug, thiserror::Error)]
pub(super) enum SaveError {
    #[error("proxy was started without `--state DIR`")]
    NoStore,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Interrupted(#[from] JoinError),
}

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
        let trust::Decided { done, failed, unsaved, unknown, absent, remaining } = decided;
        let saved = unsaved.map_or(Ok(()), |error| Err(HostError(error)));
        (TrustOutcome { done, failed, unknown, absent, remaining, saved }, refreshed)
    }

    /// Saves that skills are on or off in a directory. This may block, because it writes to disk.
    pub(super) fn save_switches(&self, cwd: &Path, names: &[SkillName], on: bool) -> Result<(), SaveError> {
        let switches = self.0.switches.as_ref().ok_or(SaveError::NoStore)?;
        Ok(switches.save(cwd, names, on)?)
    }
}
