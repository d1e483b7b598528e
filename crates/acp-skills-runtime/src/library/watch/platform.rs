//! [`Platform`]: what the watches of an operating system can see, and what they miss.
//!
//! | | one watch sees | its own directory going | changes that are lost |
//! |---|---|---|---|
//! | Linux (inotify) | one directory | yes | are reported |
//! | macOS (FSEvents) | a tree | yes | are reported; all watches are one stream, which begins anew with each change of them |
//! | Windows (ReadDirectoryChangesW) | a tree | no | are not: `notify` ignores a buffer that overflowed, and logs an error that ends a watch |

use std::time::Duration;

/// The properties of watches on an operating system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platform {
    /// A watch sees only what is directly in its directory.
    pub(super) one_level: bool,
    /// A watch reports that its own directory was moved or removed.
    pub(super) sees_own_directory: bool,
    /// Adding or removing a watch loses what happens meanwhile below all others.
    pub(super) one_stream: bool,
    /// How long watches are believed to see everything, where they can miss something without a word.
    pub(super) trusted_for: Option<Duration>,
}

impl Platform {
    /// inotify.
    pub(super) const LINUX: Self =
        Self { one_level: true, sees_own_directory: true, one_stream: false, trusted_for: None };

    /// FSEvents.
    pub(super) const MACOS: Self =
        Self { one_level: false, sees_own_directory: true, one_stream: true, trusted_for: None };

    /// ReadDirectoryChangesW.
    pub(super) const WINDOWS: Self = Self {
        one_level: false,
        sees_own_directory: false,
        one_stream: false,
        trusted_for: Some(Duration::from_mins(1)),
    };

    /// Where this program runs.
    pub(super) const HERE: Self = if cfg!(any(target_os = "linux", target_os = "android")) {
        Self::LINUX
    } else if cfg!(target_os = "macos") {
        Self::MACOS
    } else {
        // The most careful of them.
        Self::WINDOWS
    };
}
