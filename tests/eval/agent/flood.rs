//! The orders with which an agent sends more than is kept. The files get the peak memory of the program in KiB.

use std::{
    fs,
    io::{self, Write},
    process,
};

use serde_json::json;

use super::{update, write};

const MEBIBYTE: usize = 1024 * 1024;
/// The size of a flood in MiB.
const FLOOD: usize = 200;

/// Sends a line without an end, until the program stops reading.
pub(super) fn endless() {
    let piece = vec![b'x'; 64 * 1024];
    let mut stdout = io::stdout().lock();
    while stdout.write_all(&piece).is_ok() {}
    process::exit(0);
}

/// Sends a message with more values than are parsed.
pub(super) fn values() {
    let line =
        format!(r#"{{"method":"session/update","params":{{"update":[0{}]}}}}"#, ",0".repeat(16 * MEBIBYTE));
    writeln!(io::stdout(), "{line}").expect("the program reads");
}

/// Sends long updates faster than they can be parsed.
pub(super) fn updates(file: &str) {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "x".repeat(MEBIBYTE) } });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } });
    let line = format!("{line}\n");
    let mut stdout = io::stdout().lock();
    for _ in 0..FLOOD {
        stdout.write_all(line.as_bytes()).expect("the program reads");
    }
    drop(stdout);
    record_peak(file);
}

/// Sends requests whose answers are as long, and does not read them.
pub(super) fn requests(file: &str) {
    for _ in 0..FLOOD {
        write(&json!({ "jsonrpc": "2.0", "id": "x".repeat(MEBIBYTE), "method": "no/such", "params": {} }));
        record_peak(file);
    }
}

/// Sends tool calls with long inputs.
pub(super) fn calls() {
    let text = "x".repeat(MEBIBYTE);
    for number in 0..FLOOD {
        update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": number.to_string(), "title": "Read", "kind": "read",
            "status": "completed", "rawInput": { "text": text },
        }));
    }
}

/// Writes the peak memory of the program to a file. Writes nothing if the system does not tell.
fn record_peak(file: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", std::os::unix::process::parent_id())) {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        fs::write(file, peak.unwrap_or_default()).expect("the file can be written");
    }
    #[cfg(not(target_os = "linux"))]
    fs::write(file, "").expect("the file can be written");
}
