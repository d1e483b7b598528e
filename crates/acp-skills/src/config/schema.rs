//! The JSON schema of `skills.yaml` for editors that use
//! [`yaml-language-server`](https://github.com/redhat-developer/yaml-language-server). It is generated from the types that read the
//! file.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::{Config, virtual_skill::VirtualSkill};

/// Returns the JSON schema of a configuration file. It uses draft 7, because editors support it.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>();
    schema.insert("title".to_owned(), "skills.yaml of acp-skills-proxy".into());
    schema.to_value()
}

/// A string, or a list of strings.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// True or false, or a list of names.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) enum FlagOrNames {
    /// True for all.
    Flag(bool),
    /// One name.
    One(String),
    /// Several names.
    Many(Vec<String>),
}

/// The places of secrets.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) enum SecretsShape {
    /// The path of a file with lines such as `NAME=VALUE`.
    File(String),
    /// The place of each secret, by name.
    Named(std::collections::BTreeMap<String, super::tool_server::SecretFields>),
}

/// An entry of `skills`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "only its shape is used")]
pub(super) enum SkillShape {
    /// The directory of a skill.
    Directory(String),
    /// A virtual skill.
    Virtual(VirtualSkill),
    /// The directory of a skill, with properties that are added to it.
    Stored(super::entries::StoredSkill),
}

/// An entry of `sources`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) enum SourceShape {
    /// `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…`, `git+https://…[#REF:PATH]`, `git+ssh://…`, `git+file:///…`, or the
    /// address of a web site with skills.
    Address(String),
    /// An address with filters for its skills.
    Fields(super::entries::SourceFields),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema has exactly the keys that the program accepts.
    #[test]
    fn the_schema_has_the_keys_of_the_parser() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], false);
        let keys = schema["properties"].as_object().unwrap();
        let error = serde_yaml::from_str::<Config>("no-such-key: 1").unwrap_err().to_string();
        for key in keys.keys() {
            assert!(error.contains(key.as_str()), "{key}: {error}");
        }
        for (key, kind) in [("strict", "boolean"), ("roots", "array"), ("projects", "array")] {
            assert_eq!(keys[key]["type"], kind, "{key}");
        }
        let text = schema.to_string();
        for word in ["draft-07", "\"xml\"", "\"hybrid\"", "\"bwrap\"", "input_schema", "github:OWNER/REPO"] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
