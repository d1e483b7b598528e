//! [`ServerEntry`] and [`SecretsEntry`]: the MCP server behind a skill, and the places of its secrets.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use acp_skills_servers::{Address, Ask, Limits, Secret, Secrets, ToolFilter, ToolServer};
use globset::{Glob, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use skills_core::fetch;
use skills_sources::policy::Server;

use super::{expand_home, relative_program_name};

/// An MCP server whose tools belong to a skill. It is either a program (`command`) or a URL (`url`), and is started when the skill
/// is first used in a session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerEntry {
    /// The program that speaks MCP on its standard input and output.
    command: Option<String>,
    /// The arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// Additional environment variables. `${NAME}` stands for a secret or an environment variable of the proxy.
    #[serde(default, deserialize_with = "super::values::variables")]
    env: BTreeMap<String, String>,
    /// The working directory. The default is the session's directory.
    cwd: Option<PathBuf>,
    /// The URL of a server with streamable HTTP: `https`, or `http` on loopback.
    url: Option<String>,
    /// `stdio` or `http`, if an entry of other settings is used as it is. It follows from the other keys.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Headers for each request. `${NAME}` stands for a secret or an environment variable of the proxy.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Use one server for all sessions. The default is false: each session has its own.
    #[serde(default)]
    shared: bool,
    /// Ask the server for skills of its own, too. They have to be approved by the user. The default is false.
    #[serde(default)]
    pub(super) skills: bool,
    /// Globs: only tools with a matching name are used. If the list is empty, all tools are used.
    #[serde(default)]
    include: Vec<String>,
    /// Globs: tools with a matching name are not used. This takes precedence over `include`.
    #[serde(default)]
    exclude: Vec<String>,
    /// The calls that the user is asked about if the agent does not ask. The default is `always`. With `writes`, calls of tools that
    /// the server marks as read-only are not asked about.
    #[serde(default)]
    #[schemars(with = "AskShape")]
    ask: Ask,
    /// The time limits for starting the server and for listing its tools, in seconds. The default is 30.
    #[serde(default, alias = "start-timeout", deserialize_with = "super::values::seconds")]
    #[schemars(with = "Option<f64>")]
    start_timeout: Option<Duration>,
    /// The time limit for a call, in seconds since its last progress. The default is 300.
    #[serde(default, deserialize_with = "super::values::seconds")]
    #[schemars(with = "Option<f64>")]
    timeout: Option<Duration>,
}

/// The calls that the user is asked about.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) enum AskShape {
    /// All calls.
    Always,
    /// Calls of tools that the server does not mark as read-only.
    Writes,
    /// No calls.
    Never,
}

impl ServerEntry {
    /// Returns the server for a decision of a policy. An entry without a program and a URL is invalid.
    pub(super) fn server(&self) -> Server<'_> {
        match (&self.command, &self.url) {
            (Some(program), _) => Server::Program(program, &self.args),
            (None, url) => Server::Url(url.as_deref().unwrap_or_default()),
        }
    }

    /// Returns the names of the server's environment variables. `env` are those of its skill, which only a program gets.
    pub(super) fn variables<'a>(
        &'a self,
        env: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a str> {
        let of_skill = self.command.iter().flat_map(|_| env.keys());
        self.env.keys().chain(of_skill).map(String::as_str)
    }

    /// Resolves paths against the file's directory.
    pub(super) fn make_absolute(&mut self, base: &Path) {
        if let Some(cwd) = &mut self.cwd {
            *cwd = base.join(expand_home(cwd));
        }
        if let Some(command) = &mut self.command {
            relative_program_name(command, base);
        }
    }

    /// Adds the environment variables of the skill. Those of the server have precedence.
    pub(super) fn add_env(&mut self, env: &BTreeMap<String, String>) {
        if self.command.is_some() {
            for (name, value) in env {
                self.env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }

    /// Returns the description of the server.
    ///
    /// # Errors
    /// Returns the reason as a clause if the entry is not valid.
    pub(super) fn resolve(self, skill: &str, secrets: &Secrets) -> Result<ToolServer, EntryError> {
        let transport = match self.kind.as_deref() {
            None | Some("stdio" | "http") => Ok(()),
            Some("sse") => Err("the old transport SSE is not supported; use the `url` for streamable HTTP"),
            Some(_) => Err("`type` must be `stdio` or `http`"),
        };
        transport.map_err(|why| EntryError(why.to_owned()))?;
        let pairs = |map: BTreeMap<String, String>| map.into_iter().collect();
        let address = match (self.command, self.url) {
            (Some(program), None) if !program.is_empty() => {
                if !self.headers.is_empty() {
                    return Err(EntryError("`headers` need a `url`".to_owned()));
                }
                Address::Command { program, args: self.args, env: pairs(self.env), cwd: self.cwd }
            }
            (None, Some(url)) => {
                if !fetch::is_allowed(&url) {
                    return Err(EntryError("`url` must be https, or http on loopback".to_owned()));
                }
                if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() {
                    return Err(EntryError("`args`, `env` and `cwd` need a `command`".to_owned()));
                }
                Address::Http { url, headers: pairs(self.headers) }
            }
            _ => return Err(EntryError("expected either `command` or `url`".to_owned())),
        };
        let mut limits = Limits::default();
        limits.start = self.start_timeout.unwrap_or(limits.start);
        limits.list = limits.start;
        limits.call = self.timeout.unwrap_or(limits.call);
        Ok(ToolServer {
            skill: skill.to_owned(),
            address,
            shared: self.shared,
            tools: ToolFilter { include: globs(&self.include)?, exclude: globs(&self.exclude)? },
            ask: self.ask,
            limits,
            secrets: secrets.clone(),
        })
    }
}

/// The reason why an entry is not valid, as a clause.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct EntryError(String);

/// Compiles globs. Returns `None` if there are none.
fn globs(globs: &[String]) -> Result<Option<GlobSet>, EntryError> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        set.add(Glob::new(glob).map_err(|error| EntryError(error.to_string()))?);
    }
    let set = set.build().map_err(|error| EntryError(error.to_string()))?;
    Ok((!globs.is_empty()).then_some(set))
}

/// The places of secrets: the path of a file with lines such as `NAME=VALUE`, or a map from names to programs and files.
#[derive(Debug, Default)]
pub(super) struct SecretsEntry(pub(super) Secrets);

/// The place of one secret: a program that prints it, or a file with it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretFields {
    /// The program that prints the secret, and its arguments. It is run without a shell.
    command: Option<Vec<String>>,
    /// The file that contains the secret. Only its owner may have access to it.
    file: Option<PathBuf>,
}

impl SecretsEntry {
    /// Resolves paths against the file's directory.
    pub(super) fn make_absolute(&mut self, base: &Path) {
        self.0.directory = std::path::absolute(base).ok();
        let files = self.0.named.values_mut().filter_map(|secret| match secret {
            Secret::File(path) => Some(path),
            Secret::Command(words) => {
                // A program with a directory must not depend on the working directory, which can be a project.
                if let Some(program) = words.first_mut() {
                    relative_program_name(program, base);
                }
                None
            }
        });
        for path in files.chain(&mut self.0.file) {
            *path = base.join(expand_home(path));
        }
    }
}

// This is not derived with `untagged`, because errors would then be missing the line, the column and the key.
impl<'de> Deserialize<'de> for SecretsEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SecretsEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a file, or a map from names to `command` or `file`")
            }

            fn visit_str<E>(self, path: &str) -> Result<SecretsEntry, E> {
                Ok(SecretsEntry(Secrets { file: Some(path.into()), ..Secrets::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretsEntry, A::Error> {
                use serde::de::Error;
                let fields = BTreeMap::<String, SecretFields>::deserialize(MapAccessDeserializer::new(map))?;
                let mut named = BTreeMap::new();
                for (name, fields) in fields {
                    let secret = match (fields.command, fields.file) {
                        (Some(command), None) => Secret::Command(command),
                        (None, Some(file)) => Secret::File(file),
                        _ => return Err(A::Error::custom("a secret needs either `command` or `file`")),
                    };
                    named.insert(name, secret);
                }
                Ok(SecretsEntry(Secrets { named, ..Secrets::default() }))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
