//! Reports events and the steps of sessions to the observer.

use std::sync::Arc;

use acp_skills_intercept::{SessionKey, events::EventKind};

use super::RunningHost;
use crate::{
    activity::{Activity, SessionStep},
    events::Event,
};

impl RunningHost {
    /// Reports an event for the record.
    pub(super) fn record(&self, session: Option<String>, kind: EventKind) {
        if let Some(observer) = &self.0.observer {
            observer(&Activity::Recorded(Arc::new(Event::now(session, kind))));
        }
    }

    /// Reports a step of a session.
    pub(super) fn observe(&self, session: SessionKey, step: SessionStep) {
        if let Some(observer) = &self.0.observer {
            observer(&Activity::Session(session, step));
        }
    }
}
