//! The syntax of the file.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSetBuilder};
use serde_json::{Map, Value};
use skills_core::{Scope, scan::Risk};

use super::{LocalSkills, Policy, Scripts, TELEMETRY, addresses::Pattern, servers, servers::ServerPattern};
use crate::{Address, reason::Reason};

impl Policy {
    /// Parses the text of the file at `file`.
    ///
    /// # Errors
    /// Returns the reason if the text is not valid YAML, if a key is unknown, or if a value is invalid.
    pub(crate) fn parse(text: &str, file: &Path) -> Result<Self, Reason> {
        if text.trim().is_empty() {
            return Err("the file is empty; write `{}` for a policy without rules".into());
        }
        let value: Value = serde_yaml::from_str(text)
            .map_err(|error| Reason::from(error.render_with_formatter(&serde_yaml::UserMessageFormatter)))?;
        let mut policy = Self { file: file.to_owned(), ..Self::default() };
        let top = map(&value, "policy", &["sources", "skills", "scripts", "mcp", "require"])?;
        if let Some(sources) = top.get("sources") {
            policy.read_sources(map(sources, "sources", &["allow", "scan", "lock"])?)?;
        }
        if let Some(skills) = top.get("skills") {
            let skills = map(skills, "skills", &["allow"])?;
            if let Some(allow) = policy.list(skills, "skills.allow")? {
                policy.skills = Some(local_skills(&allow)?);
            }
        }
        if let Some(scripts) = top.get("scripts") {
            policy.scripts = match scripts.as_str() {
                Some("never") => Scripts::Never,
                Some("sandbox") => Scripts::Sandbox,
                Some("allowed") => Scripts::Allowed,
                _ => return Err("`scripts` must be `never`, `sandbox` or `allowed`".into()),
            };
            policy.note("scripts", scripts);
        }
        if let Some(mcp) = top.get("mcp") {
            let mcp = map(mcp, "mcp", &["allow", "env"])?;
            if let Some(allow) = policy.list(mcp, "mcp.allow")? {
                let parse = |text: &String| {
                    ServerPattern::parse(text).map_err(|why| Reason::from(format!("`mcp.allow`: {why}")))
                };
                policy.servers = Some(allow.iter().map(parse).collect::<Result<_, _>>()?);
            }
            if let Some(variables) = policy.list(mcp, "mcp.env")? {
                let check = |name: &String| {
                    servers::check_variable(name).map_err(|why| Reason::from(format!("`mcp.env`: {why}")))
                };
                variables.iter().try_for_each(check)?;
                policy.variables = Some(variables);
            }
        }
        if let Some(require) = top.get("require") {
            policy.read_requirements(map(require, "require", &["sources", "telemetry"])?)?;
        }
        Ok(policy)
    }

    fn read_sources(&mut self, sources: &Map<String, Value>) -> Result<(), Reason> {
        if let Some(allow) = self.list(sources, "sources.allow")? {
            let parse = |text: &String| {
                Pattern::parse(text).map_err(|why| Reason::from(format!("`sources.allow`: {why}")))
            };
            self.sources = Some(allow.iter().map(parse).collect::<Result<_, _>>()?);
        }
        if let Some(scan) = sources.get("scan") {
            self.scan = Some(match scan.as_str() {
                Some("low") => Risk::Low,
                Some("medium") => Risk::Medium,
                Some("high") => Risk::High,
                _ => return Err("`sources.scan` must be `low`, `medium` or `high`".into()),
            });
            self.note("sources.scan", scan);
        }
        if let Some(lock) = sources.get("lock") {
            let path = lock.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
            self.lock = Some(path.ok_or("`sources.lock` must be the absolute path of a lock file")?);
            self.note("sources.lock", lock);
        }
        Ok(())
    }

    fn read_requirements(&mut self, require: &Map<String, Value>) -> Result<(), Reason> {
        for text in self.list(require, "require.sources")?.unwrap_or_default() {
            let address =
                Address::parse(&text).map_err(|error| Reason::from(format!("`require.sources`: {error}")))?;
            if self.source(&address).is_err() {
                return Err(format!("`require.sources`: `sources.allow` does not allow `{text}`").into());
            }
            self.required.push(address);
        }
        match require.get("telemetry") {
            None => {}
            Some(Value::Bool(false)) => self.written.push((TELEMETRY, "false".to_owned())),
            Some(Value::Bool(true)) => {
                self.telemetry = true;
                self.written.push((TELEMETRY, "true".to_owned()));
            }
            Some(Value::String(url)) if skills_core::fetch::is_web_url(url) => {
                self.telemetry = true;
                self.collector = Some(url.clone());
                self.written.push((TELEMETRY, url.clone()));
            }
            Some(_) => {
                return Err("`require.telemetry` must be `true`, `false`, or the URL of a collector".into());
            }
        }
        Ok(())
    }

    /// Returns the texts in the list `rule` of a map, whose key is the last part of the name.
    fn list(&mut self, map: &Map<String, Value>, rule: &'static str) -> Result<Option<Vec<String>>, Reason> {
        let key = rule.rsplit('.').next().unwrap_or(rule);
        let Some(value) = map.get(key) else { return Ok(None) };
        let texts = value.as_array().and_then(|list| {
            let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
            texts.collect::<Option<Vec<_>>>()
        });
        let texts = texts.ok_or_else(|| Reason::from(format!("`{rule}` must be a list of strings")))?;
        self.written.push((rule, if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }));
        Ok(Some(texts))
    }

    fn note(&mut self, rule: &'static str, value: &Value) {
        self.written.push((rule, value.as_str().unwrap_or_default().to_owned()));
    }
}

/// Returns a map of the file. All of its keys must be known.
fn map<'v>(value: &'v Value, name: &str, keys: &[&str]) -> Result<&'v Map<String, Value>, Reason> {
    let known = || keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let Some(map) = value.as_object() else {
        return Err(format!("`{name}` must have keys; known keys are {}", known()).into());
    };
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown key `{key}` in `{name}`; known keys are {}", known()).into()),
        None => Ok(map),
    }
}

fn local_skills(allow: &[String]) -> Result<LocalSkills, Reason> {
    let mut skills = LocalSkills::default();
    let mut set = GlobSetBuilder::new();
    for text in allow {
        match text.as_str() {
            "user" => skills.places.push((Scope::User, true)),
            "project" => skills.places.push((Scope::Project, true)),
            "configuration" => skills.places.push((Scope::Named, false)),
            "editor" => skills.places.push((Scope::Session, false)),
            path => directory(path)?.into_iter().for_each(|glob| {
                set.add(glob);
            }),
        }
    }
    skills.directories = set.build().map_err(|error| Reason::from(error.to_string()))?;
    Ok(skills)
}

/// Returns the globs for a directory and everything below.
fn directory(path: &str) -> Result<Vec<Glob>, Reason> {
    let is_plain = Path::new(path).is_absolute() && !path.split('/').any(|name| name == "..");
    if !is_plain {
        return Err(format!(
            "`skills.allow`: `{path}` is neither an absolute path nor `user`, `project`, `configuration` or `editor`"
        )
        .into());
    }
    let dir = path.trim_end_matches('/').trim_end_matches("/**");
    let globs = [dir.to_owned(), format!("{dir}/**")];
    let globs = globs.iter().map(|glob| {
        let glob = GlobBuilder::new(glob).literal_separator(true).case_insensitive(cfg!(windows)).build();
        glob.map_err(|error| Reason::from(format!("`skills.allow`: {error}")))
    });
    globs.collect()
}
