//! `report` on valid and invalid files.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use expect_test::expect;

use crate::fixture::as_on_linux;

const EVENTS: &str = r#"{"v":1,"time":"2026-11-22T08:00:00Z","event":"session_started","how":"new","agent":"x","proxy":"0.1.0","skills":["pdf","review","slides"],"session":"s"}
{"v":1,"time":"2026-11-22T08:00:01Z","event":"skill_activated","skill":"pdf","path":"/s/pdf/SKILL.md","by":"model","tokens":100,"outcome":"ok","bytes":400,"ms":1.25,"session":"s"}
{"v":1,"time":"2026-11-22T08:00:02Z","event":"skill_activated","skill":"pdf","path":"/s/pdf/SKILL.md","by":"user","tokens":100,"outcome":"ok","bytes":400,"ms":0.75,"session":"s"}
{"v":1,"time":"2026-11-22T08:00:03Z","event":"script_run","skill":"review","script":"scripts/a.sh","exit_code":0,"outcome":"ok","bytes":20,"ms":2300,"session":"s"}
{"v":1,"time":"2026-11-22T08:00:04Z","event":"file_read","skill":"pdf","outcome":"error","error":"FileNotFound","bytes":80,"ms":0.5,"session":"s"}
"#;

fn report(dir: &Path, args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .arg("report")
        .args(args)
        .current_dir(dir)
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Ignore the error, since the program doesn't always read stdin.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn tables_in_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jsonl"), EVENTS).unwrap();
    let shown = stdout(&report(dir.path(), &["a.jsonl"], ""));
    expect![[r#"
        5 events of 1 session, 2026-11-22 08:00 to 2026-11-22 08:00 UTC

        SKILL   MODEL  USER  PROXY  TOKENS  FILES  TOOLS  SCRIPTS  FAILED     P50    TIME  LAST USED
        pdf         1     1      0     200      0      0        0       1  0.8 ms  2.5 ms  2026-11-22 08:00
        review      0     0      0       0      0      0        1       0   2.3 s   2.3 s  2026-11-22 08:00

        CALLS        OK  FAILED  CANCELLED     P50     P95  LONGEST
        activations   2       0          0  0.8 ms  1.2 ms   1.2 ms
        files read    0       1          0  0.5 ms  0.5 ms   0.5 ms
        scripts       1       0          0   2.3 s   2.3 s    2.3 s

        FAILURE       CALLS  KIND        SKILL
        FileNotFound      1  files read  pdf

        Never used, 1 of 3 skills: slides
    "#]]
    .assert_eq(&shown);
}

#[test]
fn files_stdin_and_invalid_lines() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jsonl"), EVENTS).unwrap();
    let broken = "{\"v\":1,\"time\"\nrubbish\n{\"v\":9,\"time\":\"?\",\"event\":\"quantum\"}\n";
    fs::write(dir.path().join("b.jsonl"), format!("{broken}\u{1b}[31m")).unwrap();
    let shown = stdout(&report(dir.path(), &["a.jsonl", "b.jsonl", "-"], &format!("{EVENTS}cut off")));
    assert!(shown.starts_with("10 events of 1 session, "), "{shown}");
    for part in [
        "1 unknown event `quantum` of a newer version\n",
        "4 lines that are not events\n",
        "  b.jsonl:1: EOF",
        "  b.jsonl:2: ",
        "  b.jsonl:4: ",
        "  stdin:6: ",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
}

#[test]
fn no_events() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(stdout(&report(dir.path(), &["-"], "")), "No events found.\n");
    let output = report(dir.path(), &["missing.jsonl"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        as_on_linux(&String::from_utf8_lossy(&output.stderr))
            .contains("cannot read: no such file or directory: missing.jsonl")
    );
    assert_eq!(report(dir.path(), &[], "").status.code(), Some(2));
}

#[test]
fn an_html_page() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.jsonl"), EVENTS).unwrap();
    stdout(&report(dir.path(), &["a.jsonl", "--html", "out.html"], ""));
    let page = fs::read_to_string(dir.path().join("out.html")).unwrap();
    for part in
        ["<!doctype html>", "Content-Security-Policy", "<svg", "pdf", "slides", "FileNotFound", "2 of 3"]
    {
        assert!(page.contains(part), "{part:?} is not in {page}");
    }
    let output = report(dir.path(), &["a.jsonl", "--html", "none/out.html"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        as_on_linux(&String::from_utf8_lossy(&output.stderr))
            .contains("cannot write page: no such file or directory: none/out.html")
    );
}
