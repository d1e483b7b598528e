//! The cases: what a script in the sandbox must not be able to do, and what it must. Those on working directories are in
//! `directories`.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    mem::ManuallyDrop,
    net::TcpListener,
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::setsid,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use skills_core::exec::{Sandbox, SandboxError};

use crate::{
    directories::{
        a_directory_that_becomes_a_link_stays_out, a_skill_around_the_working_directory_stays,
        a_skill_below_the_working_directory_stays, directories_that_are_mounted_twice_are_refused,
        directories_that_would_undo_it_are_refused, links_to_such_directories_are_refused,
        the_home_directory_is_worth_a_warning,
    },
    fixture::{CASE_FLAG, Fixture, ROOM, abstract_name},
};

/// Fails with the reason where there is no sandbox.
pub(crate) const AVAILABLE: &str = "available";
/// Runs until it is killed; part of a case.
const HOLDING: &str = "holding";
/// Run where there are no user namespaces; part of a case.
const WITHOUT_NAMESPACES: &str = "without_namespaces";
/// Run where the sandbox does not see `setsid`; part of a case.
const WITHOUT_SETSID: &str = "without_setsid";

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
                WITHOUT_SETSID => the_terminal_is_out_of_reach(),
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
    what_the_script_says_of_its_environment_stays_inside,
    libraries_in_the_working_directory_are_not_loaded,
    directories_of_sockets_are_empty,
    programs_that_become_another_user,
    programs_that_would_become_another_user_later,
    network_only_where_it_is_allowed,
    directories_that_would_undo_it_are_refused,
    links_to_such_directories_are_refused,
    a_directory_that_becomes_a_link_stays_out,
    directories_that_are_mounted_twice_are_refused,
    the_home_directory_is_worth_a_warning,
    a_skill_below_the_working_directory_stays,
    a_skill_around_the_working_directory_stays,
    the_terminal_is_out_of_reach,
    a_script_signals_nobody_else,
    without_a_program_for_sessions,
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
pub(crate) fn skipped(reason: &str) {
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

/// A `#!` line can set variables, and the dynamic linker obeys some in every program: bubblewrap itself must not get them.
fn what_the_script_says_of_its_environment_stays_inside() {
    let fixture = Fixture::new();
    let trace = fixture.path("home/trace");
    fixture.set_script(&format!("env -S LD_DEBUG=files LD_DEBUG_OUTPUT={} MINE=1 ", text(&trace)));
    let text = fixture.inside("variables", &[]);
    assert!(text.contains("LD_DEBUG=files") && text.contains("MINE=1"), "{text}");
    let names = fs::read_dir(fixture.path("home")).unwrap().map(|entry| entry.unwrap().file_name());
    let traces: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("trace")).collect();
    assert!(traces.is_empty(), "written outside: {traces:?}");
}

/// With an empty element in `LD_LIBRARY_PATH`, which happens, a script could leave a library for the next bubblewrap.
fn libraries_in_the_working_directory_are_not_loaded() {
    let fixture = Fixture::new();
    for library in ["libcap.so.2", "libselinux.so.1"] {
        fs::write(fixture.cwd.join(library), "not a library").unwrap();
    }
    fixture.all_succeed("write", &[text(&fixture.cwd)]);
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

/// What a script leaves behind runs outside.
fn programs_that_would_become_another_user_later() {
    if !installed("perl") {
        return;
    }
    let fixture = Fixture::new();
    fixture.all_succeed_outside("left", &[]);
    let names = |dir: &Path| fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name()).collect::<Vec<_>>();
    for name in names(&fixture.cwd) {
        fs::remove_file(fixture.cwd.join(name)).unwrap();
    }
    fixture.all_fail("left", &[]);
    assert_eq!(names(&fixture.cwd), ["plain"]);
}

fn network_only_where_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut fixture = Fixture::new();
    fixture.all_fail("tcp", &[&address]);
    fixture.network = true;
    fixture.all_succeed("tcp", &[&address]);
}

/// A program that was started from a terminal.
fn the_terminal_is_out_of_reach() {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    // To close it would end us, with the signal for that.
    let terminal = ManuallyDrop::new(openpt(flags).unwrap());
    grantpt(&*terminal).unwrap();
    unlockpt(&*terminal).unwrap();
    let name = ptsname(&*terminal, Vec::new()).unwrap();
    setsid().unwrap();
    // Who leads a session and opens a terminal has it.
    let _own = fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let fixture = Fixture::new();
    fixture.all_succeed_outside("terminal", &[]);
    fixture.all_fail("terminal", &[]);
}

/// `kill 0`, as scripts do at their end, must not end the sandbox around them.
fn a_script_signals_nobody_else() {
    Fixture::new().all_succeed("signal", &[]);
}

fn without_a_program_for_sessions() {
    // In there, `/tmp` is another one.
    let hidden = tempfile::tempdir_in("/tmp").unwrap();
    let path = env::var("PATH").unwrap();
    let found = env::split_paths(&path).map(|dir| dir.join("setsid")).find(|it| it.exists()).unwrap();
    std::os::unix::fs::symlink(found, hidden.path().join("setsid")).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args([CASE_FLAG, WITHOUT_SETSID])
        .env("PATH", format!("{}:{path}", text(hidden.path())))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
pub(crate) fn snapshot(dir: &Path) -> Vec<(String, Vec<u8>)> {
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

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
