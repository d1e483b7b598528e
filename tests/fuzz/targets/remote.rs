//! The index of a web site: its skills can be named and shown, and lie where they may lie.

use skills_core::{Diagnostic, remote::RemoteIndex};

pub(super) fn run(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    match RemoteIndex::parse(&text, "https://example.org/.well-known/agent-skills/index.json") {
        Ok(index) => {
            for skill in index.skills().iter() {
                assert!(!skill.name.as_str().chars().any(char::is_control), "{:?}", skill.name);
                assert!(!skill.description.trim().is_empty());
                assert!(skill.dir().is_none(), "nothing of a web site is a directory of ours");
            }
            for skipped in index.skills().skipped() {
                assert!(skipped.diagnostics.iter().any(Diagnostic::is_error));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
