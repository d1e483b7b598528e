//! The sources and filters of a configuration.

use skills_core::discovery::Filter;
use skills_sources::{Address, Place, Spec, user_lock};

use super::{ConfigError, SourceEntry};

/// Compiles the globs for the names of skills.
///
/// # Errors
/// Returns [`ConfigError::Value`] if a glob is invalid.
pub(super) fn filter(include: &[String], exclude: &[String]) -> Result<Filter, ConfigError> {
    Filter::new(include, exclude).map_err(|error| ConfigError::Value(error.to_string()))
}

/// Resolves a source that is not an MCP server. The value of `nested` and the filters `common` of the whole configuration, and of
/// the project, apply to it too.
///
/// # Errors
/// Returns [`ConfigError::Value`] if a glob is invalid, if the source is an MCP server, or if it is a git repository with headers, and [`ConfigError::Source`] if the address has an
/// unknown format.
pub(super) fn spec(entry: &SourceEntry, nested: bool, common: &[&Filter]) -> Result<Spec, ConfigError> {
    if entry.server_url().is_some() {
        let text =
            format!("`projects`: MCP server `{}` can't be a source here; move it to `sources`", entry.source);
        return Err(ConfigError::Value(text));
    }
    let own = filter(&entry.include, &entry.exclude)?;
    let address = Address::parse(&entry.source)?;
    if !entry.headers.is_empty() && matches!(address.place(), Place::Git(place) if place.transport.is_git()) {
        let text = format!("source `{address}`: git does not send `headers`; use git's credentials instead");
        return Err(ConfigError::Value(text));
    }
    Ok(Spec {
        address,
        filters: common.iter().copied().cloned().chain([own]).collect(),
        lock: entry.lock.clone().unwrap_or_else(user_lock),
        nested: nested || entry.nested,
        is_named: entry.lock.is_none(),
    })
}
