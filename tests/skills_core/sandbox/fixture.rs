//! What the cases need around them: a copy of this program that every user can run, a home directory with a project, a
//! skill and sockets of the host, and the sandbox with the attacks in it.

use std::{
    env, fs,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use skills_core::{
    CallContext, Skill, discovery,
    exec::{Sandbox, ScriptCall, ScriptOptions, ScriptResult, run_script},
};

use crate::attacks;

/// Asks this program to run one case.
pub(crate) const CASE_FLAG: &str = "--sandbox-case";
/// Where the files of one case are. Outside of `/tmp`, which is another one in the sandbox.
pub(crate) const ROOM: &str = "SANDBOX_CASE_DIR";
const COMMON: &str = "/var/tmp";
const NOBODY: u32 = 65534;

/// A user to run cases as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Nobody,
    /// Whoever runs the tests.
    Own,
}

/// All users, or why one cannot be tried.
pub(crate) fn users() -> Vec<Result<User, String>> {
    if rustix::process::geteuid().is_root() {
        return vec![Ok(User::Root), Ok(User::Nobody)];
    }
    vec![Ok(User::Own), Err("only root can run a case as root".to_owned())]
}

pub(crate) fn name(user: &Result<User, String>) -> &'static str {
    match user {
        Ok(User::Root) | Err(_) => "root",
        Ok(User::Nobody) => "nobody",
        Ok(User::Own) => "own",
    }
}

/// A copy of this program where every user finds it, inside the sandbox too.
pub(crate) struct Program {
    dir: tempfile::TempDir,
}

impl Program {
    pub(crate) fn install() -> Self {
        let dir = tempfile::tempdir_in(COMMON).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(env::current_exe().unwrap(), dir.path().join("sandbox")).unwrap();
        let program = Self { dir };
        if rustix::process::geteuid().is_root() {
            fs::copy("/usr/bin/id", program.set_user_id()).unwrap();
            fs::set_permissions(program.set_user_id(), fs::Permissions::from_mode(0o4755)).unwrap();
        }
        program
    }

    /// `id` that becomes root, where we are root and could make it.
    fn set_user_id(&self) -> PathBuf {
        self.dir.path().join("set-user-id")
    }

    /// Runs one case as `user`; the error is what it wrote.
    pub(crate) fn run(&self, user: User, case: &str) -> Result<(), String> {
        let room = tempfile::tempdir_in(COMMON).unwrap();
        let mut command = Command::new(self.dir.path().join("sandbox"));
        let at = |path: &str| room.path().join(path);
        let address = |scheme: &str| format!("{scheme}{}", at("home/agent.sock").display());
        command
            .args([CASE_FLAG, case])
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env(ROOM, room.path())
            .env("HOME", at("home"))
            .env("XDG_RUNTIME_DIR", at("runtime"))
            .env("SSH_AUTH_SOCK", at("home/agent.sock"))
            .env("GPG_AGENT_INFO", address("") + ":1:1")
            .env("DBUS_SESSION_BUS_ADDRESS", address("unix:path=") + ",guid=1")
            .env("DOCKER_HOST", address("unix://"))
            .env("WAYLAND_DISPLAY", "wayland-0")
            .env("TMP", "/var/tmp")
            .env("LD_LIBRARY_PATH", ":")
            .env("OF_NO_KNOWN_NAME", at("home/agent.sock"))
            .env("HARMLESS", "kept");
        if user == User::Nobody {
            std::os::unix::fs::chown(room.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY).env("SET_USER_ID", self.set_user_id());
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{said}\n{}", output.status)) }
    }
}

/// The files and sockets of one case, inside its process.
pub(crate) struct Fixture {
    room: PathBuf,
    skill: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) network: bool,
    pub(crate) timeout: Duration,
    /// Kept open for the attacks.
    _listeners: Vec<UnixListener>,
    pub(crate) datagrams: UnixDatagram,
}

impl Fixture {
    /// A skill beside the home directory, and a project in it to work in.
    pub(crate) fn new() -> Self {
        Self::with_skill("skills/kit")
    }

    /// The skill is at this path below the fixture's directory.
    pub(crate) fn with_skill(skill: &str) -> Self {
        let room = PathBuf::from(env::var_os(ROOM).unwrap());
        let (skill, cwd) = (room.join(skill), room.join("home/project"));
        for dir in [&skill.join("scripts"), &skill.with_file_name("neighbour"), &cwd, &room.join("runtime")] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(skill.join("SKILL.md"), "---\nname: kit\ndescription: x\n---\nBody.\n").unwrap();
        fs::write(room.join("home/notes"), "mine\n").unwrap();
        fs::write(room.join("runtime/secret"), "mine\n").unwrap();
        let datagrams = UnixDatagram::bind_addr(&abstract_address("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let listeners = vec![
            UnixListener::bind(room.join("home/agent.sock")).unwrap(),
            UnixListener::bind(room.join("runtime/bus")).unwrap(),
            UnixListener::bind_addr(&abstract_address("stream")).unwrap(),
        ];
        let fixture = Self {
            room,
            skill,
            cwd,
            network: false,
            timeout: Duration::from_mins(1),
            _listeners: listeners,
            datagrams,
        };
        fixture.set_script("");
        fixture
    }

    /// Writes the script, with this between `#!` and the interpreter.
    pub(crate) fn set_script(&self, prefix: &str) {
        let script = format!("#!{prefix}{} {}\n", env::current_exe().unwrap().display(), attacks::FLAG);
        fs::write(self.skill.join("scripts/attack"), script).unwrap();
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.room.join(path)
    }

    pub(crate) fn skill(&self) -> &Path {
        &self.skill
    }

    /// Runs an attack as a script of the skill.
    pub(crate) fn script(&self, sandbox: Option<Sandbox>, attack: &str, args: &[&str]) -> ScriptResult {
        self.script_in(&self.cwd, sandbox, attack, args)
    }

    /// The same in another working directory.
    pub(crate) fn script_in(
        &self,
        cwd: &Path,
        sandbox: Option<Sandbox>,
        attack: &str,
        args: &[&str],
    ) -> ScriptResult {
        let mut options = ScriptOptions { sandbox, ..ScriptOptions::default() };
        options.limits.timeout = self.timeout;
        options.limits.max_output_bytes = 1 << 20;
        let (skill, _): (Skill, _) = discovery::load_dir(&self.skill).unwrap();
        let call = ScriptCall {
            script: "scripts/attack".to_owned(),
            args: [&[attack], args].concat().into_iter().map(str::to_owned).collect(),
            stdin: None,
        };
        let context = CallContext::in_directory(cwd);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_script(&skill.into(), call, &options, &context))
    }

    /// What an attack wrote, in the sandbox.
    pub(crate) fn inside(&self, attack: &str, args: &[&str]) -> String {
        let result = self.script(Some(Sandbox::bwrap(self.network).unwrap()), attack, args);
        assert!(result.success, "{attack}: {result:?}");
        result.stdout
    }

    /// Each of an attack's lines must tell of a failure, and there must be some.
    pub(crate) fn all_fail(&self, attack: &str, args: &[&str]) {
        let text = self.inside(attack, args);
        let succeeded: Vec<_> = text.lines().filter(|line| line.ends_with(": done")).collect();
        assert!(succeeded.is_empty() && !text.is_empty(), "these succeeded: {succeeded:#?}\n{text}");
    }

    /// Each of an attack's lines must tell of a success: what the sandbox is to leave alone.
    pub(crate) fn all_succeed(&self, attack: &str, args: &[&str]) {
        assert_all_done(&self.inside(attack, args));
    }

    /// The same without the sandbox: that it fails inside would show nothing otherwise.
    pub(crate) fn all_succeed_outside(&self, attack: &str, args: &[&str]) {
        let result = self.script(None, attack, args);
        assert!(result.success, "{attack}: {result:?}");
        assert_all_done(&result.stdout);
    }
}

fn assert_all_done(text: &str) {
    assert!(!text.is_empty() && text.lines().all(|line| line.ends_with(": done")), "{text}");
}

/// An abstract socket's address that belongs to this case.
pub(crate) fn abstract_address(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(abstract_name(name)).unwrap()
}

pub(crate) fn abstract_name(name: &str) -> String {
    format!("{}/{name}", env::var(ROOM).unwrap())
}
