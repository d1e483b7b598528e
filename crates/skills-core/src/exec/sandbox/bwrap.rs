//! Builds the command line of bubblewrap, and tests from inside that it confines programs.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use skills_sandbox::{
    environment,
    filter::{self, FilterError},
    launcher::launchers,
    links::{Link, follow},
    privileges::unconfined,
    sockets, version,
};

use super::{
    DirectoryProblem, Gate, SandboxError, SandboxWarning,
    mounts::{self, Host},
};
use crate::exec::{Invocation, descriptors::Descriptors, find_program, std_command};

const BWRAP: &str = "bwrap";

/// The bubblewrap of this machine, and the facts about it that don't change while this process runs.
#[derive(Debug, Clone)]
pub(super) struct Bwrap {
    network: bool,
    host: Arc<Host>,
    filters: Vec<Arc<[u8]>>,
    /// The first words of each command line in the sandbox, from [`launchers`].
    launcher: Vec<OsString>,
    /// The directories of sessions: the canonical path of each path. Clones share it, and no other lock is taken while it is held.
    sessions: Arc<Mutex<HashMap<PathBuf, PathBuf>>>,
}

impl Bwrap {
    pub(super) fn find(network: bool) -> Result<Self, SandboxError> {
        let bwrap = find_program(Path::new(BWRAP), None).ok_or(SandboxError::NotFound)?;
        let host = Host {
            bwrap: fs::canonicalize(&bwrap).unwrap_or(bwrap),
            home: std::env::home_dir().and_then(|home| fs::canonicalize(home).ok()),
            emptied: sockets::directories(),
            resolv_conf: fs::canonicalize("/etc/resolv.conf").ok().filter(|_| network),
            protected: Vec::new(),
            read_only: Vec::new(),
        };
        let filters = filter::programs().map_err(|error| match error {
            FilterError::Architecture(name) => SandboxError::Architecture(name),
            error => SandboxError::NotWorking(error.to_string()),
        })?;
        let (launcher, sessions) = (Vec::new(), Arc::default());
        let mut bwrap = Self { network, host: Arc::new(host), filters, launcher, sessions };
        for launcher in launchers(|name| find_program(Path::new(name), None)) {
            bwrap.launcher = launcher;
            if bwrap.probe().is_ok() {
                return Ok(bwrap);
            }
        }
        bwrap.launcher = Vec::new();
        // Look at the version only now, because some distributions add the missing features to old versions.
        let too_old = || version::too_old(&bwrap.host.bwrap).map(SandboxError::TooOld);
        bwrap.probe().map_err(|error| too_old().unwrap_or(error))?;
        Ok(bwrap)
    }

    pub(super) fn program(&self) -> &Path {
        &self.host.bwrap
    }

    pub(super) fn protect(&mut self, directories: impl IntoIterator<Item = PathBuf>) {
        Arc::make_mut(&mut self.host).protected.extend(directories);
    }

    pub(super) fn set_read_only(&mut self, files: Vec<PathBuf>) {
        Arc::make_mut(&mut self.host).read_only = files;
    }

    pub(super) fn check_directory(&self, directory: &Path) -> Result<Option<SandboxWarning>, SandboxError> {
        let given = directory;
        let directory = Directory::open(given)?;
        directory.check_links(given, &self.host)?;
        directory.check_configuration(&self.host)?;
        self.sessions().insert(given.to_owned(), directory.path.clone());
        let checked = mounts::check(&self.host, &directory.path);
        let checked = checked.and_then(|warning| {
            directory.check_not_same_as(mounts::forbidden(&self.host))?;
            Ok(warning)
        });
        checked.map_err(|problem| SandboxError::Directory { directory: directory.path, problem })
    }

    pub(super) fn wrap(&self, invocation: Invocation, skill_dir: &Path) -> Result<Invocation, SandboxError> {
        let given = invocation.cwd.as_deref().unwrap_or(skill_dir);
        let cwd = Directory::open(given)?;
        cwd.check_links(given, &self.host)?;
        cwd.check_configuration(&self.host)?;
        let is_replaced = self.sessions().get(given).is_some_and(|before| *before != cwd.path);
        if is_replaced || given == skill_dir && cwd.path != skill_dir {
            let problem = DirectoryProblem::Replaced(cwd.path);
            return Err(SandboxError::Directory { directory: given.to_owned(), problem });
        }
        let rejected = |problem| SandboxError::Directory { directory: cwd.path.clone(), problem };
        let read_only = self.host.read_only.iter().filter_map(|file| fs::canonicalize(file).ok());
        let read_only: Vec<_> = read_only.collect();
        let protected = mounts::protected(&cwd.path, skill_dir, &read_only);
        let mut args = mounts::arguments(&self.host, &cwd.path, skill_dir, &protected).map_err(rejected)?;
        cwd.check_not_same_as(mounts::forbidden(&self.host).chain(skill_dir.ancestors()))
            .map_err(rejected)?;
        let failed = |source| SandboxError::Io { path: cwd.path.clone(), source };
        let (gate, held) = Gate::new(mounts::expected(&cwd.path, skill_dir, protected)).map_err(failed)?;
        args.extend(["--chdir".into(), cwd.path.into()]);
        let mut invocation = self.confine(invocation, args);
        if let Some(descriptors) = &mut invocation.descriptors {
            descriptors.hold(held);
        }
        invocation.gate = Some(gate);
        Ok(invocation)
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<PathBuf, PathBuf>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a command line that runs `command` in the sandbox.
    pub(super) fn command(
        &self,
        command: &[OsString],
        directory: &Path,
        readable: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        let directory = Directory::open(directory)?.path;
        let mounts = mounts::program_arguments(&self.host, &directory, readable)
            .map_err(|problem| SandboxError::Directory { directory: directory.clone(), problem })?;
        let mut words = vec![self.host.bwrap.clone().into()];
        words.extend(mounts);
        words.extend(self.namespaces());
        words.extend(["--chdir".into(), directory.into()]);
        for name in environment::hidden(std::env::vars_os(), sockets::is_socket) {
            words.extend(["--unsetenv".into(), name]);
        }
        words.extend(self.start());
        words.extend(command.iter().cloned());
        Ok(words)
    }

    /// Returns the options for separate namespaces and for dropping all capabilities.
    fn namespaces(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["--unshare-all", "--cap-drop", "ALL"].map(Into::into).into();
        if is_root() {
            // For other users, bubblewrap creates a user namespace anyway, unless it is set-user-ID. In that case, it drops
            // all capabilities itself.
            args.push("--unshare-user".into());
        }
        if self.network {
            args.push("--share-net".into());
        }
        args
    }

    /// Returns the last options and the launcher.
    fn start(&self) -> impl Iterator<Item = OsString> + use<'_> {
        // We don't use `--new-session`. With it, process 1 of the sandbox would leave our process group, and would only end some moments
        // after its parent. If bubblewrap were killed in between, our signals could not reach the script. With or without this option,
        // the terminal is not available to the script.
        //
        // Without `--as-pid-1`, a process of bubblewrap is process 1. It keeps a descriptor of the host's `/proc` until shortly after it
        // has started the script, and the script could reach the file system of the host through this descriptor.
        let options = ["--die-with-parent", "--as-pid-1", "--"].map(Into::into);
        options.into_iter().chain(self.launcher.iter().cloned())
    }

    /// Wraps `invocation` with these mounts and with all options that don't depend on directories.
    fn confine(&self, mut invocation: Invocation, mounts: Vec<OsString>) -> Invocation {
        let mut args = mounts;
        args.extend(self.namespaces());
        // The user's variables of the dynamic linker could replace code of bubblewrap, so we remove them. Programs inside may need the
        // directories of libraries.
        for (name, value) in std::env::vars_os().filter(|(name, _)| environment::is_of_linker(name)) {
            if name == "LD_LIBRARY_PATH" && !invocation.unset.contains(&name) {
                args.extend(["--setenv".into(), name.clone(), value]);
            }
            invocation.unset.push(name);
        }
        // A script can influence its variables and the files in its directory. The dynamic linker would use both before
        // bubblewrap confines anything. To avoid this, we set the variables inside the sandbox, and start bubblewrap in `/`.
        for (name, value) in std::mem::take(&mut invocation.env) {
            args.extend(["--setenv".into(), name, value]);
        }
        args.extend(["--setenv", "TMPDIR", "/tmp"].map(Into::into));
        args.extend(self.start());
        args.push(invocation.program.into());
        args.append(&mut invocation.args);
        invocation.unset.extend(environment::hidden(std::env::vars_os(), sockets::is_socket));
        let inputs = self.filters.iter().map(|filter| ("--add-seccomp-fd", Arc::clone(filter)));
        Invocation {
            program: self.host.bwrap.clone(),
            args,
            cwd: Some("/".into()),
            descriptors: Some(Descriptors::new(inputs)),
            ..invocation
        }
    }

    /// Runs a program inside and checks its privileges, because we don't rely on any option to have the documented effect.
    fn probe(&self) -> Result<(), SandboxError> {
        let output = self.run_inside("cat", "/proc/self/status", mounts::common(&self.host));
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

    fn run_inside(&self, program: &str, arg: &str, mounts: Vec<OsString>) -> io::Result<Output> {
        let invocation =
            Invocation { program: program.into(), args: vec![arg.into()], ..Invocation::default() };
        std_command(&self.confine(invocation, mounts))?.stdin(Stdio::null()).output()
    }
}

/// An open directory.
struct Directory {
    handle: File,
    /// The canonical path.
    path: PathBuf,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, SandboxError> {
        let open = || {
            let flags = libc::O_PATH | libc::O_DIRECTORY;
            let handle = File::options().read(true).custom_flags(flags).open(path)?;
            let real = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
            Ok(Self { handle, path: real })
        };
        open().map_err(|source| SandboxError::Io { path: path.to_owned(), source })
    }

    /// Returns an error if `given`, the path of this directory, contains a link that a script could have made: a link in a directory that
    /// could be the working directory of a script, unless only root could have made the link.
    fn check_links(&self, given: &Path, host: &Host) -> Result<(), SandboxError> {
        let failed = |problem| SandboxError::Directory { directory: given.to_owned(), problem };
        let followed = follow(given).map_err(|source| SandboxError::Io { path: given.to_owned(), source })?;
        if followed.path != self.path {
            return Err(failed(DirectoryProblem::Replaced(self.path.clone())));
        }
        // Scripts of other users can have made a link as well.
        let is_of_system = |link: &Link| link.owner == 0 && !is_root();
        let is_suspicious = |link: &&Link| {
            let directory = link.path.parent();
            !is_of_system(link) && directory.is_some_and(|dir| matches!(mounts::check(host, dir), Ok(None)))
        };
        match followed.links.into_iter().find(|link| is_suspicious(&link)) {
            Some(link) => Err(failed(DirectoryProblem::Link(link.path, self.path.clone()))),
            None => Ok(()),
        }
    }

    /// Returns an error if the path of a configuration contains a link in this directory.
    fn check_configuration(&self, host: &Host) -> Result<(), SandboxError> {
        let followed = host.read_only.iter().filter_map(|file| follow(file).ok());
        let mut links = followed.flat_map(|followed| followed.links).map(|link| link.path);
        links.find(|link| link.starts_with(&self.path)).map_or(Ok(()), |link| {
            let problem = DirectoryProblem::Configuration(link);
            Err(SandboxError::Directory { directory: self.path.clone(), problem })
        })
    }

    /// Returns an error if this directory is a second mount of one of `others`. That directory would become writable, and
    /// paths alone don't show it.
    fn check_not_same_as<'p>(
        &self,
        mut others: impl Iterator<Item = &'p Path>,
    ) -> Result<(), DirectoryProblem> {
        let Ok(own) = self.handle.metadata() else { return Ok(()) };
        let is_same = |other: &&Path| {
            let found = fs::metadata(other);
            *other != self.path
                && found.is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()))
        };
        others.find(is_same).map_or(Ok(()), |other| Err(DirectoryProblem::OtherName(other.to_owned())))
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
