//! Matches files with patterns such as `Edit(src/**)`.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Match;
use crate::{tool_paths::MAX_PATH_BYTES, workspace::Workspace};

/// The maximum length of a pattern in bytes, and the maximum number of its wildcards and braces. Others can't be compiled, or take long.
const MAX_GLOB_BYTES: usize = 1_000;
const MAX_WILDCARDS: usize = 16;

/// Matches a path with a pattern that is relative to any of the roots. A relative path starts at the working directory.
pub(super) fn match_path(pattern: &str, path: &str, workspace: &Workspace) -> Match {
    let here = files(pattern, path, workspace.cwd.as_deref());
    let is_relative = !is_absolute(&plain(path));
    // A path that leaves its directory has no certain place in any root.
    if here != Match::Outside || is_relative {
        return here;
    }
    workspace.additional.iter().map(|root| files(pattern, path, Some(root))).max().unwrap_or(here)
}

fn is_absolute(path: &str) -> bool {
    Path::new(path).is_absolute() || path.starts_with('/') || path.get(1..3) == Some(":/")
}

fn files(pattern: &str, path: &str, cwd: Option<&Path>) -> Match {
    let cwd = cwd.and_then(Path::to_str);
    // Except on Windows, a backslash is a part of a name.
    let has_other_name = path.contains('\\') && cwd.is_some_and(|cwd| cwd.starts_with('/'));
    if has_other_name || path.len() > MAX_PATH_BYTES {
        return Match::Unsure;
    }
    let path = plain(path);
    let cwd = cwd.map(plain);
    // We can't resolve these paths here, because that would require the file system.
    if path.split('/').any(|part| part == "..") || pattern.starts_with('~') || path.starts_with('~') {
        return Match::Unsure;
    }
    let path = path.trim_start_matches("./");
    let cwd = cwd.map(|cwd| cwd.trim_end_matches('/').to_owned());
    // If a pattern starts with `//`, it's an absolute path. Otherwise, it's relative to the root.
    let absolute = pattern.strip_prefix('/').filter(|pattern| pattern.starts_with('/'));
    let relative = pattern.trim_start_matches("./").trim_start_matches('/');
    let inside = cwd.as_deref().and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
    let is_alike = |cwd: &str| path.to_lowercase().starts_with(&format!("{}/", cwd.to_lowercase()));
    if inside.is_none() && cwd.as_deref().is_some_and(is_alike) {
        return Match::Unsure;
    }
    let is_absolute = is_absolute(path);
    let (pattern, path) = match (absolute, inside) {
        (Some(pattern), _) if is_absolute => (pattern.to_owned(), path.to_owned()),
        (Some(_), _) => return Match::Unsure,
        (None, Some(inside)) => (relative.to_owned(), inside.to_owned()),
        (None, None) if is_absolute && pattern.starts_with('/') => (pattern.to_owned(), path.to_owned()),
        (None, None) if is_absolute => return Match::Outside,
        (None, None) => (relative.to_owned(), path.to_owned()),
    };
    let matches = |ignores_case| glob(&pattern, ignores_case).map(|glob| glob.is_match(&path));
    // This may be an absolute path that was written with a single slash.
    let is_guess = absolute.is_none() && pattern.starts_with('/');
    // Compiling a glob takes longer than matching it, so the second one is only compiled if it is needed.
    match matches(true) {
        Some(false) => Match::Outside,
        Some(true) if !is_guess && matches(false) == Some(true) => Match::Inside,
        _ => Match::Unsure,
    }
}

/// Normalizes a path: slashes instead of backslashes, and an upper-case drive letter. Windows accepts both, and editors write
/// both.
fn plain(path: &str) -> String {
    let path = path.replace('\\', "/");
    let path = path.strip_prefix("//?/").unwrap_or(&path);
    match path.as_bytes() {
        [drive @ b'a'..=b'z', b':', b'/', ..] => {
            format!("{}{}", drive.to_ascii_uppercase() as char, &path[1..])
        }
        _ => path.to_owned(),
    }
}

/// Compiles a glob. A single `Glob` would panic if its regular expression is too large or nested too deeply.
fn glob(pattern: &str, ignores_case: bool) -> Option<GlobSet> {
    if pattern.len() > MAX_GLOB_BYTES || pattern.matches(['?', '*', '[', '{']).count() > MAX_WILDCARDS {
        return None;
    }
    let glob =
        GlobBuilder::new(pattern).literal_separator(true).case_insensitive(ignores_case).build().ok()?;
    GlobSetBuilder::new().add(glob).build().ok()
}

#[cfg(test)]
mod tests {
    use acp_skills_wire::Node;

    use super::*;
    use crate::permission::patterns::match_call;

    #[test]
    fn globs_that_cannot_be_compiled_match_nothing() {
        for (pattern, is_valid) in [
            (format!("{}a{}", "{".repeat(300), "}".repeat(300)), false),
            (format!("a{}", "?".repeat(1_000)), false),
            ("a".repeat(2_000), false),
            ("{a,b}/**/*.rs".to_owned(), true),
        ] {
            assert_eq!(glob(&pattern, false).is_some(), is_valid, "{pattern}");
        }
    }

    #[test]
    fn windows_and_case() {
        use Match::{Inside, Outside, Unsure};
        for (pattern, path, cwd, expected) in [
            ("Edit(src/**)", r"C:\project\src\a.rs", r"C:\project", Inside),
            ("Edit(src/**)", r"c:\project\src\a.rs", r"C:\project", Inside),
            ("Edit(src/**)", r"C:\project\src\a.rs", "c:/project/", Inside),
            ("Edit(src/**)", r"\\?\C:\project\src\a.rs", r"C:\project", Inside),
            ("Edit(src/**)", r"src\a.rs", r"C:\project", Inside),
            ("Edit(src/**)", r"D:\project\src\a.rs", r"C:\project", Outside),
            ("Edit(src/**)", r"C:\project2\src\a.rs", r"C:\project", Outside),
            ("Edit(src/**)", r"C:\project\src\..\a.rs", r"C:\project", Unsure),
            // On some file systems, this is the same file.
            ("Edit(src/**)", r"C:\Project\src\a.rs", r"C:\project", Unsure),
            ("Edit(src/**)", r"C:\project\SRC\a.rs", r"C:\project", Unsure),
            ("Edit(Src/**)", "/project/src/a.rs", "/project", Unsure),
            ("Edit(src/**)", "/Project/src/a.rs", "/project", Unsure),
            ("Edit(docs/**)", "/project/SRC/a.rs", "/project", Outside),
        ] {
            let input = serde_json::json!({ "file_path": path }).to_string();
            let node = Node::parse(input.as_bytes());
            let found =
                match_call([pattern].into_iter(), Some("Edit"), node, None, &Workspace::of(cwd), false);
            assert_eq!(found, expected, "{pattern} {path} {cwd}");
        }
    }

    #[test]
    fn the_target_of_a_path_is_matched() {
        let input = Node::parse(br#"{"file_path":"src/link/passwd"}"#);
        let workspace = Workspace::of("/project");
        let real =
            |path| match_call(["Edit(src/**)"].into_iter(), Some("Edit"), input, path, &workspace, false);
        assert_eq!(real(None), Match::Inside);
        assert_eq!(real(Some("/etc/passwd")), Match::Outside);
        assert_eq!(real(Some("/project/src/other/passwd")), Match::Inside);
    }

    #[test]
    fn patterns_are_relative_to_every_root() {
        use Match::{Inside, Outside, Unsure};
        let workspace = Workspace::of("/work/api").with(["/lib".into(), "/work/api/sub".into()]);
        for (pattern, path, expected) in [
            ("src/**", "/work/api/src/a", Inside),
            ("src/**", "/lib/src/a", Inside),
            ("/src/**", "/lib/src/a", Inside),
            // This root is within another one.
            ("src/**", "/work/api/sub/src/a", Inside),
            ("sub/src/**", "/work/api/sub/src/a", Inside),
            ("src/**", "/lib/a", Outside),
            ("src/**", "/lib2/src/a", Outside),
            ("src/**", "/etc/passwd", Outside),
            ("src/**", "/lib/src/../../etc/passwd", Unsure),
            ("src/**", "/lib/../work/api/src/a", Unsure),
            ("src/**", "/LIB/src/a", Unsure),
            ("//etc/*", "/etc/hosts", Inside),
            // A relative path starts at the working directory only.
            ("src/**", "src/a", Inside),
            ("src/**", "sub/src/a", Outside),
            ("src/**", "../../lib/src/a", Unsure),
        ] {
            assert_eq!(match_path(pattern, path, &workspace), expected, "{pattern} {path}");
        }
    }
}
