//! [`Sessions`]: the sessions of all clients. A session is one connection of a client, or all requests of clients that keep no
//! connection.

use std::{
    collections::{HashMap, HashSet},
    iter,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use acp_skills_intercept::{
    Difference, Effect, Input, McpCatalog, McpClient, Needs, Provisions, Query, Reason, Refreshed,
    SessionKey, Ticket, TrustForm, Workspace,
    events::{EventKind, SessionOrigin},
    mcp_client, reload_events,
};
use parking_lot::Mutex;
use rmcp::{ErrorData, model::Tool};
use skills_core::{order, set::Unapproved, toolbox::ACTIVATE_SKILL};
use tokio::{sync::Mutex as AsyncMutex, task::spawn_blocking};

use super::{Options, catalog, forms, own_skills::OwnSkills, settling::Settling, skills::Skills};
use crate::{
    host::RunningHost,
    mcp::{handler::Handler, random_hex},
};

/// The number of characters of a session's id in the record.
const ID_LENGTH: usize = 16;
/// The ticket of all queries. Each query is awaited where it is made, so tickets are not compared.
const TICKET: Ticket = Ticket(0);

/// The sessions of all clients. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(super) struct Sessions(Arc<Inner>);

struct Inner {
    host: RunningHost,
    options: Options,
    /// The number of the latest session.
    newest: AtomicU64,
    /// Guards the state of the sessions. No other lock is taken while it is held.
    states: Mutex<HashMap<SessionKey, State>>,
    /// Held while skills are searched for and applied to sessions, so that an older result can't replace a newer one.
    refreshing: AsyncMutex<()>,
    /// The sessions of clients that keep no connection, by the row of facts about the client.
    shared: AsyncMutex<HashMap<&'static str, Arc<Session>>>,
    /// Guards the versions of skills that the user was asked about. No other lock is taken while it is held. `None` over HTTP: a client
    /// with the token can be on another machine, while its decision would apply to all programs of the user.
    asked: Option<Mutex<HashSet<forms::AskedAbout>>>,
}

/// The state of a session.
struct State {
    /// The id in the record.
    id: String,
    skills: Skills,
    session: Weak<Session>,
}

/// An open session. It is closed when this is dropped.
pub(super) struct Session {
    sessions: Weak<Inner>,
    key: SessionKey,
    pub(super) handler: Handler,
    client: &'static McpClient,
    /// The place of the catalog.
    place: McpCatalog,
    /// Guards the instructions that the client has received. No other lock is taken while it is held.
    instructions: Mutex<Option<String>>,
    /// The rounds in which the directories of the session become known.
    pub(super) settling: Settling,
    pub(super) forms: forms::Forms,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(sessions) = self.sessions.upgrade() {
            Sessions(sessions).close(self.key);
        }
    }
}

impl Sessions {
    pub(super) fn new(host: RunningHost, options: Options, asks_about_trust: bool) -> Self {
        Self(Arc::new(Inner {
            host,
            options,
            newest: AtomicU64::new(0),
            states: Mutex::default(),
            refreshing: AsyncMutex::default(),
            shared: AsyncMutex::default(),
            asked: asks_about_trust.then(Mutex::default),
        }))
    }

    /// Opens a session. `name` is the name of the client.
    ///
    /// # Errors
    /// Returns an error if the system has no random numbers for the session.
    pub(super) async fn open(&self, name: Option<&str>) -> Result<Arc<Session>, ErrorData> {
        let client = mcp_client(name.unwrap_or_default());
        let place = self.0.options.catalog.unwrap_or(client.catalog);
        self.open_as(name, client, place).await
    }

    /// Returns the session of clients that keep no connection. Opens it if necessary.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open`].
    pub(super) async fn shared(&self, name: Option<&str>) -> Result<Arc<Session>, ErrorData> {
        let client = mcp_client(name.unwrap_or_default());
        let mut shared = self.0.shared.lock().await;
        if let Some(session) = shared.get(client.name) {
            return Ok(Arc::clone(session));
        }
        // We don't know which of the clients has received the instructions, so each gets the catalog with the tool as well.
        let place = match self.0.options.catalog.unwrap_or(client.catalog) {
            McpCatalog::Instructions if self.0.options.catalog.is_none() => McpCatalog::Both,
            place => place,
        };
        let session = self.open_as(name, client, place).await?;
        shared.insert(client.name, Arc::clone(&session));
        Ok(session)
    }

    async fn open_as(
        &self,
        name: Option<&str>,
        client: &'static McpClient,
        place: McpCatalog,
    ) -> Result<Arc<Session>, ErrorData> {
        let failed = |what: String| ErrorData::internal_error(what, None);
        let key = SessionKey(self.0.newest.fetch_add(1, Ordering::Relaxed) + 1);
        let mut id = random_hex().map_err(|error| failed(error.to_string()))?;
        id.truncate(ID_LENGTH);
        let state = State {
            id: id.clone(),
            skills: Skills { workspace: Workspace::of(&self.0.options.cwd), ..Skills::default() },
            session: Weak::new(),
        };
        let workspace = state.skills.workspace.clone();
        self.0.states.lock().insert(key, state);
        self.set_up(key, client, workspace).await;
        self.0.host.carry_out(Effect::Opened { session: key, id });
        let Some(handler) = self.0.host.servers().handler(key) else {
            self.close(key);
            return Err(failed("cannot open a session".to_owned()));
        };
        let started = EventKind::SessionStarted {
            how: SessionOrigin::New,
            agent: name.map(str::to_owned),
            proxy: env!("CARGO_PKG_VERSION").to_owned(),
            skills: handler.skills().iter().map(|skill| skill.name.to_string()).collect(),
            saved_tokens: EventKind::saved_tokens(&handler.skills()),
        };
        for event in iter::once(started).chain(EventKind::refusals(&handler.skills())) {
            self.record(key, event);
        }
        let session = Arc::new(Session {
            sessions: Arc::downgrade(&self.0),
            key,
            handler,
            client,
            place,
            instructions: Mutex::default(),
            settling: Settling::default(),
            forms: forms::Forms::default(),
        });
        if let Some(state) = self.0.states.lock().get_mut(&key) {
            state.session = Arc::downgrade(&session);
        }
        Ok(session)
    }

    /// Finds the skills of a session in these directories, and serves them.
    async fn set_up(&self, key: SessionKey, client: &'static McpClient, workspace: Workspace) {
        let _refreshing = self.0.refreshing.lock().await;
        let needs = Needs { workspace: workspace.clone(), ..Needs::default() };
        let mut answer = None;
        let query = Query::SetUp { session: key, ticket: TICKET, needs };
        self.0.host.answer(query, |input| answer = Some(input)).await;
        let Provisions { skills, off, .. } = match answer {
            Some(Input::SetUp { provisions, .. }) => provisions,
            _ => Provisions::default(),
        };
        let own = if self.0.options.hide_own && !client.own_skills.is_empty() {
            let (home, workspace) = (self.0.options.home.clone(), workspace.clone());
            let find = move || OwnSkills::of(client, &workspace, home.as_deref());
            spawn_blocking(find).await.unwrap_or_default()
        } else {
            OwnSkills::default()
        };
        let before = {
            let mut states = self.0.states.lock();
            let Some(state) = states.get_mut(&key) else { return };
            state.skills.library = skills;
            state.skills.off = off.iter().map(skills_core::SkillName::key).collect();
            state.skills.own = own;
            std::mem::replace(&mut state.skills.workspace, workspace)
        };
        self.release(&before);
        self.serve(key, client, true).await;
    }

    /// Serves the visible skills of a session, and announces the changes to its client.
    async fn serve(&self, key: SessionKey, client: &McpClient, is_setup: bool) {
        let Some(state) = self.0.states.lock().get(&key).map(|state| state.skills.clone()) else { return };
        let workspace = state.workspace.clone();
        let skills = spawn_blocking(move || state.visible()).await.unwrap_or_default();
        let options = &self.0.options.text;
        let needs_search = options.search && catalog::omits(&skills, options, client);
        self.0.host.carry_out(Effect::Serve {
            session: key,
            skills,
            unlocked: Vec::new(),
            workspace,
            is_setup,
        });
        if let Some(handler) = self.0.host.servers().handler(key) {
            handler.follow();
            if needs_search {
                handler.offer_search();
            }
        }
    }

    /// Moves a session to other directories.
    pub(super) async fn move_to(&self, session: &Session, workspace: Workspace) {
        let is_same = self.workspace(session).is_none_or(|before| before == workspace);
        if !is_same {
            self.set_up(session.key, session.client, workspace).await;
        }
    }

    /// Applies changes of the skills to all sessions. `took` is the duration of the search. Returns the sessions whose skills have
    /// changed.
    pub(super) async fn refresh(&self, took: Duration) -> Vec<Arc<Session>> {
        let _refreshing = self.0.refreshing.lock().await;
        let mut answer = None;
        let query = Query::Skills { workspaces: self.workspaces(), reason: Reason::Changed(took) };
        self.0.host.answer(query, |input| answer = Some(input)).await;
        match answer {
            Some(Input::Skills(refreshed)) => self.apply(refreshed).await,
            _ => Vec::new(),
        }
    }

    /// Saves the user's decision about skills of a project, and serves them if the user trusts them. Returns the sessions whose
    /// skills have changed.
    pub(super) async fn decide(
        &self,
        session: &Session,
        skills: Vec<Unapproved>,
        trusted: bool,
    ) -> Vec<Arc<Session>> {
        let _refreshing = self.0.refreshing.lock().await;
        let key = session.key;
        let Some(workspace) = self.workspace(session) else { return Vec::new() };
        let workspaces = self.workspaces();
        let query = Query::Trust { session: key, ticket: TICKET, workspace, skills, trusted, workspaces };
        let mut answer = None;
        self.0.host.answer(query, |input| answer = Some(input)).await;
        let Some(Input::TrustSaved { outcome, refreshed, .. }) = answer else { return Vec::new() };
        for (name, reason) in &outcome.failed {
            tracing::warn!("cannot save the decision about skill `{name}`: {reason}");
        }
        if let Err(error) = &outcome.saved {
            tracing::warn!(
                "cannot save the decision about skills, so it is only valid until this program ends: {error}"
            );
        }
        self.apply(refreshed).await
    }

    /// Serves the current skills to the sessions whose skills have changed. Returns these sessions.
    async fn apply(&self, refreshed: Refreshed) -> Vec<Arc<Session>> {
        let mut all = Vec::new();
        for (workspace, skills) in refreshed.skills {
            let changed: Vec<Arc<Session>> = {
                let mut states = self.0.states.lock();
                let differs = |state: &&mut State| {
                    state.skills.workspace == workspace && !state.skills.library.ptr_eq(&skills)
                };
                states
                    .values_mut()
                    .filter(differs)
                    .filter_map(|state| {
                        state.skills.library = skills.clone();
                        state.session.upgrade()
                    })
                    .collect()
            };
            for session in changed {
                let before = session.handler.skills();
                self.serve(session.key, session.client, false).await;
                let after = session.handler.skills();
                let difference = Difference::between(&before, &after);
                for event in reload_events(&before, &after, &difference, refreshed.took) {
                    self.record(session.key, event);
                }
                all.push(session);
            }
        }
        all
    }

    /// Returns the skills of a session that the user was not asked about yet. They count as asked about from now on.
    pub(super) fn to_ask_about(&self, session: &Session) -> Vec<Unapproved> {
        let library = self.0.states.lock().get(&session.key).map(|state| state.skills.library.clone());
        let (Some(library), Some(asked)) = (library, &self.0.asked) else { return Vec::new() };
        let mut asked = asked.lock();
        let version = |entry: &Unapproved| TrustForm::asked_about(entry, entry.version());
        let unapproved = library.unapproved().iter().filter(|entry| !entry.is_refused);
        let new = TrustForm::first(unapproved.filter(|entry| !asked.contains(&version(entry))));
        asked.extend(new.iter().map(version));
        new
    }

    /// Returns a session, if it is open.
    pub(super) fn get(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.0.states.lock().get(&key)?.session.upgrade()
    }

    /// Returns the directories of a session, if it is open.
    pub(super) fn workspace(&self, session: &Session) -> Option<Workspace> {
        Some(self.0.states.lock().get(&session.key)?.skills.workspace.clone())
    }

    /// Carries out an effect.
    pub(super) fn carry_out(&self, effect: Effect) {
        self.0.host.carry_out(effect);
    }

    /// Records an event of a session.
    pub(super) fn record(&self, key: SessionKey, kind: EventKind) {
        let session = self.0.states.lock().get(&key).map(|state| state.id.clone());
        self.0.host.carry_out(Effect::Record { session, kind });
    }

    fn workspaces(&self) -> Vec<Workspace> {
        let all = order::set(self.0.states.lock().values().map(|state| state.skills.workspace.clone()));
        all.into_iter().collect()
    }

    fn close(&self, key: SessionKey) {
        let removed = self.0.states.lock().remove(&key);
        self.0.host.carry_out(Effect::CloseServer(key));
        if let Some(state) = removed {
            self.release(&state.skills.workspace);
        }
    }

    /// Stops watching a workspace if no session has it any more.
    fn release(&self, workspace: &Workspace) {
        let is_used = self.0.states.lock().values().any(|state| state.skills.workspace == *workspace);
        if !is_used {
            self.0.host.carry_out(Effect::ReleaseWorkspace(workspace.clone()));
        }
    }
}

impl Session {
    /// Returns true if the facts about the client with this name apply to the session.
    pub(super) fn is_of(&self, name: Option<&str>) -> bool {
        self.client.name == mcp_client(name.unwrap_or_default()).name
    }

    /// Returns the instructions of the server for the client, which count as received from now on.
    pub(super) fn instructions(&self, sessions: &Sessions) -> Option<String> {
        if !self.place.is_in_instructions() {
            return None;
        }
        let skills = self.handler.skills();
        let text = catalog::instructions(&skills, &sessions.0.options.text, self.client);
        self.instructions.lock().clone_from(&text);
        text
    }

    /// Adds the catalog to the description of `activate_skill`, if the client needs it there.
    pub(super) fn describe(&self, sessions: &Sessions, tools: &mut [Tool]) {
        let options = &sessions.0.options.text;
        let skills = self.handler.skills();
        // The instructions of a server can't change, so new skills are only in the description.
        let is_outdated = || {
            self.place.is_in_instructions()
                && *self.instructions.lock() != catalog::instructions(&skills, options, self.client)
        };
        if !self.place.is_in_tool() && !is_outdated() {
            return;
        }
        for tool in tools.iter_mut().filter(|tool| tool.name == ACTIVATE_SKILL) {
            let text = tool.description.as_deref().unwrap_or_default();
            tool.description = Some(catalog::description(text, &skills, options, self.client).into());
        }
    }
}
