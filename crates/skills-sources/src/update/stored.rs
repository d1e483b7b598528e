//! Reads the approved version of a source from the store.

use skills_core::order;

use super::{
    super::{
        address::{Address, GitPlace, Place},
        approved,
        lockfile::PinnedGit,
    },
    Offer, OfferedSkill, Pinned, Updater,
};

impl Updater {
    /// Returns the approved version of a source if it is in the store. Skills that stay at another version are left out if that version
    /// is not in the store. Doesn't use the network.
    pub fn approved(&self, address: &Address, pinned: &Pinned) -> Option<Offer> {
        let mut parts = match (address.place(), pinned) {
            (Place::Git(place), Pinned::Git(git)) => {
                let parts = git.parts();
                parts.iter().map(|part| self.approved_part(place, part)).collect::<Vec<_>>()
            }
            (Place::Web(url), Pinned::Web(web)) => {
                let kept = order::set(web.decisions.kept.values());
                let versions =
                    std::iter::once(&web.index).chain(kept.into_iter().filter(|kept| **kept != web.index));
                let offer = |index: &String| {
                    let mut offer = self.of_index(url, index)?;
                    self.unpack_stored(url, &mut offer, web);
                    Some(offer)
                };
                versions.map(offer).collect()
            }
            _ => return None,
        }
        .into_iter();
        let mut offer = parts.next()??;
        offer.skills.retain(|skill| pinned.version_of(&skill.path) == pinned.version());
        for part in parts.flatten() {
            let is_kept = |skill: &OfferedSkill| pinned.version_of(&skill.path) == part.pinned.version();
            offer.skills.extend(part.skills.iter().filter(|skill| is_kept(skill)).cloned());
        }
        // We can only use stored files that match the approved checksums. Some of the skills may not be approved.
        if let Some(approved) = pinned.skills() {
            offer.skills.retain(|skill| approved.get(&skill.path) == Some(&skill.sha256));
        }
        order::sort_by(&mut offer.skills, |a, b| a.path.cmp(&b.path));
        offer.pinned = pinned.clone();
        Some(offer)
    }

    /// Returns the approved skills of one commit if all of them are in the store.
    fn approved_part(&self, place: &GitPlace, part: &PinnedGit) -> Option<Offer> {
        approved::reduce(&self.store, place, part);
        let root = approved::served(&self.store, place, part)?;
        let offer = self.of_directory(&root, &part.commit, part.is_nested()).ok()?;
        let has_all = matches!(&offer.pinned, Pinned::Git(here) if here.has_all_of(part));
        has_all.then_some(offer)
    }
}
