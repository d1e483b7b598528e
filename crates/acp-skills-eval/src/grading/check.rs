//! Performs the checks of a task.

use std::{
    io,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

use cap_std::{ambient_authority, fs::Dir};
use skills_core::{exec::ProcessGroup, files};
use tokio::{
    io::{AsyncRead, AsyncReadExt, copy, sink},
    process::Command,
    task::spawn_blocking,
    time::timeout,
    try_join,
};

use super::{
    super::{Allow, Check, Grade, Pattern, transcript::shortened},
    Work,
};

/// The timeout for the command or the pattern of an assertion.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum size of a file in a check.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The maximum size of what is kept of a command's stdout and stderr, each in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// Performs a check.
pub(super) async fn checked(check: &Check, work: &Work<'_>, allow: Allow) -> Grade {
    let text = check.text();
    match check {
        Check::FileExists(file) => match open(work.directory, file) {
            Ok((bytes, _)) => Grade::new(text, true, format!("`{file}` has {bytes} bytes")),
            Err(error) => Grade::new(text, false, format!("`{file}`: {error}")),
        },
        Check::FileMatches(file, pattern) => match open(work.directory, file) {
            Err(error) => Grade::new(text, false, format!("`{file}`: {error}")),
            Ok((bytes, _)) if bytes > MAX_FILE_BYTES => {
                Grade::ungraded(text, format!("`{file}` is larger than {MAX_FILE_BYTES} bytes"))
            }
            Ok((_, content)) => found(text, pattern, content, format!("`{file}`")).await,
        },
        Check::AnswerMatches(pattern) => {
            found(text, pattern, work.answer.to_owned(), "the answer".to_owned()).await
        }
        Check::AnswerLacks(pattern) => {
            let grade = found(text, pattern, work.answer.to_owned(), "the answer".to_owned()).await;
            Grade { passed: !grade.passed && !grade.ungraded, ..grade }
        }
        Check::Command(..) if !allow.checks => {
            Grade::ungraded(text, "command is not allowed; use `--allow checks`")
        }
        Check::Command(words, exit) => run(text, words, *exit, work.directory).await,
    }
}

/// Searches on another thread, so that the program can be interrupted.
async fn found(text: String, pattern: &Pattern, content: String, place: String) -> Grade {
    let pattern = pattern.clone();
    let search = spawn_blocking(move || pattern.find(&content).map(|found| shortened(found, 300)));
    match timeout(TIMEOUT, search).await {
        Ok(Ok(Some(found))) => Grade::new(text, true, format!("{place} has: {found}")),
        Ok(Ok(None)) => Grade::new(text, false, format!("no match in {place}")),
        Ok(Err(_)) | Err(_) => Grade::ungraded(text, format!("the search in {place} takes too long")),
    }
}

/// Returns the size of a file in the run's directory, and its text if it is within the limit. A link that leads out of the
/// directory is an error.
fn open(directory: &Path, file: &str) -> io::Result<(u64, String)> {
    let dir = Dir::open_ambient_dir(directory, ambient_authority())?;
    let metadata = files::metadata(&dir, file)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Ok((metadata.len(), String::new()));
    }
    Ok((metadata.len(), String::from_utf8_lossy(&dir.read(file)?).into_owned()))
}

/// Runs a command. Returns the first part of its output. The processes that it started are killed when it has ended, or if the future is
/// dropped.
async fn output(mut command: Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = ProcessGroup::spawn(command, None)?;
    let (_, stdout, stderr) = group.pipes();
    let (stdout, stderr, status) = try_join!(start_of(stdout), start_of(stderr), group.exited())?;
    Ok(Output { status, stdout, stderr })
}

/// Reads a pipe to its end. Returns the first part.
async fn start_of(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(MAX_OUTPUT_BYTES).read_to_end(&mut start).await?;
        copy(&mut pipe, &mut sink()).await?;
    }
    Ok(start)
}

async fn run(text: String, words: &[String], exit: i32, directory: &Path) -> Grade {
    let shown = words.join(" ");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(directory);
    match timeout(TIMEOUT, output(command)).await {
        Err(_) => Grade::new(text, false, format!("`{shown}` timed out after {} s", TIMEOUT.as_secs())),
        Ok(Err(error)) => Grade::ungraded(text, format!("cannot run `{shown}`: {error}")),
        Ok(Ok(output)) => {
            let printed = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let printed = shortened(printed.trim(), 300);
            let how = acp_skills_runtime::agent::describe(output.status);
            Grade::new(text, output.status.code() == Some(exit), format!("it {how}: {printed}"))
        }
    }
}
