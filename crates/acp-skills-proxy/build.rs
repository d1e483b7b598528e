//! Sets the text of `--version`: the version, and the commit with its date if they are known.
//!
//! In a checkout, git knows both. A package from crates.io contains the commit in a file that cargo writes. For other builds,
//! set `ACP_SKILLS_PROXY_COMMIT` (for example `fcb870d 2026-11-22`). Otherwise, only the version is shown.

use std::{env, fs, path::Path, process::Command};

/// The number of characters of a short commit hash.
const SHORT: usize = 9;

fn main() {
    println!("cargo::rerun-if-env-changed=ACP_SKILLS_PROXY_COMMIT");
    let version = env!("CARGO_PKG_VERSION");
    let commit = env::var("ACP_SKILLS_PROXY_COMMIT").ok().filter(|commit| !commit.is_empty());
    // Only do this for release builds. Otherwise, we would need to rebuild after every commit.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = commit.or_else(|| is_release.then(|| packaged().or_else(checked_out))?);
    let version = commit.map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=ACP_SKILLS_PROXY_VERSION={version}");
}

/// Returns the commit of a package, which `cargo package` records.
fn packaged() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo_vcs_info.json");
    let text = fs::read_to_string(path).ok()?;
    let (_, hash) = text.split_once("\"sha1\"")?;
    let hash = hash.split('"').nth(1)?;
    let is_hash = hash.len() >= SHORT && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash[..SHORT].to_owned())
}

/// Returns the commit of the checkout with its date.
fn checked_out() -> Option<String> {
    // The package may have been unpacked into some other repository, so check whether the file is tracked by git.
    let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    if tracked.is_empty() {
        return None;
    }
    // Run this script again if the branch or the log of HEAD changes. We can only add a path that exists. Otherwise,
    // cargo would run the script every time.
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
