//! [`Editor`]: the editors that `setup` supports, the paths of their settings, and the format of an agent in these.
//!
//! Sources: Zed's [external agents](https://zed.dev/docs/ai/external-agents) and `crates/paths`; JetBrains'
//! [ACP](https://www.jetbrains.com/help/ai-assistant/acp.html); [ACP Client](https://github.com/formulahendry/vscode-acp) for
//! VS Code; [acpx](https://github.com/openclaw/acpx/blob/main/docs/config.md). The texts for other editors are in `paste`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use acp_skills::agents;

use super::{home::Home, paste::Snippet};
use crate::SetupError;

/// The minimum similarity of two names for a suggestion, from 0 to 1.
const ALIKE: f64 = 0.75;

/// An editor, or another program that starts agents.
#[derive(Debug, Clone, Copy)]
pub struct Editor {
    /// The name of the editor on the command line.
    pub id: &'static str,
    /// Other names for the same editor.
    pub aliases: &'static [&'static str],
    /// The name of the editor for messages.
    pub name: &'static str,
    /// The programs whose presence in `PATH` shows that the editor is installed.
    pub programs: &'static [&'static str],
    /// True if the editor is started from a desktop, where `PATH` may differ from that of a terminal.
    pub is_desktop: bool,
    /// The way in which agents are added to the editor.
    pub way: Way,
    /// A sentence that tells users where to find the new agent.
    pub then: &'static str,
    /// A note about other settings of the editor. Empty if there is none.
    pub note: &'static str,
}

/// The way in which agents are added to an editor.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// Agents are in a settings file that we can edit.
    Settings(Settings),
    /// Agents are in code that the user writes, such as an `init.lua`, so we print a text to paste.
    Paste(&'static [Snippet]),
}

/// A settings file.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The format of agents in the file.
    pub format: Format,
    /// The possible paths. A new file is created at the first one.
    files: &'static [In],
    /// The directory and the name of the extension that reads the file, if the editor needs one.
    extension: Option<(&'static str, &'static str)>,
}

/// The format of an agent in settings.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The key of the object that contains the agents by name.
    pub key: &'static str,
    /// True if an agent needs `"type": "custom"`.
    pub has_type: bool,
    /// True if a command is one list, `argv`. Otherwise, it is `command` and `args`.
    pub has_argv: bool,
    /// True if an agent needs `env` even if it is empty.
    pub has_env: bool,
}

/// A path below one of the user's directories.
#[derive(Debug, Clone, Copy)]
enum In {
    Home(&'static str),
    Config(&'static str),
}

const COMMAND: Format = Format { key: "agent_servers", has_type: false, has_argv: false, has_env: false };

/// The setting that stops VS Code from forwarding the port of the skills server. A remote window forwards all new ports to the desktop.
const PORTS: &str = "remote windows (SSH, WSL, containers, the web) may forward the proxy's port, although this is not needed; to prevent this, \
                     use `--mcp stdio`, or add to the settings: \"remote.portsAttributes\": { \"acp-skills-proxy\": { \"onAutoForward\": \
                     \"ignore\" } }";

const fn vs_code(
    id: &'static str,
    aliases: &'static [&'static str],
    name: &'static str,
    files: &'static [In],
    extensions: &'static str,
) -> Editor {
    Editor {
        id,
        aliases,
        name,
        programs: &[],
        is_desktop: true,
        way: Way::Settings(Settings {
            format: Format { key: "acp.agents", has_env: true, ..COMMAND },
            files,
            extension: Some((extensions, "formulahendry.acp-client")),
        }),
        then: "Choose the agent in the ACP Client panel. If it is not listed, run `Developer: Reload Window`.",
        note: PORTS,
    }
}

/// All supported editors.
pub const ALL: &[Editor] = &[
    Editor {
        id: "zed",
        aliases: &[],
        name: "Zed",
        programs: &["zed", "zeditor"],
        is_desktop: true,
        way: Way::Settings(Settings {
            format: Format { has_type: true, ..COMMAND },
            files: if cfg!(windows) {
                &[In::Config("Zed/settings.json")]
            } else if cfg!(target_os = "macos") {
                &[In::Home(".config/zed/settings.json")]
            } else {
                &[In::Config("zed/settings.json"), In::Home(".var/app/dev.zed.Zed/config/zed/settings.json")]
            },
            extension: None,
        }),
        then: "Choose the agent from the + menu in the agent panel.",
        note: "",
    },
    Editor {
        id: "jetbrains",
        aliases: &[
            "idea",
            "intellij",
            "pycharm",
            "webstorm",
            "rustrover",
            "goland",
            "clion",
            "phpstorm",
            "rider",
        ],
        name: "JetBrains",
        programs: &[],
        is_desktop: true,
        way: Way::Settings(Settings {
            format: Format { has_env: true, ..COMMAND },
            files: &[In::Home(".jetbrains/acp.json")],
            extension: None,
        }),
        then: "Choose the agent in the AI chat.",
        note: "",
    },
    vs_code("vscode", &["code", "vs-code"], "VS Code", &[In::Config("Code/User/settings.json")], ".vscode"),
    vs_code(
        "vscode-insiders",
        &["code-insiders"],
        "VS Code Insiders",
        &[In::Config("Code - Insiders/User/settings.json")],
        ".vscode-insiders",
    ),
    vs_code("vscodium", &["codium"], "VSCodium", &[In::Config("VSCodium/User/settings.json")], ".vscode-oss"),
    vs_code("cursor", &[], "Cursor", &[In::Config("Cursor/User/settings.json")], ".cursor"),
    Editor {
        id: "acpx",
        aliases: &[],
        name: "acpx",
        programs: &["acpx"],
        is_desktop: false,
        way: Way::Settings(Settings {
            format: Format { key: "agents", has_argv: true, ..COMMAND },
            files: &[In::Home(".acpx/config.json")],
            extension: None,
        }),
        then: "Use `acpx NAME` to start the agent.",
        note: "",
    },
    Editor {
        id: "neovim",
        aliases: &["nvim", "codecompanion", "avante"],
        name: "Neovim",
        programs: &["nvim"],
        is_desktop: false,
        way: Way::Paste(&[Snippet::CodeCompanion, Snippet::Avante]),
        then: "",
        note: "",
    },
    Editor {
        id: "emacs",
        aliases: &["agent-shell"],
        name: "Emacs",
        programs: &["emacs"],
        is_desktop: true,
        way: Way::Paste(&[Snippet::AgentShell]),
        then: "",
        note: "",
    },
    Editor {
        id: "jupyter",
        aliases: &["jupyterlab", "jupyter-lab", "jupyter-ai"],
        name: "Jupyter AI",
        programs: &["jupyter-lab", "jupyter"],
        is_desktop: false,
        way: Way::Paste(&[Snippet::Jupyter]),
        then: "",
        note: "",
    },
    Editor {
        id: "toad",
        aliases: &[],
        name: "Toad",
        programs: &["toad"],
        is_desktop: false,
        way: Way::Paste(&[Snippet::Toad]),
        then: "",
        note: "",
    },
];

/// Returns the editor with this identifier or alias. Case is ignored.
///
/// # Errors
/// Returns an error with a suggestion if no editor has the name.
pub fn find(name: &str) -> Result<&'static Editor, SetupError> {
    let name = name.to_lowercase();
    let names = |editor: &'static Editor| std::iter::once(editor.id).chain(editor.aliases.iter().copied());
    if let Some(found) = ALL.iter().find(|editor| names(editor).any(|known| known == name)) {
        return Ok(found);
    }
    if let Ok(agent) = agents::find(&name) {
        let hint = format!("name the editor first: `acp-skills-proxy setup EDITOR --agent {name}`");
        return Err(SetupError::new(format!("`{name}` is not an editor, but the agent {}", agent.name))
            .with_hint(hint));
    }
    if name == "agents" {
        return Err(SetupError::new("`agents` is not an editor")
            .with_hint("use `acp-skills-proxy setup --agents` to list the known agents"));
    }
    let alike = ALL
        .iter()
        .flat_map(|editor| names(editor).map(|known| (strsim::jaro_winkler(&name, known), editor.id)));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|best| best.0 >= ALIKE);
    // If a name is short, it's not very similar to the same name with a typo, so always accept a single edit.
    let near = ALL.iter().find(|editor| strsim::osa_distance(&name, editor.id) == 1);
    let best = best.map(|best| best.1).or(near.map(|editor| editor.id));
    let all: Vec<_> = ALL.iter().map(|editor| editor.id).collect();
    Err(SetupError::new(format!("unknown editor `{name}`")).with_hint(match best {
        Some(id) => format!("did you mean `{id}`?"),
        None => format!(
            "supported editors are {}; for other editors, put `acp-skills-proxy … --` before the agent command",
            all.join(", ")
        ),
    }))
}

impl In {
    fn path(self, home: &Home) -> PathBuf {
        let path = match self {
            Self::Home(path) => home.dir.join(path),
            Self::Config(path) => home.config.join(path),
        };
        // Collect the components into a new path, so that it uses the separators of the system.
        path.components().collect()
    }
}

impl Settings {
    /// Returns the possible paths of the settings. A new file is created at the first one.
    pub fn files(&self, home: &Home) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path(home)).collect()
    }

    /// Returns the path of the existing settings file, or of the one to create.
    ///
    /// # Errors
    /// Returns an error if there are several settings files.
    pub fn file(&self, home: &Home) -> Result<PathBuf, SetupError> {
        let mut files = self.files(home);
        let there: Vec<_> = files.iter().filter(|file| is_there(file)).cloned().collect();
        match there.as_slice() {
            [] => Ok(files.remove(0)),
            [one] => Ok(one.clone()),
            several => {
                let shown: Vec<_> = several.iter().map(|file| home.shown(file)).collect();
                Err(SetupError::new(format!("found several settings files: {}", shown.join(", ")))
                    .with_hint(format!("use `--file {}` to select one", shown[0])))
            }
        }
    }

    /// Returns the name of the extension that the editor needs, if it is not installed.
    pub fn missing_extension(&self, home: &Home) -> Option<&'static str> {
        let (dir, extension) = self.extension?;
        let installed = fs::read_dir(home.dir.join(dir).join("extensions")).into_iter().flatten().flatten();
        let is_extension = |name: &str| name.to_lowercase().starts_with(extension);
        let mut names = installed.filter_map(|entry| entry.file_name().into_string().ok());
        (!names.any(|name| is_extension(&name))).then_some(extension)
    }

    /// Returns true if the editor seems to be installed, because its settings or the directory for these exist.
    pub fn is_here(&self, home: &Home) -> bool {
        self.files(home).iter().any(|file| is_there(file) || file.parent().is_some_and(Path::is_dir))
    }
}

/// Returns true if the path exists. A symbolic link without a target counts.
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
