//! The answers of `try` and `doctor` to permission requests. The agent is a shell script, so the test runs on Unix only.

use std::{fs, process::Command};

/// An agent that asks for permission to remove a project, and reports the answer. Its answers use the ids of the client's
/// requests.
const AGENT: &str = r#"
while read -r line; do
    case $line in
        *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}' ;;
        *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}' ;;
        *'"method":"session/prompt"'*)
            printf '%s' '{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"s",'
            printf '%s' '"toolCall":{"toolCallId":"t","title":"rm -rf ~/project","kind":"execute"},"options":['
            printf '%s' '{"optionId":"yes","name":"Yes","kind":"allow_once"},'
            echo '{"optionId":"no","name":"No","kind":"reject_once"}]}}' ;;
        *'"id":"ask"'*)
            case $line in *'"optionId":"yes"'*) word=removed ;; *) word=kept ;; esac
            printf '%s' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
            echo '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It is '$word'."}}}}'
            echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}' ;;
    esac
done
"#;

#[test]
fn permission_is_refused_without_yes() {
    let dir = tempfile::tempdir().unwrap();
    let agent = dir.path().join("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    let skill = dir.path().join("greet");
    fs::create_dir(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: greet\ndescription: Greets.\n---\nHello.\n").unwrap();
    let request = "agent asks for permission: rm -rf ~/project (execute): ";
    for (flags, answered, word) in [
        (["--approve", "none", "--tool-policy", "strict"].as_slice(), "refused", "kept"),
        (&["--yes"], "allowed", "removed"),
    ] {
        for command in ["try", "doctor"] {
            let output = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
                .arg(command)
                .args(["--prompt", "Tidy up", "--mcp", "off", "--location", "absolute", "--skill"])
                .arg(&skill)
                .args(flags.iter().filter(|_| command == "try" || word == "removed"))
                .args(["--", "sh"])
                .arg(&agent)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("{request}{answered}")), "{command} {flags:?}: {output:?}");
            if command == "try" {
                assert!(text.contains(&format!("It is {word}.")), "{flags:?}: {output:?}");
            }
        }
    }
}
