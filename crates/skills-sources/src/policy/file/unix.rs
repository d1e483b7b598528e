//! The place and the protection of the policy on Unix.

use std::{
    fs::Metadata,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

pub(super) const HINT: &str =
    "as an administrator, run `chown root` and `chmod go-w` for the file and the directories that contain it";

pub(super) fn path() -> PathBuf {
    let dir = if cfg!(target_os = "macos") { "/Library/Application Support" } else { "/etc" };
    Path::new(dir).join("acp-skills-proxy/policy.yaml")
}

/// Returns the reason if a file or directory can be changed by a user other than root.
pub(super) fn objection(_path: &Path, metadata: &Metadata) -> Option<&'static str> {
    judge(metadata.uid(), metadata.permissions().mode())
}

fn judge(owner: u32, mode: u32) -> Option<&'static str> {
    if owner != 0 {
        return Some("the owner is not root");
    }
    (mode & 0o022 != 0).then_some("the group or other users can write to it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_may_change_the_policy() {
        for (owner, mode, is_protected) in [
            (0, 0o100_644, true),
            (0, 0o100_600, true),
            (0, 0o040_755, true),
            (0, 0o100_664, false),
            (0, 0o100_646, false),
            (0, 0o041_777, false),
            (1000, 0o100_644, false),
            (65534, 0o100_400, false),
        ] {
            assert_eq!(judge(owner, mode).is_none(), is_protected, "{owner} {mode:o}");
        }
    }
}
