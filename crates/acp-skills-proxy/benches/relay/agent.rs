//! The agent's end: an agent that sends floods of updates or echoes, and the pass-through proxy for the conductor.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// Runs the agent until stdin ends. Sessions are called `s`, `s1`, `s2` and so on. The answer to `session/new` contains the MCP
/// servers of the request.
pub(crate) fn run() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let mut sessions = 0;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let message: Value = serde_json::from_str(&line)?;
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => {
                json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } })
            }
            Some("session/new") => {
                let name = if sessions == 0 { "s".to_owned() } else { format!("s{sessions}") };
                sessions += 1;
                json!({ "sessionId": name, "_meta": { "servers": params["mcpServers"] } })
            }
            _ => {
                let blocks = params["prompt"].as_array().into_iter().flatten();
                let text = blocks.filter_map(|block| block["text"].as_str()).next_back().unwrap_or_default();
                let number = |word: &str| word.parse().unwrap_or(0);
                let own = params["sessionId"].as_str().unwrap_or_default();
                match text.split(' ').collect::<Vec<_>>()[..] {
                    ["flood", count, size] => flood(&mut stdout, &[own], number(count), number(size))?,
                    // Updates are sent to all sessions in turn.
                    ["storm", count, size] => {
                        let names: Vec<_> = (1..sessions).map(|session| format!("s{session}")).collect();
                        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
                        names.push("s");
                        flood(&mut stdout, &names, number(count), number(size))?;
                    }
                    _ => {}
                }
                json!({ "stopReason": "end_turn" })
            }
        };
        writeln!(stdout, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
        stdout.flush()?;
    }
    Ok(())
}

/// Writes `count` updates of about `size` bytes, which rotate through the sessions.
fn flood(out: &mut impl Write, sessions: &[&str], count: usize, size: usize) -> io::Result<()> {
    let frame = |session: &str, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        ) + "\n"
    };
    // If `size` is too small for the envelope, use a text of just one character.
    let text = "x".repeat(size.saturating_sub(frame("s", "").len()).max(1));
    let lines: Vec<_> = sessions.iter().map(|session| frame(session, &text)).collect();
    let turn = lines.concat();
    let turns = (256 * 1024 / turn.len()).clamp(1, count.div_ceil(lines.len()));
    let batch = turn.repeat(turns);
    let per_batch = turns * lines.len();
    for _ in 0..count / per_batch {
        out.write_all(batch.as_bytes())?;
    }
    for line in lines.iter().cycle().take(count % per_batch) {
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

/// Runs a proxy of the SDK that forwards all messages unchanged.
pub(crate) fn pass_through() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = agent_client_protocol::Proxy.v1().connect_to(agent_client_protocol::Stdio::new());
    runtime.block_on(served).map_err(|error| anyhow::anyhow!("{error}"))
}
