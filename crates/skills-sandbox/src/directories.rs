//! The directories that a sandbox protects, whatever the working directory is.

/// System directories. A working directory must not be one of them, or under one.
pub const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/sbin", "/sys",
    "/usr",
];

/// Exceptions from [`SYSTEM`].
pub const SOURCES: [&str; 2] = ["/usr/local/src", "/usr/src"];

/// Directories that a working directory must not contain, because write access to them defeats the sandbox, at least for root.
pub const RESERVED: [&str; 10] =
    ["/dev", "/etc", "/home", "/proc", "/run", "/sys", "/tmp", "/usr", "/var/lib", "/var/spool"];

/// Parts of `/proc` with which root can change the system even without capabilities. We always mount them read-only, because
/// bubblewrap does that only for some of them, depending on its own privileges.
pub const READ_ONLY_PROC: [&str; 9] = [
    "/proc/acpi",
    "/proc/bus",
    "/proc/dynamic_debug",
    "/proc/fs",
    "/proc/irq",
    "/proc/pressure",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// The device of the controlling terminal.
pub const TERMINAL: &str = "/dev/tty";

/// A link below `/run` through which programs are found on NixOS and Guix.
pub const CURRENT_SYSTEM: &str = "/run/current-system";
