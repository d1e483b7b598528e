//! Recognizes files that an agent may read as its settings, because settings can run programs.

use std::path::Path;

use acp_skills::agents;

/// Names in any directory that tools use, in lower case: directories in which `npx`, `bunx` and `pipx` look for the program of a package, and a
/// file that makes its directory a repository of git, whose settings can run programs.
const ANYWHERE: [&str; 3] = ["__pypackages__", "head", "node_modules"];

/// The names of settings of programs that run agents: interpreters, package managers and version managers. In lower case.
const OF_RUNNERS: [&str; 26] = [
    "bunfig.toml",
    "default.nix",
    "deno.json",
    "deno.jsonc",
    "devbox.json",
    "flake.nix",
    "gemfile",
    "global.json",
    "hatch.toml",
    "jbang-catalog.json",
    "jsconfig.json",
    "mise.local.toml",
    "mise.toml",
    "nuget.config",
    "package.json",
    "pipfile",
    "pixi.toml",
    "pnpm-workspace.yaml",
    "pyproject.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "shell.nix",
    "sitecustomize.py",
    "tsconfig.json",
    "usercustomize.py",
    "uv.toml",
];

/// The extensions of settings, in lower case.
const EXTENSIONS: [&str; 17] = [
    "cfg", "cjs", "conf", "cts", "env", "ini", "js", "json", "json5", "jsonc", "mjs", "mts", "py", "toml",
    "ts", "yaml", "yml",
];

/// Words in the names of settings, in lower case. Agents change the names of their settings often, so a list of names would be incomplete.
const WORDS: [&str; 14] = [
    "agent",
    "agents",
    "config",
    "crush",
    "hook",
    "hooks",
    "mcp",
    "plugin",
    "plugins",
    "provider",
    "providers",
    "secrets",
    "setting",
    "settings",
];

/// Returns true for a file that an agent in its directory may read as settings: those of [`is_of_tools`], and at the root those that are
/// named like settings or like an agent.
pub(super) fn is_settings(path: &Path) -> bool {
    let name = || path.as_os_str().to_string_lossy().to_lowercase();
    is_of_tools(path) || path.components().count() == 1 && is_named_like_settings(&name())
}

/// Returns true for a file that tools such as git, editors and shells may read, also in a subdirectory: those that are hidden or in a hidden
/// directory, packages, and repositories.
pub(super) fn is_of_tools(path: &Path) -> bool {
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase());
    parts.any(|part| part.starts_with('.') || ANYWHERE.contains(&&*part))
}

fn is_named_like_settings(name: &str) -> bool {
    if OF_RUNNERS.contains(&name) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_right = |word: &str| WORDS.contains(&word) || is_agent(word);
    EXTENSIONS.contains(&extension)
        && (is_agent(stem) || stem.split(|c: char| !c.is_alphanumeric()).any(is_right))
}

/// Returns true for the name of a known agent.
fn is_agent(name: &str) -> bool {
    agents::all().iter().any(|agent| {
        agent.id == name || agent.aliases.contains(&name) || agent.program.first() == Some(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_recognized() {
        for name in [
            ".mcp.json",
            ".claude/settings.json",
            "node_modules/x/package.json",
            "HEAD",
            "bunfig.toml",
            "package.json",
            "sitecustomize.py",
            "pnpm-workspace.yaml",
            "pyproject.toml",
            "Pipfile",
            "mcp.json",
            "opencode.json",
            "opencode.jsonc",
            "crush.json",
            "codex.toml",
            "fastagent.config.yaml",
            "fastagent.secrets.yaml",
            "fast-agent.yaml",
            "Fast-Agent.Config.YAML",
            "agents.config.json",
            "goose.yml",
            "kilo.json",
            "reasonix.toml",
            "tailwind.config.js",
        ] {
            assert!(is_settings(Path::new(name)), "{name}");
        }
        for name in [
            "orders.json",
            "app.py",
            "AGENTS.md",
            "CLAUDE.md",
            "agents.csv",
            "src/config.json",
            "reagent.json",
            "api.yaml",
            "Makefile",
            "Cargo.toml",
            "go.mod",
            "data.tar.gz",
        ] {
            assert!(!is_settings(Path::new(name)), "{name}");
        }
    }
}
