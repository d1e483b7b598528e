//! [`too_old`]: the versions of bubblewrap that can't be used.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// The first version that accepts several filters (`--add-seccomp-fd`): major and minor.
const OLDEST: (u32, u32) = (0, 6);

/// Runs this bubblewrap, and returns its version if it is too old.
#[must_use]
pub fn too_old(bwrap: &Path) -> Option<String> {
    let output = Command::new(bwrap).arg("--version").stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().strip_prefix("bubblewrap ")?.to_owned();
    is_old(&version).then_some(version)
}

/// Returns true if a version such as `0.4.1` is too old.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_are_recognized() {
        for (version, expected) in [
            ("0.4.1", true),
            ("0.5.0", true),
            ("0.6.0", false),
            ("0.11.1", false),
            ("1.0", false),
            ("x", false),
        ] {
            assert_eq!(is_old(version), expected, "{version}");
        }
    }
}
