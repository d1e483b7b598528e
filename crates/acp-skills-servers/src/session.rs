//! [`SessionLink`]: the session of a call, from the point of view of tool servers: its servers, its directories, and the user.

use std::{
    collections::HashMap,
    mem,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use acp_skills_intercept::{Input, SessionKey, UserAnswer, UserQuestion, Workspace};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use skills_core::CallContext;
use tokio::sync::{
    mpsc::{Sender, UnboundedSender, WeakUnboundedSender},
    oneshot,
};

use super::{connection::Session, messages::Progress, slot::Slot};

/// A session that uses tool servers.
#[derive(Debug)]
pub struct SessionLink {
    session: SessionKey,
    /// The channel to the interceptor. It is weak, so that a server that still runs does not keep the relay alive.
    inputs: WeakUnboundedSender<Input>,
    /// Guards the servers and directories of the session. No other lock is taken while it is held.
    state: Mutex<State>,
    /// Guards the questions that the user has not answered. No other lock is taken while it is held.
    questions: Mutex<HashMap<u64, oneshot::Sender<UserAnswer>>>,
    last_question: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The servers by the number of their provider. `None` after the session was closed.
    slots: Option<HashMap<u64, Arc<Slot>>>,
    /// The providers of the skills that are served, if they were set.
    providers: Option<Vec<u64>>,
    roots: Vec<PathBuf>,
}

/// One call within a session.
#[derive(Debug)]
pub struct CallLink {
    /// The session of the call.
    pub session: Arc<SessionLink>,
    /// The receiver of the progress that a server reports.
    pub progress: Option<Sender<Progress>>,
    /// The trace of the agent, which is passed on to the server in `_meta`.
    pub trace: Map<String, Value>,
}

impl Session for SessionLink {
    fn roots(&self) -> Vec<PathBuf> {
        self.state.lock().roots.clone()
    }

    fn ask(
        self: Arc<Self>,
        question: UserQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<UserAnswer>> + Send>> {
        Box::pin(async move { self.ask_user(question).await })
    }
}

impl CallLink {
    /// Returns the link in the context of a call, if the call belongs to a session.
    pub(super) fn of(context: &CallContext) -> Option<&Self> {
        context.host_data.as_ref()?.downcast_ref()
    }
}

impl SessionLink {
    /// Creates the link of a session.
    pub fn new(session: SessionKey, inputs: &UnboundedSender<Input>) -> Self {
        let state = State { slots: Some(HashMap::new()), providers: None, roots: Vec::new() };
        Self {
            session,
            inputs: inputs.downgrade(),
            state: Mutex::new(state),
            questions: Mutex::default(),
            last_question: AtomicU64::default(),
        }
    }

    /// Sets the directories that servers may ask for.
    pub fn set_workspace(&self, workspace: &Workspace) {
        self.state.lock().roots = workspace.roots().map(ToOwned::to_owned).collect();
    }

    /// Sets the providers of the skills that are served, and ends the servers of all others.
    pub fn serve(&self, providers: Vec<u64>) {
        let mut ended = Vec::new();
        {
            let mut state = self.state.lock();
            if let Some(slots) = &mut state.slots {
                let gone = slots.extract_if(|number, _| !providers.contains(number));
                ended.extend(gone.map(|(_, slot)| slot));
            }
            state.providers = Some(providers);
        }
        // A call that still runs does not keep its server.
        for slot in ended {
            slot.close();
        }
    }

    /// Returns the place of a server, or `None` if the session was closed or no longer has the skill.
    pub(super) fn slot(&self, provider: u64) -> Option<Arc<Slot>> {
        let mut state = self.state.lock();
        if state.providers.as_ref().is_some_and(|providers| !providers.contains(&provider)) {
            return None;
        }
        Some(Arc::clone(state.slots.as_mut()?.entry(provider).or_default()))
    }

    /// Asks the user. Returns `None` if there is no answer, for example because the session was closed.
    pub(super) async fn ask_user(&self, question: UserQuestion) -> Option<UserAnswer> {
        let (answer, answered) = oneshot::channel();
        let number = self.last_question.fetch_add(1, Ordering::Relaxed) + 1;
        self.questions.lock().insert(number, answer);
        let _open = OpenQuestion { link: self, number };
        let input = Input::UserAsked { session: self.session, number, question };
        let sent = self.inputs.upgrade().is_some_and(|inputs| inputs.send(input).is_ok());
        if sent { answered.await.ok() } else { None }
    }

    /// Passes on the user's answer to a question.
    pub fn answered(&self, number: u64, answer: UserAnswer) {
        if let Some(question) = self.questions.lock().remove(&number) {
            // This fails if the call was cancelled.
            let _ = question.send(answer);
        }
    }

    /// Ends the servers of the session.
    pub fn close(&self) {
        let slots = self.state.lock().slots.take();
        let questions = mem::take(&mut *self.questions.lock());
        // A call that still runs does not keep its server.
        slots.iter().flat_map(HashMap::values).for_each(|slot| slot.close());
        drop(questions);
    }
}

/// A question without an answer. It is forgotten if the call that asks is cancelled.
struct OpenQuestion<'a> {
    link: &'a SessionLink,
    number: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.link.questions.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::mpsc::unbounded_channel, time::timeout};

    use super::*;
    use crate::{ServerError, slot::Use};

    #[tokio::test]
    async fn servers_of_skills_that_are_gone_end() {
        let (inputs, _received) = unbounded_channel();
        let link = SessionLink::new(SessionKey(1), &inputs);
        let (kept, gone) = (link.slot(1).unwrap(), link.slot(2).unwrap());
        link.serve(vec![1, 3]);
        assert!(Arc::ptr_eq(&kept, &link.slot(1).unwrap()));
        // A call that began before does not start the server again.
        assert!(link.slot(2).is_none());
        assert!(link.slot(3).is_some());
        let ended = gone.get(Use::Call, |_| std::future::pending()).await;
        assert_eq!(ended.err(), Some(ServerError::Ended));
        link.serve(vec![2]);
        assert!(!Arc::ptr_eq(&gone, &link.slot(2).unwrap()));
    }

    #[tokio::test]
    async fn a_cancelled_question_is_forgotten() {
        let (inputs, mut received) = unbounded_channel();
        let link = SessionLink::new(SessionKey(1), &inputs);
        let question = UserQuestion::Call {
            skill: "kit".to_owned(),
            tool: "look".to_owned(),
            input: Map::new(),
            needs_user: true,
        };
        let mut asking = Box::pin(link.ask_user(question));
        assert!(timeout(Duration::ZERO, &mut asking).await.is_err());
        assert!(received.try_recv().is_ok());
        assert_eq!(link.questions.lock().len(), 1);
        drop(asking);
        assert!(link.questions.lock().is_empty());
        // A late answer has no effect.
        link.answered(1, UserAnswer::Allowed);
    }
}
