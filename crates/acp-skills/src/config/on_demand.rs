//! [`ServersOnDemand`]: the MCP servers of the editor that become skills.

use std::fmt;

use acp_skills_intercept::OnDemand;
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

/// The MCP servers of the editor that become skills. In a file: `true` for all of them, `false`, a name, or a list of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServersOnDemand(pub OnDemand);

impl ServersOnDemand {
    /// Returns the servers with these names, separated by commas. An empty text stands for all servers.
    pub fn named(names: &str) -> Self {
        let names: Vec<_> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        Self(if names.is_empty() { OnDemand::All } else { OnDemand::Named(names) })
    }
}

// This is not derived with `untagged`, because errors would then be missing the line, the column and the key.
impl<'de> Deserialize<'de> for ServersOnDemand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = ServersOnDemand;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or the names of MCP servers")
            }

            fn visit_bool<E>(self, all: bool) -> Result<ServersOnDemand, E> {
                Ok(ServersOnDemand(if all { OnDemand::All } else { OnDemand::None }))
            }

            fn visit_str<E>(self, name: &str) -> Result<ServersOnDemand, E> {
                Ok(ServersOnDemand(OnDemand::Named(vec![name.to_owned()])))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<ServersOnDemand, A::Error> {
                let names = Deserialize::deserialize(SeqAccessDeserializer::new(names))?;
                Ok(ServersOnDemand(OnDemand::Named(names)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
