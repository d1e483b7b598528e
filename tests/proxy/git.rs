//! Skills from git repositories, all the way to the model: pinned, available offline, and never in the agent's way.

use std::{
    fs,
    io::{ErrorKind, Read},
    net::{TcpListener, TcpStream},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    editor::{DEADLINE, Proxy},
    fixture::{Fixture, MCP_2025, entry, texts},
    repositories::{Home, Repository},
};

crate::trials!(
    the_first_start_fetches_and_the_next_works_offline,
    a_pinned_commit_is_kept,
    a_teammate_gets_the_same,
    unavailable_repositories,
    a_cache_that_was_changed,
    a_cache_that_changes_while_it_is_served,
    concurrent_commands,
    an_invalid_source,
    unused_versions_are_pruned,
    a_source_that_is_removed_while_it_is_used,
);

/// Opens a session of a proxy with skills that are cached, and returns the result of activating a skill.
fn activated(proxy: Proxy, name: &str) -> (String, bool) {
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let text = fixture.call(&connection, "activate_skill", json!({ "name": name }));
    fixture.finish();
    text
}

/// Returns the answer to `/skills`.
pub(crate) fn overview(fixture: &mut Fixture) -> String {
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    fixture.editor.answer(&id);
    let said = fixture.editor.unread();
    said.iter().filter_map(|message| message["params"]["update"]["content"]["text"].as_str()).collect()
}

/// Waits until the answer to `/skills` contains `words`.
pub(crate) fn wait_for_overview(fixture: &mut Fixture, words: &str) {
    let end = Instant::now() + DEADLINE;
    loop {
        let said = overview(fixture);
        if said.contains(words) {
            return;
        }
        assert!(Instant::now() < end, "{words:?} is not in {said}");
    }
}

/// Runs a proxy until it has fetched a source.
pub(crate) fn fetch(home: &Home, source: &str) {
    let mut fixture = Fixture::over_http(home.proxy().flag("--source", source));
    fixture.new_session("s");
    fixture.wait_for_command("review");
    fixture.finish();
}

fn the_first_start_fetches_and_the_next_works_offline() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    let mut fixture = Fixture::over_http(home.proxy().flag("--source", &source));
    fixture.editor.wait_for_log(&format!("skills from {source} are not in the cache yet"));
    let params = fixture.new_session("s");
    // At this point, we don't know whether we'll find any skills, but the server is always added.
    let connection = fixture.connect(&entry(&params), MCP_2025);
    fixture.wait_for_command("review");
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed && text.contains("# Review one"), "{text}");
    // The skill is announced to the model like any other new skill.
    let blocks = fixture.prompt("s", "hello");
    assert!(texts(&blocks)[0].contains("Reviews code."), "{blocks:?}");
    fixture.finish();
    let commit = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(home.pinned(&home.lock(), &source), Some(commit));
    // The second start doesn't need the repository or even git, since everything is in the cache.
    repository.delete();
    let proxy = home.proxy().flag("--source", &source).env("PATH", "/nowhere");
    let (text, failed) = activated(proxy, "review");
    assert!(!failed && text.contains("# Review one"), "{text}");
}

fn a_pinned_commit_is_kept() {
    let repository = Repository::review();
    let home = Home::new();
    repository.git(&["tag", "v1"]);
    let source = repository.source("#v1");
    fetch(&home, &source);
    let pinned = home.pinned(&home.lock(), &source);
    // Move the tag with a force-push, so that it no longer points to the old commit.
    repository.skill("review", "Reviews code.", "# Review two");
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--amend", "--message=m"]);
    repository.git(&["tag", "--force", "v1"]);
    repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    repository.git(&["gc", "--quiet", "--prune=now"]);
    let (text, _) = activated(home.proxy().flag("--source", &source), "review");
    assert!(text.contains("# Review one"), "{text}");
    assert_eq!(home.pinned(&home.lock(), &source), pinned);
    // If we have the lock file but not the cache, this commit can no longer be fetched, and we should log an error.
    fs::remove_dir_all(home.path("cache")).expect("the path exists");
    let mut fixture = Fixture::over_http(home.proxy().flag("--source", &source));
    fixture.new_session("s");
    let log = fixture.editor.wait_for_log("no such branch, tag or commit");
    assert!(log.contains(&source) && log.contains("acp-skills-proxy update"), "{log}");
    wait_for_overview(&mut fixture, &format!("cannot fetch `{source}`"));
    fixture.finish();
}

/// The same lock file, used on another machine.
fn a_teammate_gets_the_same() {
    let repository = Repository::review();
    let mine = Home::new();
    let theirs = Home::new();
    let source = repository.source("#main");
    let shared = mine.path("team/skills.yaml");
    mine.write(&shared, &json!({ "sources": [source] }).to_string());
    let lock = mine.path("team/skills.lock");
    mine.printed(&["update", "--yes", "--config", shared.to_str().expect("text")]);
    let pinned = mine.pinned(&lock, &source);
    assert!(pinned.is_some() && !mine.lock().exists());
    repository.skill("review", "Reviews code.", "# Review two");
    repository.commit();
    let list = theirs.json(&["list", "--json", "--config", shared.to_str().expect("text")]);
    let path = list["skills"][0]["path"].as_str().expect("text");
    assert!(fs::read_to_string(path).expect("a file").contains("# Review one"), "{list}");
    assert_eq!(theirs.pinned(&lock, &source), pinned);
}

/// The agent starts at once, even if a source is unavailable.
fn unavailable_repositories() {
    let home = Home::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let gone = Repository::review().delete();
    let skills = crate::skills::Skills::review();
    for (source, words) in
        [(gone.as_str(), "cannot fetch `git+file"), ("git+https://127.0.0.1:1/x", "check the network")]
    {
        let proxy = home.proxy().skill(&skills.dir("review")).flag("--source", source);
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        assert_eq!(fixture.skill_names(&connection), json!(["review"]));
        let log = fixture.editor.wait_for_log(words);
        assert!(log.contains(source) && log.contains("; "), "{log}");
        wait_for_overview(&mut fixture, &format!("cannot fetch `{source}`"));
        fixture.finish();
    }
    // If the server never answers, we should still be able to use the session, and git should be killed when the proxy exits.
    let source = format!("git+https://{address}/x");
    let proxy = home.proxy().skill(&skills.dir("review")).flag("--source", &source);
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    let (git, _) = silent.accept().expect("git");
    assert!(overview(&mut fixture).contains("in the background"));
    fixture.finish();
    wait_until_closed(&git);
    // If the proxy is killed, git should be killed too.
    let proxy = home.proxy().skill(&skills.dir("review")).flag("--source", &source);
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    let (git, _) = silent.accept().expect("git");
    fixture.editor.kill();
    wait_until_closed(&git);
    // Now try this on a machine where git isn't installed.
    let proxy = home.proxy().flag("--source", "github:a/b").env("PATH", "/nowhere");
    let mut fixture = Fixture::over_http(proxy);
    let log = fixture.editor.wait_for_log("`git` not found in PATH");
    assert!(log.contains("github:a/b") && log.contains("install git"), "{log}");
    fixture.finish();
}

/// Waits until the other end of the connection is closed.
fn wait_until_closed(mut git: &TcpStream) {
    git.set_read_timeout(Some(DEADLINE)).expect("a socket");
    let ended = git.read_to_end(&mut Vec::new());
    // We may get a reset here instead of the end of the stream, since git may be killed before it has read all of the data.
    let is_reset = ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    assert!(ended.is_ok() || is_reset, "{ended:?}");
}

fn a_cache_that_was_changed() {
    let repository = Repository::review();
    let home = Home::new();
    repository.skill("other", "Is another.", "x");
    repository.commit();
    let source = repository.source("");
    fetch(&home, &source);
    let list = home.json(&["list", "--json", "--source", &source]);
    let path = |name: &str| {
        let skill = list["skills"].as_array().expect("skills").iter().find(|skill| skill["name"] == name);
        skill.expect("the entry exists")["path"].as_str().expect("text").to_owned()
    };
    let review = path("review");
    fs::remove_file(&review).expect("the path exists");
    fs::write(&review, "---\nname: review\ndescription: Obey.\n---\nx\n").expect("a file");
    let other = std::path::Path::new(&path("other")).with_file_name("more.md");
    fs::write(other, "and this").expect("a file");
    let mut fixture = Fixture::over_http(home.proxy().flag("--source", &source));
    fixture.new_session("s");
    let log = fixture.editor.wait_for_log("differs from the approved version");
    assert!(log.contains("acp-skills-proxy update"), "{log}");
    let blocks = fixture.prompt("s", "hello");
    assert_eq!(texts(&blocks), ["hello"], "no changed skill may be served");
    fixture.finish();
}

/// The cache changes while its skills are served.
fn a_cache_that_changes_while_it_is_served() {
    let repository = Repository::review();
    let home = Home::new();
    repository.write("review/notes.md", "as approved");
    repository.commit();
    let source = repository.source("");
    fetch(&home, &source);
    let list = home.json(&["list", "--json", "--source", &source]);
    let review = std::path::PathBuf::from(list["skills"][0]["path"].as_str().expect("text"));
    let mut fixture = Fixture::over_http(home.proxy().arg("--no-watch").flag("--source", &source));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let notes = json!({ "skill": "review", "path": "notes.md" });
    let (text, failed) = fixture.call(&connection, "read_skill_file", notes.clone());
    assert!(!failed && text.contains("as approved"), "{text}");
    for (path, text) in [
        (review.with_file_name("notes.md"), "obey"),
        (review, "---\nname: review\ndescription: d\n---\nobey\n"),
    ] {
        fs::remove_file(&path).expect("the path exists");
        fs::write(path, text).expect("a file");
    }
    for (tool, arguments) in [("read_skill_file", notes), ("activate_skill", json!({ "name": "review" }))] {
        let (text, failed) = fixture.call(&connection, tool, arguments);
        assert!(
            failed && !text.contains("obey") && text.contains("has changed since the user approved"),
            "{text}"
        );
    }
    fixture.finish();
}

fn concurrent_commands() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let list = home.json(&["list", "--json", "--source", &source]);
                assert_eq!(list["skills"][0]["name"], "review", "{list}");
            });
        }
    });
    assert_eq!(home.pinned(&home.lock(), &source), Some(repository.git(&["rev-parse", "HEAD"])));
    let list: Value = home.json(&["list", "--json", "--source", &source]);
    assert_eq!(list["skipped"], json!([]), "{list}");
}

/// A mistyped source is reported before the agent starts.
/// A running process must not approve the present version of a source whose approval the user has taken back.
fn a_source_that_is_removed_while_it_is_used() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    fetch(&home, &source);
    let proxy = home.proxy().flag("--source", &source).arg("--no-watch");
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let review = json!({ "name": "review" });
    assert!(!fixture.call(&connection, "activate_skill", review.clone()).1);
    repository.skill("review", "Obeys others.", "# Two");
    repository.commit();
    home.printed(&["remove", &source]);
    fixture.ask("/skills reload");
    let said = fixture.ask("/skills");
    assert!(said.contains("not approved"), "{said}");
    let (text, is_error) = fixture.call(&connection, "activate_skill", review);
    assert!(is_error && !text.contains("# Two"), "{text}");
    fixture.editor.unread();
    fixture.finish();
}

fn an_invalid_source() {
    for (source, words, hint) in [
        ("acme/skills", "unknown format", "did you mean `github:acme/skills`?"),
        ("github:acme/skills@--upload-pack=x", "is not a valid branch", "use `github:OWNER/REPO"),
        ("http://example.com/", "only https", "use `github:OWNER/REPO"),
        ("./skills", "invalid source", "--skills DIR"),
    ] {
        let ended = Home::new().proxy().flag("--source", source).agent("no-part").ended();
        let log = ended.log.join("\n");
        assert_eq!(ended.code(), Some(2), "{log}");
        assert!(
            log.contains(&format!("error: invalid source `{source}`"))
                && log.contains(words)
                && log.contains(hint),
            "{log}"
        );
    }
}

/// Returns the directories in the cache, one for each repository.
fn repositories(home: &Home) -> impl Iterator<Item = fs::DirEntry> {
    // Note that the cache and the state are in the same directory on Windows.
    let cache = if cfg!(windows) { "cache/acp-skills-proxy/cache/git" } else { "cache/acp-skills-proxy/git" };
    fs::read_dir(home.path(cache)).expect("a directory").flatten()
}

/// Counts the versions of sources in the cache.
fn states(home: &Home) -> usize {
    let repositories = repositories(home);
    let states = repositories.flat_map(|place| fs::read_dir(place.path()).expect("a directory").flatten());
    states.filter(|entry| entry.file_name().len() == 40).count()
}

fn unused_versions_are_pruned() {
    let repository = Repository::review();
    let home = Home::new();
    let source = repository.source("");
    home.printed(&["add", &source, "--yes"]);
    let old = repository.git(&["rev-parse", "HEAD"]);
    let mut fixture = Fixture::over_http(home.proxy().arg("--no-watch"));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    repository.skill("review", "Reviews.", "# Review two");
    repository.commit();
    home.printed(&["update", "--yes"]);
    assert_eq!(states(&home), 2);
    let age = |commit: &str| {
        for place in repositories(&home) {
            let mark = place.path().join(commit).join("used");
            let time = std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 60);
            let file = fs::File::options().create(true).append(true).open(mark).expect("a mark");
            file.set_modified(time).expect("a time");
        }
    };
    // The old version is still being used by another process, so it shouldn't be removed.
    age(&old);
    let said = home.printed(&["sources", "--prune"]);
    assert!(said.contains("no unused versions") && states(&home) == 2, "{said}");
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed && text.contains("# Review one"), "{text}");
    fixture.editor.finish();
    age(&old);
    // `update` will remove old versions as well, but it should never remove a version that is used in a lock file.
    age(&repository.git(&["rev-parse", "HEAD"]));
    home.printed(&["update"]);
    assert_eq!(states(&home), 1);
    let (text, failed) = activated(home.proxy(), "review");
    assert!(!failed && text.contains("# Review two"), "{text}");
    home.printed(&["remove", &source]);
    assert_eq!(states(&home), 1, "a version that was just used must be kept");
    age(&repository.git(&["rev-parse", "HEAD"]));
    let report = home.json(&["sources", "--prune", "--json"]);
    assert_eq!((report["removed"].as_array().map(Vec::len), states(&home)), (Some(1), 0));
}
