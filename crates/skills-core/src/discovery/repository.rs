//! Finds the repository that contains a directory, without trusting the directories above.
//!
//! In a shared directory such as `/tmp`, another user could create `.git` above the directory of a session. Everything beside it would
//! then belong to the project, including skills of the other user. Git refuses such a repository as well (`safe.directory`).

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::path::Path;

#[cfg(not(unix))]
use other::is_of_stranger;
#[cfg(unix)]
use unix::is_of_stranger;

/// Returns the root of the repository that contains `dir`, which must be a path without links. Returns `None` outside of a repository,
/// and if the repository above `dir` was created by another user.
pub(super) fn root_of(dir: &Path) -> Option<&Path> {
    // In a worktree or a submodule, `.git` is a file.
    let root = dir.ancestors().find(|above| above.join(".git").exists())?;
    (root == dir || !is_of_stranger(root, dir)).then_some(root)
}
