//! Parts of scripts of skills: what a model would have run. Each is started by a file of its own, which any system can run.

use std::{
    env, fs,
    io::{self, Write},
    net::TcpStream,
    path::Path,
    process::{Command, ExitCode},
    thread,
    time::{Duration, Instant},
};

use super::{SCRIPT, parts::LIFE};

/// What the names of these parts begin with.
pub(crate) const PREFIX: &str = "script ";

/// The second process of `hold`.
const CHILD: &str = "child";

/// The text of a file that plays the part `name`, and the ending that its name must have.
pub(crate) fn file(name: &str) -> (&'static str, String) {
    let this = env::current_exe().expect("this program has a path");
    let this = this.to_str().expect("text");
    if cfg!(windows) {
        ("cmd", format!("@set \"{SCRIPT}={PREFIX}{name}\"\r\n@\"{this}\" %*\r\n"))
    } else {
        ("sh", format!("export {SCRIPT}='{PREFIX}{name}'; exec '{this}' \"$@\"\n"))
    }
}

/// Plays a part.
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
        "stubborn" => super::parts::deaf_to_signals(|| hold(argument())),
        CHILD => held(argument()),
        "kill" => kill(argument()),
        "count" => count(Path::new(argument())),
        other => panic!("no script is called {other}"),
    }
    ExitCode::SUCCESS
}

fn print(text: &str) {
    io::stdout().write_all(text.as_bytes()).expect("somebody listens");
}

/// Its input, its arguments, something on stderr, and an exit code that the first argument gives.
fn say(arguments: &[String]) {
    io::copy(&mut io::stdin().lock(), &mut io::stdout()).expect("an input");
    print(&format!("{}\n", arguments.join(" ")));
    io::stderr().write_all(b"no\n").expect("somebody listens");
    match arguments.first().map_or(0, String::len) {
        1 => {}
        other => std::process::exit(i32::try_from(other).expect("short") - 1),
    }
}

/// The working directory, and what the environment says.
fn whereabouts() {
    let dir = dunce::canonicalize(env::current_dir().expect("a directory")).expect("a path");
    let ours = env::var("PROXY_TEST_OURS").unwrap_or_else(|_| "nothing".to_owned());
    print(&format!("{}\n{}\n{ours}\n", dir.display(), env::var("SKILL_NAME").expect("it is set")));
}

/// Two processes that do not end, each with a connection to the test, whose ends show that nobody is left.
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

/// Kills a process by its number.
fn kill(id: &str) {
    let mut command = if cfg!(windows) { Command::new("taskkill") } else { Command::new("kill") };
    command.args(if cfg!(windows) { ["/f", "/pid"].as_slice() } else { &["-9"] });
    command.arg(id);
    let end = Instant::now() + LIFE;
    // Whoever is killed ends this script too. Several `taskkill` at once are seen to end nobody under Wine.
    while Instant::now() < end {
        drop(command.status());
        thread::sleep(Duration::from_secs(1));
    }
}

/// How many do this at once.
fn count(dir: &Path) {
    let mine = dir.join(std::process::id().to_string());
    fs::create_dir(&mine).expect("nobody else has this number");
    // Work, so that those that are started meanwhile are seen.
    thread::sleep(Duration::from_millis(if cfg!(windows) { 100 } else { 5 }));
    let count = fs::read_dir(dir).expect("a directory").count();
    fs::remove_dir(&mine).expect("it is empty");
    print(&format!("{count}\n"));
}
