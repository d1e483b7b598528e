//! [`is_old`]: the versions of bubblewrap that can't be used.

/// The first version that accepts several filters (`--add-seccomp-fd`): major and minor.
const OLDEST: (u32, u32) = (0, 6);

/// Returns true if a version such as `0.4.1` is too old.
#[must_use]
pub fn is_old(version: &str) -> bool {
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
