//! What is where in the sandbox, and which working directories would undo it. Pure: the paths come canonical, nothing here
//! looks at the file system.
//!
//! Everything is read-only to begin with. What is mounted over it is ordered by depth, so that nothing covers what lies
//! below it: an empty `/tmp` first, a working directory in it afterwards, a skill in that one last.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{DirectoryProblem, SandboxWarning};

/// Directories of the system: no working directory lies in them.
const SYSTEM: [&str; 13] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc", "/sbin", "/sys",
    "/usr",
];

/// Apart from these.
const SOURCES: [&str; 2] = ["/usr/local/src", "/usr/src"];

/// A working directory may not contain these: who can write there is not confined, least of all root.
const RESERVED: [&str; 10] =
    ["/dev", "/etc", "/home", "/proc", "/run", "/sys", "/tmp", "/usr", "/var/lib", "/var/spool"];

/// Parts of `/proc` through which root could change the system without any capability. Bubblewrap makes some of them
/// read-only, depending on what it may itself; these always are.
const READ_ONLY_PROC: [&str; 9] = [
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

/// The terminal of whoever asks.
const TERMINAL: &str = "/dev/tty";

/// Links below `/run` through which whole systems find their programs (NixOS, Guix).
const CURRENT_SYSTEM: &str = "/run/current-system";

/// What matters of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// The program itself.
    pub(super) bwrap: PathBuf,
    /// The home directory of the user.
    pub(super) home: Option<PathBuf>,
    /// Where sockets are, and what programs leave for each other: empty in the sandbox.
    pub(super) emptied: Vec<PathBuf>,
    /// The file with the name servers, where the network is shared.
    pub(super) resolv_conf: Option<PathBuf>,
}

enum Mount {
    Empty,
    ReadOnly,
    ReadOnlyIfExists,
    /// With the option that mounts it, and what that option mounts.
    Writable([OsString; 2]),
}

/// Whether scripts may work in `directory`, whatever the skill.
pub(super) fn check(host: &Host, directory: &Path) -> Result<Option<SandboxWarning>, DirectoryProblem> {
    let below = |paths: &[&str]| paths.iter().any(|path| directory.starts_with(path));
    if below(&SYSTEM) && !below(&SOURCES) {
        return Err(DirectoryProblem::System);
    }
    let reserved = RESERVED.iter().map(Path::new).chain([&*host.bwrap]);
    if let Some(inside) = reserved.into_iter().find(|path| path.starts_with(directory)) {
        return Err(DirectoryProblem::Contains(inside.to_owned()));
    }
    match &host.home {
        Some(home) if home == directory => Ok(Some(SandboxWarning::HomeDirectory(home.clone()))),
        Some(home) if home.starts_with(directory) => Err(DirectoryProblem::ContainsHome(home.clone())),
        _ => Ok(None),
    }
}

/// Directories that a working directory may not be under any name.
pub(super) fn forbidden(host: &Host) -> impl Iterator<Item = &Path> {
    let above_home = host.home.iter().flat_map(|home| home.ancestors().skip(1));
    SYSTEM.iter().chain(&RESERVED).map(Path::new).chain(above_home)
}

/// What bubblewrap is told about the file system of a script; `bind_cwd` makes the working directory writable.
///
/// The skill stays as it is whatever `cwd` is. Below it, the script writes nothing. Above it, everything is read-only from
/// the first directory on the way to it: that one is a mount point then, which cannot be moved away to put another in its
/// place. The directory right above the skill is refused, because there is nothing between them that could be protected,
/// and other skills may lie there.
pub(super) fn arguments(
    host: &Host,
    cwd: &Path,
    bind_cwd: [OsString; 2],
    skill: &Path,
) -> Result<Vec<OsString>, DirectoryProblem> {
    check(host, cwd)?;
    let on_the_way = skill.strip_prefix(cwd).ok().and_then(|rest| rest.components().next());
    let on_the_way = on_the_way.map(|first| cwd.join(first));
    if on_the_way.as_deref() == Some(skill) {
        let name = skill.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(DirectoryProblem::DirectoryOfSkills(name));
    }
    let mut mounts = emptied(host);
    if !cwd.starts_with(skill) {
        mounts.push((cwd, Mount::Writable(bind_cwd)));
    }
    mounts.extend(on_the_way.iter().map(|path| (&**path, Mount::ReadOnly)));
    mounts.push((skill, Mount::ReadOnly));
    Ok(layered(mounts))
}

/// What bubblewrap is told about the file system of a program that is no script of a skill: it writes `cwd` and the home
/// directory, and sees `readable` wherever that lies.
pub(super) fn of_program(
    host: &Host,
    cwd: &Path,
    readable: &[PathBuf],
) -> Result<Vec<OsString>, DirectoryProblem> {
    check(host, cwd)?;
    let bind = |path: &Path| Mount::Writable(["--bind".into(), path.into()]);
    let mut mounts = emptied(host);
    mounts.extend(host.home.iter().map(|home| (&**home, bind(home))));
    mounts.extend(readable.iter().map(|path| (&**path, Mount::ReadOnly)));
    mounts.push((cwd, bind(cwd)));
    Ok(layered(mounts))
}

/// What is the same for all scripts.
pub(super) fn common(host: &Host) -> Vec<OsString> {
    layered(emptied(host))
}

/// The directories that are empty, and what is needed of them all the same.
fn emptied(host: &Host) -> Vec<(&Path, Mount)> {
    // Nobody means a home directory to be empty, whatever a variable says.
    let home_is_in = |dir: &Path| host.home.as_ref().is_some_and(|home| home.starts_with(dir));
    let emptied: Vec<&Path> = host.emptied.iter().map(|dir| &**dir).filter(|dir| !home_is_in(dir)).collect();
    let mut mounts: Vec<_> = emptied.iter().map(|dir| (*dir, Mount::Empty)).collect();
    mounts.push((Path::new(CURRENT_SYSTEM), Mount::ReadOnlyIfExists));
    if let Some(file) = &host.resolv_conf
        && emptied.iter().any(|dir| file.starts_with(dir))
    {
        mounts.push((file, Mount::ReadOnly));
    }
    mounts
}

/// The arguments for these mounts, over a file system that is read-only. What is deeper comes later.
fn layered(mut mounts: Vec<(&Path, Mount)>) -> Vec<OsString> {
    mounts.sort_by_key(|(path, _)| path.components().count());
    let mut arguments = root();
    for (path, mount) in mounts {
        match mount {
            Mount::Empty => arguments.extend(["--tmpfs".into(), path.into()]),
            Mount::ReadOnly => arguments.extend(["--ro-bind".into(), path.into(), path.into()]),
            Mount::ReadOnlyIfExists => arguments.extend(["--ro-bind-try".into(), path.into(), path.into()]),
            Mount::Writable(bind) => {
                arguments.extend(bind);
                arguments.push(path.into());
            }
        }
    }
    arguments
}

/// What is below all of that: everything read-only, devices and processes of its own, and no terminal.
pub(super) fn root() -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"].map(OsString::from).into();
    // Devices cannot be opened where they are bound this way. Who could open this one would write on the terminal that we were
    // started from, and type into it.
    arguments.extend(["--ro-bind", "/dev/null", TERMINAL].map(OsString::from));
    for path in READ_ONLY_PROC {
        arguments.extend(["--ro-bind-try", path, path].map(OsString::from));
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        Host {
            bwrap: "/opt/bubblewrap/bwrap".into(),
            home: Some("/home/me".into()),
            emptied: vec!["/run".into(), "/tmp".into()],
            resolv_conf: Some("/etc/resolv.conf".into()),
        }
    }

    /// The mounts behind those that are always there, one a line.
    fn check(host: &Host, cwd: &str, skill: &str, expected: Result<&[&str], &str>) {
        let bind_cwd = ["--bind", cwd].map(OsString::from);
        let actual = arguments(host, Path::new(cwd), bind_cwd, Path::new(skill)).map(|arguments| {
            let arguments: Vec<_> =
                arguments[root().len()..].iter().map(|it| it.to_str().unwrap().to_owned()).collect();
            let mut lines = Vec::new();
            for argument in arguments {
                if argument.starts_with("--") {
                    lines.push(argument);
                } else if let Some(line) = lines.last_mut()
                    && !line.ends_with(&format!(" {argument}"))
                {
                    line.push(' ');
                    line.push_str(&argument);
                }
            }
            lines
        });
        let expected = expected.map(|it| it.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(actual.map_err(|it| it.to_string()), expected.map_err(str::to_owned), "{cwd} {skill}");
    }

    const ALWAYS: [&str; 3] = ["--tmpfs /run", "--tmpfs /tmp", "--ro-bind-try /run/current-system"];

    #[test]
    fn the_skill_is_never_writable() {
        for (cwd, skill, mounts) in [
            ("/srv/work", "/srv/kit", &["--bind /srv/work", "--ro-bind /srv/kit"][..]),
            ("/srv/ki", "/srv/kit", &["--bind /srv/ki", "--ro-bind /srv/kit"]),
            ("/srv/kit", "/srv/kit", &["--ro-bind /srv/kit"]),
            ("/srv/kit/scripts/deep", "/srv/kit", &["--ro-bind /srv/kit"]),
            (
                "/srv/w",
                "/srv/w/.a/b/skills/kit",
                &["--bind /srv/w", "--ro-bind /srv/w/.a", "--ro-bind /srv/w/.a/b/skills/kit"],
            ),
            (
                "/srv/w",
                "/srv/w/skills/kit",
                &["--bind /srv/w", "--ro-bind /srv/w/skills", "--ro-bind /srv/w/skills/kit"],
            ),
            // What is empty comes before what lies in it.
            ("/tmp/w", "/tmp/kit", &["--bind /tmp/w", "--ro-bind /tmp/kit"]),
            ("/run/media/me/disk", "/srv/kit", &["--ro-bind /srv/kit", "--bind /run/media/me/disk"]),
        ] {
            check(&host(), cwd, skill, Ok(&[&ALWAYS, mounts].concat()));
        }
    }

    #[test]
    fn directories_that_would_undo_it() {
        for (cwd, problem) in [
            ("/", "it contains /dev"),
            ("/proc", "it belongs to the system"),
            ("/proc/1/root", "it belongs to the system"),
            ("/sys/fs/cgroup", "it belongs to the system"),
            ("/dev/shm", "it belongs to the system"),
            ("/etc/cron.d", "it belongs to the system"),
            ("/usr", "it belongs to the system"),
            ("/usr/local/lib", "it belongs to the system"),
            ("/run", "it contains /run"),
            ("/tmp", "it contains /tmp"),
            ("/var", "it contains /var/lib"),
            ("/home", "it contains /home"),
            ("/opt/bubblewrap", "it contains /opt/bubblewrap/bwrap"),
            (
                "/home/me/.claude/skills",
                "it is the directory of the skill `kit`, whose neighbours could be rewritten",
            ),
        ] {
            check(&host(), cwd, "/home/me/.claude/skills/kit", Err(problem));
        }
        let elsewhere = Host { home: Some("/srv/people/me".into()), ..host() };
        let problem = "it contains your home directory /srv/people/me";
        check(&elsewhere, "/srv/people", "/a/kit", Err(problem));
    }

    #[test]
    fn the_home_directory_is_worth_a_warning() {
        let warning = |directory: &str| super::check(&host(), Path::new(directory)).unwrap();
        assert_eq!(warning("/home/me"), Some(SandboxWarning::HomeDirectory("/home/me".into())));
        for directory in ["/home/me/project", "/home/you", "/usr/src/linux", "/usr/local/src/tool"] {
            assert_eq!(warning(directory), None, "{directory}");
        }
    }

    #[test]
    fn a_program_writes_its_directory_and_the_home_directory() {
        let arguments =
            of_program(&host(), Path::new("/tmp/run-1"), &["/tmp/skill".into(), "/srv/kit".into()]).unwrap();
        let arguments: Vec<_> = arguments[root().len()..].iter().map(|it| it.to_str().unwrap()).collect();
        let expected = "--tmpfs /run --tmpfs /tmp --bind /home/me /home/me --ro-bind /tmp/skill /tmp/skill \
                        --ro-bind /srv/kit /srv/kit --bind /tmp/run-1 /tmp/run-1 \
                        --ro-bind-try /run/current-system /run/current-system";
        let sorted = |text: &str| {
            let mut mounts: Vec<_> = text.split("--").map(|mount| mount.trim().to_owned()).collect();
            mounts.sort();
            mounts
        };
        assert_eq!(sorted(&arguments.join(" ")), sorted(expected));
        let position = |wanted: &str| arguments.iter().position(|it| *it == wanted).unwrap();
        assert!(position("/tmp") < position("/tmp/run-1"), "what is empty comes first");
        assert!(of_program(&host(), Path::new("/etc"), &[]).is_err());
    }

    #[test]
    fn directories_with_sockets_are_empty() {
        let host = |emptied: &[&str], resolv_conf: &str| Host {
            emptied: emptied.iter().map(PathBuf::from).collect(),
            resolv_conf: Some(resolv_conf.into()),
            ..host()
        };
        let system = "--ro-bind-try /run/current-system";
        for (host, cwd, expected) in [
            (host(&[], "/etc/resolv.conf"), "/a/w", &[system, "--bind /a/w", "--ro-bind /a/kit"][..]),
            (
                host(&["/home/me/.run"], "/etc/resolv.conf"),
                "/a/w",
                &[system, "--bind /a/w", "--ro-bind /a/kit", "--tmpfs /home/me/.run"],
            ),
            (
                host(&["/home/me", "/home"], "/etc/resolv.conf"),
                "/a/w",
                &[system, "--bind /a/w", "--ro-bind /a/kit"],
            ),
            (
                host(&["/run"], "/run/systemd/resolve/stub-resolv.conf"),
                "/a/w",
                &[
                    "--tmpfs /run",
                    system,
                    "--bind /a/w",
                    "--ro-bind /a/kit",
                    "--ro-bind /run/systemd/resolve/stub-resolv.conf",
                ],
            ),
            (
                host(&["/a/w/.run"], "/etc/resolv.conf"),
                "/a/w",
                &[system, "--bind /a/w", "--ro-bind /a/kit", "--tmpfs /a/w/.run"],
            ),
        ] {
            check(&host, cwd, "/a/kit", Ok(expected));
        }
    }
}
