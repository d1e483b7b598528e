//! Compares an offer with the approved checksums alone, for machines whose store is empty.

use super::{Offer, OfferedSkill, Pinned};

impl Offer {
    /// Returns true if `approved` has the same skills with the same content as this offer. Only skills for whose name `uses` returns
    /// true are compared. A web site is compared as a whole, so `uses` is not called. The commit makes no difference, and the store
    /// isn't read. A change that the user has pinned or declined makes no difference either.
    pub fn is_approved_by(&self, approved: &Pinned, uses: impl Fn(&str) -> bool) -> bool {
        let (Pinned::Git(here), Pinned::Git(approved)) = (&self.pinned, approved) else {
            return self.pinned == *approved;
        };
        let rejects = |path: &str, offered: Option<&str>| approved.decisions.rejects(path, offered);
        let is_same = |skill: &OfferedSkill| {
            approved.skills.get(&skill.path) == Some(&skill.sha256)
                || rejects(&skill.path, Some(&skill.sha256))
                || !uses(&skill.name)
        };
        // The lock file doesn't contain names. If a skill is gone, we don't know its name, so it may have been used.
        let is_missing = |path: &String| {
            !here.skills.contains_key(path)
                && !rejects(path, None)
                && self.left_out.get(path).is_none_or(|skill| uses(&skill.name))
        };
        self.skills.iter().all(is_same) && !approved.skills.keys().any(is_missing)
    }
}
