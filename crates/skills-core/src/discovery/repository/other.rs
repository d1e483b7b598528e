//! Windows lets all users create directories in the root of a drive. The owner of a file is not read.

use std::path::Path;

/// Returns true if another user could have created the repository at `root`.
pub(super) fn is_of_stranger(root: &Path, _dir: &Path) -> bool {
    root.parent().is_none()
}
