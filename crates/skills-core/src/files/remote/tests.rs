//! Tests of the paths of remote files, without a network.

use super::*;

/// On Windows, a colon in a local path names a drive or a stream. In a URL it has no such meaning, on any platform.
#[test]
fn a_colon_is_part_of_a_name() {
    for (path, url) in [("notes: a.md", "notes%3A%20a.md"), ("C:/b.md", "C%3A/b.md")] {
        assert_eq!(fetch::percent_encoded(&canonical(path).unwrap()), url);
    }
}

#[test]
fn a_listed_file_gets_a_canonical_path() {
    for (path, expected) in [
        ("a/./b//c.md", Ok("a/b/c.md")),
        ("a/../b.md", Ok("b.md")),
        ("a/", Err("invalid path `a/`: use the path of a file instead of a directory")),
        ("a/..", Err("invalid path `a/..`: use the path of a file instead of a directory")),
    ] {
        let file = RemoteFile::listed(path, None, None).map(|file| file.path);
        assert_eq!(
            file.map_err(|error| error.to_string()),
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }
}

#[test]
fn a_path_has_no_control_characters() {
    assert!(canonical("a b.md").is_ok());
    assert!(canonical("a.md unknown\nb.md").is_err());
}

proptest::proptest! {
    #[test]
    fn no_path_leaves_the_directory(path in "([a-c./%\\\\:é ]|\\.\\./){0,12}") {
        if let Ok(path) = canonical(&path) {
            let encoded = fetch::percent_encoded(&path);
            let uri: ureq::http::Uri = format!("https://h/base/{encoded}").parse().unwrap();
            proptest::prop_assert!(uri.path().starts_with("/base/"));
            proptest::prop_assert!(uri.path().split('/').all(|part| part != ".." && part != "."), "{}", uri);
            proptest::prop_assert!(uri.query().is_none());
        }
    }
}
