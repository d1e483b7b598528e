//! Agents that run elsewhere, in a container or on another machine. They reach neither the loopback address of the skills server nor
//! the files of skills, so their models are only told of what works: the skill tools over MCP over ACP or at an address that the
//! user has chosen, the files of skills over
//! [`fs/read_text_file`](https://agentclientprotocol.com/protocol/v1/file-system#reading-files), or the instructions in prompts.
//!
//! Requests for files of skills are answered here, and the client never receives them. All other requests for files pass through.

use std::path::{Component, Path, PathBuf};

use acp_skills_wire::{Edit, INVALID_PARAMS, Message, Node, build};
use serde_json::json;
use skills_core::{
    Skill, SkillName,
    catalog::{Guide, Location},
};

use crate::{
    Interceptor,
    outputs::{Actions, Level, Pass, SkillFile, Task},
    session::Session,
    version::Version,
};

/// The answer to a request for a file that belongs to no skill, if the client can't read files. It must not say that the file does
/// not exist: agents would create it.
const NO_SKILL: &str = "cannot read this file: only files of skills can be read here";

/// The maximum length of a path in a skill, in bytes. Errors repeat the path.
const MAX_PATH: usize = 4096;

impl Interceptor {
    /// Returns the way in which models use skills without the skill tools.
    pub(crate) fn without_tools(&self) -> Guide {
        let has_paths = self.policy.catalog.location != Location::None;
        let reads = self.policy.reads_through_client
            || self.memory.reads_through_client
            || self.agent.quirks.reads_through_client && self.client.reads_files();
        if !self.policy.elsewhere || has_paths || reads { Guide::Files } else { Guide::Prompts }
    }

    /// Adds the capability to read files to `initialize` if the agent should read files of skills with it and the client doesn't
    /// have it.
    pub(crate) fn offer_files(&self, message: &Message<'_>) -> Pass {
        let offers = self.policy.elsewhere && self.policy.reads_through_client;
        let Some(params) = message.params.filter(Node::is_object) else { return Pass::Untouched };
        if !offers || self.client.reads_files() || Version::offered(params) != Version::One {
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        let can_read = json!({ "readTextFile": true });
        let capabilities = params.get("clientCapabilities").filter(Node::is_object);
        let files = capabilities.and_then(|capabilities| capabilities.get("fs"));
        match (capabilities, files.filter(Node::is_object)) {
            (Some(_), Some(files)) => match files.get("readTextFile") {
                Some(flag) => edit.set(flag, &true.into()),
                None => edit.insert(files, "readTextFile", "true"),
            },
            (Some(capabilities), None) => match files {
                Some(other) => edit.set(other, &can_read),
                None => edit.insert(capabilities, "fs", &can_read.to_string()),
            },
            (None, _) => match params.get("clientCapabilities") {
                Some(other) => edit.set(other, &json!({ "fs": can_read })),
                None => edit.insert(params, "clientCapabilities", &json!({ "fs": can_read }).to_string()),
            },
        }
        Pass::Edited(edit.apply(message.line))
    }

    /// Handles a request of the agent for the text of a file. A request without an id can't be answered.
    pub(crate) fn file_request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        if !self.policy.elsewhere {
            return Pass::Untouched;
        }
        let id = message.id();
        let path = message.param(&["path"]).and_then(|path| path.as_str());
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let found = session.zip(path).and_then(|(session, path)| {
            let (skill, path) = session.file_at(Path::new(&*path), &self.policy.catalog.location)?;
            Some((session.key(), skill, path))
        });
        let Some((key, skill, path)) = found else {
            if self.client.reads_files() || !self.policy.reads_through_client {
                return Pass::Untouched;
            }
            actions.to_agent.extend(id.map(|id| build::error(&id, INVALID_PARAMS, NO_SKILL)));
            return Pass::Consumed;
        };
        let Some(id) = id else { return Pass::Consumed };
        self.learn_reading(actions);
        let Some(file) = asked_for(message, skill, path) else {
            let why = "the path is too long, or `line` and `limit` are not whole numbers";
            actions.to_agent.push(build::error(&id, INVALID_PARAMS, why));
            return Pass::Consumed;
        };
        self.mcp_requests.insert(id.clone(), key);
        actions.tasks.push(Task::ReadFile { session: key, request: id, file });
        Pass::Consumed
    }

    /// Remembers that the model reads files of skills with requests to the client.
    fn learn_reading(&mut self, actions: &mut Actions) {
        if self.memory.reads_through_client {
            return;
        }
        self.memory.reads_through_client = true;
        actions.log(Level::Info, "the agent reads files of skills over the ACP connection");
        let guide = self.without_tools();
        for session in self.sessions.iter_mut() {
            session.without_tools = guide;
        }
    }
}

impl Session {
    /// Returns the skill to which a path belongs, and the rest of the path after the skill's directory. Returns `None` if the path
    /// belongs to no skill that the model may use.
    fn file_at(&self, path: &Path, location: &Location) -> Option<(SkillName, String)> {
        let is_unlocked = |skill: &Skill| self.invoked().any(|unlocked| unlocked.name == skill.name);
        let found = self.skills.iter().filter_map(|skill| {
            let dir = directory(skill, location)?;
            let rest = path.strip_prefix(&dir).ok()?;
            (skill.is_model_invocable() || is_unlocked(skill)).then_some((
                skill,
                dir.components().count(),
                rest,
            ))
        });
        // A skill can be within the directory of another one.
        let (skill, _, rest) = found.max_by_key(|(_, depth, _)| *depth)?;
        let parts = rest.components().map(|part| match part {
            Component::Normal(name) => name.to_str().unwrap_or_default(),
            _ => "..",
        });
        Some((skill.name.clone(), parts.collect::<Vec<_>>().join("/")))
    }
}

/// Returns the directory of a skill, as the agent knows it.
fn directory(skill: &Skill, location: &Location) -> Option<PathBuf> {
    let dir = skill.dir()?;
    Some(match location {
        Location::Mount(prefix) => Path::new(prefix).join(dir.file_name()?),
        _ => dir.to_owned(),
    })
}

/// Returns the file that a request asks for. Returns `None` if the path is too long or a number is not valid.
fn asked_for(message: &Message<'_>, skill: SkillName, path: String) -> Option<SkillFile> {
    let number = |name: &str| match message.param(&[name]).filter(|value| !value.is_null()) {
        Some(value) => value.as_number().map(Some),
        None => Some(None),
    };
    let line = number("line")?;
    let limit = number("limit")?;
    (path.len() <= MAX_PATH).then_some(SkillFile { skill, path, line, limit })
}
