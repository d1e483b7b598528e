//! The fixture of the cases: a copy of this program that every user can run, a home directory with a project, a skill, and
//! sockets of the host.

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

/// The flag that makes this program run one case.
pub(crate) const CASE_FLAG: &str = "--sandbox-case";
/// The variable with the directory of a case. It is not in `/tmp`, because the sandbox has another `/tmp`.
pub(crate) const CASE_DIR: &str = "SANDBOX_CASE_DIR";
const COMMON: &str = "/var/tmp";
const NOBODY: u32 = 65534;

/// A user to run cases as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Nobody,
    /// The user who runs the tests.
    Own,
}

/// The reason that a case cannot run, or its output if it failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CaseError(String);

/// Returns all users. An error is the reason that a user is not available.
pub(crate) fn users() -> Vec<Result<User, CaseError>> {
    if rustix::process::geteuid().is_root() {
        return vec![Ok(User::Root), Ok(User::Nobody)];
    }
    vec![Ok(User::Own), Err(CaseError("only root can run a case as root".to_owned()))]
}

pub(crate) fn name(user: &Result<User, CaseError>) -> &'static str {
    match user {
        Ok(User::Root) | Err(_) => "root",
        Ok(User::Nobody) => "nobody",
        Ok(User::Own) => "own",
    }
}

/// A copy of this program that every user can run, inside the sandbox, too.
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

    /// The path of a copy of `id` that runs as root. It exists only if this process runs as root.
    fn set_user_id(&self) -> PathBuf {
        self.dir.path().join("set-user-id")
    }

    /// Runs one case as `user`. The error contains the output of the case.
    pub(crate) fn run(&self, user: User, case: &str) -> Result<(), CaseError> {
        let case_dir = tempfile::tempdir_in(COMMON).unwrap();
        let mut command = Command::new(self.dir.path().join("sandbox"));
        let at = |path: &str| case_dir.path().join(path);
        let address = |scheme: &str| format!("{scheme}{}", at("home/agent.sock").display());
        command
            .args([CASE_FLAG, case])
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env(CASE_DIR, case_dir.path())
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
            std::os::unix::fs::chown(case_dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY).env("SET_USER_ID", self.set_user_id());
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(CaseError(format!("{text}\n{}", output.status))) }
    }
}

/// The files and sockets of one case. Created in the process of the case.
pub(crate) struct Fixture {
    case_dir: PathBuf,
    skill: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) network: bool,
    pub(crate) timeout: Duration,
    /// Sockets that stay open, so that attacks can try to connect.
    _listeners: Vec<UnixListener>,
    pub(crate) datagrams: UnixDatagram,
}

impl Fixture {
    /// Creates a home directory with a project, which is the working directory, and a skill outside of the home directory.
    pub(crate) fn new() -> Self {
        Self::with_skill("skills/kit")
    }

    /// Creates the same with the skill at this path, relative to the directory of the case.
    pub(crate) fn with_skill(skill: &str) -> Self {
        let case_dir = PathBuf::from(env::var_os(CASE_DIR).unwrap());
        let skill = case_dir.join(skill);
        let cwd = case_dir.join("home/project");
        let runtime_dir = case_dir.join("runtime");
        for dir in [&skill.join("scripts"), &skill.with_file_name("neighbour"), &cwd, &runtime_dir] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(skill.join("SKILL.md"), "---\nname: kit\ndescription: x\n---\nBody.\n").unwrap();
        fs::write(case_dir.join("home/notes"), "mine\n").unwrap();
        fs::write(runtime_dir.join("secret"), "mine\n").unwrap();
        let datagrams = UnixDatagram::bind_addr(&abstract_address("datagrams")).unwrap();
        datagrams.set_nonblocking(true).unwrap();
        let listeners = vec![
            UnixListener::bind(case_dir.join("home/agent.sock")).unwrap(),
            UnixListener::bind(runtime_dir.join("bus")).unwrap(),
            UnixListener::bind_addr(&abstract_address("stream")).unwrap(),
        ];
        let fixture = Self {
            case_dir,
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

    /// Writes the script, with `prefix` between `#!` and the interpreter.
    pub(crate) fn set_script(&self, prefix: &str) {
        let script = format!("#!{prefix}{} {}\n", env::current_exe().unwrap().display(), attacks::FLAG);
        fs::write(self.skill.join("scripts/attack"), script).unwrap();
    }

    /// Returns a path in the directory of the case.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.case_dir.join(path)
    }

    pub(crate) fn skill(&self) -> &Path {
        &self.skill
    }

    /// Runs an attack as a script of the skill.
    pub(crate) fn script(&self, sandbox: Option<Sandbox>, attack: &str, args: &[&str]) -> ScriptResult {
        self.script_in(&self.cwd, sandbox, attack, args)
    }

    /// Runs an attack as a script of the skill, in another working directory.
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
            stdin: Some(attacks::INPUT.to_owned()),
        };
        let context = CallContext::in_directory(cwd);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_script(&skill.into(), call, &options, &context))
    }

    /// Runs an attack in the sandbox, and returns its output.
    pub(crate) fn inside(&self, attack: &str, args: &[&str]) -> String {
        let result = self.script(Some(Sandbox::bwrap(self.network).unwrap()), attack, args);
        assert!(result.success, "{attack}: {result:?}");
        result.stdout
    }

    /// Runs an attack in the sandbox, and checks that each of its attempts fails.
    pub(crate) fn all_fail(&self, attack: &str, args: &[&str]) {
        let text = self.inside(attack, args);
        let succeeded: Vec<_> = text.lines().filter(|line| line.ends_with(": done")).collect();
        assert!(succeeded.is_empty() && !text.is_empty(), "these attempts succeeded: {succeeded:#?}\n{text}");
    }

    /// Runs an attack in the sandbox, and checks that each of its attempts succeeds, because the sandbox must allow them.
    pub(crate) fn all_succeed(&self, attack: &str, args: &[&str]) {
        assert_all_done(&self.inside(attack, args));
    }

    /// Runs an attack without the sandbox, and checks that each of its attempts succeeds. Otherwise a failure inside the
    /// sandbox would prove nothing.
    pub(crate) fn all_succeed_outside(&self, attack: &str, args: &[&str]) {
        let result = self.script(None, attack, args);
        assert!(result.success, "{attack}: {result:?}");
        assert_all_done(&result.stdout);
    }
}

fn assert_all_done(text: &str) {
    assert!(!text.is_empty() && text.lines().all(|line| line.ends_with(": done")), "{text}");
}

/// Returns the address of an abstract socket of this case.
pub(crate) fn abstract_address(name: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(abstract_name(name)).unwrap()
}

pub(crate) fn abstract_name(name: &str) -> String {
    format!("{}/{name}", env::var(CASE_DIR).unwrap())
}
