//! [`Workspace`]: the directories of a session.
//!
//! A session has a working directory, and can have
//! [additional roots](https://agentclientprotocol.com/protocol/v1/session-setup#additional-workspace-roots), which are in
//! `additionalDirectories` of the requests that set up a session. Each request carries the complete list: roots that it leaves out
//! no longer belong to the session.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use acp_skills_wire::Message;
use skills_core::text::shown;

/// The maximum number of additional roots. Further ones are ignored.
pub const MAX_ROOTS: usize = 1_000;

/// The maximum length of a path in bytes. The time of a search grows with the square of the length. Linux accepts 4,096 bytes, and Windows
/// 32,767 characters.
const MAX_PATH_BYTES: usize = 32 * 1024;

/// The directories of a session, as the client wrote them. Clones share the list of additional roots.
///
/// ```
/// use std::path::Path;
/// use acp_skills_intercept::Workspace;
///
/// let workspace = Workspace::of("/work/api").with(["/work/lib".into()]);
/// assert!(workspace.roots().eq(["/work/api", "/work/lib"].map(Path::new)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Workspace {
    /// The working directory, or `None` if the session has none. Relative paths start here.
    pub cwd: Option<PathBuf>,
    /// The additional roots, in order and without duplicates.
    pub additional: Arc<[PathBuf]>,
}

impl Workspace {
    /// Creates a workspace without additional roots.
    pub fn of(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    /// Replaces the additional roots. Roots that occur twice, or are the working directory, are dropped.
    #[must_use]
    pub fn with(self, additional: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut seen: HashSet<PathBuf> = self.cwd.iter().cloned().collect();
        let additional = additional.into_iter().filter(|root| seen.insert(root.clone())).collect();
        Self { additional, ..self }
    }

    /// Returns all roots in the order of precedence: the working directory, then the additional roots.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.cwd.iter().chain(self.additional.iter()).map(PathBuf::as_path)
    }

    /// Returns true if the session has no directory at all.
    pub fn is_empty(&self) -> bool {
        self.cwd.is_none() && self.additional.is_empty()
    }

    /// Reads the directories in a request that sets up a session. If the request names no working directory, that of `before` is
    /// used, which is the workspace that the session has, or that of the session from which it is copied.
    ///
    /// Also returns warnings about directories that are ignored. The specification asks for absolute paths, so that an
    /// agent refuses others.
    pub(crate) fn read(message: &Message<'_>, before: Option<&Self>) -> (Self, Vec<String>) {
        let cwd = message.param(&["cwd"]).and_then(|cwd| Some(PathBuf::from(cwd.as_str()?.into_owned())));
        let mut warnings = Vec::new();
        let cwd = cwd.filter(|cwd| fits(cwd, &mut warnings));
        let list = message.param(&["additionalDirectories"]).filter(|list| !list.is_null());
        if let (None, None, Some(before)) = (&cwd, list, before) {
            return (before.clone(), warnings);
        }
        let cwd = cwd.or_else(|| before?.cwd.clone());
        let mut roots = Vec::new();
        for root in list.into_iter().flat_map(|list| list.elements()) {
            let Some(root) = root.as_str() else { continue };
            if !fits(Path::new(&*root), &mut warnings) {
                continue;
            }
            if !Path::new(&*root).is_absolute() {
                warnings.push(format!(
                    "ignoring additional directory `{}` of a session, because the path is not absolute",
                    shown(&root)
                ));
            } else if roots.len() == MAX_ROOTS {
                warnings.push(format!(
                    "too many additional directories in a session: using only the first {MAX_ROOTS}"
                ));
                break;
            } else {
                roots.push(PathBuf::from(root.into_owned()));
            }
        }
        (Self { cwd, ..Self::default() }.with(roots), warnings)
    }
}

/// Returns true if a path is short enough. Otherwise adds a warning.
fn fits(path: &Path, warnings: &mut Vec<String>) -> bool {
    let bytes = path.as_os_str().len();
    if bytes > MAX_PATH_BYTES {
        warnings.push(format!("ignoring a directory of a session, because its path has {bytes} bytes"));
    }
    bytes <= MAX_PATH_BYTES
}

// The paths of the tests are absolute on Unix only.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn directories_of_a_request() {
        let before = Workspace::of("/old").with(["/other".into()]);
        for (params, cwd, additional, warnings) in [
            (r#"{"cwd":"/a"}"#, "/a", &[][..], 0),
            (r#"{"cwd":"/a","additionalDirectories":null}"#, "/a", &[], 0),
            (r#"{"cwd":"/a","additionalDirectories":[]}"#, "/a", &[], 0),
            (r#"{"cwd":"/a","additionalDirectories":["/b","/c"]}"#, "/a", &["/b", "/c"], 0),
            // Duplicates, also of the working directory, and other spellings of the same path.
            (r#"{"cwd":"/a","additionalDirectories":["/b/","/b","/a","/a/"]}"#, "/a", &["/b/"], 0),
            (r#"{"cwd":"/a","additionalDirectories":["/a/b","/"]}"#, "/a", &["/a/b", "/"], 0),
            // The specification asks for absolute paths.
            (r#"{"cwd":"/a","additionalDirectories":["b","./c","../d","~/e","","/f"]}"#, "/a", &["/f"], 5),
            (r#"{"cwd":"/a","additionalDirectories":[7,null,{"path":"/b"},["/c"],"/d"]}"#, "/a", &["/d"], 0),
            (r#"{"cwd":"/a","additionalDirectories":"/b"}"#, "/a", &[], 0),
            (r#"{"additionalDirectories":["/b"]}"#, "/old", &["/b"], 0),
            ("{}", "/old", &["/other"], 0),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"session/load","params":{params}}}"#);
            let (workspace, found) =
                Workspace::read(&Message::parse(line.as_bytes()).unwrap(), Some(&before));
            let expected: Vec<_> = additional.iter().map(PathBuf::from).collect();
            assert_eq!(workspace.cwd.as_deref(), Some(Path::new(cwd)), "{params}");
            assert_eq!(workspace.additional[..], expected, "{params}");
            assert_eq!(found.len(), warnings, "{params} {found:?}");
        }
    }

    #[test]
    fn long_paths_are_ignored() {
        let long = "/a".repeat(MAX_PATH_BYTES);
        for (cwd, additional) in [(&*long, "/b"), ("/b", &*long)] {
            let line = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new",
                "params": { "cwd": cwd, "additionalDirectories": [additional] } });
            let (workspace, warnings) =
                Workspace::read(&Message::parse(line.to_string().as_bytes()).unwrap(), None);
            assert!(workspace.roots().eq([Path::new("/b")]));
            assert_eq!(warnings, ["ignoring a directory of a session, because its path has 65536 bytes"]);
        }
    }

    #[test]
    fn the_number_of_roots_is_limited() {
        let roots: Vec<_> = (0..MAX_ROOTS + 5).map(|number| format!("/root/{number}")).collect();
        let line = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new",
            "params": { "cwd": "/a", "additionalDirectories": roots } });
        let (workspace, warnings) =
            Workspace::read(&Message::parse(line.to_string().as_bytes()).unwrap(), None);
        assert_eq!(workspace.additional.len(), MAX_ROOTS);
        assert_eq!(warnings, ["too many additional directories in a session: using only the first 1000"]);
    }
}
