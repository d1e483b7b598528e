//! [`SkillEntry`] and [`SourceEntry`]: the entries of `skills` and `sources`. Both can be written as a string or as a map.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer},
};

use acp_skills_runtime::library::load_named;
use acp_skills_servers::{Secrets, ServerProvider, SkillVariables, ToolServer, processes::Processes};
use skills_core::{
    discovery::NamedSkill,
    tool::{ToolProvider, Variables},
};
use skills_sources::Address;

use super::{
    choices::Verify,
    error::ConfigError,
    expand_home,
    tool_server::{SecretsEntry, ServerEntry},
    virtual_skill::{VirtualSkill, check_globs, offering},
};

/// An entry of `skills`.
#[derive(Debug)]
#[non_exhaustive]
pub enum SkillEntry {
    /// A directory with a `SKILL.md`.
    Directory(PathBuf),
    /// A virtual skill, which is defined in the file.
    Virtual(Box<VirtualSkill>),
    /// A directory with a `SKILL.md`, and properties that are added to the skill.
    Stored(Box<StoredSkill>),
}

// This is not derived with `untagged`, because errors would then be missing the line, the column and the key.
impl<'de> Deserialize<'de> for SkillEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SkillEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a skill directory, or a skill with `name`, `description` and `body`")
            }

            fn visit_str<E>(self, path: &str) -> Result<SkillEntry, E> {
                Ok(SkillEntry::Directory(path.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut skill: A) -> Result<SkillEntry, A::Error> {
                let first = skill.next_key::<String>()?;
                let is_stored = first.as_deref() == Some("skill");
                let map = MapAccessDeserializer::new(WithFirst { first, rest: skill });
                if is_stored {
                    return Deserialize::deserialize(map).map(SkillEntry::Stored);
                }
                Deserialize::deserialize(map).map(SkillEntry::Virtual)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl SkillEntry {
    /// Returns true if the MCP server of the skill is asked for further skills.
    pub(super) fn offers_skills(&self) -> bool {
        let server = match self {
            Self::Directory(_) => None,
            Self::Stored(skill) => skill.mcp.as_ref(),
            Self::Virtual(skill) => skill.mcp.as_ref(),
        };
        server.is_some_and(|server| server.skills)
    }
}

/// A skill in a directory, with properties that are not in its `SKILL.md`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StoredSkill {
    /// The directory with the `SKILL.md`. This must be the first key.
    pub(super) skill: PathBuf,
    /// The MCP server whose tools belong to the skill.
    pub(super) mcp: Option<ServerEntry>,
    /// Additional environment variables for the scripts and the MCP server of the skill. `${NAME}` stands for a secret or an environment
    /// variable of the proxy.
    #[serde(default, deserialize_with = "super::values::variables")]
    pub(super) env: BTreeMap<String, String>,
    /// The secrets for `${NAME}` in the values of `env` and `mcp`; see virtual skills.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::SecretsShape>")]
    secrets: SecretsEntry,
    /// Globs of files for which the skill is meant, such as `infra/**`, instead of those in its `SKILL.md`; see virtual skills.
    #[serde(default)]
    paths: Vec<String>,
}

impl StoredSkill {
    /// Resolves paths against the file's directory.
    pub(super) fn make_absolute(&mut self, base: &Path) {
        self.skill = base.join(expand_home(&self.skill));
        if let Some(server) = &mut self.mcp {
            server.make_absolute(base);
        }
        self.secrets.make_absolute(base);
    }

    /// Returns the server of the skill, if it should be asked for skills.
    ///
    /// # Errors
    /// Returns [`ConfigError::VirtualSkill`] if the entry of the server is not valid.
    pub(super) fn offering(&self) -> Result<Option<ToolServer>, ConfigError> {
        let name = self.skill.file_name().unwrap_or_default().to_string_lossy();
        offering(self.mcp.as_ref(), &self.env, &name, &self.secrets)
    }

    /// Loads the skill, and adds the properties of this entry. With `strict`, the `SKILL.md` must follow the specification.
    ///
    /// # Errors
    /// - [`ConfigError::Skill`] if the skill can't be loaded.
    /// - [`ConfigError::VirtualSkill`] if the entry is not valid.
    pub(super) fn load(self, strict: bool, processes: &Processes) -> Result<NamedSkill, ConfigError> {
        let path = self.skill;
        let (skill, diagnostics) =
            load_named(&path, strict).map_err(|source| ConfigError::Skill { path: path.clone(), source })?;
        let name = skill.name.to_string();
        check_globs(&name, &self.paths)?;
        let provider = |mut entry: ServerEntry| {
            entry.add_env(&self.env);
            let server = entry
                .resolve(&name, &self.secrets.0)
                .map_err(|error| ConfigError::VirtualSkill(format!("skill `{name}`, `mcp`: {error}")))?;
            let provider = ServerProvider::new(server, processes.clone());
            Ok::<_, ConfigError>(Arc::new(provider) as Arc<dyn ToolProvider>)
        };
        let provider = self.mcp.map(provider).transpose()?;
        let variables = (!self.env.is_empty()).then(|| {
            let env = self.env.into_iter().collect();
            let variables = SkillVariables::new(env, self.secrets.0, processes.clone());
            Arc::new(variables) as Arc<dyn Variables>
        });
        let skill = NamedSkill::new(path, skill, diagnostics).with_provider(provider);
        Ok(skill.with_variables(variables).with_paths(self.paths))
    }
}

/// A map whose first key was read already.
struct WithFirst<A> {
    first: Option<String>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithFirst<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(first) => seed.deserialize(first.into_deserializer()).map(Some),
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.next_value_seed(seed)
    }
}

/// An entry of `sources`: an address, and a filter for its skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceEntry {
    /// The address of the source; see [`Address`](skills_sources::Address).
    pub source: String,
    /// Globs: only skills with a matching name are used. The filter of the whole configuration applies too.
    pub include: Vec<String>,
    /// Globs: skills with a matching name are not used.
    pub exclude: Vec<String>,
    /// True if a `SKILL.md` within the directory of another skill is a skill too.
    pub nested: bool,
    /// The check that new versions have to pass. Versions that are in the lock file are used without it.
    pub verify: Option<Verify>,
    /// The lock file with the approved version of the source. `None` is the lock file in the state directory; the source is then
    /// named explicitly, which approves its first version once. Otherwise, a source that is not in the lock file is not used.
    pub lock: Option<PathBuf>,
    /// The headers of each request for a web site, an archive, a package or an MCP server.
    pub(super) headers: BTreeMap<String, String>,
    /// The secrets for `${NAME}` in the values of `headers`.
    pub(super) secrets: Secrets,
}

impl SourceEntry {
    /// Returns the URL of the MCP server, if the source is an MCP server that offers skills (`mcp+https://…`).
    pub fn server_url(&self) -> Option<&str> {
        self.source.trim().strip_prefix("mcp+")
    }

    /// Returns true if the entry has this address, however it is written.
    pub fn is_at(&self, address: &Address) -> bool {
        self.source == address.as_str() || Address::parse(&self.source).is_ok_and(|parsed| parsed == *address)
    }

    /// Returns true if the entry has the place of `address`, also in another form.
    pub fn has_place_of(&self, address: &Address) -> bool {
        Address::parse(&self.source).is_ok_and(|own| own.place() == address.place())
    }

    /// Returns true if the entry has the place of `address`, also with another range of versions.
    pub fn has_source_of(&self, address: &Address) -> bool {
        let range = || Address::parse(&self.source).ok()?.without_range();
        self.has_place_of(address) || range().is_some_and(|own| Some(own) == address.without_range())
    }

    /// Creates an entry for all skills of a source.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    /// Returns the entry for all skills of the same source.
    #[must_use]
    pub fn without_filters(self) -> Self {
        Self { include: Vec::new(), exclude: Vec::new(), ..self }
    }

    /// Returns the entry for the same source in the user's own lock file, where it has the address `source`.
    #[must_use]
    pub fn in_own_lock(self, source: String) -> Self {
        Self { source, lock: None, ..self }
    }

    /// Resolves the paths of secrets against the file's directory.
    pub(super) fn make_absolute(&mut self, base: &Path) {
        let mut secrets = SecretsEntry(std::mem::take(&mut self.secrets));
        secrets.make_absolute(base);
        self.secrets = secrets.0;
    }
}

/// An address with filters.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceFields {
    /// The address of the source.
    source: String,
    /// Globs: only skills with a matching name are used. If the list is empty, all skills are used.
    #[serde(default)]
    include: Vec<String>,
    /// Globs: skills with a matching name are not used.
    #[serde(default)]
    exclude: Vec<String>,
    /// Use a `SKILL.md` within the directory of another skill as a skill, too. The default is the value for the whole file.
    #[serde(default)]
    nested: bool,
    /// `git` accepts new versions only if your git accepts the signature of the commit or the tag. By default, no signature is needed.
    #[serde(default)]
    verify: Option<Verify>,
    /// Headers for each request to a web site, an archive, a registry of packages or an MCP server. `${NAME}` stands for a secret or an
    /// environment variable of the proxy. Only the server of the source receives them.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The secrets for `${NAME}` in the values of `headers`; see virtual skills.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::SecretsShape>")]
    secrets: SecretsEntry,
}

impl<'de> Deserialize<'de> for SourceEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SourceEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a source address, or a map with the key `source`")
            }

            fn visit_str<E>(self, source: &str) -> Result<SourceEntry, E> {
                Ok(SourceEntry::new(source))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<SourceEntry, A::Error> {
                let SourceFields { source, include, exclude, nested, verify, headers, secrets } =
                    Deserialize::deserialize(MapAccessDeserializer::new(fields))?;
                let secrets = secrets.0;
                Ok(SourceEntry { source, include, exclude, nested, verify, lock: None, headers, secrets })
            }
        }
        deserializer.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_the_same_in_any_spelling_and_range() {
        for (entry, address, expected) in [
            ("github:acme/skills", "https://github.com/acme/skills", true),
            ("github:acme/skills@^1", "github:acme/skills@^2.0", true),
            ("github:acme/skills@^1", "https://github.com/acme/skills/tree/main", false),
            ("github:acme/skills@main", "github:acme/skills@dev", false),
            ("github:acme/skills", "github:acme/skills/x", false),
            ("npm:skills@^1", "npm:skills@latest", true),
            ("npm:skills@^1", "npm:other@^1", false),
        ] {
            let found = SourceEntry::new(entry).has_source_of(&Address::parse(address).unwrap());
            assert_eq!(found, expected, "{entry} {address}");
        }
    }
}
