//! Skills from a web site: a real HTTP server on loopback, and everything that can go wrong with it.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use skills_core::{
    CallContext, Scope, Skill, SkillSet, SkillSource, Source, ToolOutput, Toolbox,
    exec::ScriptOptions,
    remote::{MAX_FILE_BYTES, MAX_INDEX_BYTES, RemoteError, RemoteIndex, Sha256},
    search::Query,
    toolbox::ToolboxOptions,
};

const INDEX: &str = "/.well-known/skills/index.json";
const SKILL_MD: &str = "---\nname: pdf\ndescription: d\n---\n# Forms\nRead references/forms.md. $ARGUMENTS\n";
/// When a server that hangs has hung long enough.
const SOON: Duration = Duration::from_millis(100);

/// What the site does with a path.
enum Reply {
    Content(Vec<u8>),
    Moved(String),
    Status(u16),
    /// Begins, and then says nothing more until the test is over.
    Hang,
}

/// A site on loopback. It notes what was asked for.
struct Site {
    address: SocketAddr,
    replies: Arc<Mutex<HashMap<String, Reply>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site =
            Self { address: listener.local_addr().unwrap(), replies: Arc::default(), asked: Arc::default() };
        let (replies, asked) = (Arc::clone(&site.replies), Arc::clone(&site.asked));
        thread::spawn(move || {
            let mut hanging = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let path = requested(&stream);
                asked.lock().unwrap().push(path.clone());
                let head = |status: u16, more: &str| {
                    format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n{more}\r\n")
                };
                let bytes = match replies.lock().unwrap().get(&path) {
                    Some(Reply::Content(content)) => {
                        let head = head(200, &format!("content-length: {}\r\n", content.len()));
                        [head.as_bytes(), content].concat()
                    }
                    Some(Reply::Moved(to)) => {
                        head(302, &format!("location: {to}\r\ncontent-length: 0\r\n")).into()
                    }
                    Some(Reply::Status(status)) => head(*status, "content-length: 0\r\n").into(),
                    Some(Reply::Hang) => {
                        stream.write_all(head(200, "content-length: 100\r\n").as_bytes()).unwrap();
                        hanging.push(stream);
                        continue;
                    }
                    None => head(404, "content-length: 0\r\n").into(),
                };
                // A client that has seen enough hangs up.
                let _ = stream.write_all(&bytes);
            }
        });
        site
    }

    /// A site with the skill `pdf`, whose entry in the index gets these fields, too.
    fn with_pdf(fields: Value) -> Self {
        let mut item = json!({ "name": "pdf", "description": "Fills in forms." });
        item.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let site = Self::new();
        site.has(INDEX, json!({ "skills": [item] }).to_string());
        site.has("/.well-known/skills/pdf/SKILL.md", SKILL_MD);
        site.has("/.well-known/skills/pdf/references/forms.md", "One\nTwo\n");
        site.has("/.well-known/skills/pdf/a%20%25/%C3%BC.md", "odd");
        site.has("/.well-known/skills/pdf/scripts/run.sh", "echo no");
        site.has("/.well-known/skills/other.md", "not yours");
        site
    }

    fn has(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.does(path, Reply::Content(content.into()));
    }

    fn does(&self, path: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn index(&self) -> Result<RemoteIndex, RemoteError> {
        RemoteIndex::fetch(&self.url(INDEX))
    }

    /// The tools over what the site has.
    fn toolbox(&self) -> Toolbox {
        let options = ToolboxOptions { scripts: Some(ScriptOptions::default()), ..Default::default() };
        Toolbox::with_options(self.index().unwrap().skills().clone(), options)
    }

    /// What was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// The path of a request, read to its end.
fn requested(stream: &TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

async fn call(toolbox: &Toolbox, tool: &str, arguments: Value) -> ToolOutput {
    let arguments = arguments.as_object().unwrap().clone();
    toolbox.call(tool, arguments, &CallContext::default()).await
}

async fn activate(toolbox: &Toolbox) -> ToolOutput {
    call(toolbox, "activate_skill", json!({ "name": "pdf" })).await
}

async fn read(toolbox: &Toolbox, path: &str) -> String {
    call(toolbox, "read_skill_file", json!({ "skill": "pdf", "path": path })).await.to_text()
}

fn sha256(content: &str) -> String {
    format!("sha256:{}", Sha256::of(content.as_bytes()))
}

#[tokio::test]
async fn everything_is_fetched_when_it_is_needed() {
    let files = json!(["SKILL.md", "references/forms.md", "a %/ü.md", "scripts/run.sh"]);
    let site = Site::with_pdf(json!({ "files": files, "digest": sha256(SKILL_MD) }));
    let toolbox = site.toolbox();
    assert_eq!(site.asked(), [INDEX]);
    let skill = toolbox.skills().get("PDF").unwrap();
    assert_eq!((skill.scope, skill.dir()), (Scope::Remote, None));

    let text = activate(&toolbox).await.to_text();
    let base = site.url("/.well-known/skills/pdf/");
    let expected = format!(
        "<skill_content name=\"pdf\">\n# Forms\nRead references/forms.md.\n\nSkill address: {base}\nRelative paths in this \
         skill start there; read its files with `read_skill_file`. Its scripts can be read but not run.\n\n\
         <skill_resources>\n  <file>a %/ü.md</file>\n  <file>references/forms.md</file>\n  <file>scripts/run.sh</file>\n\
         </skill_resources>\n</skill_content>"
    );
    assert_eq!(text, expected);
    assert_eq!(activate(&toolbox).await.to_text(), text);
    assert_eq!(site.asked(), ["/.well-known/skills/pdf/SKILL.md"], "once");

    assert_eq!(read(&toolbox, "./references//forms.md").await, "One\nTwo\n");
    assert_eq!(read(&toolbox, "a %/ü.md").await, "odd");
    assert_eq!(read(&toolbox, "SKILL.md").await, SKILL_MD);
    let part = json!({ "skill": "pdf", "path": "references/forms.md", "offset": 2 });
    assert_eq!(call(&toolbox, "read_skill_file", part).await.to_text(), "Two\n");

    site.asked();
    let script = json!({ "skill": "pdf", "script": "scripts/run.sh" });
    let refused = call(&toolbox, "run_skill_script", script).await.structured.unwrap();
    assert_eq!(refused["error"], "ScriptNotAllowed");
    assert!(refused["message"].as_str().unwrap().contains("scripts from there are not run"), "{refused}");
    assert_eq!(site.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn only_what_the_index_names() {
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", "references/forms.md", "references/x.md"] }));
    let toolbox = site.toolbox();
    site.asked();
    for (path, expected) in [
        ("../other.md", "FileNotAllowed: `../other.md` leads outside"),
        ("references/../../other.md", "FileNotAllowed: "),
        ("/etc/passwd", "FileNotAllowed: "),
        ("..\\other.md", "FileNotAllowed: "),
        ("https://example.com/a", "FileNotFound: "),
        ("//example.com/a", "FileNotAllowed: "),
        ("%2e%2e/other.md", "FileNotFound: "),
        ("scripts/run.sh", "FileNotFound: "),
        (
            "references/form.md",
            "FileNotFound: the skill has no file `references/form.md`; did you mean `references/forms.md`",
        ),
        ("references/", "NotAFile: `references/` is a directory; it has `forms.md`, `x.md`"),
        (".", "NotAFile: `.` is a directory; it has `references/`"),
    ] {
        let text = read(&toolbox, path).await;
        assert!(text.starts_with(expected), "{path}: {text}");
    }
    assert_eq!(site.asked(), Vec::<String>::new(), "nothing of that is worth a request");
    let text = read(&toolbox, "references/x.md").await;
    assert!(text.starts_with("FileNotFound: "), "{text}");
}

#[tokio::test]
async fn below_the_skill_when_the_index_names_nothing() {
    let site =
        Site::with_pdf(json!({ "type": "skill-md", "url": "pdf/SKILL.md", "digest": sha256(SKILL_MD) }));
    let toolbox = site.toolbox();
    assert_eq!(read(&toolbox, "references/forms.md").await, "One\nTwo\n");
    site.asked();
    for path in ["%2e%2e/other.md", "..%2fother.md", "a?b#c", "references/gone.md"] {
        let text = read(&toolbox, path).await;
        assert!(text.contains("Only files that its instructions mention are known."), "{path}: {text}");
    }
    let below = "/.well-known/skills/pdf/";
    let expected = ["%252e%252e/other.md", "..%252fother.md", "a%3Fb%23c", "references/gone.md"];
    assert_eq!(site.asked(), expected.map(|path| format!("{below}{path}")));
    let text = read(&toolbox, "x/../../other.md").await;
    assert!(text.starts_with("FileNotAllowed: "), "{text}");
    assert_eq!(site.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_wrong_hash() {
    let forms = json!({ "path": "references/forms.md", "sha256": sha256("something else"), "size": 8 });
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", forms], "sha256": sha256("another body") }));
    let toolbox = site.toolbox();
    let output = activate(&toolbox).await;
    assert!(output.is_error);
    let url = site.url("/.well-known/skills/pdf/SKILL.md");
    let expected =
        format!("ActivationFailed: cannot fetch {url}: the checksum does not match: expected SHA-256 ");
    assert!(output.to_text().starts_with(&expected), "{}", output.to_text());
    let text = read(&toolbox, "references/forms.md").await;
    assert!(text.starts_with("FileNotFetched: cannot read `references/forms.md`: "), "{text}");
    assert!(text.contains("the checksum does not match") && !text.contains("One"), "{text}");

    // What was wrong is not kept.
    site.has("/.well-known/skills/pdf/SKILL.md", "another body");
    assert!(activate(&toolbox).await.to_text().contains("\nanother body\n"));
}

#[tokio::test]
async fn redirects() {
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", "references/forms.md"] }));
    let skill_md = "/.well-known/skills/pdf/SKILL.md";
    site.does(skill_md, Reply::Moved("/elsewhere".to_owned()));
    site.has("/elsewhere", SKILL_MD);
    site.does("/.well-known/skills/pdf/references/forms.md", Reply::Moved("file:///etc/passwd".to_owned()));
    let toolbox = site.toolbox();
    assert!(activate(&toolbox).await.to_text().contains("# Forms"));
    let text = read(&toolbox, "references/forms.md").await;
    assert!(text.contains("it redirects to file:///etc/passwd, which is not allowed"), "{text}");
    site.does(INDEX, Reply::Moved("http://example.com/".to_owned()));
    let error = site.index().unwrap_err().to_string();
    assert!(error.contains("it redirects to http://example.com/, which is not allowed"), "{error}");
}

/// The same skill, with less patience.
fn impatient(skill: &Skill) -> Toolbox {
    let mut skill = skill.clone();
    let Source::Remote(remote) = &mut skill.source else { panic!("{skill:?}") };
    remote.timeout = SOON;
    Toolbox::new([skill].into_iter().collect())
}

#[tokio::test]
async fn slow() {
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", "references/forms.md"] }));
    let toolbox = impatient(site.toolbox().skills().get("pdf").unwrap());
    for path in [INDEX, "/.well-known/skills/pdf/SKILL.md", "/.well-known/skills/pdf/references/forms.md"] {
        site.does(path, Reply::Hang);
    }
    let error = RemoteIndex::fetch_with_timeout(&site.url(INDEX), SOON).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot fetch {}: ", site.url(INDEX))), "{error}");
    let text = activate(&toolbox).await.to_text();
    assert!(text.starts_with("ActivationFailed: cannot fetch http://"), "{text}");
    let text = read(&toolbox, "references/forms.md").await;
    assert!(text.starts_with("FileNotFetched: "), "{text}");
}

#[tokio::test]
async fn huge() {
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", "references/forms.md"] }));
    let toolbox = site.toolbox();
    let more_than = |bytes: u64| vec![b' '; usize::try_from(bytes).unwrap() + 1];
    site.has("/.well-known/skills/pdf/SKILL.md", more_than(1024 * 1024));
    site.has("/.well-known/skills/pdf/references/forms.md", more_than(MAX_FILE_BYTES));
    site.has(INDEX, more_than(MAX_INDEX_BYTES));
    let text = activate(&toolbox).await.to_text();
    assert!(text.ends_with("it is larger than 1048576 bytes"), "{text}");
    let text = read(&toolbox, "references/forms.md").await;
    assert!(text.contains(&format!("it is larger than {MAX_FILE_BYTES} bytes")), "{text}");
    let error = site.index().unwrap_err().to_string();
    assert!(error.ends_with(&format!("it is larger than {MAX_INDEX_BYTES} bytes")), "{error}");
}

#[tokio::test]
async fn gone() {
    let site = Site::with_pdf(json!({ "files": ["SKILL.md", "references/forms.md"] }));
    let toolbox = site.toolbox();
    for path in [INDEX, "/.well-known/skills/pdf/SKILL.md", "/.well-known/skills/pdf/references/forms.md"] {
        site.does(path, Reply::Status(410));
    }
    let text = activate(&toolbox).await.to_text();
    assert!(text.starts_with("ActivationFailed: ") && text.ends_with("the server answered 410"), "{text}");
    let text = read(&toolbox, "references/forms.md").await;
    assert!(text.starts_with("FileNotFound: the skill has no file `references/forms.md`"), "{text}");
    assert!(site.index().unwrap_err().to_string().ends_with("the server answered 410"));
    // A port that nobody listens on any more.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{dead}/index.json");
    assert!(RemoteIndex::fetch(&url).unwrap_err().to_string().starts_with(&format!("cannot fetch {url}: ")));
}

#[test]
fn where_the_index_is_looked_for() {
    let site = Site::with_pdf(json!({}));
    let new = "/.well-known/agent-skills/index.json";
    assert_eq!(RemoteIndex::fetch(&site.url("/")).unwrap().url(), site.url(INDEX));
    assert_eq!(site.asked(), [new, INDEX]);
    RemoteIndex::fetch(&site.url("/.well-known/skills/")).unwrap();
    assert_eq!(site.asked(), [INDEX]);
    // Its front page for everything: that is no index.
    site.has(new, "<!doctype html>");
    RemoteIndex::fetch(&site.url("")).unwrap();
    site.has("/team/.well-known/agent-skills/index.json", r#"{"skills":[]}"#);
    assert_eq!(RemoteIndex::fetch(&site.url("/team")).unwrap().count().unwrap(), 0);

    let error = RemoteIndex::fetch(&Site::new().url("")).unwrap_err();
    assert!(matches!(&error, RemoteError::NoIndex { tried, .. } if tried.len() == 2), "{error}");
    let error = RemoteIndex::fetch("http://example.com/").unwrap_err().to_string();
    assert!(error.contains("only https, or http on this machine's loopback, is allowed"), "{error}");
}

#[test]
fn an_index_is_a_source_and_comes_last() {
    let site = Site::new();
    let skills: Vec<_> = (0..1_200)
        .map(|number| json!({ "name": format!("s{number}"), "description": format!("Knows {number}.") }))
        .collect();
    site.has(INDEX, json!({ "skills": skills }).to_string());
    let index = site.index().unwrap();
    assert_eq!(index.count().unwrap(), 1_200);
    assert!(index.load("S1199").unwrap().is_some());
    let query = Query { text: "knows 777".into(), ..Query::default() };
    assert_eq!(index.search(&query).unwrap().hits[0].skill.name.as_str(), "s777");

    let own = Skill::builder("S7", "Ours.").body("x").build().unwrap();
    let mut builder = SkillSet::builder();
    builder.add_source(&index, usize::MAX).unwrap();
    let merged = SkillSet::merged([&builder.build(), &[own].into_iter().collect()]);
    assert_eq!(merged.get("s7").unwrap().description, "Ours.");
    assert_eq!(
        merged.shadowed()[0].path.as_deref(),
        Some(site.url("/.well-known/skills/s7/SKILL.md").as_ref())
    );
}
