//! [`Editor`]: the programs that can be set up, where their settings are, and what an agent looks like in them.
//!
//! Sources: Zed's [external agents](https://zed.dev/docs/ai/external-agents) and `crates/paths`; JetBrains'
//! [ACP](https://www.jetbrains.com/help/ai-assistant/acp.html); [ACP Client](https://github.com/formulahendry/vscode-acp) for
//! VS Code; [acpx](https://github.com/openclaw/acpx/blob/main/docs/config.md). What the others take is in `paste`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{home::Home, paste::Snippet};
use crate::error::UsageError;

/// How alike two names have to be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// Something that starts agents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Editor {
    /// The name on the command line.
    pub id: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The name for people.
    pub name: &'static str,
    /// The programs that tell that it is here.
    pub programs: &'static [&'static str],
    /// Whether it is started from a desktop, and so may not know the PATH of a terminal.
    pub is_desktop: bool,
    /// How it is told of agents.
    pub way: Way,
    /// What people do to see the new agent.
    pub then: &'static str,
}

/// How an editor is told of agents.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// By a file that can be changed.
    Settings(Settings),
    /// By a program that its user writes.
    Paste(&'static [Snippet]),
}

/// A settings file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// What it says.
    pub format: Format,
    /// Where it may be; the first is where a new one goes.
    files: &'static [In],
    /// The directory and the name of the extension that reads it, if it is an extension's.
    extension: Option<(&'static str, &'static str)>,
}

/// What an agent looks like in the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// The member of the settings that has the agents by name.
    pub key: &'static str,
    /// Whether an agent says that it is a custom one.
    pub has_type: bool,
    /// Whether a command is one list, `argv`; else it is `command` and `args`.
    pub has_argv: bool,
    /// Whether an agent has an environment even if there is nothing in it.
    pub has_env: bool,
}

/// A path below a directory of the user's.
#[derive(Debug, Clone, Copy)]
enum In {
    Home(&'static str),
    Config(&'static str),
}

const COMMAND: Format = Format { key: "agent_servers", has_type: false, has_argv: false, has_env: false };

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
        then: "Choose it in the panel of ACP Client.",
    }
}

/// All of them.
pub(crate) const ALL: &[Editor] = &[
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
        then: "Choose it behind the + of the agent panel.",
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
        then: "Choose it in the AI chat.",
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
        then: "Name it behind `acpx`.",
    },
    Editor {
        id: "neovim",
        aliases: &["nvim", "codecompanion", "avante"],
        name: "Neovim",
        programs: &["nvim"],
        is_desktop: false,
        way: Way::Paste(&[Snippet::CodeCompanion, Snippet::Avante]),
        then: "",
    },
    Editor {
        id: "emacs",
        aliases: &["agent-shell"],
        name: "Emacs",
        programs: &["emacs"],
        is_desktop: true,
        way: Way::Paste(&[Snippet::AgentShell]),
        then: "",
    },
    Editor {
        id: "toad",
        aliases: &[],
        name: "Toad",
        programs: &["toad"],
        is_desktop: false,
        way: Way::Paste(&[Snippet::Toad]),
        then: "",
    },
];

/// The editor with this name.
///
/// # Errors
/// There is none.
pub(crate) fn find(name: &str) -> Result<&'static Editor, UsageError> {
    let name = name.to_lowercase();
    let names = |editor: &'static Editor| std::iter::once(editor.id).chain(editor.aliases.iter().copied());
    if let Some(found) = ALL.iter().find(|editor| names(editor).any(|known| known == name)) {
        return Ok(found);
    }
    let alike =
        ALL.iter().flat_map(|editor| names(editor).map(|it| (strsim::jaro_winkler(&name, it), editor.id)));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|best| best.0 >= ALIKE);
    // Short names are less alike than they look.
    let near = ALL.iter().find(|editor| strsim::osa_distance(&name, editor.id) == 1);
    let best = best.map(|best| best.1).or(near.map(|editor| editor.id));
    let all: Vec<_> = ALL.iter().map(|editor| editor.id).collect();
    Err(UsageError::new(format!("no editor is known as `{name}`")).hint(match best {
        Some(id) => format!("did you mean `{id}`?"),
        None => format!(
            "known are {}; with `--file FILE` a settings file in another place, and everywhere else put \
             `acp-skills-proxy … --` in front of the agent's command",
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
        // With the separators of the system.
        path.components().collect()
    }
}

impl Settings {
    /// Where the settings may be; the first is where new ones go.
    pub(crate) fn files(&self, home: &Home) -> Vec<PathBuf> {
        self.files.iter().map(|file| file.path(home)).collect()
    }

    /// The files that are there, or else the one to make.
    ///
    /// # Errors
    /// There are several.
    pub(crate) fn file(&self, home: &Home) -> Result<PathBuf, UsageError> {
        let mut files = self.files(home);
        let there: Vec<_> = files.iter().filter(|file| is_there(file)).cloned().collect();
        match there.as_slice() {
            [] => Ok(files.remove(0)),
            [one] => Ok(one.clone()),
            several => {
                let shown: Vec<_> = several.iter().map(|file| home.shown(file)).collect();
                Err(UsageError::new(format!("there are several settings files: {}", shown.join(", ")))
                    .hint(format!("choose one: `--file {}`", shown[0])))
            }
        }
    }

    /// The extension that is needed and is not there.
    pub(crate) fn missing_extension(&self, home: &Home) -> Option<&'static str> {
        let (dir, extension) = self.extension?;
        let installed = fs::read_dir(home.dir.join(dir).join("extensions")).into_iter().flatten().flatten();
        let is_it = |name: &str| name.to_lowercase().starts_with(extension);
        let mut names = installed.filter_map(|entry| entry.file_name().into_string().ok());
        (!names.any(|name| is_it(&name))).then_some(extension)
    }

    /// Whether the editor seems to be here: it has settings, or a directory for them.
    pub(crate) fn is_here(&self, home: &Home) -> bool {
        self.files(home).iter().any(|file| is_there(file) || file.parent().is_some_and(Path::is_dir))
    }
}

/// Whether there is something, be it a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
