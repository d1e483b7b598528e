//! Fetches a version of a source from the place where it is published: a git repository, an archive or an npm package.
//!
//! For archives and packages, [`Known`] remembers the version of the last fetch and what the server needs to know to say that it has not
//! changed.

use std::{
    fs::{self, File},
    io::{self, Seek},
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use skills_core::{exec::ProcessObserver, skill::Sha256};

use super::{
    access::{Access, Credentials, Server, Validator},
    address::{GitPlace, Transport},
    archive,
    git::{self, Fetched, Found, GitError, Limits, Targets, mebibytes},
    npm::Package,
    policy::Policy,
    temporary::Temporary,
};
use crate::disk::{private, state};

/// The file that exists if most files of a repository belong to skills.
const MOSTLY_SKILLS: &str = "mostly-skills";

/// The settings for fetching sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins {
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// The rules of an administrator about the registries of packages.
    pub(super) policy: Option<Arc<Policy>>,
    /// The registry of the approved version of a package, as in the lock file. New versions of others are refused.
    pub(super) registry: Option<String>,
    /// True if only approved versions are fetched.
    pub(super) is_approved: bool,
}

/// A place, and the file with its last known version.
pub(super) struct Origin<'a> {
    pub(super) place: &'a GitPlace,
    pub(super) known: PathBuf,
    pub(super) limits: &'a Limits,
    pub(super) origins: &'a Origins,
}

/// The version of a place at the time of the last request.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    url: String,
    validator: Validator,
    commit: String,
    tag: Option<String>,
}

impl Origins {
    /// Returns the settings of the user for a source.
    pub(super) fn access(&self, url: &str) -> Result<Access, GitError> {
        let access = self.credentials.as_ref().map(|credentials| credentials.access(url));
        Ok(access.transpose().map_err(GitError::Credentials)?.unwrap_or_default())
    }

    /// Returns the server of a site or an archive, with the credentials for it.
    pub(super) fn server(&self, url: &str) -> Result<Server, GitError> {
        Ok(Server::new(url, self.access(url)?.headers))
    }
}

impl Origin<'_> {
    /// Fetches the skills of a place and writes them to `directory`, like [`git::fetch`]. `scratch` is an empty directory for other files.
    pub(super) fn fetch(
        &self,
        version: Option<&Found>,
        directory: &Path,
        scratch: &Path,
        observer: Option<Arc<dyn ProcessObserver>>,
        verify: bool,
    ) -> Result<Fetched, GitError> {
        if self.place.transport.is_git() {
            // If the fetch fails, the next one doesn't expect that.
            let marker = self.directory().join(MOSTLY_SKILLS);
            let expects_skills = fs::remove_file(&marker).is_ok();
            let fetch = |scratch: &Path, expects_skills| {
                let targets = Targets { directory, scratch, verify, expects_skills };
                git::fetch(self.place, version, targets, observer.clone(), self.limits)
            };
            let fetched = match fetch(&scratch.join("first"), expects_skills) {
                // Other files can have been added, and they are not needed.
                Err(GitError::TooMuch(_)) if expects_skills => {
                    // The directory is removed in any case, later.
                    let _ = fs::remove_dir_all(scratch.join("first"));
                    fetch(&scratch.join("second"), false)?
                }
                fetched => fetched?,
            };
            if fetched.is_mostly_skills {
                let _ = File::create(marker);
            }
            return Ok(fetched);
        }
        let commit = version.map(|version| version.commit.as_str());
        let failed = |source| GitError::Write { path: scratch.to_owned(), source };
        let file = File::options().read(true).write(true).create_new(true).open(scratch.join("archive"));
        let file = &mut file.map_err(failed)?;
        let (found, package) = if self.place.transport == Transport::Npm {
            let package = self.package()?;
            let found = self.download_package(&package, commit, file);
            // The approved version can still be in its registry.
            let found = found.map_err(|error| match error {
                GitError::OtherArchive => self.in_other_registry(&package).unwrap_or(error),
                error => error,
            });
            (found?, Some(package))
        } else {
            (self.download_archive(commit, file)?, None)
        };
        let mut notes = archive::unpack(file, directory, self.limits)?;
        notes.extend(package.as_ref().map(Package::note));
        Ok(Fetched {
            commit: found.commit,
            tag: found.tag,
            committed: None,
            has_signed_tag: false,
            registry: package.map(|package| package.recorded()),
            notes,
            is_mostly_skills: false,
        })
    }

    fn download_archive(&self, commit: Option<&str>, file: &mut File) -> Result<Found, GitError> {
        let url = &self.place.url;
        // The credentials are those of the site that lists the archive.
        let server = self.origins.server(if self.place.path.is_empty() { url } else { &self.place.path })?;
        let validator = server.download(url, file, self.limits.bytes, self.limits.total)?;
        let actual = checksum(file)?;
        if let Some(expected) = self.place.reference.as_ref().filter(|expected| **expected != actual) {
            return Err(GitError::Checksum { expected: expected.clone(), actual });
        }
        if commit.is_some_and(|commit| commit != actual) {
            return Err(GitError::OtherArchive);
        }
        let found = Found { commit: actual, tag: None };
        // An archive with a checksum is never looked for again.
        if self.place.reference.is_none() {
            self.remember(url, validator, &found);
        }
        Ok(found)
    }

    /// Downloads a version of a package.
    fn download_package(
        &self,
        package: &Package<'_>,
        commit: Option<&str>,
        file: &mut File,
    ) -> Result<Found, GitError> {
        let Some((version, validator)) = package.find(commit, None, self.limits.stall)? else {
            return Err(GitError::OtherArchive);
        };
        package.server.download(&version.url, file, self.limits.bytes, self.limits.total)?;
        rewind(file)?;
        version.check(file)?;
        let found = Found { commit: version.commit, tag: Some(version.number) };
        if commit.is_none() {
            self.remember(&package.url(), validator, &found);
        }
        Ok(found)
    }

    /// Returns the package of the place in the registry that the settings name.
    ///
    /// # Errors
    /// Returns an error if the policy refuses the registry, or if the approved version comes from another one. An approved version itself
    /// may come from any registry, because its checksum is known, but headers are only sent to the approved one.
    fn package(&self) -> Result<Package<'_>, GitError> {
        let access = self.origins.access(&self.place.url)?;
        let package = Package::new(self.place, &access)?;
        if (!self.origins.is_approved || !access.headers.is_empty())
            && let Some(error) = self.in_other_registry(&package)
        {
            return Err(error);
        }
        if let Some(policy) = &self.origins.policy {
            policy.registry(&package.registry).map_err(|refusal| GitError::Registry(refusal.into()))?;
        }
        Ok(package)
    }

    /// Returns an error if a package is not in the registry of its approved version.
    fn in_other_registry(&self, package: &Package<'_>) -> Option<GitError> {
        let approved = self.origins.registry.clone().filter(|approved| !package.may_follow(approved))?;
        Some(GitError::OtherRegistry { approved, actual: package.recorded() })
    }

    /// Returns the current version of a place, or `None` if only a fetch can tell. Sends one request.
    pub(super) fn find(&self, observer: Option<Arc<dyn ProcessObserver>>) -> Result<Option<Found>, GitError> {
        match self.place.transport {
            Transport::Archive => self.find_archive().map(Some),
            Transport::Npm => self.find_package().map(Some),
            _ => {
                let failed = |source| GitError::Write { path: self.directory().to_owned(), source };
                let scratch = self.scratch().map_err(failed)?;
                git::find_commit(self.place, scratch.path(), observer, self.limits)
            }
        }
    }

    /// Returns the directory of the source in the cache.
    fn directory(&self) -> &Path {
        self.known.parent().unwrap_or(&self.known)
    }

    /// Creates a temporary directory that only the user can read. It is in the cache, where a later fetch removes it if it is left over,
    /// unless the cache can't be written.
    fn scratch(&self) -> io::Result<Temporary> {
        let directory = self.directory();
        let in_cache = private::create_dir(directory).and_then(|()| Temporary::create_in(directory));
        in_cache.or_else(|_| Temporary::create())
    }

    fn find_archive(&self) -> Result<Found, GitError> {
        let url = &self.place.url;
        if let Some(checksum) = &self.place.reference {
            return Ok(Found { commit: checksum.clone(), tag: None });
        }
        let server = self.origins.server(url)?;
        let known = self.known(url);
        let validator = known.as_ref().map(|known| &known.validator);
        let Some(answer) = server.get(url, "*/*", validator, self.limits.total)? else {
            return self.unchanged(known);
        };
        let validator = Validator::of(&answer);
        let mut content = io::Read::take(answer.into_reader(), self.limits.bytes + 1);
        let commit = Sha256::of_content(&mut content).map_err(archive::unreadable)?.to_string();
        if content.limit() == 0 {
            // The checksum would be that of the first bytes only.
            return Err(GitError::LargeArchive(format!("it has more than {}", mebibytes(self.limits.bytes))));
        }
        let found = Found { commit, tag: None };
        self.remember(url, validator, &found);
        Ok(found)
    }

    fn find_package(&self) -> Result<Found, GitError> {
        let package = self.package()?;
        let known = self.known(&package.url());
        let validator = known.as_ref().map(|known| &known.validator);
        let Some((version, validator)) = package.find(None, validator, self.limits.stall)? else {
            return self.unchanged(known);
        };
        let found = Found { commit: version.commit, tag: Some(version.number) };
        self.remember(&package.url(), validator, &found);
        Ok(found)
    }

    fn unchanged(&self, known: Option<Known>) -> Result<Found, GitError> {
        // This never fails, because the server only says so if there is a known version.
        let known = known.ok_or_else(|| GitError::Package(self.place.url.clone()))?;
        Ok(Found { commit: known.commit, tag: known.tag })
    }

    fn known(&self, url: &str) -> Option<Known> {
        state::read::<Known>(&self.known).ok().flatten().filter(|known| known.url == url)
    }

    /// Remembers a version. If that fails, the next request is not conditional.
    fn remember(&self, url: &str, validator: Option<Validator>, found: &Found) {
        let known = validator.map(|validator| Known {
            url: url.to_owned(),
            validator,
            commit: found.commit.clone(),
            tag: found.tag.clone(),
        });
        let written = self.known.parent().map_or(Ok(()), private::create_dir);
        let written = written.and_then(|()| state::write(&self.known, known.as_ref()));
        if let Err(error) = written {
            tracing::debug!("cannot remember the version of {url}: {error}");
        }
    }
}

fn rewind(file: &mut File) -> Result<(), GitError> {
    file.rewind().map_err(archive::unreadable)
}

fn checksum(file: &mut File) -> Result<String, GitError> {
    rewind(file)?;
    Ok(Sha256::of_content(file).map_err(archive::unreadable)?.to_string())
}
