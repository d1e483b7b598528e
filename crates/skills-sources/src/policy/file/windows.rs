//! The place and the protection of the policy on Windows.
//!
//! Instead of reading the access control lists, we try to open the file and its directories for changes. This also covers groups
//! and inherited entries.

use std::{
    env,
    fs::{Metadata, OpenOptions},
    os::windows::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

pub(super) const HINT: &str = "as an administrator, allow only SYSTEM and Administrators to change the directory and the file; a \
                               program that runs as an administrator can't use a policy";

/// The rights to delete or rename, to change the access control list, and to take the ownership.
const CONTROL: [u32; 3] = [0x0001_0000, 0x0004_0000, 0x0008_0000];
/// The rights to write, to append and to change attributes of a file.
const OF_FILE: [u32; 2] = [0x2, 0x4];
/// The right to delete the entries of a directory.
const OF_DIRECTORY: [u32; 1] = [0x40];
/// `FILE_FLAG_BACKUP_SEMANTICS`, which is needed to open a directory.
const BACKUP_SEMANTICS: u32 = 0x0200_0000;

/// Returns the path of the policy. `C:\ProgramData` comes first, because users can change the variable.
pub(super) fn path() -> PathBuf {
    let below = |dir: PathBuf| dir.join("acp-skills-proxy").join("policy.yaml");
    let usual = below(PathBuf::from(r"C:\ProgramData"));
    let named = env::var_os("ProgramData").map(PathBuf::from).filter(|dir| dir.is_absolute());
    match named.map(below) {
        Some(named) if usual.symlink_metadata().is_err() && named.symlink_metadata().is_ok() => named,
        _ => usual,
    }
}

/// Returns the reason if this process could change a file or directory. Users may create other directories in `ProgramData`.
pub(super) fn objection(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    let is_ours = path.ends_with("acp-skills-proxy");
    if metadata.is_dir() && !is_ours {
        return None;
    }
    let specific: &[u32] = if metadata.is_dir() { &OF_DIRECTORY } else { &OF_FILE };
    let can = |access: u32| {
        OpenOptions::new().access_mode(access).custom_flags(BACKUP_SEMANTICS).open(path).is_ok()
    };
    let changes = CONTROL.iter().chain(specific).any(|access| can(*access));
    changes.then_some("the user who runs this program can change it")
}
