//! Fetches missing sources in the background.

use std::{io, mem, sync::Arc};

use parking_lot::Mutex;
use skills_core::order;

use super::{
    super::{
        SourceError,
        lockfile::Pinned,
        parallel::{Work, on_threads},
    },
    Notify, Sources, State, Status,
    fetch::{self, Fetched},
    loading, message,
};

/// The number of sources that are fetched at the same time. It is as large as the number of sources in a configuration file, because a
/// source that hangs must not delay others.
const MAX_THREADS: usize = 64;

/// The number of times that a source is fetched if its approval changes in the meantime.
const MAX_FETCHES: usize = 3;

impl Sources {
    /// Fetches missing sources and waits for them. Returns a message for each failure, with a hint. Empty means success.
    pub fn fetch(&self) -> Vec<String> {
        let failed: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
        let mut messages = self.unapproved();
        let missing = self.take_missing();
        let count = missing.len();
        let work: Work = {
            let (sources, failed) = (self.clone(), Arc::clone(&failed));
            Arc::new(move |index| {
                let message = sources.fetch_one(missing[index]);
                failed.lock().extend(message.map(|message| (index, message)));
                true
            })
        };
        if let Ok(threads) = on_threads(count, MAX_THREADS, &work) {
            for thread in threads {
                let _ = thread.join();
            }
        } else {
            // We can't start a thread, so just fetch on this one.
            let _ = (0..count).all(|index| work(index));
        }
        let mut failed = mem::take(&mut *failed.lock());
        order::sort_by_key(&mut failed, |(index, _)| *index);
        messages.extend(failed.into_iter().map(|(_, message)| message));
        messages
    }

    pub(super) fn fetch_in_background(&self, notify: &Notify) {
        for message in self.unapproved() {
            tracing::warn!("{message}");
        }
        let missing = Arc::new(self.take_missing());
        for number in &*missing {
            let address = &self.0.specs[*number].address;
            // Log this as a warning, so that users can see why their skills are missing.
            tracing::warn!("skills from {address} are not in the cache yet; fetching in the background");
        }
        let work: Work = {
            let (sources, notify, missing) = (self.clone(), Arc::clone(notify), Arc::clone(&missing));
            Arc::new(move |index| {
                if let Some(why) = sources.fetch_one(missing[index]) {
                    tracing::warn!("{why}");
                }
                notify();
                true
            })
        };
        if let Err(error) = on_threads(missing.len(), MAX_THREADS, &work) {
            for number in &*missing {
                let error = io::Error::new(error.kind(), error.to_string());
                let error = SourceError::system(&self.0.specs[*number].address, error);
                self.with_state(|state| self.failed(state, *number, &error));
            }
        }
    }

    /// Returns the indexes of missing sources that are not being fetched yet, and marks them as being fetched.
    fn take_missing(&self) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        self.with_state(|state| {
            let is_missing = |status: &Status| matches!(status, Status::Absent | Status::Failed(_));
            let missing: Vec<_> =
                (0..state.statuses.len()).filter(|number| is_missing(&state.statuses[*number])).collect();
            for number in &missing {
                state.statuses[*number] = Status::Fetching;
            }
            self.assemble(state);
            missing
        })
    }

    /// Fetches a source and serves its skills. Returns a message if that fails.
    fn fetch_one(&self, number: usize) -> Option<String> {
        let span = tracing::info_span!("fetch", source = %self.0.specs[number].address);
        let _entered = span.enter();
        let spec = &self.0.specs[number];
        for _ in 0..MAX_FETCHES {
            let store = self.0.store.as_ref().ok_or(SourceError::NoCache);
            match store.and_then(|store| fetch::fetch(spec, store, &self.0.options)) {
                Ok(fetched) => {
                    if self.serve(number, fetched) {
                        return None;
                    }
                }
                Err(error) => return self.fail(number, &error),
            }
        }
        self.fail(number, &SourceError::ApprovalChanged { address: spec.address.to_string() })
    }

    /// Serves a source that was fetched. Returns false if its approval has changed since, so that it has to be fetched again.
    fn serve(&self, number: usize, fetched: Fetched) -> bool {
        self.with_state(|state| {
            // Look while we have the state, because a later change leads to a reload.
            if !self.is_current(number, &fetched) {
                return false;
            }
            self.hold(&mut state.in_use, number, &fetched.pinned);
            let here =
                self.0.store.as_ref().and_then(|store| self.load(number, &fetched.pinned, store, true));
            state.partly.remove(&number);
            state.statuses[number] = here.map_or(Status::Absent, Status::Here);
            if !fetched.is_saved {
                state.unsaved.insert(number, fetched.pinned);
            }
            self.assemble(state);
            true
        })
    }

    /// Records the failure of a fetch. Returns a message, unless a reload has changed the source in the meantime: then the source is
    /// available, or waits for its approval.
    fn fail(&self, number: usize, error: &SourceError) -> Option<String> {
        self.with_state(|state| {
            let is_fetching = matches!(state.statuses[number], Status::Fetching);
            is_fetching.then(|| {
                self.failed(state, number, error);
                message(error)
            })
        })
    }

    /// Returns true if the lock file still approves the version of a source that was fetched.
    fn is_current(&self, number: usize, fetched: &Fetched) -> bool {
        let spec = &self.0.specs[number];
        let Some(store) = self.0.store.as_ref().filter(|_| fetched.is_saved) else { return true };
        let (lock_file, _) = self.0.options.lock_file(&spec.lock, store);
        let approved = |pinned: &Pinned| (pinned.version().to_owned(), pinned.skills().cloned());
        lock_file.get(spec.address.as_str()).map(approved) == Some(approved(&fetched.pinned))
    }

    /// Records the failure of a source as a diagnostic for lists of skills.
    fn failed(&self, state: &mut State, number: usize, error: &SourceError) {
        state.statuses[number] = match error {
            SourceError::NotApproved { .. } => Status::Unapproved,
            error => Status::Failed(loading::finding("source-unavailable", error)),
        };
        self.assemble(state);
    }
}
