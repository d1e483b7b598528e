//! [`Platform`]: the capabilities of watches on each operating system.
//!
//! | | a watch covers | reports that its own directory is gone | lost events |
//! |---|---|---|---|
//! | Linux (inotify) | one directory | yes | are reported |
//! | macOS (FSEvents) | a tree | yes | are reported; all watches share one stream, which restarts whenever a watch is added or removed |
//! | Windows (ReadDirectoryChangesW) | a tree | no | are not reported: `notify` ignores an overflow of the buffer, and only logs an error that ends a watch |

use std::time::Duration;

/// The capabilities of watches on an operating system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platform {
    /// True if a watch covers only one directory, without subdirectories.
    pub(super) one_level: bool,
    /// True if a watch reports that its own directory was moved or removed.
    pub(super) sees_own_directory: bool,
    /// True if adding or removing a watch loses events of all other watches.
    pub(super) one_stream: bool,
    /// The time after which everything is searched again because events can be lost without a report. `None` if
    /// losses are reported.
    pub(super) search_all_after: Option<Duration>,
}

/// The maximum number of watches of all programs of a user on Linux.
const MAX_USER_WATCHES: &str = "/proc/sys/fs/inotify/max_user_watches";

/// Returns the maximum number of watches of this process. All programs of a user share the limit of the system, and a project can have any
/// number of directories, so at most half of it is used.
pub(super) fn max_watches() -> usize {
    let limit = std::fs::read_to_string(MAX_USER_WATCHES).ok();
    limit.and_then(|text| text.trim().parse::<usize>().ok()).map_or(usize::MAX, |limit| limit / 2)
}

impl Platform {
    /// The capabilities of inotify.
    pub(super) const LINUX: Self =
        Self { one_level: true, sees_own_directory: true, one_stream: false, search_all_after: None };

    /// The capabilities of FSEvents.
    pub(super) const MACOS: Self =
        Self { one_level: false, sees_own_directory: true, one_stream: true, search_all_after: None };

    /// The capabilities of ReadDirectoryChangesW.
    pub(super) const WINDOWS: Self = Self {
        one_level: false,
        sees_own_directory: false,
        one_stream: false,
        search_all_after: Some(Duration::from_mins(1)),
    };

    /// The capabilities on the current operating system.
    pub(super) const HERE: Self = if cfg!(any(target_os = "linux", target_os = "android")) {
        Self::LINUX
    } else if cfg!(target_os = "macos") {
        Self::MACOS
    } else {
        // Use the most careful settings for all other systems, as we don't know how they behave.
        Self::WINDOWS
    };
}
