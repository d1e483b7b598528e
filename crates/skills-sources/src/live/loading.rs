//! Reads lock files, loads the approved versions of several sources from the store at the same time, because all of their files are
//! hashed, and collects the skills of all sources.

use std::{
    num::NonZero,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use skills_core::{
    Diagnostic, SkillSet,
    set::{SOURCE_ABSENT, SOURCE_FETCHING, Skipped},
};

use super::{
    super::{
        SourceError,
        git::GitError,
        load::{self, Wanted},
        lockfile::{LockError, LockFile, Pinned},
        store::Store,
    },
    Options, Sources, State, Status, fetch, message,
};

/// The maximum number of threads.
const MAX_THREADS: usize = 8;

/// The skills of a source.
pub(super) struct Loaded {
    /// The index of the source.
    pub(super) number: usize,
    pub(super) skills: SkillSet,
    /// False if some of the approved skills have to be fetched first.
    pub(super) is_whole: bool,
}

impl Options {
    /// Returns the store in the cache directory, if there is one.
    pub(super) fn store(&self) -> Option<Store> {
        let store = Store::new(self.cache.clone()?)
            .with_max_bytes(self.max_fetch_bytes)
            .with_credentials(self.credentials.clone())
            .with_policy(self.policy.clone());
        Some(store)
    }

    /// Reads a lock file. If that fails, returns the last readable version with the error, unless the file is that of an administrator,
    /// because users can change the copy of the last version.
    pub(super) fn lock_file(&self, path: &Path, store: &Store) -> (LockFile, Option<LockError>) {
        let (lock_file, broken) = LockFile::read_or_last(path, store.dir());
        if broken.is_some() && self.is_governed() {
            (LockFile::default(), broken)
        } else {
            (lock_file, broken)
        }
    }

    /// Returns true if the lock file is that of an administrator.
    pub(super) fn is_governed(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.lock().is_some())
    }
}

/// Returns the finding about a source that can't be used.
pub(super) fn finding(code: &'static str, error: &SourceError) -> Diagnostic {
    match error {
        SourceError::Refused(refusal) => refusal.finding(),
        SourceError::Git { source: GitError::Registry(refusal), .. } => refusal.finding(),
        error => Diagnostic::error(code, error.to_string()).help(error.hint()),
    }
}

impl Sources {
    /// Returns a message for each source that waits for approval, with a hint.
    pub(super) fn unapproved(&self) -> Vec<String> {
        if self.is_empty() {
            return Vec::new();
        }
        self.with_state(|state| {
            let specs = self.0.specs.iter().zip(&state.statuses);
            let unapproved = specs.filter(|(_, status)| matches!(status, Status::Unapproved));
            unapproved.map(|(spec, _)| message(&fetch::not_approved(spec, &self.0.options))).collect()
        })
    }

    /// Loads the approved version of a source. Returns `None` if it has to be fetched first. With `partly`, skills that stay at another
    /// version can be missing.
    pub(super) fn load(
        &self,
        number: usize,
        pinned: &Pinned,
        store: &Store,
        partly: bool,
    ) -> Option<SkillSet> {
        let spec = &self.0.specs[number];
        let options = &self.0.options;
        let wanted = Wanted::new(&spec.filters, options.max_skills, spec.nested, options.policy.as_deref());
        load::load(&spec.address, pinned, store, &wanted, partly)
    }

    /// Collects the skills of all sources, with a diagnostic for each source that has to be fetched or approved first.
    pub(super) fn assemble(&self, state: &mut State) {
        let mut skills = SkillSet::builder();
        for (number, (spec, status)) in self.0.specs.iter().zip(&state.statuses).enumerate() {
            state.partly.get(&number).into_iter().for_each(|set| skills.extend(set));
            let why = match status {
                Status::Here(set) => {
                    skills.extend(set);
                    continue;
                }
                Status::Absent => {
                    Diagnostic::warning(SOURCE_ABSENT, format!("{} is not in the cache", spec.address))
                        .help(format!("use `acp-skills-proxy update '{}'` to fetch the source", spec.address))
                }
                Status::Fetching => Diagnostic::warning(
                    SOURCE_FETCHING,
                    format!("fetching {} in the background", spec.address),
                ),
                Status::Unapproved => {
                    finding("source-not-approved", &fetch::not_approved(spec, &self.0.options))
                }
                Status::Failed(why) => why.clone(),
            };
            skills.skip(Skipped::new(spec.address.as_str(), vec![why]));
        }
        for notice in &state.notices {
            skills.notice(notice);
        }
        state.skills = skills.build();
    }

    /// Loads the approved versions of sources, which are given by their index. Sources without any available skill are left out.
    pub(super) fn load_all(&self, pinned: &[(usize, Pinned)]) -> Vec<Loaded> {
        let Some(store) = &self.0.store else { return Vec::new() };
        let next = AtomicUsize::new(0);
        let work = || {
            let mut loaded = Vec::new();
            while let Some((number, pinned)) = pinned.get(next.fetch_add(1, Ordering::Relaxed)) {
                let load = |partly| self.load(*number, pinned, store, partly);
                let whole = load(false);
                let is_whole = whole.is_some();
                let skills = whole.or_else(|| load(true));
                loaded.extend(skills.map(|skills| Loaded { number: *number, skills, is_whole }));
            }
            loaded
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let helpers = cores.min(pinned.len()).min(MAX_THREADS).saturating_sub(1);
        thread::scope(|scope| {
            // If a thread can't be started, the others load its share.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let helping: Vec<_> = (0..helpers).filter_map(start).collect();
            let mut loaded = work();
            loaded.extend(helping.into_iter().filter_map(|helper| helper.join().ok()).flatten());
            loaded
        })
    }
}

#[cfg(test)]
mod tests {
    use skills_core::set::REFUSED_BY_POLICY;

    use super::*;
    use crate::{Address, policy::Policy};

    #[test]
    fn each_refusal_has_the_code_of_the_policy() {
        let policy = Policy::parse("sources: {allow: []}", Path::new("policy.yaml")).unwrap();
        let address = Address::parse("npm:demo").unwrap();
        let registry = policy.registry("https://npm.example").unwrap_err();
        for error in [
            SourceError::Refused(policy.source(&address).unwrap_err()),
            SourceError::git(&address, GitError::Registry(registry.into())),
        ] {
            assert_eq!(finding("source-unavailable", &error).code, REFUSED_BY_POLICY, "{error}");
        }
        let error = SourceError::git(&address, GitError::OtherArchive);
        assert_eq!(finding("source-unavailable", &error).code, "source-unavailable");
    }
}
