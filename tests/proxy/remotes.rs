//! Hosts of sources: the user's ssh command, errors that keep their cause, hosts that hang, and processes that fetch at the same time.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    editor::DEADLINE,
    repositories::{Home, Repository},
};

crate::trials!(
    #[cfg(unix)]
    the_ssh_command_of_the_user,
    #[cfg(target_os = "linux")]
    ssh_has_no_terminal,
    #[cfg(unix)]
    git_asks_for_no_password,
    #[cfg(unix)]
    a_large_commit_does_not_fill_the_memory,
    #[cfg(unix)]
    errors_keep_their_cause,
    a_host_that_hangs_delays_no_other_source,
    a_site_that_hangs_delays_no_other_source,
    a_site_with_many_files,
    a_source_is_fetched_once,
    a_repository_over_the_limit,
);

/// A script that takes the place of ssh. It logs its arguments and runs the command on this machine.
#[cfg(unix)]
struct FakeSsh {
    home: Home,
}

#[cfg(unix)]
impl FakeSsh {
    /// Configures git to use the script. Before it runs the command, the script runs `extra`.
    fn new(extra: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let home = Home::new();
        let script = home.path("tools/connect");
        let log = home.path("ssh.log");
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = -G ] && exit 1\nlog='{}'\nprintf '%s|%s|%s\\n' \"$*\" \"$SSH_ASKPASS_REQUIRE\" \
             \"$GIT_TERMINAL_PROMPT\" >> \"$log\"\n{extra}\nfor word; do command=$word; done\nexec sh -c \"$command\"\n",
            log.display()
        );
        home.write(&script, &text);
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a program");
        let config = format!("[core]\n\tsshCommand = {}\n", script.display());
        home.write(&home.path("home/.gitconfig"), &config);
        Self { home }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path("ssh.log")).unwrap_or_default()
    }
}

/// Returns the address of a repository on this machine as if it was on a host.
#[cfg(unix)]
fn over_ssh(repository: &Repository) -> String {
    format!("git+ssh://me@skills.example{}", repository.path().display())
}

#[cfg(unix)]
fn the_ssh_command_of_the_user() {
    let repository = Repository::review();
    let ssh = FakeSsh::new("");
    let said = ssh.home.printed(&["add", &over_ssh(&repository), "--yes"]);
    assert!(said.contains("1 skill"), "{said}");
    let log = ssh.log();
    assert!(log.contains("me@skills.example") && log.contains("|never|0"), "{log}");
}

/// A program that asks on the terminal gets an error. It's neither stopped nor can it confuse the user with a question.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn ssh_has_no_terminal() {
    let repository = Repository::review();
    let ssh = FakeSsh::new("if (: < /dev/tty) 2> /dev/null; then echo terminal >> \"$log\"; fi");
    let program = env!("CARGO_BIN_EXE_acp-skills-proxy");
    let line =
        format!("(: < /dev/tty) && echo has terminal; '{program}' add '{}' --yes", over_ssh(&repository));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    let output = command.envs(ssh.home.variables()).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no program `script`");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("has terminal") && said.contains("1 skill"), "{said}");
    let log = ssh.log();
    assert!(log.contains("me@skills.example") && !log.contains("terminal"), "{log}");
}

/// Git would start a program that asks for a user name and a password. A script in the place of git runs the command that asks,
/// with the same settings and variables.
#[cfg(unix)]
fn git_asks_for_no_password() {
    let home = Home::new();
    let executable = |path: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = home.path(path);
        home.write(&path, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    };
    let asked = home.path("asked.log");
    let ask = |name: &str| {
        let text = format!("#!/bin/sh\necho {name} >> '{}'\necho secret\n", asked.display());
        executable(&format!("ask/{name}"), &text)
    };
    let (by_git, by_ssh, configured) = (ask("GIT_ASKPASS"), ask("SSH_ASKPASS"), ask("core.askPass"));
    let path = std::env::var("PATH").expect("a path");
    let find = |dir: &str| fs::canonicalize(dir).ok().map(|dir| dir.join("git")).filter(|git| git.is_file());
    let git = path.split(':').find_map(find).expect("git");
    let fake = format!(
        "#!/bin/sh\nseen=\nfor word; do shift; case $word in ls-remote|fetch) seen=1 ;; esac; [ -z \"$seen\" ] && set -- \"$@\" \"$word\"; done\n\
         printf 'protocol=https\\nhost=skills.example\\n\\n' | exec '{}' \"$@\" credential fill\n",
        git.display()
    );
    let fake = executable("tools/git", &fake);
    let path = format!("{}:{path}", fake.parent().expect("a directory").display());
    for setting in ["", &format!("[core]\n\taskPass = {}\n", configured.display())] {
        home.write(&home.path("home/.gitconfig"), setting);
        for variable in [None, Some(("GIT_ASKPASS", &by_git)), Some(("SSH_ASKPASS", &by_ssh))] {
            let mut add = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
            add.args(["add", "--yes", "git+https://skills.example/x"]).envs(home.variables());
            add.env_remove("GIT_ASKPASS").env_remove("SSH_ASKPASS").env("PATH", &path).envs(variable);
            let output = add.stdin(Stdio::null()).output().expect("the program runs");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(fs::read_to_string(&asked).unwrap_or_default(), "", "{setting}{variable:?}");
            assert!(errors.contains("could not read Username"), "{setting}{variable:?}: {errors}");
            assert!(errors.contains("credential helper"), "{errors}");
        }
    }
}

/// A pack of a few KiB has a commit that git would load into memory. The host isn't this process, so our limits don't apply to it.
#[cfg(unix)]
fn a_large_commit_does_not_fill_the_memory() {
    let repository = Repository::review();
    let message = repository.path().join(".git/message");
    fs::write(&message, "x".repeat(70 * 1024 * 1024)).expect("a file");
    repository.git(&["commit", "--quiet", "--allow-empty", "--file", message.to_str().expect("text")]);
    let ssh = FakeSsh::new("unset GIT_ALLOC_LIMIT");
    let source = over_ssh(&repository);
    let errors = ssh.home.fails(&["add", &source, "--yes", "--max-fetch", "1"], 2);
    assert!(errors.contains("over limit") && errors.contains("`--max-fetch MIB`"), "{errors}");
    ssh.home.printed(&["add", &source, "--yes"]);
}

#[cfg(unix)]
fn errors_keep_their_cause() {
    let repository = Repository::review();
    for (said, hint) in [
        ("Host key verification failed.", "run `ssh HOST` once"),
        ("me@skills.example: Permission denied (publickey).", "none of your ssh keys"),
        ("ERROR: Repository not found.", "check the address"),
    ] {
        let ssh = FakeSsh::new(&format!("echo '{said}' >&2; exit 255"));
        let errors = ssh.home.fails(&["add", &over_ssh(&repository), "--yes"], 2);
        assert!(errors.contains(said) && errors.contains(hint), "{errors}");
    }
}

/// One host accepts the connection and never answers. The other source is shown and approved meanwhile.
fn a_host_that_hangs_delays_no_other_source() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hanging = format!("git+https://{}/x", silent.local_addr().expect("an address"));
    let repository = Repository::review();
    let home = Home::new();
    let healthy = repository.source("");
    home.write(&home.config(), &json!({ "sources": [hanging, healthy] }).to_string());
    let mut update = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    update.args(["update", "--yes"]).envs(home.variables()).env_remove("ACP_SKILLS_LOG");
    let mut update =
        update.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let (git, _) = silent.accept().expect("git");
    let (lines, approved) = mpsc::channel();
    let mut stdout = BufReader::new(update.stdout.take().expect("a pipe")).lines();
    let reader =
        thread::spawn(move || stdout.by_ref().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut said = Vec::new();
    while !said.iter().any(|line| line == "Approved.") {
        let line = approved.recv_timeout(DEADLINE);
        said.push(line.unwrap_or_else(|_| panic!("only {said:?} was printed while a host hangs")));
    }
    assert!(said[0].starts_with(&healthy), "{said:?}");
    // Now the connection ends, and so does the command.
    drop((git, silent));
    let output = update.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(&format!("cannot fetch `{hanging}`")) && errors.contains("hint: "), "{errors}");
    let _ = reader.join();
    let lock = home.config().with_file_name("skills.lock");
    assert!(home.pinned(&lock, &healthy).is_some());
}

/// Starts a site whose index lists a skill with many files. It answers each request for one of these files with `answer`.
fn site_with_files(
    count: usize,
    answer: impl Fn(&str, TcpStream) + Send + 'static,
) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/index.json", listener.local_addr().expect("an address"));
    let names = (0..count).map(|number| format!("f{number}.md"));
    let files: Vec<_> = std::iter::once("SKILL.md".to_owned()).chain(names).collect();
    let index = json!({ "skills": [{ "name": "many", "description": "d", "files": files }] }).to_string();
    let (requested, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let line = lines.next().unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let path = line.split(' ').nth(1).unwrap_or_default();
            if path.ends_with("index.json") {
                respond(&stream, &index);
                continue;
            }
            let _ = requested.send(path.to_owned());
            answer(path, stream);
        }
    });
    (url, requests)
}

fn respond(mut stream: &TcpStream, body: &str) {
    let head = format!("HTTP/1.1 200 S\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    // This might fail if the client has closed the connection.
    let _ = stream.write_all((head + body).as_bytes());
}

/// The site answers with its index, but not with its files. The other source is shown and approved meanwhile.
/// The other source may take longer than the timeout of the site if the machine is busy, so this is tried again.
fn a_site_that_hangs_delays_no_other_source() {
    assert!(
        (0..3).any(|_| is_reported_before_a_site_that_hangs()),
        "the other source had to wait every time"
    );
}

fn is_reported_before_a_site_that_hangs() -> bool {
    let (held, hanging) = mpsc::channel();
    let (site, requests) = site_with_files(50, move |_, stream| {
        let _ = held.send(stream);
    });
    let repository = Repository::review();
    let healthy = repository.source("");
    let home = Home::new();
    home.write(&home.config(), &json!({ "sources": [site, healthy] }).to_string());
    let mut update = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    update.args(["update", "--yes"]).envs(home.variables()).env_remove("ACP_SKILLS_LOG");
    let mut update =
        update.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    requests.recv_timeout(DEADLINE).expect("a request for a file");
    let (lines, approved) = mpsc::channel();
    let stdout = BufReader::new(update.stdout.take().expect("a pipe")).lines();
    let reader = thread::spawn(move || stdout.map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut said = Vec::new();
    while !said.iter().any(|line| line == "Approved.") {
        let line = approved.recv_timeout(DEADLINE);
        said.push(line.unwrap_or_else(|_| panic!("only {said:?} was printed while a site hangs")));
    }
    let is_first = said[0].starts_with(&healthy);
    // One request times out, and there are no further ones. All files are named.
    said.extend(approved.iter());
    let output = update.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("many: f49.md (cannot be shown: not fetched, because the site did not"),
        "{errors}"
    );
    assert_eq!(requests.try_iter().count(), 0, "{said:?}");
    drop(hanging);
    let _ = reader.join();
    is_first
}

/// The number of files that are fetched is limited in proportion to `--max-fetch`. All others are named, and aren't approved by `--yes`.
fn a_site_with_many_files() {
    let (site, requests) = site_with_files(40, |path, stream| {
        let skill = "---\nname: many\ndescription: d\n---\nZQ-body\n";
        respond(&stream, if path.ends_with("SKILL.md") { skill } else { "ZQ-file\n" });
    });
    let home = Home::new();
    let add = ["add", &site, "--yes", "--max-fetch", "1"];
    let output = home.run(&add);
    let shown = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{shown}{errors}");
    assert_eq!((shown.matches("+ZQ-file").count(), requests.try_iter().count()), (15, 16), "{shown}");
    for text in [&shown, &errors] {
        assert!(text.contains("f9.md (cannot be shown: not fetched, because"), "{text}");
        assert!(text.contains("raise `--max-fetch`"), "{text}");
    }
    home.printed(&[&add[..3], &["--unseen"]].concat());
    assert_eq!(requests.try_iter().count(), 41);
}

/// Reads a request and answers with an index.
fn answer(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let mut lines = BufReader::new(stream).lines();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    let index =
        json!({ "skills": [{ "name": "pdf", "description": "d", "files": ["SKILL.md"] }] }).to_string();
    let head = format!("HTTP/1.1 200 S\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", index.len());
    // This might fail if the client has closed the connection.
    let _ = stream.write_all((head + &index).as_bytes());
}

/// Several processes start with a source that is not in the lock file yet.
fn a_source_is_fetched_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/index.json", listener.local_addr().expect("an address"));
    let home = Home::new();
    let (connected, connections) = mpsc::channel();
    thread::spawn(move || listener.incoming().flatten().try_for_each(|stream| connected.send(stream)));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let list = home.json(&["list", "--json", "--source", &url]);
                assert_eq!(list["skills"][0]["name"], "pdf", "{list}");
            });
        }
        let first = connections.recv_timeout(DEADLINE).expect("a request");
        // Wait a moment before answering the first process, so that the others have time to send a request as well.
        let second = connections.recv_timeout(Duration::from_secs(2)).ok();
        answer(&first);
        assert!(second.is_none(), "the index was requested twice");
    });
    assert!(connections.try_recv().is_err(), "the index was requested again");
}

/// The message says which limit was reached, and the option raises it.
fn a_repository_over_the_limit() {
    let repository = Repository::review();
    let home = Home::new();
    for number in 0..3000 {
        repository.write(&format!("files/{number}"), "");
    }
    repository.commit();
    let source = repository.source("");
    let errors = home.fails(&["add", &source, "--yes", "--max-fetch", "1"], 2);
    assert!(errors.contains("more than 2048 files") && errors.contains("`--max-fetch`"), "{errors}");
    home.printed(&["add", &source, "--yes", "--max-fetch", "2"]);
    let text = fs::read_to_string(home.config()).expect("a file");
    home.write(&home.config(), &format!("{text}max_fetch: 1\n"));
    // Without a new commit, nothing is fetched.
    home.printed(&["update"]);
    repository.write("README.md", "New.");
    repository.commit();
    home.fails(&["update"], 1);
    home.printed(&["update", "--max-fetch", "2"]);
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    let list: Value = home.json(&["list", "--json"]);
    let why = list["skipped"][0]["diagnostics"][0]["message"].as_str().expect("text");
    assert!(why.contains("more than 2048 files"), "{list}");
    let list = home.json(&["list", "--json", "--max-fetch", "2"]);
    assert_eq!(list["skills"][0]["name"], "review", "{list}");
}
