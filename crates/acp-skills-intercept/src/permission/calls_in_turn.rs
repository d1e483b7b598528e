//! Grants calls of the skill tools one at a time: a granted call has to arrive at the skills server before the next one is granted.
//!
//! Some agents ask about several calls at once and make each call as soon as it is granted, so a request waits for the call
//! before it for up to `CALL_TIMEOUT`. Other agents make no call before all of their requests are answered. Then the user is
//! asked about all but the first.

use std::time::Duration;

use acp_skills_wire::Message;
use serde_json::{Map, Value};

use super::{Decision, option};
use crate::{
    Interceptor,
    calls::{Call, HARMLESS},
    keys::{SessionKey, Timer},
    outputs::{Actions, Task},
    session::{Session, Verdict},
};

/// The time that the agent has to make a call that was granted, if other requests wait for it.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of requests that wait. The user is asked about the others.
pub(super) const MAX_NEXT_CALLS: usize = 16;

/// The warning to show if the agent makes a false claim about a tool. Shown once per session.
const FALSE_CLAIM: &str = "agent asked for permission to use a skill tool, but called another tool; you will be asked for \
                           permission for all calls from now on";

/// Decides about a call of our tool `tool` that may be granted for `reason`. `has_room` is true if the request can wait.
pub(super) fn decide(
    tool: &str,
    reason: String,
    call: &Call<'_>,
    message: &Message<'_>,
    session: &mut Session,
    has_room: bool,
    actions: &mut Actions,
) -> Decision {
    const ALLOW: &str = "allow_once";
    let granted = Decision::Choose(ALLOW, reason);
    if option(message, ALLOW, HARMLESS.contains(&tool)).is_none() {
        // The caller asks the user, because there is no such option.
        return granted;
    }
    match session.claims.check() {
        Verdict::Trusted => granted,
        Verdict::Waits(timer) if has_room => {
            let session = session.key();
            let start = |timer| Task::CallTimer { session, timer, time: CALL_TIMEOUT };
            actions.tasks.extend(timer.map(start));
            Decision::Wait
        }
        Verdict::Waits(_) | Verdict::Missing => Decision::Ask(Some(format!(
            "asked you about `{}`: the agent has not made the last call that was allowed",
            call.shown()
        ))),
        Verdict::Broken { is_news } => {
            if is_news {
                actions.warn_user(session.key(), FALSE_CLAIM);
                session.decisions.add(FALSE_CLAIM.to_owned());
            }
            Decision::Ask(None)
        }
    }
}

impl Interceptor {
    /// Handles a call that arrived at the skills server, and decides about the requests that waited for it.
    pub(crate) fn call_arrived(
        &mut self,
        key: SessionKey,
        tool: &str,
        arguments: &Map<String, Value>,
        actions: &mut Actions,
    ) {
        if self.sessions.get(key).is_some_and(|session| session.claims.arrived(tool, arguments)) {
            self.decide_next_calls(key, actions);
        }
    }

    /// Asks the user about the requests that waited for a call that did not arrive in time.
    pub(crate) fn call_timer_ended(&mut self, key: SessionKey, timer: Timer, actions: &mut Actions) {
        if let Some(session) = self.sessions.get(key) {
            session.claims.timer_ended(timer);
            self.decide_next_calls(key, actions);
        }
    }

    fn decide_next_calls(&mut self, key: SessionKey, actions: &mut Actions) {
        for line in self.pending.take_next_calls(key) {
            self.decide_again(line, None, actions);
        }
    }
}
