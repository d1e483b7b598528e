//! Looks for new versions of sources in the background, at most once a day for each source.
//!
//! All processes of a user share one file in the cache directory. Only one of them checks at a time, and a source that was just checked is
//! due a day later for all of them. The time of the attempt is written first, so that a process that is killed, or a host that doesn't
//! answer, leads to one attempt per hour. Only references and indexes are requested, and nothing is approved.

use std::{
    collections::{BTreeMap, hash_map::RandomState},
    hash::BuildHasher,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use skills_core::{skill::Sha256, text::shown};

use super::{
    super::{
        address::{Address, Place},
        git,
        lockfile::{LockFile, Pinned},
        store::Store,
    },
    Notify, Options, Sources,
};
use crate::disk::{FileLock, StateDir, state};

/// The time between two checks of a source.
const INTERVAL: Duration = Duration::from_hours(24);
/// The time after which an attempt that failed or was killed is repeated.
const RETRY: Duration = Duration::from_hours(1);
/// The time after which a source that is not checked anymore is forgotten.
const FORGOTTEN: Duration = Duration::from_hours(24 * 30);
/// The maximum delay of the first check, so that the machines of a team don't check at the same time.
const MAX_DELAY: Duration = Duration::from_mins(10);
/// The environment variable with another maximum delay in seconds.
const MAX_DELAY_VARIABLE: &str = "ACP_SKILLS_CHECK_DELAY";
/// The time for all checks of one run.
const TOTAL: Duration = Duration::from_mins(5);
/// The limits for one repository.
const LIMITS: git::Limits = git::Limits {
    bytes: 32 * 1024 * 1024,
    total: Duration::from_secs(30),
    answer: Duration::from_secs(10),
    stall: Duration::from_secs(10),
};
/// The timeout for a web site.
const WEB_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the state file and of its directory.
const NAME: &str = "updates";

/// The results of the checks, by address.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Checks {
    sources: BTreeMap<String, Check>,
}

/// The check of a source. Times are seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Check {
    attempted: u64,
    checked: u64,
    /// The approved version at the time of the check.
    approved: String,
    /// The version of the source.
    version: String,
    /// The tag of this version.
    tag: Option<String>,
}

impl Check {
    fn is_due(&self, now: u64) -> bool {
        // If the clock was set back, a time can be in the future.
        let is_over = |at: u64, time: Duration| at > now || now - at >= time.as_secs();
        is_over(self.checked, INTERVAL) && is_over(self.attempted, RETRY)
    }
}

impl Checks {
    /// Reads the results. Empty if there are none.
    pub(crate) fn read(cache: &Path) -> Self {
        state::read(&cache.join(NAME).join(NAME).with_extension("json")).ok().flatten().unwrap_or_default()
    }

    /// Returns the tag or the commit of a newer version, or the checksum of a newer index. `None` if no newer one is known.
    pub(crate) fn news(&self, address: &Address, pinned: &Pinned) -> Option<String> {
        let check = self.sources.get(address.as_str())?;
        let is_new = check.approved == pinned.version() && check.version != check.approved;
        let name = || check.tag.clone().unwrap_or_else(|| check.version.chars().take(12).collect());
        is_new.then(name).filter(|name| !name.is_empty())
    }

    /// Returns a sentence about a newer version.
    pub(super) fn notice(&self, address: &Address, pinned: &Pinned) -> Option<String> {
        let version = self.news(address, pinned)?;
        Some(format!("{} has a new version: {}", shown(address.as_str()), shown(&version)))
    }
}

/// Checks the sources that are due. Returns the number of sources that were reached.
fn run(sources: &[(Address, Pinned)], options: &Options, store: &Store, now: u64) -> usize {
    let dir = store.dir().join(NAME);
    let file = dir.join(NAME).with_extension("json");
    if StateDir::open(&dir).is_err() {
        return 0;
    }
    // If another process holds the lock, it is checking.
    let Some(_lock) = FileLock::try_acquire(&dir.join("lock")) else { return 0 };
    let mut checks = Checks::read(store.dir());
    let is_due = |(address, _): &&(Address, Pinned)| {
        checks.sources.get(address.as_str()).is_none_or(|check| check.is_due(now))
    };
    let due: Vec<_> = sources.iter().filter(is_due).collect();
    if due.is_empty() {
        return 0;
    }
    for (address, _) in &due {
        checks.sources.entry(address.to_string()).or_default().attempted = now;
    }
    checks.sources.retain(|_, check| now.saturating_sub(check.attempted) < FORGOTTEN.as_secs());
    if state::write(&file, Some(&checks)).is_err() {
        // Without a record, every start would check.
        return 0;
    }
    let started = Instant::now();
    let mut reached = 0;
    for (address, pinned) in due {
        if started.elapsed() >= TOTAL {
            break;
        }
        let found = match current(address, pinned, options, store) {
            Ok(Some(found)) => found,
            Ok(None) => git::Found { commit: pinned.version().to_owned(), tag: None },
            Err(why) => {
                tracing::debug!("cannot check {address} for a new version: {why}");
                continue;
            }
        };
        reached += 1;
        let check = checks.sources.entry(address.to_string()).or_default();
        check.checked = now;
        pinned.version().clone_into(&mut check.approved);
        check.version = found.commit;
        check.tag = found.tag;
    }
    if let Err(error) = state::write(&file, Some(&checks)) {
        tracing::debug!("cannot save the check for new versions: {error}");
    }
    reached
}

/// Returns the current version of a source. `None` if it has no version that can change.
fn current(
    address: &Address,
    pinned: &Pinned,
    options: &Options,
    store: &Store,
) -> Result<Option<git::Found>, Box<dyn std::error::Error>> {
    match address.place() {
        Place::Git(place) => {
            Ok(store.for_newer_than(Some(pinned)).find(place, options.observer.clone(), &LIMITS)?)
        }
        Place::Web(url) => {
            let known = store.index(url, pinned.version());
            let text = store.fetch_text(url, known.as_ref(), WEB_TIMEOUT)?;
            let digest = text.map(|index| Sha256::of(index.text.as_bytes()).to_string());
            Ok(digest.map(|commit| git::Found { commit, tag: None }))
        }
    }
}

/// Returns a random delay.
fn delay() -> Duration {
    let max = std::env::var(MAX_DELAY_VARIABLE).ok().and_then(|text| text.parse().ok());
    let max = max.map_or(MAX_DELAY, Duration::from_secs);
    let random = RandomState::new().hash_one(std::process::id());
    Duration::from_millis(random % (u64::try_from(max.as_millis()).unwrap_or(u64::MAX).max(1)))
}

impl Sources {
    /// Checks for new versions on a background thread, now and then as long as the process runs. Calls `notify` after a check that has
    /// reached a source.
    pub(super) fn check_in_background(&self, notify: &Notify) {
        let Some(store) = self.0.store.clone() else { return };
        let sources = self.clone();
        let notify = Notify::clone(notify);
        let work = move || {
            loop {
                thread::sleep(delay());
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                if run(&sources.pinned(), &sources.0.options, &store, now) > 0 {
                    sources.reload();
                    notify();
                }
                thread::sleep(RETRY);
            }
        };
        // If we can't start a thread, there is no check.
        let _ = thread::Builder::new().name("updates".to_owned()).spawn(work);
    }

    /// Returns the sources that are in a lock file, with their approved versions.
    fn pinned(&self) -> Vec<(Address, Pinned)> {
        let pinned = |spec: &super::Spec| {
            let lock = LockFile::read(&spec.lock).ok()?;
            Some((spec.address.clone(), lock.get(spec.address.as_str())?.clone()))
        };
        self.0.specs.iter().filter_map(pinned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;
    use crate::PinnedGit;

    const DAY: u64 = 24 * 60 * 60;

    /// A repository with one commit.
    fn repository(dir: &Path) -> Address {
        let path = dir.join("repository");
        fs::create_dir_all(&path).unwrap();
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["-c", "user.name=t", "-c", "user.email=t@e", "commit", "--quiet", "--allow-empty", "-m", "m"],
        ] {
            let mut git = Command::new("git");
            git.args(arguments).current_dir(&path).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(git.status().unwrap().success());
        }
        let path = path.to_str().unwrap().replace('\\', "/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        Address::parse(&format!("git+file://{slash}{path}")).unwrap()
    }

    fn pinned(digit: char) -> Pinned {
        Pinned::Git(PinnedGit::new(digit.to_string().repeat(40), BTreeMap::new()))
    }

    #[test]
    fn a_source_is_checked_once_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let sources = [(repository(dir.path()), pinned('a'))];
        let store = Store::new(dir.path().join("cache"));
        let now = 100 * DAY;
        // Many processes start at the same time.
        let reached: usize = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..20).map(|_| scope.spawn(|| run(&sources, &Options::default(), &store, now))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(reached, 1);
        let check = |now| run(&sources, &Options::default(), &store, now);
        assert_eq!((check(now + DAY - 1), check(now + DAY), check(now + DAY + 1)), (0, 1, 0));
        // The clock was set back.
        assert_eq!((check(now), check(now + 1)), (1, 0));
        let checks = Checks::read(store.dir());
        let news = |digit| checks.news(&sources[0].0, &pinned(digit));
        assert_eq!(news('a').map(|version| version.len()), Some(12));
        // The source was updated or declined since the check.
        assert_eq!(news('b'), None);
    }

    #[test]
    fn a_source_that_cannot_be_reached_is_tried_once_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::parse(&format!("git+file://{}/none", dir.path().display())).unwrap();
        let sources = [(address, pinned('a'))];
        let store = Store::new(dir.path().join("cache"));
        let attempted = |now| {
            run(&sources, &Options::default(), &store, now);
            Checks::read(store.dir()).sources[sources[0].0.as_str()].attempted
        };
        let now = 100 * DAY;
        assert_eq!((attempted(now), attempted(now + 3599), attempted(now + 3600)), (now, now, now + 3600));
        // A broken file is replaced. A cache that can't be written prevents the check.
        fs::write(store.dir().join("updates/updates.json"), "{").unwrap();
        assert_eq!(attempted(now + 1), now + 1);
        fs::write(dir.path().join("file"), "").unwrap();
        assert_eq!(run(&sources, &Options::default(), &Store::new(dir.path().join("file")), now), 0);
    }
}
