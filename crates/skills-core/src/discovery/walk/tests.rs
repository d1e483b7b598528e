//! The time for links.

use std::{fs, os::unix::fs::symlink, time::Duration};

use super::{super::progress::MAX_LINK_TIME, *};

#[test]
fn links_are_not_followed_after_their_time() {
    let base = tempfile::tempdir().unwrap();
    let base = dunce::canonicalize(base.path()).unwrap();
    for name in ["root/plain", "other/linked"] {
        fs::create_dir_all(base.join(name)).unwrap();
        fs::write(base.join(name).join("SKILL.md"), "---\ndescription: d\n---\nx\n").unwrap();
    }
    symlink("../other/linked", base.join("root/linked")).unwrap();
    let root = Root::scanned(base.join("root"));
    let search = Discovery::new([root.clone()]);
    for (resolving, found, message) in [
        (Duration::ZERO, 2, None),
        (MAX_LINK_TIME.saturating_sub(Duration::from_nanos(1)), 1, Some("skipped 1 link, because")),
        (MAX_LINK_TIME, 0, Some("skipped directory, because")),
    ] {
        let mut progress = Progress::after(resolving);
        let result = walk(&root, &search, 100, &mut progress, None);
        let said = result.skipped.first().map(|skipped| skipped.diagnostics[0].message.as_str());
        assert_eq!(result.skills.len(), found, "{said:?}");
        assert!(said.is_some() == message.is_some(), "{said:?}");
        assert!(said.unwrap_or_default().starts_with(message.unwrap_or_default()), "{said:?}");
    }
}
