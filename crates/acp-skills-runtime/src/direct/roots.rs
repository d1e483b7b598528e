//! The directories that a client offers as [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots).

use std::path::PathBuf;

use acp_skills_intercept::{MAX_ROOTS, Workspace};
use percent_encoding::percent_decode_str;
use skills_core::text::shown;

/// Returns the workspace of roots with these addresses, which are URLs of files. The first one is the working directory. Others are
/// ignored. `None` if no root is left.
pub(super) fn workspace<'u>(uris: impl IntoIterator<Item = &'u str>) -> Option<Workspace> {
    let mut roots = uris.into_iter().take(MAX_ROOTS).filter_map(|uri| {
        let path = path(uri);
        if path.is_none() {
            tracing::warn!(
                "ignoring root `{}` of the client, because it is not the URL of a directory",
                shown(uri)
            );
        }
        path
    });
    let cwd = roots.next()?;
    Some(Workspace::of(cwd).with(roots))
}

/// Returns the path of a URL such as `file:///a/b`. Some clients send paths instead.
fn path(uri: &str) -> Option<PathBuf> {
    let path = match uri.strip_prefix("file://") {
        Some(rest) => {
            // The host is empty or this machine.
            let path = rest.strip_prefix("localhost").unwrap_or(rest);
            let path = percent_decode_str(path).decode_utf8().ok()?;
            // On Windows, the path of `file:///C:/a` begins after the slash.
            let has_drive = path.as_bytes().get(2) == Some(&b':');
            let path = if cfg!(windows) && has_drive { &path[1..] } else { &*path };
            PathBuf::from(path)
        }
        None => PathBuf::from(uri),
    };
    let has_nul = path.as_os_str().as_encoded_bytes().contains(&0);
    (path.is_absolute() && !has_nul).then_some(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn roots_of_clients() {
        for (uris, expected) in [
            (&[][..], None),
            (&["file:///a/b"], Some(Workspace::of("/a/b"))),
            (&["file:///a%20b/%C3%A9"], Some(Workspace::of("/a b/é"))),
            (&["file://localhost/a", "/b"], Some(Workspace::of("/a").with(["/b".into()]))),
            (&["https://example.com/a", "file://host/a", "a", "file:///%00", "file:///%FF"], None),
            (&["x:y", "file:///b", "file:///b"], Some(Workspace::of("/b"))),
        ] {
            assert_eq!(workspace(uris.iter().copied()), expected, "{uris:?}");
        }
    }
}
