//! The command line of bubblewrap, and the look from inside that it does what it is asked for.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
};

use super::{
    DirectoryProblem, SandboxError, SandboxWarning, environment, filter,
    mounts::{self, Host},
};
use crate::exec::{Invocation, descriptors::Descriptors, find_program, std_command};

const BWRAP: &str = "bwrap";

/// Runs a program in a session of its own; of util-linux, BusyBox and Toybox.
const SETSID: &str = "setsid";

/// The first version that takes more than one filter (`--add-seccomp-fd`): major and minor.
const OLDEST: (u32, u32) = (0, 6);

/// Where sockets of the system are, beside the user's runtime directory. `/var/run` is `/run` nearly everywhere.
const SOCKET_DIRECTORIES: [&str; 3] = ["/run", "/tmp", "/var/run"];

/// Bubblewrap, with the answers that do not change while we run.
#[derive(Debug, Clone)]
pub(super) struct Bwrap {
    network: bool,
    /// Whether it takes the working directory as a descriptor, so that what was checked is what is mounted.
    binds_descriptors: bool,
    host: Arc<Host>,
    filters: Vec<Arc<[u8]>>,
    /// What gives a script a session of its own, if the sandbox has it.
    setsid: Option<PathBuf>,
}

impl Bwrap {
    pub(super) fn find(network: bool) -> Result<Self, SandboxError> {
        let bwrap = find_program(Path::new(BWRAP), None).ok_or(SandboxError::NotFound)?;
        let host = Host {
            bwrap: fs::canonicalize(&bwrap).unwrap_or(bwrap),
            home: std::env::home_dir().and_then(|home| fs::canonicalize(home).ok()),
            emptied: socket_directories(),
            resolv_conf: fs::canonicalize("/etc/resolv.conf").ok().filter(|_| network),
        };
        let filters = filter::programs()?;
        let setsid = find_program(Path::new(SETSID), None);
        let mut bwrap = Self { network, binds_descriptors: false, host: Arc::new(host), filters, setsid };
        if bwrap.probe().is_err() {
            bwrap.setsid = None;
            bwrap.probe().map_err(|error| bwrap.too_old().unwrap_or(error))?;
        }
        bwrap.binds_descriptors = bwrap.probe_descriptors().unwrap_or(false);
        Ok(bwrap)
    }

    pub(super) fn check_directory(&self, directory: &Path) -> Result<Option<SandboxWarning>, SandboxError> {
        let directory = Directory::open(directory)?;
        let checked = mounts::check(&self.host, &directory.path);
        let checked = checked.and_then(|warning| {
            directory.is_not(mounts::forbidden(&self.host))?;
            Ok(warning)
        });
        checked.map_err(|problem| SandboxError::Directory { directory: directory.path, problem })
    }

    pub(super) fn wrap(&self, invocation: Invocation, skill_dir: &Path) -> Result<Invocation, SandboxError> {
        let cwd = Directory::open(invocation.cwd.as_deref().unwrap_or(skill_dir))?;
        let (bind, opened) = if self.binds_descriptors {
            let handle = Arc::clone(&cwd.handle);
            (["--bind-fd".into(), handle.as_raw_fd().to_string().into()], Some(handle))
        } else {
            (["--bind".into(), cwd.path.clone().into()], None)
        };
        let wrong = |problem| SandboxError::Directory { directory: cwd.path.clone(), problem };
        let mut args = mounts::arguments(&self.host, &cwd.path, bind, skill_dir).map_err(wrong)?;
        cwd.is_not(mounts::forbidden(&self.host).chain(skill_dir.ancestors())).map_err(wrong)?;
        args.extend(["--chdir".into(), cwd.path.into()]);
        Ok(self.confine(invocation, args, opened))
    }

    /// The command line of `command` in the sandbox.
    pub(super) fn command(
        &self,
        command: &[OsString],
        directory: &Path,
        readable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        let directory = Directory::open(directory)?.path;
        let mounts = mounts::of_program(&self.host, &directory, readable)
            .map_err(|problem| SandboxError::Directory { directory: directory.clone(), problem })?;
        let mut words = vec![self.host.bwrap.clone().into()];
        words.extend(mounts);
        words.extend(self.namespaces());
        words.extend(["--chdir".into(), directory.into()]);
        for name in environment::hidden(std::env::vars_os(), is_socket) {
            words.extend(["--unsetenv".into(), name]);
        }
        words.extend(["--die-with-parent", "--"].map(Into::into));
        words.extend(command.iter().cloned());
        Ok(words)
    }

    /// Everything of its own, and no capability.
    fn namespaces(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["--unshare-all", "--cap-drop", "ALL"].map(Into::into).into();
        if is_root() {
            // For others it is implied, unless bubblewrap is set-user-ID, and then it takes all capabilities away itself.
            args.push("--unshare-user".into());
        }
        if self.network {
            args.push("--share-net".into());
        }
        args
    }

    /// `invocation` with these mounts, and with everything that does not depend on directories.
    fn confine(
        &self,
        mut invocation: Invocation,
        mounts: Vec<OsString>,
        opened: Option<Arc<File>>,
    ) -> Invocation {
        let mut args = mounts;
        args.extend(self.namespaces());
        // The script has a say in its variables and in the files of its directory, and the dynamic linker listens to both
        // before bubblewrap confines anything. So the variables are set inside, and bubblewrap starts in `/`.
        for (name, value) in std::mem::take(&mut invocation.env) {
            args.extend(["--setenv".into(), name, value]);
        }
        args.extend(["--setenv", "TMPDIR", "/tmp", "--die-with-parent", "--"].map(Into::into));
        // With `--new-session` process 1 of the sandbox would leave our process group, and it ends with its parent only some
        // moments later: whoever is killed in between would leave a script that no signal of ours reaches. The terminal is
        // not there in any session; of its own it is for scripts that signal their group and do not mean bubblewrap.
        if let Some(setsid) = &self.setsid {
            args.extend([setsid.into(), "--".into()]);
        }
        args.push(invocation.program.into());
        args.append(&mut invocation.args);
        invocation.unset.extend(environment::hidden(std::env::vars_os(), is_socket));
        let inputs = self.filters.iter().map(|filter| ("--add-seccomp-fd", Arc::clone(filter)));
        Invocation {
            program: self.host.bwrap.clone(),
            args,
            cwd: Some("/".into()),
            descriptors: Some(Descriptors::new(inputs, opened)),
            ..invocation
        }
    }

    /// Asks a program inside what it may do: no option is believed to work.
    fn probe(&self) -> Result<(), SandboxError> {
        let output = self.run_inside("cat", "/proc/self/status", mounts::common(&self.host), None);
        let failed = |reason: String| {
            if is_root() { SandboxError::Root(reason) } else { SandboxError::NotWorking(reason) }
        };
        let output = output.map_err(|error| SandboxError::NotWorking(error.to_string()))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(failed(if reason.is_empty() { output.status.to_string() } else { reason }));
        }
        match unconfined(&String::from_utf8_lossy(&output.stdout)) {
            None => Ok(()),
            Some(line) => Err(SandboxError::NotConfined(line)),
        }
    }

    /// What is wrong when the version is. Asked only where something is: distributions mend old versions.
    fn too_old(&self) -> Option<SandboxError> {
        let mut command = std::process::Command::new(&self.host.bwrap);
        let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8(output.stdout).ok()?.trim().strip_prefix("bubblewrap ")?.to_owned();
        is_old(&version).then_some(SandboxError::TooOld(version))
    }

    /// Whether directories can be given as descriptors: with 0.8.0 of some distributions, and with 0.10.0 of all. A version
    /// that left the descriptor open to the program would give it a way out, so we look.
    fn probe_descriptors(&self) -> Result<bool, SandboxError> {
        let directory = Directory::open(Path::new("/"))?;
        let number = directory.handle.as_raw_fd().to_string();
        let mounts = ["--bind-fd", &number, "/tmp"].map(OsString::from);
        let mounts = mounts::root().into_iter().chain(mounts).collect();
        let output = self.run_inside("ls", "/proc/self/fd", mounts, Some(directory.handle));
        let output = output.map_err(|error| SandboxError::NotWorking(error.to_string()))?;
        let open = String::from_utf8_lossy(&output.stdout);
        Ok(output.status.success() && !open.split_whitespace().any(|it| it == number))
    }

    fn run_inside(
        &self,
        program: &str,
        arg: &str,
        mounts: Vec<OsString>,
        opened: Option<Arc<File>>,
    ) -> io::Result<Output> {
        let invocation =
            Invocation { program: program.into(), args: vec![arg.into()], ..Invocation::default() };
        std_command(&self.confine(invocation, mounts, opened))?.stdin(Stdio::null()).output()
    }
}

/// A directory that is held, so that its path means it.
struct Directory {
    handle: Arc<File>,
    /// Canonical.
    path: PathBuf,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, SandboxError> {
        let open = || {
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let handle = File::options().read(true).custom_flags(flags).open(path)?;
            let real = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
            Ok(Self { handle: Arc::new(handle), path: real })
        };
        open().map_err(|source| SandboxError::Io { path: path.to_owned(), source })
    }

    /// Fails when this is one of `others` under another path: what is mounted twice would be writable there. Paths alone do
    /// not tell.
    fn is_not<'p>(&self, mut others: impl Iterator<Item = &'p Path>) -> Result<(), DirectoryProblem> {
        let Ok(own) = self.handle.metadata() else { return Ok(()) };
        let is_same = |other: &&Path| {
            let found = fs::metadata(other);
            *other != self.path && found.is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()))
        };
        others.find(is_same).map_or(Ok(()), |other| Err(DirectoryProblem::OtherName(other.to_owned())))
    }
}

/// The first line of `/proc/self/status` that says that a process could do more than it may.
fn unconfined(status: &str) -> Option<String> {
    let expected = [
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    expected.into_iter().find_map(|(field, expected)| {
        let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let value = value.map_or("missing", str::trim);
        (value != expected).then(|| format!("{field} is {value} inside"))
    })
}

/// Whether a version such as `0.4.1` is older than the oldest that will do.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < OLDEST)
}

/// The directories that are empty inside, those that exist, links resolved.
fn socket_directories() -> Vec<PathBuf> {
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let all = SOCKET_DIRECTORIES.into_iter().map(PathBuf::from).chain(runtime_dir);
    let mut found: Vec<PathBuf> = Vec::new();
    for dir in all.filter_map(|dir| fs::canonicalize(dir).ok()).filter(|dir| dir.is_dir()) {
        if !found.iter().any(|it| dir.starts_with(it)) {
            found.push(dir);
        }
    }
    found
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
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

    #[test]
    fn what_a_status_must_say() {
        let zero = "0000000000000000";
        let good = format!(
            "Name:\tcat\nUid:\t0\t0\t0\t0\nCapInh:\t{zero}\nCapPrm:\t{zero}\nCapEff:\t{zero}\nCapBnd:\t{zero}\n\
             CapAmb:\t{zero}\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n"
        );
        for (from, to, expected) in [
            ("", "", None),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0", Some("NoNewPrivs is 0 inside")),
            ("Seccomp:\t2\n", "", Some("Seccomp is missing inside")),
            ("CapBnd:\t0", "CapBnd:\t1", Some("CapBnd is 1000000000000000 inside")),
        ] {
            let status = if from.is_empty() { good.clone() } else { good.replace(from, to) };
            assert_eq!(unconfined(&status).as_deref(), expected);
        }
        assert_eq!(unconfined("").as_deref(), Some("CapInh is missing inside"));
    }
}
