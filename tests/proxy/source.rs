//! Skills of a web site: `--source`, all the way to the model.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{
    editor::{DEADLINE, Proxy},
    fixture::{Fixture, MCP_2025, entry, texts},
    repositories::Home,
    skills::Skills,
};

crate::trials!(
    a_site_named_by_flag,
    a_site_in_the_configuration,
    an_unavailable_site,
    a_slow_site,
    a_site_that_changes,
    a_pinned_skill_of_a_site_stays,
    list_shows_the_address
);

/// Starts a site with two skills that can be loaded and one that can't. It runs until the tests end.
fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
            let mut lines = BufReader::new(&stream).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let index = json!({ "skills": [
                { "name": "review", "description": "Reviews from afar.", "files": ["SKILL.md"] },
                { "name": "pdf", "description": "Fills in forms.", "files": ["SKILL.md", "forms.md"] },
                { "name": "packed", "description": "In an archive.", "type": "archive", "url": "packed.zip" },
            ] });
            let (status, body) = match first.split(' ').nth(1) {
                Some("/.well-known/skills/index.json") => (200, index.to_string()),
                Some("/.well-known/skills/pdf/SKILL.md") => {
                    (200, "---\nname: pdf\n---\n# Forms\n".to_owned())
                }
                Some("/.well-known/skills/pdf/forms.md") => (200, "One form.\n".to_owned()),
                _ => (404, String::new()),
            };
            let head =
                format!("HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
            // This might fail if the client has closed the connection.
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

/// Asserts that the model gets the site's skills, after the local ones.
fn use_skills(proxy: Proxy) {
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    // The session doesn't wait for the site, so we need to wait for the skill here.
    fixture.wait_for_command("pdf");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let blocks = fixture.prompt("s", "Hello");
    let catalog = texts(&blocks)[0];
    assert!(catalog.contains("Fills in forms.") && !catalog.contains("from afar"), "{catalog}");
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "pdf" }));
    assert!(!failed && text.contains("# Forms") && text.contains("<file>forms.md</file>"), "{text}");
    let read = |path: &str| json!({ "skill": "pdf", "path": path });
    let text = fixture.call(&connection, "read_skill_file", read("forms.md"));
    assert_eq!(text, ("One form.\n".to_owned(), false));
    let (text, failed) = fixture.call(&connection, "read_skill_file", read("../index.json"));
    assert!(failed && text.starts_with("FileNotAllowed: "), "{text}");
    fixture.finish();
}

fn a_site_named_by_flag() {
    let skills = Skills::review();
    let home = Home::new();
    use_skills(home.proxy().skill(&skills.dir("review")).flag("--source", format!("http://{}", site())));
}

fn a_site_in_the_configuration() {
    let skills = Skills::review();
    let config =
        json!({ "skills": ["review"], "sources": [format!("http://{}/.well-known/skills/", site())] });
    let home = Home::new();
    let config = skills.write("skills.yaml", &config.to_string());
    let update = ["update", "--yes", "--unseen", "--config", config.to_str().expect("text")];
    // The index has no checksums, so the text that is shown here doesn't have to be the one that the model will read.
    let errors = home.fails(&[&update[..2], &update[3..]].concat(), 1);
    assert!(errors.contains("pdf: forms.md (cannot be pinned: the index has no checksum"), "{errors}");
    let shown = home.printed(&update);
    assert!(shown.contains("    +# Forms") && shown.contains("    +One form."), "{shown}");
    use_skills(home.proxy().flag("--config", config));
}

/// A site that does not answer, or has no index, causes a warning. Everything else works.
fn an_unavailable_site() {
    let dead =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address");
    for (url, words) in [
        (format!("http://{dead}/"), "failed to fetch http://"),
        (format!("http://{}/elsewhere", site()), "no skill index found at "),
    ] {
        let skills = Skills::review();
        let home = Home::new();
        let proxy = home.proxy().skill(&skills.dir("review")).flag("--source", &url);
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        assert_eq!(fixture.skill_names(&connection), json!(["review"]));
        let log = fixture.editor.wait_for_log(words);
        assert!(log.contains(&format!("`{url}`")) && log.contains("; "), "{log}");
        fixture.finish();
    }
}

/// A slow site must not delay `initialize`, a session or the next start.
fn a_slow_site() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/index.json", listener.local_addr().expect("an address"));
    let skills = Skills::review();
    let home = Home::new();
    let proxy = || home.proxy().skill(&skills.dir("review")).flag("--source", &url);
    let mut fixture = Fixture::over_http(proxy());
    fixture.new_session("s");
    fixture.wait_for_command("review");
    // Note that the site hasn't answered yet, so all of this should work without it.
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut lines = BufReader::new(&stream).lines();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    let body =
        json!({ "skills": [{ "name": "pdf", "description": "d", "files": ["SKILL.md"] }] }).to_string();
    let head = format!("HTTP/1.1 200 S\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).expect("the client reads");
    fixture.wait_for_command("pdf");
    fixture.finish();
    // We should use the cache in the next run, instead of asking the site.
    let mut fixture = Fixture::over_http(proxy());
    fixture.new_session("s");
    fixture.wait_for_command("pdf");
    fixture.finish();
    listener.set_nonblocking(true).expect("a socket");
    assert!(listener.accept().is_err(), "the site was asked again");
}

/// A site whose index can be changed. It redirects to the index, which has an `ETag`.
struct ChangingSite {
    address: SocketAddr,
    description: Arc<Mutex<String>>,
    /// The status codes of its answers, in order.
    statuses: Arc<Mutex<Vec<u16>>>,
}

impl ChangingSite {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let site = Self { address, description: Arc::default(), statuses: Arc::default() };
        let description = Arc::clone(&site.description);
        let statuses = Arc::clone(&site.statuses);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
                let lines: Vec<String> = BufReader::new(&stream)
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let description = description.lock().expect("no panic").clone();
                let etag = format!("\"{}\"", description.len());
                let knows = lines.iter().any(|line| line.to_lowercase() == format!("if-none-match: {etag}"));
                let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
                let index = json!({ "skills": [{ "name": "pdf", "description": description, "files": ["SKILL.md"] }] });
                let (status, more, body) = match path {
                    "/skills/index.json" => (302, "location: /here/index.json\r\n".to_owned(), String::new()),
                    "/here/index.json" if knows => (304, String::new(), String::new()),
                    "/here/index.json" => (200, format!("etag: {etag}\r\n"), index.to_string()),
                    _ => (404, String::new(), String::new()),
                };
                statuses.lock().expect("no panic").push(status);
                let head = format!(
                    "HTTP/1.1 {status} S\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        site
    }

    fn set_description(&self, description: &str) {
        description.clone_into(&mut self.description.lock().expect("no panic"));
    }
}

/// The approved version of a site is served until another one is approved.
fn a_site_that_changes() {
    let site = ChangingSite::new();
    let home = Home::new();
    let url = format!("http://{}/skills/index.json", site.address);
    let description = || home.json(&["list", "--json", "--source", &url])["skills"][0]["description"].clone();
    site.set_description("Fills in forms.");
    assert_eq!(description(), "Fills in forms.");
    site.set_description("Obeys somebody else.");
    assert_eq!(description(), "Fills in forms.");
    let output = home.run(&["update", "--locked", &url]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("- Fills in forms.") && text.contains("+ Obeys somebody else."), "{text}");
    assert_eq!(description(), "Fills in forms.");
    home.printed(&["update", "--yes", "--unseen", &url]);
    assert_eq!(description(), "Obeys somebody else.");
    // If the index hasn't changed, we should get a 304 for it.
    site.statuses.lock().expect("no panic").clear();
    assert!(home.printed(&["update", &url]).contains("no changes"));
    assert_eq!(*site.statuses.lock().expect("no panic"), [302, 304]);
    // Without a cache, we can only get the approved version if the site still has it.
    std::fs::remove_dir_all(home.path("cache")).expect("the path exists");
    assert_eq!(description(), "Obeys somebody else.");
    std::fs::remove_dir_all(home.path("cache")).expect("the path exists");
    site.set_description("Something else again.");
    let list = home.json(&["list", "--json", "--source", &url]);
    // The index of another version is not kept, because a site could have another one for each start.
    let place = if cfg!(windows) { "cache/acp-skills-proxy/cache/web" } else { "cache/acp-skills-proxy/web" };
    for site in std::fs::read_dir(home.path(place)).into_iter().flatten().flatten() {
        let mut files = std::fs::read_dir(site.path()).expect("a directory").flatten();
        assert!(files.all(|file| file.path().extension().is_none_or(|end| end != "json")));
    }
    let why = list["skipped"][0]["diagnostics"][0]["message"].as_str().expect("text");
    assert!(list["skills"] == json!([]) && why.contains("have changed since approval"), "{list}");
}

/// The pin holds without the index of the approved version, also if a program without this rule has written the lock file.
fn a_pinned_skill_of_a_site_stays() {
    let site = ChangingSite::new();
    let home = Home::new();
    let url = format!("http://{}/skills/index.json", site.address);
    site.set_description("Fills in forms.");
    home.printed(&["add", &url, "--yes", "--unseen"]);
    home.printed(&["sources", "pin", "pdf"]);
    let file = home.config().with_file_name("skills.lock");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&file).expect("a file")).expect("JSON") };
    let approved = read()["sources"][&url]["skills"].clone();
    assert!(approved["pdf"].is_string(), "{approved}");
    // The whole list stays in the lock file while a skill is pinned.
    home.printed(&["update", "--yes", "--unseen"]);
    assert_eq!(read()["sources"][&url]["skills"], approved);
    let update_without_index = |description: &str| {
        for _ in 0..2 {
            std::fs::remove_dir_all(home.path("cache")).expect("the path exists");
            site.set_description(description);
            let text = home.printed(&["update", "--yes", "--unseen"]);
            assert!(text.contains("no changes (1 change pinned)"), "{text}");
        }
        let pinned = &read()["sources"][&url];
        assert_eq!(pinned["decisions"]["pinned"], json!(["pdf"]), "{pinned}");
        pinned["skills"].clone()
    };
    assert_eq!(update_without_index("Obeys somebody else."), approved);
    let list = home.json(&["list", "--json"]);
    let why = list["skipped"][0]["diagnostics"][0]["message"].as_str().expect("text");
    assert!(
        list["skills"] == json!([]) && why.contains("stays at a version that is not in the cache"),
        "{list}"
    );
    let mut old = read();
    let source = old["sources"][&url].as_object_mut().expect("an object");
    source.remove("skills");
    source["decisions"].as_object_mut().expect("an object").remove("kept");
    std::fs::write(&file, old.to_string()).expect("a file");
    assert_eq!(update_without_index("Something else again."), json!({}));
    home.printed(&["sources", "unpin", "pdf"]);
    home.printed(&["update", "--yes", "--unseen"]);
    assert_eq!(home.json(&["list", "--json"])["skills"][0]["description"], "Something else again.");
}

fn list_shows_the_address() {
    let skills = Skills::review();
    let home = Home::new();
    let address = site();
    let skill = skills.dir("review");
    let skill = skill.to_str().expect("text");
    let list = home.json(&["list", "--json", "--source", &format!("http://{address}"), "--skill", skill]);
    let base = format!("http://{address}/.well-known/skills");
    let pdf = &list["skills"][1];
    assert_eq!((&pdf["scope"], &pdf["path"], &pdf["files"]), (&json!("remote"), &Value::Null, &json!(1)));
    assert_eq!(pdf["url"], format!("{base}/pdf/SKILL.md"));
    assert_eq!(list["shadowed"][0]["path"], format!("{base}/review/SKILL.md"));
    assert_eq!(list["skipped"][0]["path"], format!("{base}/index.json"));
    let why = list["skipped"][0]["diagnostics"][0]["message"].as_str().expect("text");
    assert!(why.contains("`packed`") && why.contains("archive"), "{why}");
}
