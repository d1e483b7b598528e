//! The place and the protection of the policy on Windows.
//!
//! Every user may create a directory in `ProgramData`, and owns it. So the file and its directories must belong to administrators, and
//! their access control lists must not let other users change them. We also try to open the file and its directory for changes.

use std::{
    env,
    fs::{File, Metadata, OpenOptions},
    io,
    os::windows::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use windows_permissions::{
    constants::{SeObjectType, SecurityInformation},
    wrappers::{ConvertSecurityDescriptorToStringSecurityDescriptor, GetSecurityInfo},
};

use super::descriptor;

pub(super) const HINT: &str = "if no administrator has installed this policy, ask one to delete it; as an administrator, create the \
                               directory and the file again, and allow only SYSTEM and Administrators to change them; a program that \
                               runs as an administrator can't use a policy";

/// The rights to delete or rename, to change the access control list, and to take the ownership.
const CONTROL: [u32; 3] = [0x0001_0000, 0x0004_0000, 0x0008_0000];
/// The rights to write, to append and to change attributes of a file.
const OF_FILE: [u32; 2] = [0x2, 0x4];
/// The right to delete the entries of a directory.
const OF_DIRECTORY: [u32; 1] = [0x40];
/// The right to read the owner and the access control list.
const READ_CONTROL: u32 = 0x0002_0000;
/// `FILE_FLAG_BACKUP_SEMANTICS` and `FILE_FLAG_OPEN_REPARSE_POINT`, which are needed to open a directory and a link itself.
const FLAGS: u32 = 0x0200_0000 | 0x0020_0000;

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

/// Returns the reason if a file, a directory or a link belongs to a user who is not an administrator, or can be changed by one, or by this
/// process.
pub(super) fn objection(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    let Ok(descriptor) = descriptor_of(path) else {
        return Some("its owner and its access control list can't be read");
    };
    if let Some(why) = descriptor::judge(&descriptor, metadata.is_dir()) {
        return Some(why);
    }
    if metadata.is_dir() && !path.ends_with("acp-skills-proxy") {
        return None;
    }
    let specific: &[u32] = if metadata.is_dir() { &OF_DIRECTORY } else { &OF_FILE };
    let changes = CONTROL.iter().chain(specific).any(|access| open(path, *access).is_ok());
    changes.then_some("the user who runs this program can change it")
}

fn open(path: &Path, access: u32) -> io::Result<File> {
    OpenOptions::new().access_mode(access).custom_flags(FLAGS).open(path)
}

/// Returns the owner and the access control list as text.
fn descriptor_of(path: &Path) -> io::Result<String> {
    let parts = SecurityInformation::Owner | SecurityInformation::Dacl;
    let descriptor = GetSecurityInfo(&open(path, READ_CONTROL)?, SeObjectType::SE_FILE_OBJECT, parts)?;
    let text = ConvertSecurityDescriptorToStringSecurityDescriptor(&descriptor, parts)?;
    Ok(text.to_string_lossy().trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_of_this_user_is_no_policy() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("policy.yaml");
        fs::write(&file, "{}").expect("written");
        for path in [directory.path(), &file] {
            let text = descriptor_of(path).expect("a descriptor");
            assert!(text.starts_with("O:") && text.contains("D:"), "{text}");
            let metadata = fs::metadata(path).expect("it exists");
            assert!(objection(path, &metadata).is_some(), "{text}");
        }
    }
}
