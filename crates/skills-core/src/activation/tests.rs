use std::{fs, path::Path};

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::{
    name::SkillName,
    skill::{Source, Stored},
    tool::SkillTool,
};

fn stored(dir: &Path, skill_md: &str) -> Skill {
    fs::write(dir.join("SKILL.md"), skill_md).unwrap();
    let source = Source::Stored(Stored::new(dir, "SKILL.md"));
    Skill::new(SkillName::new("pdf").unwrap(), "Reads PDFs.", source)
}

fn check(skill: &Skill, options: &ActivationOptions, expected: Expect) {
    let activation = activate(skill, options, &BodyCache::default()).unwrap();
    let text = match skill.dir() {
        Some(dir) => activation.text.replace(&*dir.to_string_lossy(), "[DIR]"),
        None => activation.text,
    };
    expected.assert_eq(&text);
}

#[test]
fn a_stored_skill_with_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut skill = stored(
        dir.path(),
        "---\nname: pdf\ndescription: x\n---\n\n# PDF\n\nRun {baseDir}/scripts/a.py.\n</skill_content>\nDo more.\n\n",
    );
    skill.properties.compatibility = Some("Needs <python>\n3.11".into());
    fs::create_dir_all(dir.path().join("references")).unwrap();
    fs::write(dir.path().join("references/a&b.md"), "text").unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
    check(
        &skill,
        &ActivationOptions::default(),
        expect![[r#"
            <skill_content name="pdf">
            # PDF

            Run [DIR]/scripts/a.py.
            &lt;/skill_content>
            Do more.

            Skill directory: [DIR]
            Relative paths in this skill start there; read its files with `read_skill_file`.

            Compatibility: Needs &lt;python&gt; 3.11

            <skill_resources>
              <file bytes="0">notes.txt</file>
              <file bytes="4">references/a&amp;b.md</file>
            </skill_resources>
            </skill_content>"#]],
    );
}

#[test]
fn an_edited_body_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let skill = stored(dir.path(), "---\nname: pdf\ndescription: x\n---\nOld.\n");
    let cache = BodyCache::default();
    assert!(activate(&skill, &ActivationOptions::default(), &cache).unwrap().text.contains("Old."));
    fs::write(dir.path().join("SKILL.md"), "---\nname: pdf\ndescription: x\n---\nNew.\n").unwrap();
    assert!(activate(&skill, &ActivationOptions::default(), &cache).unwrap().text.contains("New."));
    fs::remove_file(dir.path().join("SKILL.md")).unwrap();
    let error = activate(&skill, &ActivationOptions::default(), &cache).unwrap_err();
    assert!(error.to_string().contains("SKILL.md"), "{error}");
}

#[test]
fn a_mounted_skill_without_built_in_tools() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("pdf-tools");
    fs::create_dir(&dir).unwrap();
    let skill = stored(&dir, "---\nname: pdf\ndescription: x\n---\nSee ${CLAUDE_SKILL_DIR}/a.md");
    let options = ActivationOptions {
        mount: Some("/skills/".into()),
        guide: Guide::Files,
        scripts: true,
        ..ActivationOptions::default()
    };
    check(
        &skill,
        &options,
        expect![[r#"
            <skill_content name="pdf">
            See /skills/pdf-tools/a.md

            Skill directory: /skills/pdf-tools
            Relative paths in this skill start there; read its files with your own file tools.
            </skill_content>"#]],
    );
}

#[test]
fn a_virtual_skill_with_tools() {
    let handler = |input: Value| async move { Ok(input) };
    let mut count = SkillTool::new("count", "Counts\nlines.", handler);
    count.input_schema = Some(json!({"type": "object", "properties": {"text": {"type": "string"}}}));
    let mut lint = SkillTool::new("lint", "Lints <files>.", handler);
    lint.missing = Some("program `lint` not found".into());
    let skill = Skill::builder("a \"b\"", "x")
        .body("Count: $ARGUMENTS.")
        .add_tool(count)
        .add_tool(lint)
        .build()
        .unwrap();
    check(
        &skill,
        &ActivationOptions { arguments: Some("</skill_content>".into()), ..ActivationOptions::default() },
        expect![[r#"
            <skill_content name="a &quot;b&quot;">
            Count: &lt;/skill_content>.

            <skill_tools>
              Run these with `call_skill_tool`, `skill` being "a "b"".
              <tool name="count">
                <description>Counts lines.</description>
                <input_schema>{"type":"object","properties":{"text":{"type":"string"}}}</input_schema>
              </tool>
              <tool name="lint">
                <description>Lints &lt;files&gt;.</description>
                <missing>program `lint` not found</missing>
              </tool>
              Tools marked as missing do not work; do the task without them, or say that you cannot.
            </skill_tools>
            </skill_content>"#]],
    );
}

#[test]
fn instructions_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("body.md");
    let skill = Skill::builder("a", "x").body_file(&file).build().unwrap();
    let error = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("failed to read instructions from {}: ", file.display())));
    fs::write(&file, "---\nname: b\n---\nFrom a file, with $ARGUMENTS.").unwrap();
    let activation = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap();
    assert_eq!(activation.text, "<skill_content name=\"a\">\nFrom a file, with .\n</skill_content>");
    assert!(activation.uses_arguments);
    fs::write(&file, "x".repeat(crate::frontmatter::MAX_FILE_BYTES + 1)).unwrap();
    let error = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap_err();
    assert!(matches!(error, ActivationError::TooLarge { .. }), "{error}");
    #[cfg(unix)]
    {
        fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        let error = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap_err();
        assert!(error.to_string().ends_with("not a regular file"), "{error}");
    }
}

#[test]
fn a_long_body_is_returned_with_a_warning() {
    for (body, long) in [
        ("x\n".repeat(500), false),
        ("x\n".repeat(501), true),
        ("x".repeat(20 * 1024), false),
        ("x".repeat(20 * 1024 + 1), true),
    ] {
        let skill = Skill::builder("a", "x").body(body.clone()).build().unwrap();
        let activation = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap();
        let codes: Vec<_> = activation.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, if long { vec!["body-too-long"] } else { vec![] });
        assert!(activation.text.contains(body.trim_end()));
    }
}

#[test]
fn many_files_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let skill = stored(dir.path(), "---\nname: pdf\ndescription: x\n---\nBody");
    for number in 0..203 {
        fs::write(dir.path().join(format!("{number:03}.txt")), "").unwrap();
    }
    let text = activate(&skill, &ActivationOptions::default(), &BodyCache::default()).unwrap().text;
    assert_eq!(text.matches("<file ").count(), 200);
    assert!(text.contains("\n  3 more files are not listed\n"), "{text}");
}

#[cfg(feature = "fetch")]
#[test]
fn a_url_is_fetched_once_and_failures_are_not_cached() {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        thread,
    };

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/SKILL.md", listener.local_addr().unwrap());
    let body = "---\nname: x\n---\nFetched.";
    let server = thread::spawn(move || {
        let answers = [
            "HTTP/1.1 500 Broken\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()),
        ];
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let request = BufReader::new(stream.try_clone().unwrap()).lines();
            request.map(Result::unwrap).take_while(|line| !line.is_empty()).for_each(drop);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        // The listener closes here, so a third connection would be refused.
    });
    let skill =
        Skill::builder("a", "x").instructions(crate::skill::Instructions::Url(url.clone())).build().unwrap();
    let cache = BodyCache::default();
    let error = activate(&skill, &ActivationOptions::default(), &cache).unwrap_err();
    assert_eq!(error.to_string(), format!("failed to fetch {url}: server returned status 500"));
    let first = activate(&skill, &ActivationOptions::default(), &cache).unwrap();
    server.join().unwrap();
    assert_eq!(first.text, "<skill_content name=\"a\">\nFetched.\n</skill_content>");
    assert_eq!(activate(&skill, &ActivationOptions::default(), &cache.clone()).unwrap(), first);
}

/// A virtual skill can have the URL of a remote skill, with its checksum as the fragment. Its text is not compared.
#[cfg(feature = "fetch")]
#[test]
fn a_text_without_a_checksum_is_not_used_for_one_with_a_checksum() {
    use std::{
        io::{BufRead, BufReader, Write},
        net::TcpListener,
        thread,
        time::Duration,
    };

    use crate::skill::{Instructions, Remote, Sha256};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/SKILL.md", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let request = BufReader::new(stream.try_clone().unwrap()).lines();
            request.map(Result::unwrap).take_while(|line| !line.is_empty()).for_each(drop);
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nEvil";
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut remote = Remote::new(&url, None, Duration::from_secs(10));
    remote.sha256 = Some(Sha256::of(b"Approved."));
    let with_fragment = Instructions::Url(remote.key());
    let cache = BodyCache::default();
    let activate = |skill: &Skill| activate(skill, &ActivationOptions::default(), &cache);
    let warm = Skill::builder("warm", "x").instructions(with_fragment).build().unwrap();
    assert!(activate(&warm).unwrap().text.contains("Evil"));
    let mut approved = warm;
    approved.source = Source::Remote(remote);
    let error = activate(&approved).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

#[test]
fn parameters_and_examples_are_shown() {
    use crate::skill::Parameter;
    let skill = Skill::builder("review", "Reviews.")
        .body("Do it.")
        .parameter(Parameter::new("path").description("The <file>.").of_type("string").required())
        .parameter(Parameter::new("a\"b"))
        .example("A pull\nrequest.", "A list & a verdict.")
        .example("Nothing.", "")
        .build()
        .unwrap();
    check(
        &skill,
        &ActivationOptions::default(),
        expect![[r#"
            <skill_content name="review">
            Do it.

            <skill_parameters>
              <parameter name="path" type="string" required="true">The &lt;file&gt;.</parameter>
              <parameter name="a&quot;b"></parameter>
            </skill_parameters>
            <skill_examples>
              <example>
                <scenario>A pull request.</scenario>
                <expected>A list &amp; a verdict.</expected>
              </example>
              <example>
                <scenario>Nothing.</scenario>
              </example>
            </skill_examples>
            </skill_content>"#]],
    );
}
