//! [`Policy`]: the rules of an administrator, which users can't widen.
//!
//! [`Policy::load`] reads the policy of this machine. The other methods are pure: they decide about a source, a skill, an MCP server or
//! a feature. A decision is a [`Refusal`] that names the rule and the file. A rule that is missing in the file allows everything.
//!
//! | file | responsible for |
//! |---|---|
//! | `file/` | reading the file, and the check that users can't change it |
//! | `rules` | the syntax of the file |
//! | `addresses` | the normal form of addresses, and patterns for them |
//! | `servers` | patterns for MCP servers |

mod addresses;
mod file;
mod rules;
mod servers;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use globset::GlobSet;
use skills_core::{
    Diagnostic, Scope, SkillName,
    scan::{Finding, Report, Risk},
    set::{REFUSED_BY_POLICY, Skipped},
    text::{markdown_code, shown, shown_path},
};

use self::{addresses::Pattern, servers::ServerPattern};
use crate::{
    Address,
    address::{NPM_REGISTRY, Place},
};

pub use self::{
    file::{PolicyError, check_protection, path},
    servers::Server,
};

/// The rules of an administrator. The default allows everything.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    file: PathBuf,
    /// The rules as they are written in the file.
    written: Vec<(&'static str, String)>,
    sources: Option<Vec<Pattern>>,
    scan: Option<Risk>,
    lock: Option<PathBuf>,
    skills: Option<LocalSkills>,
    scripts: Scripts,
    servers: Option<Vec<ServerPattern>>,
    /// The environment variables that skills and servers may set for a server.
    variables: Option<Vec<String>>,
    required: Vec<Address>,
    /// True if no session may run without telemetry.
    telemetry: bool,
    /// The address to which telemetry is sent.
    collector: Option<String>,
}

/// The rule about telemetry.
const TELEMETRY: &str = "require.telemetry";

/// The use of programs that belong to skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Scripts {
    /// No scripts, and no tools that are commands.
    Never,
    /// Only scripts in the sandbox without network.
    Sandbox,
    /// Whatever the user allows.
    #[default]
    Allowed,
}

/// The rule `skills.allow`.
#[derive(Debug, Clone, Default)]
struct LocalSkills {
    /// The places of skills: their scope, and true if they have a directory.
    places: Vec<(Scope, bool)>,
    /// Directories of skills.
    directories: GlobSet,
}

/// A refusal: the thing that is refused, the rule and the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is refused by policy{}: `{rule}` in {}", Clause(why), shown_path(file))]
pub struct Refusal {
    what: String,
    why: String,
    rule: String,
    file: PathBuf,
}

/// Returns the host and the port of a URL. The other parts can contain secrets, and refusals are logged.
fn server_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    shown(authority.rsplit('@').next().unwrap_or_default()).into_owned()
}

/// Writes a reason in parentheses, if there is one.
struct Clause<'a>(&'a str);

impl fmt::Display for Clause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

impl Refusal {
    /// The hint for each refusal.
    pub const HINT: &'static str =
        "ask the administrator of this machine; `acp-skills-proxy policy show` lists the rules";

    /// Returns the finding about something that is not used because of this refusal.
    pub fn finding(&self) -> Diagnostic {
        Diagnostic::error(REFUSED_BY_POLICY, self.to_string()).help(Self::HINT)
    }

    /// Returns the record of something at `path` that is not used because of this refusal.
    pub fn skipped(&self, path: impl Into<PathBuf>) -> Skipped {
        Skipped::new(path, vec![self.finding()])
    }
}

impl Policy {
    /// Returns the path of the file with the rules.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the rules and their values as they are written in the file.
    pub fn rules(&self) -> &[(&'static str, String)] {
        &self.written
    }

    /// Decides if a source may be contacted and used.
    ///
    /// # Errors
    /// Returns a refusal if no pattern of `sources.allow` matches the address.
    pub fn source(&self, address: &Address) -> Result<(), Refusal> {
        let Some(patterns) = &self.sources else { return Ok(()) };
        if patterns.iter().any(|pattern| pattern.matches(address)) {
            return Ok(());
        }
        Err(self.refusal(format!("source {}", markdown_code(address.as_str())), "sources.allow"))
    }

    /// Decides if the packages of an npm registry may be used. The public registry is allowed; the URL of another one must be allowed as
    /// a source, because the settings of the user choose the registry.
    ///
    /// # Errors
    /// Returns a refusal if no pattern of `sources.allow` matches the URL.
    pub fn registry(&self, url: &str) -> Result<(), Refusal> {
        if self.sources.is_none() || url == NPM_REGISTRY || self.is_url_allowed(url) {
            return Ok(());
        }
        Err(self.refusal(format!("npm registry `{}`", server_of(url)), "sources.allow"))
    }

    /// Returns true if `sources.allow` has a URL that is fetched as it is. In contrast to a source, the address of a repository's page doesn't
    /// stand for the repository.
    fn is_url_allowed(&self, url: &str) -> bool {
        let address = Address::parse(url).ok().filter(|address| matches!(address.place(), Place::Web(_)));
        addresses::normal_url(url).is_some() && address.is_some_and(|address| self.source(&address).is_ok())
    }

    /// Decides if a skill may read its instructions from a URL. The address must be allowed as a source.
    ///
    /// # Errors
    /// Returns the refusal of [`source`](Self::source).
    pub fn instructions(&self, skill: &str, url: &str) -> Result<(), Refusal> {
        if self.sources.is_none() || self.is_url_allowed(url) {
            return Ok(());
        }
        let what = format!("URL of skill {}", markdown_code(skill));
        Err(Refusal { why: server_of(url), ..self.refusal(what, "sources.allow") })
    }

    /// Returns true if the skills of sources have to pass a scan before they are used.
    pub fn scans(&self) -> bool {
        self.scan.is_some()
    }

    /// Decides about a skill of a source with the result of its scan. `None` means that it could not be scanned.
    ///
    /// # Errors
    /// Returns a refusal if a finding has a higher risk than `sources.scan`, or if a file could not be scanned.
    pub fn scanned(&self, name: &SkillName, report: Option<&Report>) -> Result<(), Refusal> {
        let Some(max) = self.scan else { return Ok(()) };
        let refused = |why: String| Refusal {
            why,
            ..self.refusal(format!("skill {}", markdown_code(name.as_str())), &format!("sources.scan: {max}"))
        };
        let Some(report) = report else { return Err(refused("it cannot be scanned".to_owned())) };
        let is_refused = |finding: &&Finding| finding.risk > max || finding.is_unread();
        match report.findings.iter().find(is_refused) {
            Some(finding) => Err(refused(format!("{} risk: {}", finding.risk, finding.message()))),
            None => Ok(()),
        }
    }

    /// Returns the lock file of the administrator. Only the versions in it are used.
    pub fn lock(&self) -> Option<&Path> {
        self.lock.as_deref()
    }

    /// Returns the refusal of a source that is not in the lock file of the administrator. `None` if there is no such file.
    pub fn not_in_lock(&self, address: &Address) -> Option<Refusal> {
        let why = format!("it is not in {}", shown_path(self.lock()?));
        Some(Refusal {
            why,
            ..self.refusal(format!("source {}", markdown_code(address.as_str())), "sources.lock")
        })
    }

    /// Returns true if sessions need telemetry.
    pub fn requires_telemetry(&self) -> bool {
        self.telemetry
    }

    /// Returns the address of the collector that receives telemetry, if the administrator has chosen one.
    pub fn collector(&self) -> Option<&str> {
        self.collector.as_deref()
    }

    /// Returns the refusal of sessions without telemetry. `why` is the reason why telemetry can't be sent.
    pub fn without_telemetry(&self, why: String) -> Refusal {
        Refusal { why, ..self.refusal("start without telemetry".to_owned(), TELEMETRY) }
    }

    /// Decides if an MCP server may be asked for skills, which have no versions and can't be scanned. `what` is the setting or the source,
    /// and `scope` is the scope of its skills, unless the server is a source.
    ///
    /// # Errors
    /// Returns a refusal if none of its skills could be used.
    pub fn server_skills(&self, what: &str, scope: Option<Scope>) -> Result<(), Refusal> {
        let refused = |rule: &str| Err(self.refusal(what.to_owned(), rule));
        if self.lock.is_some() {
            return refused("sources.lock");
        }
        if let Some(max) = self.scan {
            return refused(&format!("sources.scan: {max}"));
        }
        match scope {
            Some(scope) if self.skill(what, scope, None).is_err() => refused("skills.allow"),
            _ => Ok(()),
        }
    }

    /// Decides about a setting with which the agent reads skills in another place than ours, such as another address of our MCP server.
    ///
    /// # Errors
    /// Returns a refusal if there is a rule about the skills, scripts or servers of the agent.
    pub fn other_place(&self, setting: &str) -> Result<(), Refusal> {
        let rules = [
            (!self.required.is_empty(), "require.sources"),
            (self.lock.is_some(), "sources.lock"),
            (self.skills.is_some(), "skills.allow"),
            (self.scans(), "sources.scan"),
            (self.sources.is_some(), "sources.allow"),
            (self.servers.is_some(), "mcp.allow"),
            (self.variables.is_some(), "mcp.env"),
        ];
        let rule = rules.iter().find(|(has_rule, _)| *has_rule);
        rule.map_or(Ok(()), |(_, rule)| Err(self.refusal(format!("`{setting}`"), rule)))
    }

    /// Returns the refusal of skills of a project that a user or a configuration trusts in advance.
    pub fn trust_in_advance(&self) -> Refusal {
        self.refusal("`--trust`".to_owned(), "skills.allow")
    }

    /// Returns the sources that each session uses.
    pub fn required(&self) -> &[Address] {
        &self.required
    }

    /// Returns true if there is a rule about skills that don't come from a source.
    pub fn restricts_local_skills(&self) -> bool {
        self.skills.is_some()
    }

    /// Decides about a skill that doesn't come from a source. `dir` is its directory without links, or `None` for a skill that is
    /// defined in a configuration file or by the editor.
    ///
    /// # Errors
    /// Returns a refusal if `skills.allow` contains neither the place of the skill nor its directory.
    pub fn skill(&self, name: &str, scope: Scope, dir: Option<&Path>) -> Result<(), Refusal> {
        let Some(allowed) = &self.skills else { return Ok(()) };
        let is_allowed = allowed.places.contains(&(scope, dir.is_some()));
        if is_allowed || dir.is_some_and(|dir| allowed.directories.is_match(dir)) {
            return Ok(());
        }
        Err(self.refusal(format!("skill {}", markdown_code(name)), "skills.allow"))
    }

    /// Returns the rule about programs of skills.
    pub fn scripts(&self) -> Scripts {
        self.scripts
    }

    /// Decides about a skill whose tools are commands. These can't run in the sandbox.
    ///
    /// # Errors
    /// Returns a refusal unless `scripts` is `allowed`.
    pub fn commands(&self, skill: &str) -> Result<(), Refusal> {
        if self.scripts == Scripts::Allowed {
            return Ok(());
        }
        Err(self.script(&format!("skill {} with commands as tools", markdown_code(skill)), ""))
    }

    /// Returns the refusal of something about scripts, such as a flag. `why` is a clause with the reason, or empty.
    pub fn script(&self, what: &str, why: &str) -> Refusal {
        let rule = if self.scripts == Scripts::Never { "scripts: never" } else { "scripts: sandbox" };
        Refusal { why: why.to_owned(), ..self.refusal(what.to_owned(), rule) }
    }

    /// Decides if the MCP server of a skill may be used. `variables` are the names of the environment variables in its entry.
    ///
    /// # Errors
    /// Returns a refusal if no entry of `mcp.allow` matches the server, or if a variable is not in `mcp.env`.
    pub fn server<'v>(
        &self,
        skill: &str,
        server: &Server<'_>,
        mut variables: impl Iterator<Item = &'v str>,
    ) -> Result<(), Refusal> {
        if self.servers.is_none() && self.variables.is_none() {
            return Ok(());
        }
        let refusal = |rule| self.refusal(format!("MCP server of {}", markdown_code(skill)), rule);
        let is_refused =
            |patterns: &Vec<ServerPattern>| !patterns.iter().any(|pattern| pattern.matches(server));
        if self.servers.as_ref().is_some_and(is_refused) {
            return Err(refusal("mcp.allow"));
        }
        let allowed = self.variables.as_deref().unwrap_or_default();
        match variables.find(|name| !servers::is_variable_allowed(allowed, name)) {
            Some(name) => {
                Err(Refusal { why: format!("variable {}", markdown_code(name)), ..refusal("mcp.env") })
            }
            None => Ok(()),
        }
    }

    fn refusal(&self, what: String, rule: &str) -> Refusal {
        Refusal { what, why: String::new(), rule: rule.to_owned(), file: self.file.clone() }
    }
}
