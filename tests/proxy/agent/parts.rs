//! Parts that need no conversation: recorders, floods, and processes that do not want to end.

use std::{
    env, fs,
    io::{self, BufRead, Read, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use super::{FLOOD_BYTES, HEARS, SAYS, report};

/// Says the bytes of one file and writes what it hears to another; ends with its stdin.
pub(super) fn tape() -> ExitCode {
    let path = |name| env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    let says = thread::spawn(move || {
        let bytes = fs::read(path(SAYS)).expect("there is something to say");
        let mut stdout = io::stdout().lock();
        stdout.write_all(&bytes).and_then(|()| stdout.flush()).expect("somebody listens");
    });
    let mut heard = fs::File::create(path(HEARS)).expect("there is a place to write to");
    io::copy(&mut io::stdin().lock(), &mut heard).expect("somebody speaks");
    says.join().expect("everything was said");
    ExitCode::SUCCESS
}

/// Says which arguments it was given, and ends.
pub(super) fn arguments() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let message = serde_json::json!({ "jsonrpc": "2.0", "method": "_arguments", "params": arguments });
    writeln!(io::stdout(), "{message}").expect("somebody listens");
    ExitCode::SUCCESS
}

/// A command tool: answers with its input.
pub(super) fn echo() -> ExitCode {
    let mut input = String::new();
    io::stdin().lock().read_to_string(&mut input).expect("the input is text");
    let answer = format!("input: {}", if input.is_empty() { "(nothing)" } else { &input });
    io::stdout().write_all(answer.as_bytes()).expect("somebody listens");
    ExitCode::SUCCESS
}

/// Says [`FLOOD_BYTES`] of updates, and meanwhile reports each notification that it hears.
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
            writeln!(stdout, "{line}").expect("somebody listens");
            left = left.saturating_sub(line.len() + 1);
        }
        let end = br#"{"jsonrpc":"2.0","method":"_flood/end"}"#;
        stdout.write_all(end).and_then(|()| stdout.write_all(b"\n")).expect("somebody listens");
        stdout.flush().expect("somebody listens");
    });
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let message: serde_json::Value = serde_json::from_str(&line).expect("a message");
        if message.get("id").is_none() {
            report(&format!("heard {}", message["method"]));
        }
    }
    ExitCode::SUCCESS
}

/// Nobody needs it any longer: a test that fails must not leave it behind for ever.
pub(super) const LIFE: Duration = Duration::from_secs(100);

/// Takes no notice of its stdin, and there is nothing else that asks it to end.
#[cfg(windows)]
pub(super) fn stubborn() -> ExitCode {
    report("ready");
    thread::park_timeout(LIFE);
    ExitCode::FAILURE
}

/// Reads nothing until there is the file [`HEARS`]: then it says something at once, and reports how many bytes it hears from
/// then on.
pub(super) fn deaf() -> ExitCode {
    report("ready");
    let wake = env::var_os(HEARS).expect("a path");
    while !fs::exists(&wake).expect("a path") {
        thread::sleep(Duration::from_millis(20));
    }
    writeln!(io::stdout(), r#"{{"jsonrpc":"2.0","method":"_deaf/awake"}}"#).expect("somebody listens");
    let heard = io::copy(&mut io::stdin().lock(), &mut io::sink()).expect("somebody speaks");
    report(&format!("heard {heard} bytes"));
    ExitCode::SUCCESS
}

/// Neither reads nor says anything.
pub(super) fn deaf_and_dumb() -> ExitCode {
    thread::park_timeout(LIFE);
    ExitCode::FAILURE
}

/// Nobody can ask a program here to end.
#[cfg(windows)]
pub(super) fn deaf_to_signals(part: impl FnOnce()) {
    part();
}

/// Takes a while to end with its stdin, and then ends well.
pub(super) fn slow_to_leave() -> ExitCode {
    drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
    report("leaving");
    thread::sleep(Duration::from_millis(1500));
    ExitCode::SUCCESS
}

#[cfg(unix)]
pub(super) use self::unix::{deaf_to_signals, signals, stubborn};

#[cfg(unix)]
mod unix {
    //! Parts that hear signals.

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::{ExitCode, LIFE, report};

    /// Runs `part` with the signals that the proxy forwards.
    fn with_signals(part: impl AsyncFnOnce(Signal, Signal, Signal) -> ExitCode) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listen = |kind| signal(kind).expect("signals can be heard");
            let (interrupt, terminate, hangup) = (
                listen(SignalKind::interrupt()),
                listen(SignalKind::terminate()),
                listen(SignalKind::hangup()),
            );
            report("ready");
            tokio::time::timeout(LIFE, part(interrupt, terminate, hangup)).await.unwrap_or(ExitCode::FAILURE)
        })
    }

    /// Takes no notice of its stdin or of anything that asks it to end.
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

    /// Runs `part`, which is not ended by what asks it to end.
    pub(crate) fn deaf_to_signals(part: impl FnOnce()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let _terminate = signal(SignalKind::terminate()).expect("signals can be heard");
            part();
        });
    }

    /// Reports the signals that it gets; the end of its stdin is none of its business.
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
