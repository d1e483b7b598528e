//! The private socket through which bridges connect to the proxy: no port is opened, no other user can connect, and nothing stays
//! behind.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    editor::{DEADLINE, Proxy},
    fixture::{Connection, Fixture, MCP_2025, entry},
    skills::Skills,
};

crate::trials!(
    the_place_of_the_socket,
    the_socket_is_removed,
    a_killed_proxy_leaves_nothing_for_long,
    a_socket_that_was_removed_is_created_again,
    sessions_share_the_socket,
    idle_connections_do_not_block_bridges,
    #[cfg(target_os = "linux")]
    no_port_opens,
    #[cfg(target_os = "linux")]
    other_users_cannot_connect,
    #[cfg(target_os = "linux")]
    no_place_for_the_socket,
);

/// Starts a proxy in front of an agent that supports MCP servers over stdio only.
fn over_stdio(proxy: Proxy) -> Fixture {
    Fixture::initialized(proxy, &json!({ "sessionCapabilities": { "close": {} } }))
}

/// Starts a proxy that uses `place` for temporary files.
fn in_place(skills: &Skills, place: &Path) -> Fixture {
    over_stdio(skills.proxy().env("XDG_RUNTIME_DIR", "").env("TMPDIR", place))
}

/// Returns the path of the socket in an entry of `mcpServers`.
fn socket(entry: &Value) -> PathBuf {
    let environment = entry["env"].as_array().expect("a list");
    let address = environment.iter().find(|pair| pair["name"] == "ACP_SKILLS_BRIDGE_ADDRESS");
    address.expect("an address")["value"].as_str().expect("text").into()
}

/// Opens a session whose agent uses the tools. Returns the entry of our server and the connection.
fn session(fixture: &mut Fixture, id: &str) -> (Value, Connection) {
    let ours = entry(&fixture.new_session(id));
    let connection = fixture.connect(&ours, MCP_2025);
    activates(fixture, &connection);
    (ours, connection)
}

fn activates(fixture: &mut Fixture, connection: &Connection) {
    let (text, failed) = fixture.call(connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed && text.contains("# Review"), "{text}");
}

/// Waits until a directory has `count` entries.
fn wait_for_entries(directory: &Path, count: usize) {
    let end = Instant::now() + DEADLINE;
    loop {
        let entries: Vec<_> = fs::read_dir(directory).expect("a directory").flatten().collect();
        if entries.len() == count {
            return;
        }
        assert!(Instant::now() < end, "not {count} entries: {entries:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn the_place_of_the_socket() {
    let parent = tempfile::tempdir().expect("a directory");
    let place = |name: &str, mode: u32| {
        let path = parent.path().join(name);
        fs::create_dir(&path).expect("a directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
        path
    };
    let private = place("runtime", 0o700);
    let shared = place("shared", 0o755);
    let spaces = place("with spaces and é", 0o700);
    let open = place("open", 0o777);
    let long = place(&"long".repeat(30), 0o700);
    let missing = parent.path().join("missing");
    let default = PathBuf::from("/tmp");
    let skills = Skills::review();
    for (runtime, temporary, used) in [
        (&private, &spaces, &private),
        (&shared, &spaces, &spaces),
        (&missing, &shared, &shared),
        (&long, &spaces, &spaces),
        (&PathBuf::from("runtime"), &spaces, &spaces),
        (&shared, &long, &default),
        (&shared, &open, &default),
        (&missing, &missing, &default),
    ] {
        let proxy = skills.proxy().env("XDG_RUNTIME_DIR", runtime).env("TMPDIR", temporary);
        let mut fixture = over_stdio(proxy);
        let (ours, _) = session(&mut fixture, "s");
        let socket = socket(&ours);
        let directory = socket.parent().expect("a directory");
        assert_eq!(directory.parent(), Some(used.as_path()), "{} {}", runtime.display(), temporary.display());
        let metadata = fs::metadata(directory).expect("a directory");
        assert_eq!(metadata.mode() & 0o777, 0o700);
        let log = fixture.finish().log;
        assert!(!directory.exists(), "{log:?}");
        assert!(!log.iter().any(|line| line.contains("WARN")), "{log:?}");
    }
}

/// The socket is removed however the proxy ends.
fn the_socket_is_removed() {
    let place = tempfile::tempdir().expect("a directory");
    let skills = Skills::review();
    let ends: [fn(&mut Fixture); 4] = [
        |fixture| fixture.editor.close(),
        |fixture| send(fixture, Signal::TERM),
        |fixture| send(fixture, Signal::HUP),
        |fixture| fixture.editor.notify("_agent/exit", json!({ "code": 3 })),
    ];
    for (index, end) in ends.into_iter().enumerate() {
        let mut fixture = in_place(&skills, place.path());
        session(&mut fixture, "s");
        wait_for_entries(place.path(), 1);
        end(&mut fixture);
        let ended = fixture.editor.ended();
        assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 0, "{index}: {:?}", ended.log);
    }
    // Without a session, there is none.
    in_place(&skills, place.path()).finish();
    wait_for_entries(place.path(), 0);
}

fn send(fixture: &Fixture, signal: Signal) {
    let id = i32::try_from(fixture.editor.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("an id"), signal).expect("the proxy runs");
}

fn a_killed_proxy_leaves_nothing_for_long() {
    let place = tempfile::tempdir().expect("a directory");
    let skills = Skills::review();
    let mut running = in_place(&skills, place.path());
    let (_, connection) = session(&mut running, "s");
    for _ in 0..2 {
        let mut fixture = in_place(&skills, place.path());
        session(&mut fixture, "s");
        fixture.editor.kill();
        fixture.editor.ended();
        // A directory of another program, and one that only looks like ours.
        fs::write(place.path().join("acp-skills-notes"), "x").expect("a file");
        let mut next = in_place(&skills, place.path());
        session(&mut next, "s");
        wait_for_entries(place.path(), 3);
        next.finish();
    }
    // Its socket is still there, and takes new bridges.
    activates(&mut running, &connection);
    session(&mut running, "t");
    running.finish();
    wait_for_entries(place.path(), 1);
}

/// Some systems clean temporary directories while programs use them.
fn a_socket_that_was_removed_is_created_again() {
    let place = tempfile::tempdir().expect("a directory");
    let skills = Skills::review();
    let mut fixture = in_place(&skills, place.path());
    let (first, connection) = session(&mut fixture, "s");
    fs::remove_dir_all(socket(&first).parent().expect("a directory")).expect("it can be removed");
    let (second, _) = session(&mut fixture, "t");
    assert_ne!(socket(&first), socket(&second));
    activates(&mut fixture, &connection);
    fixture.finish();
    wait_for_entries(place.path(), 0);
}

fn sessions_share_the_socket() {
    let place = tempfile::tempdir().expect("a directory");
    let skills = Skills::review();
    let mut fixture = in_place(&skills, place.path());
    let (first, one) = session(&mut fixture, "s");
    let (second, two) = session(&mut fixture, "t");
    assert_eq!(socket(&first), socket(&second));
    assert_ne!(first["env"], second["env"]);
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    activates(&mut fixture, &two);
    let closed =
        fixture.order("call", json!({ "connection": one.number, "tool": "activate_skill", "arguments": {} }));
    assert!(closed.is_err(), "{closed:?}");
    fixture
        .order("connect", json!({ "entry": first, "revision": MCP_2025 }))
        .expect_err("the session is closed");
    fixture.finish();
}

/// Connections that send nothing, or the wrong thing, are closed to make room for bridges.
fn idle_connections_do_not_block_bridges() {
    use std::{io::Write, os::unix::net::UnixStream};
    let place = tempfile::tempdir().expect("a directory");
    let skills = Skills::review();
    let mut fixture = in_place(&skills, place.path());
    let ours = entry(&fixture.new_session("s"));
    let path = socket(&ours);
    let connect = |index: usize| {
        let mut stream = UnixStream::connect(&path).expect("the proxy listens");
        // The proxy may have closed the connection already.
        let _ =
            stream.write_all(["", "x", "GET / HTTP/1.1\r\n\r\n", &"x".repeat(100_000)][index % 4].as_bytes());
        stream
    };
    let idle: Vec<_> = (0..100).map(connect).collect();
    let connection = fixture.connect(&ours, MCP_2025);
    activates(&mut fixture, &connection);
    drop(idle);
    fixture.finish();
}

/// The permissions of the directory keep other users out, and if they are lost, the proxy does.
#[cfg(target_os = "linux")]
fn other_users_cannot_connect() {
    if !crate::faults::is_root() {
        return;
    }
    let place = tempfile::Builder::new().tempdir_in("/tmp").expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).expect("permissions");
    // The other user may not be able to run the program where it was built.
    let program = place.path().join("bridge");
    fs::copy(env!("CARGO_BIN_EXE_acp-skills-proxy"), &program).expect("a copy");
    let skills = Skills::review();
    let mut fixture = in_place(&skills, place.path());
    let (ours, _) = session(&mut fixture, "s");
    let path = socket(&ours);
    let directory = path.parent().expect("a directory");
    for (is_open, why) in [(false, "Permission denied"), (true, "proxy did not respond in time")] {
        if is_open {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).expect("permissions");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("permissions");
        }
        let mut bridge = Proxy::of("setpriv").arg("--reuid=65534").arg("--clear-groups").arg(&program);
        bridge = bridge.arg("mcp-bridge");
        for pair in ours["env"].as_array().expect("a list") {
            let text = |key: &str| pair[key].as_str().expect("text");
            bridge = bridge.env(text("name"), text("value"));
        }
        let ended = bridge.start().ended();
        assert_eq!(ended.code(), Some(125), "{:?}", ended.log);
        assert!(ended.log.join("\n").contains(why), "{:?}", ended.log);
    }
    let log = fixture.finish().log;
    assert!(log.iter().any(|line| line.contains("another user, with id 65534")), "{log:?}");
}

/// If no directory can be used, the model reads the files instead.
#[cfg(target_os = "linux")]
fn no_place_for_the_socket() {
    if !crate::faults::is_root() {
        return;
    }
    let skills = tempfile::Builder::new().tempdir_in("/var/tmp").expect("a directory");
    let skill = skills.path().join("review");
    fs::create_dir(&skill).expect("a directory");
    fs::write(skill.join("SKILL.md"), "---\nname: review\ndescription: Reviews.\n---\n# Review\n")
        .expect("a file");
    let program = env!("CARGO_BIN_EXE_acp-skills-proxy");
    // The programs can be below this directory, so it has to stay readable.
    let script = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec \"$@\"";
    let proxy = Proxy::of("unshare").arg("-m").arg("sh").arg("-c").arg(script).arg("sh").arg(program);
    let proxy = proxy.env("XDG_RUNTIME_DIR", "").env("TMPDIR", "/tmp").skill(&skill);
    let mut fixture = over_stdio(proxy);
    let params = fixture.new_session("s");
    assert_eq!(params["mcpServers"], json!([]));
    let told = fixture.prompt("s", "hello");
    assert!(json!(told).to_string().contains("SKILL.md"), "{told:?}");
    let log = fixture.finish().log.join("\n");
    assert!(log.contains("cannot create a socket for the skills server: Read-only file system"), "{log}");
    assert!(log.contains(": /tmp"), "{log}");
}

/// Returns the sockets of a process with an address of the network, as `/proc/net` lists them.
#[cfg(target_os = "linux")]
fn network_sockets(id: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{id}/fd")).expect("the process runs");
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let inodes: Vec<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned()))
        .collect();
    let lists =
        ["tcp", "tcp6", "udp", "udp6"].map(|list| fs::read_to_string(format!("/proc/{id}/net/{list}")));
    let lines =
        lists.into_iter().flatten().flat_map(|list| list.lines().map(str::to_owned).collect::<Vec<_>>());
    let is_ours = |line: &String| {
        line.split_whitespace().nth(9).is_some_and(|inode| inodes.contains(&inode.to_owned()))
    };
    lines.filter(is_ours).collect()
}

/// A port opens if an agent uses HTTP, and only then.
#[cfg(target_os = "linux")]
fn no_port_opens() {
    let skills = Skills::review();
    let http = json!({ "mcpCapabilities": { "http": true } });
    for (flag, capabilities, ports) in [("auto", json!({}), 0), ("stdio", http.clone(), 0), ("http", http, 1)]
    {
        let mut fixture = Fixture::initialized(skills.proxy().flag("--mcp", flag), &capabilities);
        assert_eq!(network_sockets(fixture.editor.id()), [""; 0], "{flag}");
        let ours = entry(&fixture.new_session("s"));
        assert_eq!(network_sockets(fixture.editor.id()).len(), ports, "{flag}");
        let connection = fixture.connect(&ours, MCP_2025);
        activates(&mut fixture, &connection);
        assert_eq!(network_sockets(fixture.editor.id()).is_empty(), ports == 0, "{flag}");
        fixture.finish();
    }
}
