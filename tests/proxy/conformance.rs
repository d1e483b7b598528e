//! The conformance skill, `tests/skills/skills-system-validation`, through the real server: its metadata, body and files,
//! and no access outside.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::{
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry, texts},
};

crate::trials!(over_http, over_the_bridge, its_script_does_not_run_by_default);

const NAME: &str = "skills-system-validation";
const IN_BODY: &str = "CONFORMANCE_BODY_V1";

/// Each bundled file and a marker in it.
const FILES: [(&str, &str); 3] = [
    ("assets/fixture.json", "CONFORMANCE_ASSET_V1"),
    ("references/REFERENCE.md", "CONFORMANCE_REFERENCE_V1"),
    ("scripts/echo.sh", "CONFORMANCE_SCRIPT_V1"),
];

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/skills").join(NAME)
}

fn validate(transport: &str) {
    let mut fixture = Fixture::over_http(Proxy::new().arg("--strict").skill(&dir()).flag("--mcp", transport));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);

    // The catalog should contain the metadata, but not the body.
    let blocks = fixture.prompt("s", "Prove that skills work");
    let catalog = texts(&blocks)[0];
    assert!(catalog.contains(NAME) && catalog.contains("Proves that a skills system works"), "{catalog}");
    assert!(!catalog.contains(IN_BODY), "the body was sent before it was requested: {catalog}");

    // Activating the skill returns the body and a list of the files.
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": NAME }));
    assert!(!failed && text.contains(IN_BODY), "{text}");
    assert!(!text.contains("license:"), "the frontmatter is not for the model: {text}");
    for (path, marker) in FILES {
        assert!(text.contains(path), "{path} is not in {text}");
        let (text, failed) =
            fixture.call(&connection, "read_skill_file", json!({ "skill": NAME, "path": path }));
        assert!(!failed && text.contains(marker), "{path}: {text}");
        let on_disk = std::fs::read_to_string(dir().join(path)).expect("a file");
        assert_eq!(text.trim_end(), on_disk.replace("\r\n", "\n").trim_end(), "{path} as it is");
    }

    // Files outside of the skill cannot be read.
    let absolute = dir().join("SKILL.md");
    for path in [
        "../SKILL.md",
        "../skills-system-validation/SKILL.md",
        "/etc/passwd",
        "references/../../../../etc/passwd",
        "C:\\Windows\\win.ini",
        "\\\\server\\share\\file",
        "references\\REFERENCE.md",
        "assets/fixture.json\0.md",
        "",
        "..",
        absolute.to_str().expect("text"),
    ] {
        let (text, failed) =
            fixture.call(&connection, "read_skill_file", json!({ "skill": NAME, "path": path }));
        assert!(failed && !text.contains(IN_BODY) && !text.contains("CONFORMANCE_"), "{path:?}: {text}");
    }
    fixture.finish();
}

fn over_http() {
    validate("http");
}

fn over_the_bridge() {
    validate("stdio");
}

fn its_script_does_not_run_by_default() {
    let mut fixture = Fixture::over_http(Proxy::new().skill(&dir()));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert!(connection.tools.iter().all(|tool| tool["name"] != "run_skill_script"));
    let arguments = json!({ "skill": NAME, "script": "scripts/echo.sh", "args": ["x"] });
    let (text, failed) = fixture.call(&connection, "run_skill_script", arguments);
    assert!(failed && text.contains("UnknownTool"), "{text}");
    fixture.finish();
}
