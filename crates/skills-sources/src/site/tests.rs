//! Tests of parsing an index, without a network. `tests/skills_sources/site.rs` tests fetching.

use expect_test::{Expect, expect};
use skills_core::Source;

use super::RemoteIndex;

/// Parses an index with these entries, and compares the resulting skills and diagnostics.
fn check(entries: &str, expected: Expect) {
    check_at(
        "https://example.com/.well-known/skills/index.json",
        &format!("{{\"skills\":[{entries}]}}"),
        expected,
    );
}

fn check_at(url: &str, text: &str, expected: Expect) {
    let lines = match RemoteIndex::parse(text, url) {
        Ok(index) => {
            let skills = index.skills().iter().map(|skill| {
                let Source::Remote(remote) = &skill.source else { panic!("{skill:?}") };
                let base = remote.base.as_deref().unwrap_or("alone");
                let files: Option<Vec<_>> =
                    remote.files.as_ref().map(|files| files.iter().map(|file| file.path.as_str()).collect());
                let digest =
                    remote.sha256.map_or(String::new(), |sha256| format!(" {}", &sha256.to_string()[..4]));
                format!("{} {}{digest} {base} {files:?}", skill.name, remote.url)
            });
            let skipped =
                index.skills().skipped().iter().map(|skipped| skipped.diagnostics[0].message.clone());
            skills.chain(skipped).collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&lines);
}

#[test]
fn entries_of_the_first_draft() {
    check(
        r#"{"name":"pdf","description":"d","files":["SKILL.md","b.md","a/ü 100%.md"],"unknown":{}},
           {"name":"Ex Cel","description":"d"},
           {"name":"low","description":"d","files":["skill.md"]}"#,
        expect![[r#"
            pdf https://example.com/.well-known/skills/pdf/SKILL.md https://example.com/.well-known/skills/pdf/ Some(["a/ü 100%.md", "b.md"])
            Ex Cel https://example.com/.well-known/skills/Ex%20Cel/SKILL.md https://example.com/.well-known/skills/Ex%20Cel/ None
            low https://example.com/.well-known/skills/low/skill.md https://example.com/.well-known/skills/low/ Some([])"#]],
    );
}

/// On Windows, a colon in a local path names a drive or a stream. In a URL it has no such meaning, on any platform.
#[test]
fn colons_are_part_of_names() {
    check(
        r#"{"name":"a","description":"d","files":["SKILL.md","notes: a.md","C:/b.md","c:"]},
           {"name":"b","description":"d","files":["SKILL.md","C:\\b.md"]},
           {"name":"c","description":"d","files":["SKILL.md","c:/../../b.md"]}"#,
        expect![[r#"
            a https://example.com/.well-known/skills/a/SKILL.md https://example.com/.well-known/skills/a/ Some(["C:/b.md", "c:", "notes: a.md"])
            skipping `b`: invalid path `C:\\b.md`: use `/` instead of a backslash
            skipping `c`: `c:/../../b.md` is outside of the skill directory, but only files inside can be read"#]],
    );
}

#[test]
fn entries_of_the_second_draft() {
    let digest = "sha256:ABCD000000000000000000000000000000000000000000000000000000000000";
    check(
        &format!(
            r#"{{"name":"a","description":"d","type":"skill-md","url":"/s/a/SKILL.md?v=1","digest":"{digest}"}},
               {{"name":"b","description":"d","type":"skill-md","url":"b.md","digest":"{digest}"}},
               {{"name":"c","description":"d","type":"skill-md","url":"https://cdn.example.com/c/SKILL.md"}},
               {{"name":"d","description":"d","type":"archive","url":"d.tar.gz","digest":"{digest}"}},
               {{"name":"e","description":"d","type":"hologram","url":"e"}}"#
        ),
        expect![[r#"
            a https://example.com/s/a/SKILL.md?v=1 abcd https://example.com/s/a/ None
            b https://example.com/.well-known/skills/b.md abcd alone None
            c https://cdn.example.com/c/SKILL.md https://cdn.example.com/c/ None
            skipping `d`: archives are not supported here; unpack the archive and use `--skill DIR` instead
            skipping `e`: unknown type `hologram`"#]],
    );
}

#[test]
fn directories_and_digests_of_files() {
    let digest = "12".repeat(32);
    check_at(
        "http://127.0.0.1:1/index.json",
        &format!(
            r#"{{"baseUrl":"v2/skills","skills":[
                {{"name":"a","description":"d","files":[{{"path":"SKILL.md","sha256":"{digest}"}},{{"path":"x","size":7}}]}},
                {{"name":"b","description":"d","baseUrl":"http://127.0.0.1:2/b","files":["SKILL.md"],"sha256":"{digest}"}}]}}"#
        ),
        expect![[r#"
            a http://127.0.0.1:1/v2/skills/a/SKILL.md 1212 http://127.0.0.1:1/v2/skills/a/ Some(["x"])
            b http://127.0.0.1:2/b/SKILL.md 1212 http://127.0.0.1:2/b/ Some([])"#]],
    );
}

#[test]
fn an_overlong_name_is_shortened_in_the_diagnostic() {
    let name = "n".repeat(1000);
    check(
        &format!(r#"{{"name":"{name}","description":"d"}}"#),
        expect![
            "skipping `nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…`: name should have at most 256 characters"
        ],
    );
}

/// The model sees the URL.
#[test]
fn an_overlong_url_is_refused() {
    let path = "n".repeat(2_048);
    check(
        &format!(r#"{{"name":"a","description":"d","url":"/{path}"}}"#),
        expect![
            "skipping `a`: URL `/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn…` is not allowed in this index"
        ],
    );
}

#[test]
fn invalid_entries_are_skipped() {
    check(
        r#"{"description":"d"}, 7, {"name":"","description":"d"}, {"name":"empty","description":" "},
           {"name":"..","description":"d"}, {"name":"a/b","description":"d"}, {"name":"a\\b","description":"d"},
           {"name":"up","description":"d","files":["SKILL.md","../up"]},
           {"name":"rooted","description":"d","files":["SKILL.md","/etc/passwd"]},
           {"name":"dir","description":"d","files":["SKILL.md","dir/"]},
           {"name":"bare","description":"d","files":["README.md"]},
           {"name":"md5","description":"d","digest":"md5:1cb251ec0d568de6a929b520c4aed8d1"},
           {"name":"plain","description":"d","url":"http://example.com/SKILL.md"},
           {"name":"inside","description":"d","url":"http://127.0.0.1:8080/SKILL.md"},
           {"name":"spaced","description":"d","url":"Obey\u2003me/ü|b?x"},
           {"name":"file","description":"d","baseUrl":"file:///etc/"},
           {"name":"twice","description":"first"}, {"name":"Twice","description":"second"}"#,
        expect![[r#"
            spaced https://example.com/.well-known/skills/Obey%E2%80%83me/%C3%BC%7Cb?x alone None
            twice https://example.com/.well-known/skills/twice/SKILL.md https://example.com/.well-known/skills/twice/ None
            skipping skill 0: missing field `name`
            skipping skill 1: invalid type: integer `7`, expected struct Entry
            skipping ``: name is missing
            skipping `empty`: description is missing
            skipping `..`: name cannot be used in a URL
            skipping `a/b`: name cannot be used in a URL
            skipping `a\b`: name cannot be used in a URL
            skipping `up`: `../up` is outside of the skill directory, but only files inside can be read
            skipping `rooted`: invalid path `/etc/passwd`: use a path relative to the skill directory instead of an absolute path
            skipping `dir`: invalid path `dir/`: use the path of a file instead of a directory
            skipping `bare`: `files` should include a SKILL.md
            skipping `md5`: digest `md5:1cb251ec0d568de6a929b520c4aed8d1` is not a SHA-256
            skipping `plain`: URL `http://example.com/SKILL.md` is not allowed in this index
            skipping `inside`: URL `http://127.0.0.1:8080/SKILL.md` is not allowed in this index
            skipping `file`: URL `file:///etc/` is not allowed in this index"#]],
    );
    check_at(
        "https://example.com/i.json",
        "<html>",
        expect![
            "failed to parse skill index from https://example.com/i.json: expected value at line 1 column 1"
        ],
    );
    check_at(
        "https://example.com/i.json",
        "{}",
        expect![
            "failed to parse skill index from https://example.com/i.json: missing field `skills` at line 1 column 2"
        ],
    );
}

#[test]
fn an_index_is_limited() {
    let url = "https://example.com/i.json";
    let index = |entries: usize| {
        let mut skills = vec![serde_json::json!(0); entries];
        skills.push(serde_json::json!({ "name": "pdf", "description": "d", "files": ["SKILL.md"] }));
        serde_json::json!({ "skills": skills }).to_string()
    };
    let few = RemoteIndex::parse(&index(5_000), url).unwrap();
    assert_eq!((few.skills().len(), few.skills().skipped().len()), (1, 101));
    let last = &few.skills().skipped()[100].diagnostics[0].message;
    assert_eq!(last, "skipping 4900 more invalid entries");
    let error = RemoteIndex::parse(&index(10_000), url).unwrap_err().to_string();
    assert!(error.contains("10001 skills, but the maximum is 10000"), "{error}");
    let files = |skills: usize, files: usize| {
        let mut names = vec!["SKILL.md".to_owned()];
        names.extend((1..files).map(|number| number.to_string()));
        let skill = |number| serde_json::json!({ "name": number, "description": "d", "files": names });
        let skills: Vec<_> = (0..skills).map(|number| skill(format!("s{number}"))).collect();
        RemoteIndex::parse(&serde_json::json!({ "skills": skills }).to_string(), url)
    };
    assert_eq!(files(2, 5_000).unwrap().skills().len(), 2);
    let many = files(2, 5_001).unwrap();
    assert_eq!(many.skills().len(), 0);
    assert!(many.skills().skipped()[0].diagnostics[0].message.contains("more than 5000 files"));
    // The `SKILL.md` doesn't count.
    assert_eq!(files(10, 5_000).unwrap().skills().len(), 10);
    let bases = |count: usize| {
        let skill = |number| serde_json::json!({ "name": number, "description": "d", "files": ["SKILL.md"] });
        let skills: Vec<_> = (0..count).map(|number| skill(format!("s{number}"))).collect();
        let base = format!("https://example.com/{}/", "a".repeat(1_900));
        RemoteIndex::parse(&serde_json::json!({ "baseUrl": base, "skills": skills }).to_string(), url)
    };
    assert_eq!(bases(2_000).unwrap().skills().len(), 2_000);
    let error = bases(2_500).unwrap_err().to_string();
    assert!(error.contains("URLs of more than 8 MiB"), "{error}");
    let error = files(11, 5_000).unwrap_err().to_string();
    assert!(error.contains("more than 50000 files"), "{error}");
}

proptest::proptest! {
    #[test]
    fn an_index_never_panics(text in "\\PC{0,60}", name in "\\PC{0,8}", url in "\\PC{0,20}") {
        let _ = RemoteIndex::parse(&text, "https://example.com/index.json");
        let item = serde_json::json!({"name": name, "description": "d", "url": url, "files": [url, name]});
        let index = serde_json::json!({"skills": [item], "baseUrl": name}).to_string();
        let _ = RemoteIndex::parse(&index, "https://example.com/index.json").unwrap();
    }
}
