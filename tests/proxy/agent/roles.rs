//! Roles that need no conversation: recorders, floods, and processes that do not want to end.

use std::{
    env, fs,
    io::{self, BufRead, Read, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use super::{FLOOD_BYTES, INPUT_FILE, OUTPUT_FILE, report};

/// Writes the bytes of one file to stdout and copies stdin to another file. Exits when stdin ends.
pub(super) fn tape() -> ExitCode {
    let path = |name| env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let says = thread::spawn(move || {
        let bytes = fs::read(path(OUTPUT_FILE)).expect("the output file can be read");
        let mut stdout = io::stdout().lock();
        stdout.write_all(&bytes).and_then(|()| stdout.flush()).expect("stdout is open");
    });
    let mut heard = fs::File::create(path(INPUT_FILE)).expect("the input file can be created");
    io::copy(&mut io::stdin().lock(), &mut heard).expect("stdin can be read");
    says.join().expect("all output was written");
    ExitCode::SUCCESS
}

/// Sends its command-line arguments as a message, and exits.
pub(super) fn arguments() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let message = serde_json::json!({ "jsonrpc": "2.0", "method": "_arguments", "params": arguments });
    writeln!(io::stdout(), "{message}").expect("stdout is open");
    ExitCode::SUCCESS
}

/// A command tool that answers with its input.
pub(super) fn echo() -> ExitCode {
    let mut input = String::new();
    io::stdin().lock().read_to_string(&mut input).expect("the input is text");
    let answer = format!("input: {}", if input.is_empty() { "(nothing)" } else { &input });
    io::stdout().write_all(answer.as_bytes()).expect("stdout is open");
    ExitCode::SUCCESS
}

/// Writes [`FLOOD_BYTES`] of updates, and meanwhile reports each notification that it receives.
pub(super) fn flood() -> ExitCode {
    thread::spawn(|| {
        let text = "x".repeat(8000);
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        );
        let mut stdout = io::stdout().lock();
        let mut left = FLOOD_BYTES;
        report("flooding");
        while left > 0 {
            writeln!(stdout, "{line}").expect("stdout is open");
            left = left.saturating_sub(line.len() + 1);
        }
        let end = br#"{"jsonrpc":"2.0","method":"_flood/end"}"#;
        stdout.write_all(end).and_then(|()| stdout.write_all(b"\n")).expect("stdout is open");
        stdout.flush().expect("stdout is open");
    });
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let message: serde_json::Value = serde_json::from_str(&line).expect("a message");
        if message.get("id").is_none() {
            report(&format!("heard {}", message["method"]));
        }
    }
    ExitCode::SUCCESS
}

/// The maximum lifetime of such a process, so that it ends even if a test fails.
pub(super) const LIFE: Duration = Duration::from_secs(100);

/// Ignores the end of its stdin. On Windows there is no other way to ask a process to end.
#[cfg(windows)]
pub(super) fn stubborn() -> ExitCode {
    report("ready");
    thread::park_timeout(LIFE);
    ExitCode::FAILURE
}

/// Reads nothing until the file [`INPUT_FILE`] exists. Then it sends a notification at once, and reports how many bytes it
/// reads from then on.
pub(super) fn deaf() -> ExitCode {
    report("ready");
    let wake = env::var_os(INPUT_FILE).expect("a path");
    while !fs::exists(&wake).expect("a path") {
        thread::sleep(Duration::from_millis(20));
    }
    writeln!(io::stdout(), r#"{{"jsonrpc":"2.0","method":"_deaf/awake"}}"#).expect("stdout is open");
    let heard = io::copy(&mut io::stdin().lock(), &mut io::sink()).expect("stdin can be read");
    report(&format!("heard {heard} bytes"));
    ExitCode::SUCCESS
}

/// Neither reads nor writes.
pub(super) fn silent() -> ExitCode {
    thread::park_timeout(LIFE);
    ExitCode::FAILURE
}

/// Runs `role`. On Windows there are no signals to ignore.
#[cfg(windows)]
pub(super) fn ignoring_signals(role: impl FnOnce()) {
    role();
}

/// Takes 1.5 seconds to exit after the end of its stdin, and then exits with code 0.
pub(super) fn slow_exit() -> ExitCode {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    report("exiting");
    thread::sleep(Duration::from_millis(1500));
    ExitCode::SUCCESS
}

#[cfg(unix)]
pub(super) use self::unix::{ignoring_signals, signals, stubborn};

#[cfg(unix)]
mod unix {
    //! Roles that handle signals.

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::{ExitCode, LIFE, report};

    /// Runs `role` with the signals that the proxy forwards.
    fn with_signals(role: impl AsyncFnOnce(Signal, Signal, Signal) -> ExitCode) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listen = |kind| signal(kind).expect("the handler can be installed");
            let interrupt = listen(SignalKind::interrupt());
            let terminate = listen(SignalKind::terminate());
            let hangup = listen(SignalKind::hangup());
            report("ready");
            tokio::time::timeout(LIFE, role(interrupt, terminate, hangup)).await.unwrap_or(ExitCode::FAILURE)
        })
    }

    /// Reports signals and ignores them, as well as the end of its stdin.
    pub(crate) fn stubborn() -> ExitCode {
        with_signals(async |mut interrupt, mut terminate, mut hangup| {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => report("SIGINT"),
                    _ = terminate.recv() => report("SIGTERM"),
                    _ = hangup.recv() => report("SIGHUP"),
                }
            }
        })
    }

    /// Runs `role`, and ignores SIGTERM meanwhile.
    pub(crate) fn ignoring_signals(role: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let _terminate = signal(SignalKind::terminate()).expect("the handler can be installed");
            role();
        });
    }

    /// Reports SIGINT, and exits with code 41 on SIGTERM and 42 on SIGHUP. Ignores the end of its stdin.
    pub(crate) fn signals() -> ExitCode {
        with_signals(async |mut interrupt, mut terminate, mut hangup| {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => report("SIGINT"),
                    _ = terminate.recv() => return ExitCode::from(41),
                    _ = hangup.recv() => return ExitCode::from(42),
                }
            }
        })
    }
}
