//! The list of cases, and those about files, system calls, sockets and the network. Cases about working directories are in
//! `directories`, and those about processes in `processes`.

use std::{
    env, fs,
    net::TcpListener,
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::io::{FdFlags, fcntl_setfd};
use skills_core::exec::{Sandbox, SandboxError};

use crate::{
    directories::{
        a_directory_replaced_by_a_link_gives_no_access, a_directory_that_was_replaced_is_rejected,
        a_skill_around_the_working_directory_cannot_be_changed,
        a_skill_below_the_working_directory_cannot_be_changed,
        directories_that_would_defeat_the_sandbox_are_rejected, files_of_the_proxy_are_read_only,
        links_that_a_script_could_have_made_are_rejected, links_to_such_directories_are_rejected,
        links_to_the_configuration_are_rejected, second_mounts_of_forbidden_directories_are_rejected,
        the_home_directory_causes_a_warning,
    },
    fixture::{Fixture, abstract_name},
    processes::{
        a_script_cannot_signal_the_sandbox, hold_a_fifo, killing_the_caller_ends_the_script,
        root_without_user_namespaces_is_rejected, the_sandbox_works_without_flock,
        the_sandbox_works_without_setsid, the_terminal_cannot_be_opened, without_namespaces,
    },
};

/// A case that fails with the reason if the sandbox is not available.
pub(crate) const AVAILABLE: &str = "available";
/// A helper process that runs until it is killed.
pub(crate) const HOLDING: &str = "holding";
/// A helper process that runs where user namespaces can't be created.
pub(crate) const WITHOUT_NAMESPACES: &str = "without_namespaces";
/// A helper process that runs where the sandbox doesn't contain a program of the launcher.
pub(crate) const WITHOUT_PROGRAM: &str = "without_program";

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn names() -> Vec<&'static str> {
            vec![$(stringify!($name)),*]
        }

        pub(crate) fn run(name: &str) -> ExitCode {
            match name {
                $(stringify!($name) => $name(),)*
                AVAILABLE => return available(),
                HOLDING => hold_a_fifo(),
                WITHOUT_NAMESPACES => without_namespaces(),
                WITHOUT_PROGRAM => the_terminal_cannot_be_opened(),
                other => panic!("there is no case {other}"),
            }
            ExitCode::SUCCESS
        }
    };
}

cases!(
    a_script_has_no_capabilities,
    mounts_cannot_be_undone,
    the_skill_cannot_be_changed,
    only_two_directories_are_writable,
    sockets_of_the_host_cannot_be_reached,
    dangerous_system_calls_fail,
    common_operations_succeed,
    kernel_settings_cannot_be_written,
    inherited_descriptors_are_closed,
    variables_that_name_sockets_are_removed,
    variables_of_the_shebang_line_are_set_only_inside,
    libraries_in_the_working_directory_are_not_loaded,
    directories_with_sockets_are_empty,
    set_user_id_programs_have_no_effect,
    set_user_id_programs_cannot_be_created,
    the_network_is_available_only_if_allowed,
    directories_that_would_defeat_the_sandbox_are_rejected,
    links_to_such_directories_are_rejected,
    links_that_a_script_could_have_made_are_rejected,
    files_of_the_proxy_are_read_only,
    links_to_the_configuration_are_rejected,
    a_directory_replaced_by_a_link_gives_no_access,
    a_directory_that_was_replaced_is_rejected,
    second_mounts_of_forbidden_directories_are_rejected,
    the_home_directory_causes_a_warning,
    a_skill_below_the_working_directory_cannot_be_changed,
    a_skill_around_the_working_directory_cannot_be_changed,
    the_terminal_cannot_be_opened,
    a_script_cannot_signal_the_sandbox,
    the_sandbox_works_without_flock,
    the_sandbox_works_without_setsid,
    killing_the_caller_ends_the_script,
    root_without_user_namespaces_is_rejected,
);

#[expect(clippy::print_stderr, reason = "the reason for skipping")]
fn available() -> ExitCode {
    match Sandbox::bwrap(false) {
        // If there is a sandbox but it doesn't work, we don't want to skip the tests, because they should fail.
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

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skipped(&format!("`{program}` is not installed"));
    }
    found
}

fn a_script_has_no_capabilities() {
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
        ["", "home", "home/notes", "skills", "skills/kit", "skills/neighbour"].map(|path| fixture.path(path));
    let own: Vec<&str> = own.iter().map(|path| text(path)).collect();
    fixture.all_fail("write", &own);
    let system = ["/", "/etc", "/usr", "/usr/bin", "/var", "/var/tmp", "/var/lib", "/home", "/root", "/opt"];
    fixture.all_fail("write", &system);
    fixture.all_succeed("write", &[text(&fixture.cwd), "/tmp"]);
    assert!(fixture.cwd.join("attack").exists());
    assert!(!Path::new("/tmp/attack").exists());
}

fn sockets_of_the_host_cannot_be_reached() {
    let mut fixture = Fixture::new();
    let agent = fixture.path("home/agent.sock");
    let bus = fixture.path("runtime/bus");
    let stream = format!("@{}", abstract_name("stream"));
    let datagrams = format!("@{}", abstract_name("datagrams"));
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

fn dangerous_system_calls_fail() {
    if !is_installed("perl") {
        return;
    }
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_fail("calls", &[]);
    }
}

fn common_operations_succeed() {
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_succeed("pairs", &[]);
    }
}

fn kernel_settings_cannot_be_written() {
    let mut fixture = Fixture::new();
    for network in [false, true] {
        fixture.network = network;
        fixture.all_fail("kernel", &[]);
    }
}

fn inherited_descriptors_are_closed() {
    let fixture = Fixture::new();
    // Here we're an editor that starts the proxy, but forgets to close a socket.
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

fn variables_that_name_sockets_are_removed() {
    let text = Fixture::new().inside("variables", &[]);
    let has = |name: &str| {
        text.lines().any(|line| line.split_once('=').is_some_and(|(variable, _)| variable == name))
    };
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
        assert!(env::var_os(name).is_some(), "{name} should be set outside of the sandbox");
        assert!(!has(name), "{name} should be removed: {text}");
    }
    assert!(!text.contains("agent.sock"), "{text}");
    for line in ["TMPDIR=/tmp", "HARMLESS=kept", "SKILL_NAME=kit"] {
        assert!(text.lines().any(|actual| actual == line), "{line} is missing: {text}");
    }
}

/// A `#!` line can set variables, and the dynamic linker obeys some of them in every program. Bubblewrap itself must not get
/// them.
fn variables_of_the_shebang_line_are_set_only_inside() {
    let fixture = Fixture::new();
    let trace = fixture.path("home/trace");
    fixture.set_script(&format!("env -S LD_DEBUG=files LD_DEBUG_OUTPUT={} MINE=1 ", text(&trace)));
    let text = fixture.inside("variables", &[]);
    assert!(text.contains("LD_DEBUG=files") && text.contains("MINE=1"), "{text}");
    let names = fs::read_dir(fixture.path("home")).unwrap().map(|entry| entry.unwrap().file_name());
    let traces: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("trace")).collect();
    assert!(traces.is_empty(), "files were written outside of the sandbox: {traces:?}");
}

/// `LD_LIBRARY_PATH` sometimes has an empty element, which means the working directory. A script could then leave a library
/// there for the next start of bubblewrap.
fn libraries_in_the_working_directory_are_not_loaded() {
    let fixture = Fixture::new();
    for library in ["libcap.so.2", "libselinux.so.1"] {
        fs::write(fixture.cwd.join(library), "not a library").unwrap();
    }
    fixture.all_succeed("write", &[text(&fixture.cwd)]);
}

fn directories_with_sockets_are_empty() {
    let fixture = Fixture::new();
    assert_eq!(fixture.inside("list", &[text(&fixture.path("runtime"))]), "");
    assert_eq!(fixture.inside("list", &["/tmp"]), "");
    let run = fixture.inside("list", &["/run"]);
    assert!(run.lines().all(|name| name == "current-system"), "{run}");
}

fn set_user_id_programs_have_no_effect() {
    let Ok(program) = env::var("SET_USER_ID") else {
        return skipped(
            "this case needs a set-user-ID program, which exists only if root runs the case as nobody",
        );
    };
    let outside = Command::new(&program).arg("-u").output().unwrap().stdout;
    if outside != b"0\n" {
        return skipped("set-user-ID programs have no effect on this system anyway");
    }
    assert_ne!(Fixture::new().inside("set-user-id", &[&program]), "0\n\n");
}

/// A program that a script leaves behind would run outside of the sandbox.
fn set_user_id_programs_cannot_be_created() {
    if !is_installed("perl") {
        return;
    }
    let fixture = Fixture::new();
    fixture.all_succeed_outside("left", &[]);
    let names =
        |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    for name in names(&fixture.cwd) {
        fs::remove_file(fixture.cwd.join(name)).unwrap();
    }
    fixture.all_fail("left", &[]);
    assert_eq!(names(&fixture.cwd), ["plain"]);
}

fn the_network_is_available_only_if_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut fixture = Fixture::new();
    fixture.all_fail("tcp", &[&address]);
    fixture.network = true;
    fixture.all_succeed("tcp", &[&address]);
}

/// Returns the path and content of each file below `dir`.
pub(crate) fn snapshot(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
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
