//! The index of a web site. Skills have a valid name and description, and none of them is a local directory.

use skills_core::Diagnostic;
use skills_sources::site::RemoteIndex;

pub(super) fn run(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match RemoteIndex::parse(&text, "https://example.org/.well-known/agent-skills/index.json") {
        Ok(index) => {
            for skill in index.skills().iter() {
                assert!(!skill.name.as_str().chars().any(char::is_control), "{:?}", skill.name);
                assert!(!skill.description.trim().is_empty());
                assert!(skill.dir().is_none(), "a skill of a web site is not a local directory");
            }
            for skipped in index.skills().skipped() {
                assert!(skipped.diagnostics.iter().any(Diagnostic::is_error));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
