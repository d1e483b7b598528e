//! Agents that run elsewhere: commands that start the agent in a container or on another machine, such as `docker run -i IMAGE AGENT`
//! or `ssh HOST AGENT`. Such an agent cannot reach our loopback address or our files.

use std::ffi::OsString;

/// The kind of place in which an agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A container of Docker, Podman or a similar program.
    Container,
    /// A development container.
    DevContainer,
    /// A pod of Kubernetes.
    Pod,
    /// Another machine, over SSH.
    Remote,
    /// The Windows Subsystem for Linux.
    Wsl,
    /// A virtual machine.
    Machine,
}

/// The way in which a program is started before it starts the agent.
struct Program {
    names: &'static [&'static str],
    place: Place,
    /// The options before the subcommand that take a value.
    valued: &'static [&'static str],
    /// The subcommands that start or enter a container. A word such as `container` or `compose` can precede them.
    commands: &'static [&'static str],
}

/// Words between a program and its subcommand, such as in `docker container run`.
const GROUPS: [&str; 3] = ["container", "compose", "sandbox"];

/// The programs that have a subcommand for starting a program elsewhere.
const PROGRAMS: &[Program] = &[
    Program {
        names: &["docker", "podman", "nerdctl", "finch", "docker-compose", "podman-compose"],
        place: Place::Container,
        valued: &[
            "--config",
            "-c",
            "--context",
            "-H",
            "--host",
            "-l",
            "--log-level",
            "--tlscacert",
            "--tlscert",
            "--tlskey",
            "--connection",
            "--url",
            "--identity",
            "--root",
            "--runroot",
            "--runtime",
            "--storage-driver",
            "--storage-opt",
            "--cgroup-manager",
            "--events-backend",
            "--module",
            "--tmpdir",
            "--volumepath",
            "-n",
            "--namespace",
            "-a",
            "--address",
            "--snapshotter",
            "--data-root",
            "-f",
            "--file",
            "-p",
            "--project-name",
            "--project-directory",
            "--env-file",
            "--profile",
            "--progress",
            "--parallel",
            "--ansi",
        ],
        commands: &["run", "exec", "start", "attach"],
    },
    Program {
        names: &["kubectl", "oc"],
        place: Place::Pod,
        valued: &[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "--user",
            "-s",
            "--server",
            "--token",
            "--as",
            "--as-group",
            "--as-uid",
            "--request-timeout",
            "-v",
            "--v",
            "--cache-dir",
            "--certificate-authority",
            "--client-certificate",
            "--client-key",
            "--tls-server-name",
            "--username",
            "--password",
            "--profile",
            "--profile-output",
            "--log-flush-frequency",
            "--vmodule",
        ],
        commands: &["exec", "run", "attach", "debug"],
    },
    Program {
        names: &["devcontainer"],
        place: Place::DevContainer,
        valued: &["--log-level", "--log-format", "--workspace-folder"],
        commands: &["exec"],
    },
    Program {
        names: &["lxc", "incus"],
        place: Place::Machine,
        valued: &["--project"],
        commands: &["exec", "shell"],
    },
    Program { names: &["multipass"], place: Place::Machine, valued: &[], commands: &["exec", "shell"] },
    Program {
        names: &["limactl"],
        place: Place::Machine,
        valued: &["--log-level", "--log-format"],
        commands: &["shell"],
    },
];

/// A program that runs the command after its own options.
struct Wrapper {
    names: &'static [&'static str],
    /// The options that take a value.
    valued: &'static [&'static str],
}

/// The programs that run another one.
const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo", "doas"],
        valued: &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-D", "--chdir", "-R",
            "-r", "-t", "-T", "-U",
        ],
    },
    Wrapper { names: &["env"], valued: &["-u", "--unset", "-C", "--chdir", "-a", "--argv0"] },
    Wrapper { names: &["nice"], valued: &["-n", "--adjustment"] },
    Wrapper { names: &["nohup", "setsid", "exec", "command"], valued: &[] },
    Wrapper { names: &["timeout"], valued: &["-s", "--signal", "-k", "--kill-after"] },
    Wrapper { names: &["stdbuf"], valued: &["-i", "--input", "-o", "--output", "-e", "--error"] },
    Wrapper { names: &["sshpass"], valued: &["-p", "-f", "-d", "-P"] },
    Wrapper { names: &["npx", "bunx"], valued: &["-p", "--package"] },
];

/// The npm package of the program `devcontainer`.
const DEV_CONTAINERS: &str = "@devcontainers/cli";

/// The letters of the options of `ssh` that take a value.
const SSH_VALUED: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// The maximum number of programs that run another one.
const MAX_WRAPPERS: usize = 8;

/// Returns the place in which a command starts the agent. Returns `None` if the agent runs on this machine as far as the first words
/// of the command tell: the program can also be a script.
///
/// ```
/// use acp_skills::elsewhere::{Place, place};
///
/// let words = |line: &str| line.split(' ').map(Into::into).collect::<Vec<_>>();
/// assert_eq!(place(&words("docker run -i image agent")), Some(Place::Container));
/// assert_eq!(place(&words("ssh -p 22 host -- agent")), Some(Place::Remote));
/// assert_eq!(place(&words("agent docker run")), None);
/// ```
pub fn place(command: &[OsString]) -> Option<Place> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    place_of(&words, MAX_WRAPPERS)
}

fn place_of(words: &[&str], wrappers: usize) -> Option<Place> {
    let (program, rest) = words.split_first()?;
    let name = name(program);
    if let Some(program) = PROGRAMS.iter().find(|program| program.names.contains(&&*name)) {
        return starts(program, rest).then_some(program.place);
    }
    match &*name {
        "ssh" | "autossh" => return ssh_host(rest, name == "autossh").then_some(Place::Remote),
        "wsl" => return wsl_command(rest).then_some(Place::Wsl),
        _ if name.starts_with(DEV_CONTAINERS) => return place_of(&[&["devcontainer"], rest].concat(), 0),
        _ => {}
    }
    let wrappers = wrappers.checked_sub(1)?;
    if let Some(line) = shell_line(&name, rest) {
        let words: Vec<_> = line.split_whitespace().collect();
        return place_of(&words, wrappers);
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&&*name))?;
    let mut rest = after_options(rest, wrapper.valued);
    // The variables of `env`, which `sudo` also takes, and the time of `timeout`.
    while let [word, more @ ..] = rest
        && (word.contains('=') && !word.starts_with('=')
            || name == "timeout" && word.starts_with(|c: char| c.is_ascii_digit()))
    {
        rest = more;
    }
    place_of(rest, wrappers)
}

/// Returns the name of a program without its directory and the suffix of Windows. The package of [`DEV_CONTAINERS`] keeps its scope.
fn name(program: &str) -> String {
    if program.starts_with(DEV_CONTAINERS) {
        return program.to_owned();
    }
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let lower = name.to_ascii_lowercase();
    let suffix = [".exe", ".cmd", ".bat"].into_iter().find_map(|suffix| lower.strip_suffix(suffix));
    suffix.map_or_else(|| name.to_owned(), str::to_owned)
}

/// Returns the words after the options at the start. `valued` are the options that take the next word as their value.
fn after_options<'w, 'a>(words: &'w [&'a str], valued: &[&str]) -> &'w [&'a str] {
    let mut rest = words;
    while let [word, more @ ..] = rest {
        rest = match *word {
            "--" => return more,
            word if !word.starts_with('-') || word == "-" => return rest,
            word if valued.contains(&word) => more.get(1..).unwrap_or_default(),
            _ => more,
        };
    }
    rest
}

/// Returns true if the words after a program have one of its subcommands.
fn starts(program: &Program, words: &[&str]) -> bool {
    let mut rest = after_options(words, program.valued);
    if let [group, more @ ..] = rest
        && program.place == Place::Container
        && GROUPS.contains(group)
    {
        rest = after_options(more, program.valued);
    }
    // The name of the container, the image or the pod follows.
    rest.len() > 1 && program.commands.contains(&rest[0])
}

/// Returns true if the words after `ssh` name a host. Otherwise, it only shows its version or its configuration.
fn ssh_host(words: &[&str], is_autossh: bool) -> bool {
    let mut rest = words;
    while let [word, more @ ..] = rest {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else { return true };
        if letters == "-" {
            return !more.is_empty();
        }
        if letters.starts_with(['V', 'G', 'Q']) {
            return false;
        }
        let takes_value = |letter: char| SSH_VALUED.contains(letter) || is_autossh && letter == 'M';
        // A value can follow the letter in the same word.
        let is_open = letters.find(takes_value).is_some_and(|at| at + 1 == letters.len());
        rest = if is_open { more.get(1..).unwrap_or_default() } else { more };
    }
    false
}

/// Returns true if the words after `wsl` name a program. Otherwise, it manages distributions.
fn wsl_command(words: &[&str]) -> bool {
    let mut rest = words;
    while let [word, more @ ..] = rest {
        rest = match *word {
            "-d" | "--distribution" | "--distribution-id" | "-u" | "--user" | "--cd" | "--shell-type" => {
                more.get(1..).unwrap_or_default()
            }
            "-e" | "--exec" | "--" => return !more.is_empty(),
            "~" | "--system" => more,
            word => return !word.starts_with('-'),
        };
    }
    false
}

/// Returns the line that a shell runs, as in `sh -c LINE`.
fn shell_line<'a>(name: &str, words: &[&'a str]) -> Option<&'a str> {
    let is_cmd = name.eq_ignore_ascii_case("cmd");
    if !is_cmd && !matches!(name, "sh" | "bash" | "dash" | "zsh" | "fish" | "ksh") {
        return None;
    }
    let is_line = |word: &&str| match word.strip_prefix('-').filter(|_| !is_cmd) {
        Some(letters) => !letters.starts_with('-') && letters.ends_with('c'),
        None => is_cmd && word.eq_ignore_ascii_case("/c"),
    };
    let at = words.iter().position(is_line)?;
    words.get(at + 1).copied()
}

impl Place {
    /// Describes the place for the user, as the rest of a sentence that begins with "the agent runs".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Container => "in a container",
            Self::DevContainer => "in a development container",
            Self::Pod => "in a pod",
            Self::Remote => "on another machine",
            Self::Wsl => "in WSL",
            Self::Machine => "in a virtual machine",
        }
    }

    /// Says how the agent can reach the tools.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Container | Self::DevContainer => {
                "with `--network host`, add `--listen 127.0.0.1:0`; with Docker Desktop, add `--listen 127.0.0.1:0 --listen-url \
                 http://host.docker.internal`; with Docker on Linux, listen on the address of the bridge: `--listen 172.17.0.1:0`"
            }
            Self::Remote => {
                "forward a port: add `--listen 127.0.0.1:7000`, and `-R 7000:127.0.0.1:7000` to the options of `ssh`"
            }
            Self::Wsl => {
                "with mirrored networking, add `--listen 127.0.0.1:0`; otherwise, listen on the address of the WSL adapter \
                 (`ip route` in WSL shows it)"
            }
            Self::Pod | Self::Machine => {
                "add `--listen ADDRESS:PORT` with an address of this machine that the agent can reach, through a tunnel or a private \
                 network"
            }
        }
    }
}

#[cfg(test)]
mod tests;
