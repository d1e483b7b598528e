//! The skills of a web site that are in archives: unpacking them for the review, and approving them.

use std::{collections::HashMap, iter, path::Path};

use skills_core::SkillName;

use super::{
    super::{
        SourceError, address::Address, approved, budget::Budget, digest, git::GitError, lockfile::PinnedWeb,
        packed, packed::Unpacked, site::RemoteIndex,
    },
    Offer, OfferedSkill, Pinned, Updater, offered_file,
};

impl Updater {
    /// Fetches the archives of an offer. Those of the approved version are read from the store. A new skill whose archive is not usable
    /// is left out with a note.
    ///
    /// # Errors
    /// Returns an error if an archive can't be downloaded or stored, or if that of an approved skill is not usable.
    pub(super) fn unpack(
        &self,
        address: &Address,
        url: &str,
        offer: &mut Offer,
        approved: Option<&Pinned>,
    ) -> Result<(), SourceError> {
        if let Some(Pinned::Web(approved)) = approved {
            // Each skill is compared with the index whose version of it is approved.
            let kept = &approved.decisions.kept;
            let mut indexes: HashMap<&str, Option<RemoteIndex>> = HashMap::new();
            for version in iter::once(&approved.index).chain(kept.values()) {
                indexes.entry(version).or_insert_with(|| {
                    let index = self.store.index(url, version)?;
                    RemoteIndex::parse_with_archives(&index.text, &index.url).ok()
                });
            }
            let entry = |skill: &OfferedSkill| {
                let version = kept.get(&skill.path).unwrap_or(&approved.index);
                indexes.get(version.as_str())?.as_ref()?.skills().get(&skill.name)
            };
            self.unpack_from_store(url, offer, approved, &|skill| {
                entry(skill).is_some_and(|entry| packed::of(entry) == skill.remote.as_ref())
            });
        }
        let is_approved =
            |path: &str| approved.and_then(Pinned::skills).is_some_and(|skills| skills.contains_key(path));
        let mut left_out = Vec::new();
        let mut budget = Budget::of_archives(&self.store);
        for skill in offer.skills.iter_mut().filter(|skill| skill.waits_for_archive()) {
            let fetched = match (SkillName::new(&skill.name), &skill.remote) {
                (Some(name), Some(archive)) => packed::fetch(&mut budget, url, &name, archive),
                _ => continue,
            };
            match fetched {
                Ok(unpacked) => {
                    let root = unpacked.checkout.as_ref().map(|checkout| checkout.root.clone());
                    skill
                        .set_files(root.as_deref(), &unpacked.pinned.commit)
                        .map_err(|error| SourceError::system(address, error))?;
                    offer.archives.push(unpacked);
                }
                // Without its archive, an approved skill would look as if it were gone.
                Err(error)
                    if is_approved(&skill.path)
                        || matches!(error, GitError::Download { .. } | GitError::Write { .. }) =>
                {
                    return Err(SourceError::git(address, error));
                }
                Err(error) => left_out.push((skill.path.clone(), error)),
            }
        }
        for (path, error) in left_out {
            offer.skills.retain(|skill| skill.path != path);
            offer.notes.push(format!("skipped `{path}`: {error}"));
            // Otherwise, the pin would approve the whole index.
            let skills = offer.skills.iter().map(|skill| (skill.path.clone(), skill.sha256.clone()));
            if let Pinned::Web(web) = &mut offer.pinned {
                web.skills = Some(skills.collect());
            }
        }
        Ok(())
    }

    /// Reads the archives of a stored offer from the store. Skills whose archive is not there are left out.
    pub(super) fn unpack_stored(&self, url: &str, offer: &mut Offer, approved: &PinnedWeb) {
        let version = offer.pinned.version().to_owned();
        let kept = &approved.decisions.kept;
        self.unpack_from_store(url, offer, approved, &|skill| {
            *kept.get(&skill.path).unwrap_or(&approved.index) == version
        });
        offer.skills.retain(|skill| !skill.waits_for_archive());
    }

    /// Reads the approved archives of an offer from the store. `is_approved` returns true for skills with the approved archive.
    fn unpack_from_store(
        &self,
        url: &str,
        offer: &mut Offer,
        approved: &PinnedWeb,
        is_approved: &dyn Fn(&OfferedSkill) -> bool,
    ) {
        for skill in offer.skills.iter_mut().filter(|skill| skill.waits_for_archive() && is_approved(skill)) {
            let Some(files) = approved.skills.as_ref().and_then(|skills| skills.get(&skill.path)) else {
                continue;
            };
            let Some(archive) = &skill.remote else { continue };
            let Some(name) = SkillName::new(&skill.name) else { continue };
            let place = packed::place(url, &name, archive);
            let pinned = packed::version(files);
            let root = approved::served(&self.store, &place, &pinned);
            // The files may have been changed on disk.
            let is_good = root
                .as_ref()
                .is_some_and(|root| digest::of_skill(root).is_ok_and(|digest| digest.to_string() == *files));
            if is_good && skill.set_files(root.as_deref(), files).is_ok() {
                offer.archives.push(Unpacked { name, place, pinned, checkout: None });
            }
        }
    }

    /// Moves the approved archives of an offer to the directories from which they are served.
    pub(super) fn add_archives(&self, offer: &Offer, pinned: &Pinned) {
        let Pinned::Web(web) = pinned else { return };
        for Unpacked { name, place, pinned, checkout } in &offer.archives {
            if let Some(checkout) = checkout
                && web.skills.as_ref().and_then(|skills| skills.get(name.as_str())) == Some(&pinned.commit)
            {
                // If this fails, the archive is fetched when it is used.
                let _ = approved::add(&self.store, place, pinned, checkout);
            }
        }
    }
}

impl OfferedSkill {
    /// Returns true if the skill is in an archive that is not unpacked.
    fn waits_for_archive(&self) -> bool {
        self.dir.is_none() && self.remote.as_ref().is_some_and(|remote| remote.is_archive)
    }

    /// Sets the directory with the files, and their checksum.
    fn set_files(&mut self, dir: Option<&Path>, sha256: &str) -> std::io::Result<()> {
        let Some(dir) = dir else { return Ok(()) };
        self.files = digest::files(dir)?.into_iter().map(|path| offered_file(dir, path)).collect();
        self.dir = Some(dir.to_owned());
        sha256.clone_into(&mut self.sha256);
        Ok(())
    }
}
