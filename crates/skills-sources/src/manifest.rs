//! Reads the manifests in which a repository lists its directories of skills: `.claude-plugin/marketplace.json` and `plugin.json`
//! ([plugin marketplaces](https://code.claude.com/docs/en/plugin-marketplaces)). Skills in other directories are found by the usual
//! rules of discovery.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read,
    path::{Component, Path, PathBuf},
};

use serde_json::Value;

use super::git::tree::MANIFEST_DIR;

/// The maximum size of a manifest, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// The maximum number of directories.
const MAX_DIRECTORIES: usize = 1_000;

/// Returns the existing directories below `root` that its manifests list.
pub(super) fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    of_plugin(root, &mut found);
    if let Some(marketplace) = read(root, "marketplace.json") {
        let base = marketplace["metadata"]["pluginRoot"].as_str().and_then(relative).unwrap_or_default();
        for plugin in marketplace["plugins"].as_array().into_iter().flatten() {
            // If the source is an object, it refers to another repository, but the user has only chosen this one.
            let Some(dir) = plugin["source"].as_str().and_then(relative) else { continue };
            // `pluginRoot` should only be a prefix of names, but some repositories also use it for paths.
            for dir in [root.join(&base).join(&dir), root.join(&dir)] {
                listed(&plugin["skills"], &dir, &mut found);
                of_plugin(&dir, &mut found);
            }
        }
    }
    found.retain(|dir| dir.is_dir());
    let mut seen = HashSet::new();
    found.retain(|dir| seen.insert(dir.clone()));
    found.truncate(MAX_DIRECTORIES);
    found
}

/// Adds the directories of a plugin: those in its manifest, and the default directory `skills`.
fn of_plugin(dir: &Path, found: &mut Vec<PathBuf>) {
    if let Some(plugin) = read(dir, "plugin.json") {
        listed(&plugin["skills"], dir, found);
    }
    found.push(dir.join("skills"));
}

/// Adds one path or a list of paths.
fn listed(paths: &Value, dir: &Path, found: &mut Vec<PathBuf>) {
    let one = paths.as_str().into_iter();
    let many = paths.as_array().into_iter().flatten().filter_map(Value::as_str);
    found.extend(one.chain(many).filter_map(relative).map(|path| dir.join(path)));
}

/// Returns the path if it doesn't leave the directory that it is relative to.
fn relative(path: &str) -> Option<PathBuf> {
    let parts = Path::new(path).components().filter(|part| *part != Component::CurDir);
    parts.map(|part| matches!(part, Component::Normal(_)).then_some(part)).collect()
}

fn read(dir: &Path, name: &str) -> Option<Value> {
    let path = dir.join(MANIFEST_DIR).join(name);
    if !fs::symlink_metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn directories_of_manifests() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let write = |dir: &str, name: &str, text: &Value| {
            let dir = root.join(dir).join(MANIFEST_DIR);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(name), text.to_string()).unwrap();
        };
        for dir in ["skills", "p/a/skills", "p/a/own", "p/b/x/y", "p/b/skills", "target/c"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        write("p/a", "plugin.json", &json!({ "name": "a", "skills": "./own/" }));
        write(
            "p/b",
            "plugin.json",
            &json!({ "name": "b", "skills": ["./x/y", "./missing", "../a/own", "/etc"] }),
        );
        let plugins = json!([
            { "name": "a", "source": "./p/a" },
            { "name": "b", "source": "b" },
            { "name": "c", "source": "./", "skills": ["./target/c"] },
            { "name": "out", "source": "../.." },
            { "name": "far", "source": { "source": "github", "repo": "x/y" } },
        ]);
        write("", "marketplace.json", &json!({ "metadata": { "pluginRoot": "./p" }, "plugins": plugins }));
        let found = directories(root);
        let found: Vec<_> = found.iter().map(|dir| dir.strip_prefix(root).unwrap()).collect();
        for dir in ["skills", "p/a/own", "p/a/skills", "p/b/x/y", "p/b/skills", "target/c"] {
            assert!(found.contains(&Path::new(dir)), "{dir} of {found:?}");
        }
        assert!(found.iter().all(|dir| !dir.starts_with("..")), "{found:?}");
    }
}
