//! Reads values of a configuration file that have rules of their own.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IntoDeserializer},
};
use skills_core::text::shown;
use skills_sources::Decisions;

/// Reads a value of a fixed set of words. The text is read in one function for all of these types, because the parser is compiled again for
/// each type.
pub(super) fn choice<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| T::deserialize(text.into_deserializer())).transpose()
}

/// Reads the path of a log. The messages contain text of skills' authors, so no shell or other program should read the file as its
/// settings.
pub(super) fn log_file<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let path = Option::<PathBuf>::deserialize(deserializer)?;
    let is_log = |path: &PathBuf| path.extension().is_some_and(|found| found == "log" || found == "txt");
    if path.as_ref().is_none_or(is_log) {
        return Ok(path);
    }
    Err(D::Error::custom("the name of `log_file` must end with `.log` or `.txt`"))
}

/// Reads a duration as a number of seconds, such as `2` or `0.5`.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    let duration = |seconds| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom("expected a number of seconds, for example 2 or 0.5"))
    };
    seconds.map(duration).transpose()
}

/// Reads environment variables. A name with `=` would set another variable, because the system gets `NAME=VALUE` as one text.
pub(super) fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(deserializer)?;
    let is_invalid = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    match variables.keys().find(is_invalid) {
        Some(name) => {
            Err(D::Error::custom(format!("invalid name of an environment variable: `{}`", shown(name))))
        }
        None => Ok(variables),
    }
}

/// Reads the name of a person who approves skills.
pub(super) fn approver<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| Decisions::check_name(&name).map(|()| name).map_err(D::Error::custom)).transpose()
}
