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
use skills_core::json::{self, has_more_values_than};

use super::git::tree::MANIFEST_DIR;

/// The maximum size of a manifest, in bytes, and the maximum number of values in it. A longer one is ignored.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_VALUES: usize = 64 * 1024;
/// The maximum number of directories.
const MAX_DIRECTORIES: usize = 1_000;
/// The maximum number of plugins of which the manifests are read.
const MAX_PLUGINS: usize = 1_000;

/// Returns the existing directories below `root` that its manifests list.
pub(super) fn directories(root: &Path) -> Vec<PathBuf> {
    let mut found = Directories { read: HashSet::new(), seen: HashSet::new(), all: Vec::new() };
    found.add_plugin(root);
    if let Some(marketplace) = read(root, "marketplace.json") {
        let base = marketplace["metadata"]["pluginRoot"].as_str().and_then(relative).unwrap_or_default();
        for plugin in marketplace["plugins"].as_array().into_iter().flatten().take(MAX_PLUGINS) {
            // If the source is an object, it refers to another repository, but the user has only chosen this one.
            let Some(dir) = plugin["source"].as_str().and_then(relative) else { continue };
            // `pluginRoot` should only be a prefix of names, but some repositories also use it for paths.
            for dir in [root.join(&base).join(&dir), root.join(&dir)] {
                found.add_listed(&plugin["skills"], &dir);
                found.add_plugin(&dir);
            }
        }
    }
    found.all
}

/// The directories that were found. Manifests come from anyone, so each is read once, and the number of paths is limited.
struct Directories {
    /// The directories of which the manifest was read.
    read: HashSet<PathBuf>,
    /// All listed paths. At most ten times [`MAX_DIRECTORIES`] are looked at.
    seen: HashSet<PathBuf>,
    all: Vec<PathBuf>,
}

impl Directories {
    /// Adds the directories of a plugin: those in its manifest, and the default directory `skills`.
    fn add_plugin(&mut self, dir: &Path) {
        if !self.read.insert(dir.to_owned()) {
            return;
        }
        if let Some(plugin) = read(dir, "plugin.json") {
            self.add_listed(&plugin["skills"], dir);
        }
        self.add(dir.join("skills"));
    }

    /// Adds one path or a list of paths.
    fn add_listed(&mut self, paths: &Value, dir: &Path) {
        let one = paths.as_str().into_iter();
        let many = paths.as_array().into_iter().flatten().filter_map(Value::as_str);
        for path in one.chain(many).filter_map(relative) {
            if self.is_full() {
                return;
            }
            self.add(dir.join(path));
        }
    }

    fn add(&mut self, dir: PathBuf) {
        if !self.is_full() && !self.seen.contains(&dir) {
            if dir.is_dir() {
                self.all.push(dir.clone());
            }
            self.seen.insert(dir);
        }
    }

    fn is_full(&self) -> bool {
        self.all.len() >= MAX_DIRECTORIES || self.seen.len() >= 10 * MAX_DIRECTORIES
    }
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
    if has_more_values_than(&text, MAX_VALUES) {
        return None;
    }
    let _guard = json::parsing_lock(&text);
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

    #[test]
    fn manifests_are_limited() {
        let root = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(root.path()).unwrap();
        for number in 0..1_100 {
            fs::create_dir_all(root.join(format!("s{number}"))).unwrap();
        }
        let real: Vec<_> = (0..1_100).map(|number| format!("./s{number}")).collect();
        let missing: Vec<_> = (0..20_000).map(|number| format!("./no{number}")).collect();
        let write = |skills: &[String]| {
            let plugins = vec![json!({ "name": "a", "source": "./", "skills": skills }); 3];
            fs::create_dir_all(root.join(MANIFEST_DIR)).unwrap();
            let text = json!({ "plugins": plugins }).to_string();
            fs::write(root.join(MANIFEST_DIR).join("marketplace.json"), text).unwrap();
        };
        write(&real);
        assert_eq!(directories(&root).len(), MAX_DIRECTORIES);
        write(&[&missing[..], &real[..1]].concat());
        assert_eq!(directories(&root), [] as [PathBuf; 0], "the list ends before the existing directory");
        for (values, expected) in [(10, 1), (MAX_VALUES, 0)] {
            let plugins = json!([{ "name": "a", "source": "./", "skills": ["./s0"] }]);
            let text = json!({ "plugins": plugins, "x": vec![0; values] }).to_string();
            fs::write(root.join(MANIFEST_DIR).join("marketplace.json"), text).unwrap();
            assert_eq!(directories(&root).len(), expected, "{values}");
        }
        // The same manifest is read once, even if many plugins refer to it.
        let mut found = Directories { read: HashSet::new(), seen: HashSet::new(), all: Vec::new() };
        found.add_plugin(&root);
        fs::create_dir_all(root.join("skills")).unwrap();
        found.add_plugin(&root);
        assert_eq!(found.all, [] as [PathBuf; 0]);
    }
}
