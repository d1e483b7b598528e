//! Roles for scripts of skills, that is, for what a model runs. A small file starts each role, in a form that the
//! platform can run.

use std::{
    env, fs,
    io::{self, Write},
    net::TcpStream,
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use super::{SCRIPT, roles::LIFE};

/// The prefix of these roles' names.
pub(crate) const PREFIX: &str = "script ";

/// The role of the second process of `hold`.
const CHILD: &str = "child";

/// Returns the extension and the text of a script file that runs the role `name`.
pub(crate) fn file(name: &str) -> (&'static str, String) {
    let this = env::current_exe().expect("this program has a path");
    let this = this.to_str().expect("text");
    if cfg!(windows) {
        ("cmd", format!("@set \"{SCRIPT}={PREFIX}{name}\"\r\n@\"{this}\" %*\r\n"))
    } else {
        ("sh", format!("export {SCRIPT}='{PREFIX}{name}'; exec '{this}' \"$@\"\n"))
    }
}

/// Runs a role.
pub(super) fn run(name: &str) -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let argument = || arguments.first().expect("an argument");
    match name {
        "say" => say(&arguments),
        "where" => whereabouts(),
        "slow" => {
            print("begun\n");
            thread::park_timeout(LIFE);
        }
        "much" => print("日本語日本語\n"),
        "until" => {
            while !Path::new(argument()).exists() {
                thread::sleep(Duration::from_millis(50));
            }
            print("over\n");
        }
        "hold" => hold(argument()),
        "stubborn" => super::roles::ignoring_signals(|| hold(argument())),
        CHILD => held(argument()),
        "mark" => fs::write(argument(), "").expect("a file"),
        "kill" => kill(argument()),
        "count" => count(Path::new(argument())),
        other => panic!("no script is called {other}"),
    }
    ExitCode::SUCCESS
}

fn print(text: &str) {
    io::stdout().write_all(text.as_bytes()).expect("stdout is open");
}

/// Prints its input and its arguments, writes a line to stderr, and exits with a code that the first argument determines.
fn say(arguments: &[String]) {
    io::copy(&mut io::stdin().lock(), &mut io::stdout()).expect("an input");
    print(&format!("{}\n", arguments.join(" ")));
    io::stderr().write_all(b"no\n").expect("stdout is open");
    match arguments.first().map_or(0, String::len) {
        1 => {}
        other => std::process::exit(i32::try_from(other).expect("short") - 1),
    }
}

/// Prints the working directory and two environment variables.
fn whereabouts() {
    let dir = dunce::canonicalize(env::current_dir().expect("a directory")).expect("a path");
    let ours = env::var("PROXY_TEST_OURS").unwrap_or_else(|_| "nothing".to_owned());
    print(&format!("{}\n{}\n{ours}\n", dir.display(), env::var("SKILL_NAME").expect("the variable is set")));
}

/// Starts two processes that don't end. Each holds a connection to the test, which is closed when the process
/// ends.
fn hold(address: &str) {
    let this = env::current_exe().expect("this program has a path");
    let child = Command::new(this).env(SCRIPT, format!("{PREFIX}{CHILD}")).arg(address).spawn();
    held(address);
    drop(child.expect("a child"));
}

fn held(address: &str) {
    let mut connection = TcpStream::connect(address).expect("the test listens");
    connection.write_all(b"held\n").expect("the test reads");
    thread::park_timeout(LIFE);
    drop(connection);
}

/// Kills the process with this id.
fn kill(id: &str) {
    let mut command = if cfg!(windows) { Command::new("taskkill") } else { Command::new("kill") };
    command.args(if cfg!(windows) { ["/f", "/pid"].as_slice() } else { &["-9"] });
    command.arg(id);
    let end = Instant::now() + LIFE;
    // If this works, the script is killed along with the proxy. Under Wine, `taskkill` sometimes fails when several of them are
    // running, so try again until it doesn't.
    while Instant::now() < end {
        let _ = command.status();
        thread::sleep(Duration::from_secs(1));
    }
}

/// Prints how many of these scripts are running at the same time.
fn count(dir: &Path) {
    let mine = dir.join(std::process::id().to_string());
    fs::create_dir(&mine).expect("the process id is unique");
    // Wait a bit, so that scripts running in parallel are able to see each other.
    thread::sleep(Duration::from_millis(if cfg!(windows) { 100 } else { 5 }));
    let count = fs::read_dir(dir).expect("a directory").count();
    fs::remove_dir(&mine).expect("the directory is empty");
    print(&format!("{count}\n"));
}
