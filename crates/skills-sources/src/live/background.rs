//! Fetches missing sources in the background.

use std::{io, mem, sync::Arc};

use parking_lot::Mutex;

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

/// The number of sources that are fetched at the same time. A source that hangs must not delay others, and a configuration has no more than
/// 64 sources.
const MAX_THREADS: usize = 64;

/// The number of times that a source is fetched if its approval changes in the meantime.
const MAX_FETCHES: usize = 3;

impl Sources {
    /// Fetches missing sources and waits for them. Returns a message for each failure, with a hint. Empty means success.
    pub fn fetch(&self) -> Vec<String> {
        let failed = Arc::new(Mutex::new(self.unapproved()));
        let missing = self.take_missing();
        let count = missing.len();
        let work: Work = {
            let (sources, failed) = (self.clone(), Arc::clone(&failed));
            Arc::new(move |index| {
                let message = sources.fetch_one(missing[index]);
                failed.lock().extend(message);
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
        mem::take(&mut failed.lock())
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
            let fetched = store.and_then(|store| fetch::fetch(spec, store, &self.0.options));
            let why = fetched.as_ref().err().map(message);
            if self.serve(number, fetched) {
                return why;
            }
        }
        let error = SourceError::Changed { address: spec.address.to_string() };
        self.with_state(|state| self.failed(state, number, &error));
        Some(message(&error))
    }

    /// Serves a source that was fetched, or records its failure. Returns false if its approval has changed since, so that it has to be
    /// fetched again.
    fn serve(&self, number: usize, fetched: Result<Fetched, SourceError>) -> bool {
        self.with_state(|state| match fetched {
            // Look while we have the state, because a later change leads to a reload.
            Ok(fetched) if !self.is_current(number, &fetched) => false,
            Ok(fetched) => {
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
            }
            // A source whose approval was changed in the meantime can be available, or wait for its approval.
            Err(_) if !matches!(state.statuses[number], Status::Fetching) => true,
            Err(error) => {
                self.failed(state, number, &error);
                true
            }
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
