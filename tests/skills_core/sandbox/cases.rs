//! The cases: what a script in the sandbox must not be able to do, and what it must.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    os::unix::{fs::symlink, net::UnixStream},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::{FdFlags, fcntl_setfd},
};
use skills_core::exec::{Sandbox, SandboxError, SandboxWarning, ScriptResult};

use crate::fixture::{CASE_FLAG, Fixture, ROOM, abstract_name};

/// Fails with the reason where there is no sandbox.
pub(crate) const AVAILABLE: &str = "available";
/// Runs until it is killed; part of a case.
const HOLDING: &str = "holding";
/// Run where there are no user namespaces; part of a case.
const WITHOUT_NAMESPACES: &str = "without_namespaces";

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn names() -> Vec<&'static str> {
            vec![$(stringify!($name)),*]
        }

        pub(crate) fn run(name: &str) -> ExitCode {
            match name {
                $(stringify!($name) => $name(),)*
                AVAILABLE => return available(),
                HOLDING => holding(),
                WITHOUT_NAMESPACES => without_namespaces(),
                other => panic!("there is no case {other}"),
            }
            ExitCode::SUCCESS
        }
    };
}

cases!(
    no_capabilities,
    mounts_cannot_be_undone,
    the_skill_cannot_be_changed,
    only_two_directories_are_writable,
    sockets_of_the_host_are_out_of_reach,
    system_calls_that_lead_out,
    what_programs_need,
    the_kernel_takes_no_settings,
    descriptors_of_others_are_closed,
    variables_that_name_sockets_are_gone,
    directories_of_sockets_are_empty,
    programs_that_become_another_user,
    network_only_where_it_is_allowed,
    directories_that_would_undo_it_are_refused,
    links_to_such_directories_are_refused,
    a_directory_that_becomes_a_link_stays_out,
    the_home_directory_is_worth_a_warning,
    a_skill_below_the_working_directory_stays,
    a_skill_around_the_working_directory_stays,
    nothing_survives_the_program_that_runs_it,
    root_without_user_namespaces_is_refused,
);

#[expect(clippy::print_stderr, reason = "the reason for skipping")]
fn available() -> ExitCode {
    match Sandbox::bwrap(false) {
        // A sandbox that does not confine is no reason to skip anything: each case fails.
        Ok(_) | Err(SandboxError::NotConfined(_)) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skipped(&format!("`{program}` is not installed"));
    }
    found
}

fn no_capabilities() {
    let status = Fixture::new().inside("status", &[]);
    let value = |field: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.map_or_else(|| panic!("no {field} in {status}"), str::trim).to_owned()
    };
    for field in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&value(field), 16), Ok(0), "{field} in {status}");
    }
    assert_eq!((value("NoNewPrivs").as_str(), value("Seccomp").as_str()), ("1", "2"));
}

fn mounts_cannot_be_undone() {
    let fixture = Fixture::new();
    let outside = fixture.path("home/notes");
    fixture.all_fail("mounts", &[text(fixture.skill()), text(&outside)]);
    assert_eq!(fs::read_to_string(outside).unwrap(), "mine\n");
}

fn the_skill_cannot_be_changed() {
    let mut fixture = Fixture::new();
    let before = snapshot(fixture.skill());
    fixture.all_fail("change", &[text(fixture.skill())]);
    fixture.cwd = fixture.skill().to_owned();
    fixture.all_fail("change", &[text(fixture.skill())]);
    assert_eq!(snapshot(fixture.skill()), before);
}

fn only_two_directories_are_writable() {
    let fixture = Fixture::new();
    let own =
        ["", "home", "home/notes", "skills", "skills/kit", "skills/neighbour"].map(|it| fixture.path(it));
    let own: Vec<&str> = own.iter().map(|path| text(path)).collect();
    fixture.all_fail("write", &own);
    let system = ["/", "/etc", "/usr", "/usr/bin", "/var", "/var/tmp", "/var/lib", "/home", "/root", "/opt"];
    fixture.all_fail("write", &system);
    fixture.all_succeed("write", &[text(&fixture.cwd), "/tmp"]);
    assert!(fixture.cwd.join("attack").exists());
    assert!(!Path::new("/tmp/attack").exists());
}

fn sockets_of_the_host_are_out_of_reach() {
    let mut fixture = Fixture::new();
    let (agent, bus) = (fixture.path("home/agent.sock"), fixture.path("runtime/bus"));
    let (stream, datagrams) =
        (format!("@{}", abstract_name("stream")), format!("@{}", abstract_name("datagrams")));
    let names = [text(&agent), text(&bus), &stream, &datagrams];
    fixture.all_succeed_outside("connect", &names);
    let mut buffer = [0; 16];
    while fixture.datagrams.recv(&mut buffer).is_ok() {}
    for network in [false, true] {
        fixture.network = network;
        fixture.all_fail("connect", &names);
        assert!(fixture.datagrams.recv(&mut buffer).is_err(), "a datagram arrived");
    }
}

fn system_calls_that_lead_out() {
    if !installed("perl") {
        return;
    }
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_fail("calls", &[]);
    }
}

fn what_programs_need() {
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_succeed("pairs", &[]);
    }
}

fn the_kernel_takes_no_settings() {
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_fail("kernel", &[]);
    }
}

fn descriptors_of_others_are_closed() {
    let fixture = Fixture::new();
    // As an editor leaves one open that starts us.
    let (ours, _theirs) = UnixStream::pair().unwrap();
    fcntl_setfd(&ours, FdFlags::empty()).unwrap();
    let outside = fixture.script(None, "descriptors", &[]).stdout;
    assert!(outside.contains(" socket:"), "{outside}");
    let inside = fixture.inside("descriptors", &[]);
    let open = inside.lines().filter(|line| {
        let (number, target) = line.split_once(' ').unwrap();
        number.parse::<u32>().unwrap() > 2 && target != "/dev/null" && !target.starts_with("/proc/")
    });
    assert_eq!(open.count(), 0, "{inside}");
}

fn variables_that_name_sockets_are_gone() {
    let text = Fixture::new().inside("variables", &[]);
    let has = |name: &str| text.lines().any(|line| line.split_once('=').is_some_and(|(it, _)| it == name));
    for name in [
        "XDG_RUNTIME_DIR",
        "SSH_AUTH_SOCK",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "WAYLAND_DISPLAY",
        "TMP",
        "OF_NO_KNOWN_NAME",
    ] {
        assert!(env::var_os(name).is_some(), "{name} is to be taken away");
        assert!(!has(name), "{name} in {text}");
    }
    assert!(!text.contains("agent.sock"), "{text}");
    for line in ["TMPDIR=/tmp", "HARMLESS=kept", "SKILL_NAME=kit"] {
        assert!(text.lines().any(|it| it == line), "{line} in {text}");
    }
}

fn directories_of_sockets_are_empty() {
    let fixture = Fixture::new();
    assert_eq!(fixture.inside("list", &[text(&fixture.path("runtime"))]), "");
    assert_eq!(fixture.inside("list", &["/tmp"]), "");
    let run = fixture.inside("list", &["/run"]);
    assert!(run.lines().all(|name| name == "current-system"), "{run}");
}

fn programs_that_become_another_user() {
    let Ok(program) = env::var("SET_USER_ID") else {
        return skipped("only a case that root runs as nobody has a program that would become root");
    };
    let outside = Command::new(&program).arg("-u").output().unwrap().stdout;
    if outside != b"0\n" {
        return skipped("programs cannot become another user here anyway");
    }
    assert_ne!(Fixture::new().inside("set-user-id", &[&program]), "0\n\n");
}

fn network_only_where_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut fixture = Fixture::new();
    fixture.all_fail("tcp", &[&address]);
    fixture.network = true;
    fixture.all_succeed("tcp", &[&address]);
}

/// Why no script is run in `cwd`.
fn refusal(fixture: &Fixture, cwd: &Path) -> String {
    let result = write_in(fixture, cwd);
    assert_eq!((result.exit_code, result.stdout.as_str()), (None, ""), "{} {result:?}", cwd.display());
    let message = result.message.unwrap();
    assert!(message.contains("work in the directory of a project"), "no remedy: {message}");
    message
}

fn write_in(fixture: &Fixture, cwd: &Path) -> ScriptResult {
    fixture.script_in(cwd, Some(Sandbox::bwrap(false).unwrap()), "write", &["attack"])
}

fn directories_that_would_undo_it_are_refused() {
    let fixture = Fixture::new();
    let sandbox = Sandbox::bwrap(false).unwrap();
    for cwd in ["/", "/proc", "/proc/self/root", "/sys", "/dev", "/etc", "/usr", "/run", "/tmp", "/var"] {
        refusal(&fixture, Path::new(cwd));
        let error = sandbox.check_directory(Path::new(cwd)).unwrap_err();
        assert!(matches!(error, SandboxError::Directory { .. }), "{cwd}: {error}");
    }
    let above_home = fixture.path("");
    let message = refusal(&fixture, &above_home);
    assert!(message.contains("it contains your home directory"), "{message}");
    let message = refusal(&fixture, fixture.skill().parent().unwrap());
    assert!(message.contains("it is the directory of the skill `kit`"), "{message}");
    assert!(!Path::new("/tmp/attack").exists());
}

fn links_to_such_directories_are_refused() {
    let fixture = Fixture::new();
    for (number, target) in [Path::new("/"), Path::new("/proc"), &fixture.path(""), &fixture.path("skills")]
        .into_iter()
        .enumerate()
    {
        let link = fixture.path(&format!("home/link{number}"));
        symlink(target, &link).unwrap();
        refusal(&fixture, &link);
        refusal(&fixture, &link.join("."));
        refusal(&fixture, &fixture.path(&format!("home/project/../link{number}")));
    }
    let link = fixture.path("home/project-link");
    symlink(fixture.path("home/project"), &link).unwrap();
    let result = write_in(&fixture, &link);
    assert!(result.success, "{result:?}");
    assert!(fixture.path("home/project/attack").exists());
}

/// While scripts start, another process swaps their working directory for a link to a directory that is refused.
fn a_directory_that_becomes_a_link_stays_out() {
    const RUNS: usize = 200;
    let help = Command::new("bwrap").arg("--help").output().unwrap().stdout;
    if !String::from_utf8_lossy(&help).contains("--bind-fd") {
        return skipped("this bubblewrap takes no directory as a descriptor, as 0.10.0 does");
    }
    let fixture = Fixture::new();
    let link = fixture.path("home/link");
    symlink(fixture.path(""), &link).unwrap();
    let sandbox = Sandbox::bwrap(false).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &link, CWD, &fixture.cwd, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let mut successes = 0;
        for _ in 0..RUNS {
            let result = fixture.script(Some(sandbox.clone()), "write", &["attack"]);
            successes += usize::from(result.stdout == "attack: done\n");
        }
        done.store(true, Ordering::Relaxed);
        assert!(!fixture.path("attack").exists(), "written through the link");
        assert!(successes > 0, "no script ran in the directory itself");
    });
}

fn the_home_directory_is_worth_a_warning() {
    let mut fixture = Fixture::with_skill("home/.agent/skills/kit");
    let home = fixture.path("home");
    let sandbox = Sandbox::bwrap(false).unwrap();
    let warning = sandbox.check_directory(&home).unwrap().unwrap();
    assert!(matches!(&warning, SandboxWarning::HomeDirectory(it) if *it == home), "{warning:?}");
    assert!(warning.to_string().contains("the directory of a project"), "{warning}");
    assert_eq!(sandbox.check_directory(&fixture.cwd).unwrap(), None);
    fixture.cwd = home;
    let before = snapshot(&fixture.path("home/.agent/skills"));
    fixture.all_succeed("write", &[text(&fixture.path("home"))]);
    fixture.all_fail("change", &[text(fixture.skill())]);
    fixture.all_fail("replace", &[text(&fixture.cwd), text(fixture.skill())]);
    assert_eq!(snapshot(&fixture.path("home/.agent/skills")), before);
}

fn a_skill_below_the_working_directory_stays() {
    let fixture = Fixture::with_skill("home/project/.agent/more/skills/kit");
    let skills = fixture.path("home/project/.agent/more/skills");
    let before = snapshot(&skills);
    fixture.all_fail("replace", &[text(&fixture.cwd), text(fixture.skill())]);
    fixture.all_fail("change", &[text(fixture.skill())]);
    assert_eq!(snapshot(&skills), before);
    // All on the way to the skill is read-only; the rest of the project is the script's.
    let beside = fixture.path("home/project/source");
    fs::create_dir(&beside).unwrap();
    let on_the_way = ["home/project/.agent", "home/project/.agent/more"].map(|path| fixture.path(path));
    fixture.all_fail("write", &on_the_way.each_ref().map(|path| text(path)));
    fixture.all_succeed("write", &[text(&fixture.cwd), text(&beside)]);
}

fn a_skill_around_the_working_directory_stays() {
    let mut fixture = Fixture::new();
    fixture.cwd = fixture.skill().join("scripts");
    let before = snapshot(fixture.skill());
    fixture.all_fail("write", &[text(&fixture.cwd), text(fixture.skill())]);
    assert_eq!(snapshot(fixture.skill()), before);
}

/// A process that runs a script is killed, and the FIFO that the script and its child hold open is closed.
fn nothing_survives_the_program_that_runs_it() {
    let fixture = Fixture::new();
    let fifo = fixture.cwd.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let room = fixture.path("holding");
    fs::create_dir(&room).unwrap();
    let mut holder = Command::new(env::current_exe().unwrap())
        .args([CASE_FLAG, HOLDING])
        .env(ROOM, &room)
        .env("FIFO", &fifo)
        .env("FIFO_DIR", &fixture.cwd)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(fs::File::open(&fifo).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    holder.kill().unwrap();
    holder.wait().unwrap();
    // Ends when nobody has the FIFO open any more.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new())));
    let rest = receiver.recv_timeout(Duration::from_secs(30)).expect("the script is gone");
    assert_eq!(rest.unwrap(), 0);
}

fn holding() {
    let mut fixture = Fixture::new();
    fixture.cwd = env::var_os("FIFO_DIR").unwrap().into();
    fixture.inside("hold", &[&env::var("FIFO").unwrap()]);
}

fn root_without_user_namespaces_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Bubblewrap itself makes a place where we are root and there are no further user namespaces.
    let output = Command::new("bwrap")
        .args(["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user", "--disable-userns"])
        .args(["--cap-add", "ALL", "--"])
        .arg(env::current_exe().unwrap())
        .args([CASE_FLAG, WITHOUT_NAMESPACES])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Unknown option") {
        return skipped("this bubblewrap cannot disable user namespaces");
    }
    assert!(output.status.success(), "{said}");
}

fn without_namespaces() {
    let error = Sandbox::bwrap(false).unwrap_err();
    assert!(matches!(error, SandboxError::Root(_)), "{error}");
    assert!(error.to_string().contains("run as another user, or allow user namespaces"), "{error}");
}

/// Every file below `dir` with its text.
fn snapshot(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut files, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = dirs.pop() {
        files.push((text(&dir).to_owned(), Vec::new()));
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                files.push((text(&path).to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
