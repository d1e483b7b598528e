//! Selects the environment variables to remove in the sandbox: those that name a socket of the host, or a directory that is
//! hidden in the sandbox. This only avoids confusing programs; the system call filter is what blocks the sockets.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// Names of variables that contain sockets or depend on them, grouped by the programs that set them.
const NAMES: &[&str] = &[
    // Sessions and desktops.
    "AT_SPI_BUS_ADDRESS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_STARTER_ADDRESS",
    "DBUS_STARTER_BUS_TYPE",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DISPLAY",
    "GNOME_KEYRING_CONTROL",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "I3SOCK",
    "ICEAUTHORITY",
    "MIR_SOCKET",
    "NIRI_SOCKET",
    "PIPEWIRE_REMOTE",
    "PIPEWIRE_RUNTIME_DIR",
    "PULSE_COOKIE",
    "PULSE_RUNTIME_PATH",
    "PULSE_SERVER",
    "SESSION_MANAGER",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "WAYLAND_SOCKET",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    // Agents for keys and passwords.
    "GIT_ASKPASS",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SUDO_ASKPASS",
    // Container and system daemons.
    "BUILDKIT_HOST",
    "CONTAINERD_ADDRESS",
    "CONTAINER_HOST",
    "DOCKER_HOST",
    "INCUS_SOCKET",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LXD_SOCKET",
    "MANAGERPID",
    "NOTIFY_SOCKET",
    "PODMAN_HOST",
    "WATCHDOG_PID",
    "WSL_INTEROP",
    // Editors, terminals and multiplexers.
    "ALACRITTY_SOCKET",
    "EMACS_SERVER_FILE",
    "EMACS_SOCKET_NAME",
    "KITTY_LISTEN_ON",
    "NVIM",
    "NVIM_LISTEN_ADDRESS",
    "REMOTE_CONTAINERS_IPC",
    "REMOTE_CONTAINERS_SOCKETS",
    "STY",
    "TMUX",
    "VSCODE_GIT_ASKPASS_EXTRA_ARGS",
    "VSCODE_GIT_ASKPASS_MAIN",
    "VSCODE_GIT_ASKPASS_NODE",
    "VSCODE_GIT_IPC_HANDLE",
    "VSCODE_IPC_HOOK",
    "VSCODE_IPC_HOOK_CLI",
    "WEZTERM_UNIX_SOCKET",
    // Other names of the temporary directory, which is in `TMPDIR` in the sandbox.
    "TEMP",
    "TEMPDIR",
    "TMP",
];

/// Returns true if the dynamic linker reads the variable.
pub fn is_of_linker(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"LD_") || name == "GLIBC_TUNABLES"
}

/// Returns the names of the variables to remove. `is_socket` checks a path on the file system.
pub fn hidden(
    variables: impl Iterator<Item = (OsString, OsString)>,
    is_socket: impl Fn(&Path) -> bool,
) -> Vec<OsString> {
    let hide = |name: &OsStr, value: &OsStr| {
        name.to_str().is_some_and(|name| NAMES.contains(&name)) || names_socket(value, &is_socket)
    };
    variables.filter(|(name, value)| hide(name, value)).map(|(name, _)| name).collect()
}

/// Returns true if a value is the address of a socket: a path, optionally with a scheme before it (`unix:///run/a.sock`) or
/// details after it (`/tmp/tmux-1000/default,71,0`).
fn names_socket(value: &OsStr, is_socket: &impl Fn(&Path) -> bool) -> bool {
    let Some(text) = value.to_str() else { return is_socket(Path::new(value)) };
    if text.starts_with("unix:") || text.starts_with("http+unix:") {
        return true;
    }
    let path = text.split([',', ';']).next().unwrap_or_default();
    [text, path].into_iter().any(|path| path.starts_with('/') && is_socket(Path::new(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_name_sockets_are_removed() {
        for (name, value, expected) in [
            ("SSH_AUTH_SOCK", "/home/me/.ssh/agent/s.1", true),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus", true),
            ("DOCKER_HOST", "tcp://127.0.0.1:2375", true),
            ("XDG_RUNTIME_DIR", "/run/user/1000", true),
            ("WAYLAND_DISPLAY", "wayland-0", true),
            ("GPG_AGENT_INFO", "", true),
            ("TMP", "/var/tmp", true),
            // We don't know this name, but the value is a socket.
            ("MY_AGENT", "/a/socket", true),
            ("MY_MUX", "/a/socket,71,0", true),
            ("MY_BUS", "unix:abstract=/tmp/bus,guid=1;unix:path=/x", true),
            ("MY_DAEMON", "unix:///var/lib/daemon.sock", true),
            ("MY_HTTP", "http+unix:///var/lib/daemon.sock", true),
            ("MY_FILE", "/a/file", false),
            ("MY_FILES", "/a/file,/a/socket", false),
            ("NOTES", "see /a/socket", false),
            ("RELATIVE", "a/socket", false),
            // Programs need these variables to work.
            ("PATH", "/usr/bin:/bin", false),
            ("HOME", "/home/me", false),
            ("TMPDIR", "/var/tmp", false),
            ("HTTPS_PROXY", "http://127.0.0.1:3128", false),
            ("ssh_auth_sock", "x", false),
        ] {
            let variables = [(OsString::from(name), OsString::from(value))];
            let is_socket = |path: &Path| path == Path::new("/a/socket");
            assert_eq!(!hidden(variables.into_iter(), is_socket).is_empty(), expected, "{name}={value}");
        }
    }

    #[test]
    fn variables_of_the_dynamic_linker() {
        for (name, expected) in [
            ("LD_PRELOAD", true),
            ("LD_LIBRARY_PATH", true),
            ("GLIBC_TUNABLES", true),
            ("LDFLAGS", false),
            ("ld_preload", false),
            ("PATH", false),
        ] {
            assert_eq!(is_of_linker(OsStr::new(name)), expected, "{name}");
        }
    }
}
