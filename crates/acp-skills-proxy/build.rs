//! What `--version` says: the version, and the commit and its date where they are known.
//!
//! In a checkout git knows both. A package of crates.io has the commit in a file of cargo's. Who builds from anything else
//! sets `ACP_SKILLS_PROXY_COMMIT` (for example `fcb870d 2026-11-22`), or the version stands alone.

use std::{env, fs, path::Path, process::Command};

/// As many characters of a commit as git shows.
const SHORT: usize = 9;

fn main() {
    println!("cargo::rerun-if-env-changed=ACP_SKILLS_PROXY_COMMIT");
    let version = env!("CARGO_PKG_VERSION");
    let commit = env::var("ACP_SKILLS_PROXY_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = commit.or_else(packaged).or_else(checked_out);
    let version = commit.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=ACP_SKILLS_PROXY_VERSION={version}");
}

/// The commit that a package was made of, as `cargo package` notes it.
fn packaged() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo_vcs_info.json");
    let text = fs::read_to_string(path).ok()?;
    let (_, hash) = text.split_once("\"sha1\"")?;
    let hash = hash.split('"').nth(1)?;
    let is_hash = hash.len() >= SHORT && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash[..SHORT].to_owned())
}

/// The commit of the checkout that this is built in, with its date.
fn checked_out() -> Option<String> {
    // A package that is built inside of somebody else's repository is none of its commits.
    let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    if tracked.is_empty() {
        return None;
    }
    // The branch and what it points to; a path that does not exist would have this run each time.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["log", "-1", "--format=%h %cs", &format!("--abbrev={SHORT}")])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
