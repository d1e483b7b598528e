//! Plans the mounts of the sandbox, and rejects working directories that would defeat it. This module doesn't access the
//! file system; all paths must be canonical.
//!
//! The whole file system is mounted read-only first. Further mounts follow in order of depth, so that no mount covers an
//! earlier one under it: for example, first an empty `/tmp`, then a working directory in `/tmp`, then a skill in that
//! directory.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use skills_sandbox::{
    directories::{CURRENT_SYSTEM, READ_ONLY_PROC, RESERVED, SOURCES, SYSTEM, TERMINAL},
    mounts::Expected,
};

use super::{DirectoryProblem, SandboxWarning};
use crate::order;

/// The paths of this machine on which the mounts depend.
#[derive(Debug, Clone, Default)]
pub(super) struct Host {
    /// The `bwrap` program.
    pub(super) bwrap: PathBuf,
    /// The home directory of the user.
    pub(super) home: Option<PathBuf>,
    /// Directories that are empty in the sandbox, because they contain sockets and temporary files of other programs.
    pub(super) emptied: Vec<PathBuf>,
    /// The file that lists the name servers; `None` without network access.
    pub(super) resolv_conf: Option<PathBuf>,
    /// Directories with which scripts could change decisions of the user.
    pub(super) protected: Vec<PathBuf>,
    /// Files that are read-only in a working directory.
    pub(super) read_only: Vec<PathBuf>,
}

enum Mount {
    Empty,
    ReadOnly,
    ReadOnlyIfExists,
    Writable,
}

/// Checks a working directory, independently of the skill. Returns a warning for the user if there is one.
pub(super) fn check(host: &Host, directory: &Path) -> Result<Option<SandboxWarning>, DirectoryProblem> {
    let below = |paths: &[&str]| paths.iter().any(|path| directory.starts_with(path));
    if below(&SYSTEM) && !below(&SOURCES) {
        return Err(DirectoryProblem::System);
    }
    let reserved = RESERVED.iter().map(Path::new).chain([&*host.bwrap]);
    if let Some(inside) = reserved.into_iter().find(|path| path.starts_with(directory)) {
        return Err(DirectoryProblem::Contains(inside.to_owned()));
    }
    let is_home = host.home.as_deref() == Some(directory);
    let is_protected = |dir: &&PathBuf| directory.starts_with(dir) || dir.starts_with(directory) && !is_home;
    if let Some(dir) = host.protected.iter().find(is_protected) {
        return Err(DirectoryProblem::Contains(dir.clone()));
    }
    match &host.home {
        Some(home) if home == directory => Ok(Some(SandboxWarning::HomeDirectory(home.clone()))),
        Some(home) if home.starts_with(directory) => Err(DirectoryProblem::ContainsHome(home.clone())),
        _ => Ok(None),
    }
}

/// Lists the directories that a working directory must not be another mount of.
pub(super) fn forbidden(host: &Host) -> impl Iterator<Item = &Path> {
    let above_home = host.home.iter().flat_map(|home| home.ancestors().skip(1));
    SYSTEM.iter().chain(&RESERVED).map(Path::new).chain(above_home)
}

/// Returns the mount options of bubblewrap for a script, whose working directory is writable.
///
/// The script cannot change the skill, whichever working directory it has. If `cwd` is inside the skill, no directory is
/// writable. If `cwd` is above the skill, the first directory on the path from `cwd` to the skill is read-only. As a mount
/// point, it also can't be moved away and replaced. The direct parent of the skill is rejected as a working directory,
/// because there is no directory in between that could be protected, and because it may contain other skills.
///
/// `protected` is the result of [`protected`].
pub(super) fn arguments(
    host: &Host,
    cwd: &Path,
    skill: &Path,
    protected: &[PathBuf],
) -> Result<Vec<OsString>, DirectoryProblem> {
    check(host, cwd)?;
    if below(cwd, skill).as_deref() == Some(skill) {
        let name = skill.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(DirectoryProblem::DirectoryOfSkills(name));
    }
    let mut mounts = emptied(host);
    if !cwd.starts_with(skill) {
        mounts.push((cwd, Mount::Writable));
    }
    mounts.extend(protected.iter().map(|path| (&**path, Mount::ReadOnly)));
    mounts.push((skill, Mount::ReadOnly));
    Ok(layered(mounts))
}

/// Returns the parts of the working directory that are read-only: for the skill and for each of `files`, the first part of the path to
/// it, if it is below. As a mount point, the part can't be moved away.
pub(super) fn protected(cwd: &Path, skill: &Path, files: &[PathBuf]) -> Vec<PathBuf> {
    let all = files.iter().map(|file| &**file).chain([skill]).filter_map(|path| below(cwd, path));
    order::set(all.filter(|path| *path != skill)).into_iter().collect()
}

/// Returns the first part of the path from the working directory to another path below it.
fn below(cwd: &Path, path: &Path) -> Option<PathBuf> {
    let name = path.strip_prefix(cwd).ok()?.components().next()?;
    Some(cwd.join(name))
}

/// Returns the mounts of a script that have to be checked, because their directories can be replaced.
pub(super) fn expected(cwd: &Path, skill: &Path, protected: Vec<PathBuf>) -> Expected {
    Expected {
        writable: (!cwd.starts_with(skill)).then(|| cwd.to_owned()),
        read_only: protected.into_iter().chain([skill.to_owned()]).collect(),
    }
}

/// Returns the mount options of bubblewrap for a program that is not a script of a skill. It can write to `cwd` and to the
/// home directory, and can read the paths in `readable`.
pub(super) fn program_arguments(
    host: &Host,
    cwd: &Path,
    readable: &[PathBuf],
) -> Result<Vec<OsString>, DirectoryProblem> {
    check(host, cwd)?;
    let mut mounts = emptied(host);
    mounts.extend(host.home.iter().map(|home| (&**home, Mount::Writable)));
    mounts.extend(readable.iter().map(|path| (&**path, Mount::ReadOnly)));
    mounts.push((cwd, Mount::Writable));
    Ok(layered(mounts))
}

/// Returns the mount options that are the same for all scripts.
pub(super) fn common(host: &Host) -> Vec<OsString> {
    layered(emptied(host))
}

/// Returns mounts that empty the directories of [`Host::emptied`], and restore the few files in them that programs need.
fn emptied(host: &Host) -> Vec<(&Path, Mount)> {
    // A variable could be set to a directory that contains the home directory. We should not empty that directory.
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

/// Converts mounts to options, in order of depth, after those of a read-only file system.
fn layered(mut mounts: Vec<(&Path, Mount)>) -> Vec<OsString> {
    order::sort_by_key(&mut mounts, |(path, _)| path.components().count());
    let mut arguments = root();
    for (path, mount) in mounts {
        match mount {
            Mount::Empty => arguments.extend(["--tmpfs".into(), path.into()]),
            Mount::ReadOnly => arguments.extend(["--ro-bind".into(), path.into(), path.into()]),
            Mount::ReadOnlyIfExists => arguments.extend(["--ro-bind-try".into(), path.into(), path.into()]),
            Mount::Writable => arguments.extend(["--bind".into(), path.into(), path.into()]),
        }
    }
    arguments
}

/// Returns the options for the base: a read-only file system with its own devices and processes, but without a terminal.
pub(super) fn root() -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"].map(OsString::from).into();
    // Scripts can't open a device that is mounted like this. Otherwise a script could write to the terminal that we were
    // started from, and simulate input.
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
            protected: vec!["/home/me/.config/own".into()],
            read_only: Vec::new(),
        }
    }

    /// Compares the mounts of a script, without those of [`root`], one per line.
    fn check(host: &Host, cwd: &str, skill: &str, expected: Result<&[&str], &str>) {
        let (cwd, skill) = (Path::new(cwd), Path::new(skill));
        let protected = protected(cwd, skill, &host.read_only);
        let actual = arguments(host, cwd, skill, &protected).map(|arguments| {
            let arguments: Vec<_> = arguments[root().len()..]
                .iter()
                .map(|argument| argument.to_str().unwrap().to_owned())
                .collect();
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
        let expected = expected.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        let actual = actual.map_err(|problem| problem.to_string());
        assert_eq!(actual, expected.map_err(str::to_owned), "{cwd:?} {skill:?}");
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
            // We need to mount an emptied directory before the directories in it.
            ("/tmp/w", "/tmp/kit", &["--bind /tmp/w", "--ro-bind /tmp/kit"]),
            ("/run/media/me/disk", "/srv/kit", &["--ro-bind /srv/kit", "--bind /run/media/me/disk"]),
        ] {
            check(&host(), cwd, skill, Ok(&[&ALWAYS, mounts].concat()));
        }
    }

    #[test]
    fn directories_that_would_defeat_the_sandbox_are_rejected() {
        for (cwd, problem) in [
            ("/", "scripts must not access /dev"),
            ("/proc", "this is a system directory"),
            ("/proc/1/root", "this is a system directory"),
            ("/sys/fs/cgroup", "this is a system directory"),
            ("/dev/shm", "this is a system directory"),
            ("/etc/cron.d", "this is a system directory"),
            ("/usr", "this is a system directory"),
            ("/usr/local/lib", "this is a system directory"),
            ("/run", "scripts must not access /run"),
            ("/tmp", "scripts must not access /tmp"),
            ("/var", "scripts must not access /var/lib"),
            ("/home", "scripts must not access /home"),
            ("/opt/bubblewrap", "scripts must not access /opt/bubblewrap/bwrap"),
            ("/home/me/.claude/skills", "scripts could change other skills next to `kit`"),
        ] {
            check(&host(), cwd, "/home/me/.claude/skills/kit", Err(problem));
        }
        let elsewhere = Host { home: Some("/srv/people/me".into()), ..host() };
        let problem = "this directory contains your home directory /srv/people/me";
        check(&elsewhere, "/srv/people", "/a/kit", Err(problem));
    }

    #[test]
    fn the_home_directory_causes_a_warning() {
        let warning = |directory: &str| super::check(&host(), Path::new(directory)).unwrap();
        assert_eq!(warning("/home/me"), Some(SandboxWarning::HomeDirectory("/home/me".into())));
        for directory in ["/home/me/project", "/home/you", "/usr/src/linux", "/usr/local/src/tool"] {
            assert_eq!(warning(directory), None, "{directory}");
        }
    }

    #[test]
    fn a_program_can_write_to_its_directory_and_the_home_directory() {
        let arguments =
            program_arguments(&host(), Path::new("/tmp/run-1"), &["/tmp/skill".into(), "/srv/kit".into()])
                .unwrap();
        let arguments: Vec<_> =
            arguments[root().len()..].iter().map(|argument| argument.to_str().unwrap()).collect();
        let expected = "--tmpfs /run --tmpfs /tmp --bind /home/me /home/me --ro-bind /tmp/skill /tmp/skill \
                        --ro-bind /srv/kit /srv/kit --bind /tmp/run-1 /tmp/run-1 \
                        --ro-bind-try /run/current-system /run/current-system";
        let sorted = |text: &str| {
            let mut mounts: Vec<_> = text.split("--").map(|mount| mount.trim().to_owned()).collect();
            mounts.sort();
            mounts
        };
        assert_eq!(sorted(&arguments.join(" ")), sorted(expected));
        let position = |wanted: &str| arguments.iter().position(|argument| *argument == wanted).unwrap();
        assert!(position("/tmp") < position("/tmp/run-1"), "the emptied directory must be mounted first");
        assert!(program_arguments(&host(), Path::new("/etc"), &[]).is_err());
    }

    #[test]
    fn directories_with_sockets_are_emptied() {
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
