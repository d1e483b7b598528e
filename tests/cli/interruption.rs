//! `try` with agents that are silent, that ignore signals, or that never stop talking. The agents are shell scripts, so the tests run
//! on Unix only.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Writes a skill and an agent. Returns the command that tries them.
fn attempt(dir: &TempDir, agent: &str) -> Command {
    let path = dir.path().join("agent.sh");
    fs::write(&path, agent).unwrap();
    let skill = dir.path().join("greet");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: greet\ndescription: Greets.\n---\nHello.\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.args(["try", "--mcp", "off", "--skill"]).arg(skill).args(["--", "sh"]).arg(path);
    command.env_remove("ACP_SKILLS_LOG").stdin(Stdio::null());
    command
}

#[test]
fn ctrl_c_ends_an_attempt() {
    let dir = tempfile::tempdir().unwrap();
    for agent in ["kill -STOP $$", "trap '' INT TERM HUP; sleep 600"] {
        let mut running = attempt(&dir, agent).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(running.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("waiting for the agent, which has sent nothing for 10 seconds"), "{line}");
        kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
        // The agent has the same stderr, so this also waits for its end.
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!((running.wait().unwrap().code(), &*rest), (Some(130), ""));
    }
}

/// The agent also receives the signal and ends, which must not look like a failed step.
#[test]
fn ctrl_c_ends_a_diagnosis() {
    let dir = tempfile::tempdir().unwrap();
    for agent in ["echo ready >&2; exec sleep 600", "trap '' INT TERM HUP; echo ready >&2; sleep 600"] {
        let path = dir.path().join("agent.sh");
        drop(attempt(&dir, agent));
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        command.args(["doctor", "--skill"]).arg(dir.path().join("greet")).args(["--", "sh"]).arg(path);
        command.env_remove("ACP_SKILLS_LOG").stdin(Stdio::null());
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(running.stderr.take().unwrap());
        let mut line = String::new();
        while line != "ready\n" {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "doctor has ended");
        }
        kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!((running.wait().unwrap().code(), &*rest), (Some(130), ""));
    }
}

/// The agent sends more text than a program could keep.
#[test]
fn an_answer_of_any_length() {
    let dir = tempfile::tempdir().unwrap();
    let agent = r#"
        x=$(head -c 1000000 /dev/zero | tr '\0' x)
        while read -r line; do
            case $line in
                *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
                *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}' ;;
                *'"method":"session/prompt"'*)
                    i=0
                    while [ $i -lt 70 ]; do
                        printf '%s' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
                        printf '%s' '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
                        printf '%s' "$x"
                        echo '"}}}}'
                        i=$((i+1))
                    done
                    echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}' ;;
            esac
        done"#;
    let output = attempt(&dir, agent).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        output.stdout.len() > 70_000_000 && output.stdout.ends_with("── turn ended: end_turn\n".as_bytes())
    );
}
