//! [`TrustedClaims`]: whether the agent can be trusted when it claims that a call is a call of the skill tools.
//!
//! The skills server sees each call that arrives. A request for permission is granted because of such a claim only if
//! the call that was granted before has arrived, so at most one granted call is missing. If a turn ends without the
//! call, the agent has called another tool, and its claims are not trusted any more.

use acp_skills_wire::Node;
use serde_json::{Map, Value};

use crate::keys::Timer;

/// A call of one of the skill tools, as a request for permission describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    tool: &'static str,
    /// The members of the input that are strings. Empty if the agent does not report the input.
    input: Vec<(String, String)>,
}

impl Claim {
    /// Creates a claim from the tool and the input in a request.
    pub(crate) fn new(tool: &'static str, input: Option<Node<'_>>) -> Self {
        let texts = input.into_iter().flat_map(|input| input.members());
        let texts =
            texts.filter_map(|(key, text)| Some((key.as_str()?.into_owned(), text.as_str()?.into_owned())));
        Self { tool, input: texts.collect() }
    }

    /// Returns true if this is the call that arrived. The agent may add defaults to the input, but not change a text.
    fn is(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let has = |(key, text): &(String, String)| {
            arguments.get(key).and_then(Value::as_str).is_some_and(|argument| argument == text)
        };
        self.tool == tool && self.input.iter().all(has)
    }
}

/// The answer to [`TrustedClaims::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The claim is trusted.
    Trusted,
    /// The call that was granted before has not arrived yet. If there is a timer, it has to be started.
    Waits(Option<Timer>),
    /// The call that was granted before is missing, so the user has to be asked.
    Missing,
    /// The agent's claims are not trusted.
    Broken {
        /// True if the trust ends with this claim.
        is_news: bool,
    },
}

/// The claims of the agent in one session, and the calls that it was granted.
#[derive(Debug, Default)]
pub(crate) struct TrustedClaims {
    /// The granted call that has not arrived yet.
    open: Option<(Claim, Wait)>,
    last_timer: u64,
    is_broken: bool,
    /// True if the user has cancelled the turn, and the agent has not ended it.
    is_cancelled: bool,
}

/// The progress of waiting for a call that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// No other request waits for the call.
    Idle,
    /// Other requests wait for the call, and this timer runs.
    Timed(Timer),
    /// The timer has ended.
    Overdue,
    /// The turn has ended, so the call should have arrived.
    Due,
}

impl TrustedClaims {
    /// Returns whether the next claim is trusted.
    pub(crate) fn check(&mut self) -> Verdict {
        match &mut self.open {
            _ if self.is_broken => Verdict::Broken { is_news: false },
            None => Verdict::Trusted,
            Some((_, wait @ Wait::Idle)) => {
                self.last_timer += 1;
                let timer = Timer(self.last_timer);
                *wait = Wait::Timed(timer);
                Verdict::Waits(Some(timer))
            }
            Some((_, Wait::Timed(_))) => Verdict::Waits(None),
            Some((_, Wait::Overdue)) => Verdict::Missing,
            Some((_, Wait::Due)) => {
                self.is_broken = true;
                Verdict::Broken { is_news: true }
            }
        }
    }

    /// Returns true if a claim of the agent was false.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Remembers that a call was granted because of this claim.
    pub(crate) fn granted(&mut self, claim: Claim) {
        self.open = Some((claim, Wait::Idle));
    }

    /// Remembers that a call arrived at the skills server. Returns true if it is the call that was granted. Other calls
    /// don't count, because otherwise they could hide one that is missing.
    pub(crate) fn arrived(&mut self, tool: &str, arguments: &Map<String, Value>) -> bool {
        self.open.take_if(|(claim, _)| claim.is(tool, arguments)).is_some()
    }

    /// Remembers that a timer has ended.
    pub(crate) fn timer_ended(&mut self, timer: Timer) {
        if let Some((_, wait)) = self.open.as_mut().filter(|(_, wait)| *wait == Wait::Timed(timer)) {
            *wait = Wait::Overdue;
        }
    }

    /// Remembers that a turn has ended. A call that was granted in the turn must have arrived before the next claim is
    /// trusted, unless the user has cancelled the turn.
    pub(crate) fn turn_over(&mut self) {
        if std::mem::take(&mut self.is_cancelled) {
            self.open = None;
        } else if let Some((_, wait)) = &mut self.open {
            *wait = Wait::Due;
        }
    }

    /// Remembers that the user has cancelled, so that no call is expected. If a turn runs, this also applies to calls that are
    /// granted before its end, because the agent may not have noticed yet. The agent's own report that a turn was cancelled does
    /// not count.
    pub(crate) fn cancelled(&mut self, in_turn: bool) {
        self.open = None;
        self.is_cancelled |= in_turn;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A step, and the expected result.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// A request for permission. It is granted if the claim is trusted.
        Ask(&'static str, Verdict),
        /// A call arrives. True if it is the one that was granted.
        Arrives(&'static str, bool),
        TimerEnds(u64),
        TurnEnds,
        /// The user cancels the turn.
        Cancelled,
        /// The user cancels, but no turn runs.
        CancelledBetween,
    }
    use Step::{Arrives, Ask, Cancelled, CancelledBetween, TimerEnds, TurnEnds};

    const OK: Verdict = Verdict::Trusted;
    const WAITS: Verdict = Verdict::Waits(None);
    const NEWS: Verdict = Verdict::Broken { is_news: true };
    const BROKEN: Verdict = Verdict::Broken { is_news: false };

    fn waits(timer: u64) -> Verdict {
        Verdict::Waits(Some(Timer(timer)))
    }

    fn check(steps: &[Step]) {
        let mut claims = TrustedClaims::default();
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Ask(name, expected) => {
                    let verdict = claims.check();
                    assert_eq!(verdict, expected, "step {number} of {steps:?}");
                    if verdict == Verdict::Trusted {
                        let input = json!({ "name": name, "limit": 1 }).to_string();
                        claims.granted(Claim::new("activate_skill", Node::parse(input.as_bytes())));
                    }
                }
                Arrives(name, expected) => {
                    let Value::Object(arguments) = json!({ "name": name }) else { unreachable!() };
                    let is_granted = claims.arrived("activate_skill", &arguments);
                    assert_eq!(is_granted, expected, "step {number} of {steps:?}");
                }
                TimerEnds(timer) => claims.timer_ended(Timer(timer)),
                TurnEnds => claims.turn_over(),
                Cancelled => claims.cancelled(true),
                CancelledBetween => claims.cancelled(false),
            }
        }
    }

    #[test]
    fn claims_are_trusted_one_by_one() {
        check(&[Ask("a", OK), Arrives("a", true), Ask("a", OK), Arrives("a", true), TurnEnds, Ask("b", OK)]);
        // The call can arrive late, even after the end of the turn.
        check(&[Ask("a", OK), TurnEnds, Arrives("a", true), Ask("b", OK)]);
        // The second call waits for the first one, until the timer ends.
        check(&[
            Ask("a", OK),
            Ask("b", waits(1)),
            Ask("c", WAITS),
            Arrives("a", true),
            Ask("b", OK),
            Ask("c", waits(2)),
        ]);
        check(&[
            Ask("a", OK),
            Ask("b", waits(1)),
            TimerEnds(1),
            Ask("b", Verdict::Missing),
            Arrives("a", true),
            Ask("c", OK),
        ]);
        // If the timer of an earlier call ends, this has no effect.
        check(&[
            Ask("a", OK),
            Ask("b", waits(1)),
            Arrives("a", true),
            Ask("b", OK),
            Ask("c", waits(2)),
            TimerEnds(1),
            Ask("c", WAITS),
        ]);
    }

    #[test]
    fn other_calls_do_not_count() {
        let other = Arrives("b", false);
        // The agent did not ask for permission for these calls, or a different call was granted.
        check(&[other, other, Ask("a", OK), other, Ask("a", waits(1)), TurnEnds, Ask("a", NEWS)]);
        let mut claims = TrustedClaims::default();
        claims.granted(Claim::new("search_skills", None));
        assert!(!claims.arrived("activate_skill", &Map::new()));
        // Some agents don't report the input, or report an input that only contains numbers.
        assert!(claims.arrived("search_skills", &Map::from_iter([("query".to_owned(), "x".into())])));
    }

    #[test]
    fn a_false_claim_ends_the_trust() {
        check(&[
            Ask("a", OK),
            TurnEnds,
            Ask("b", NEWS),
            Ask("c", BROKEN),
            Arrives("a", true),
            Ask("d", BROKEN),
        ]);
        check(&[Ask("a", OK), Ask("b", waits(1)), TimerEnds(1), TurnEnds, Ask("b", NEWS)]);
        // If the user cancels, no call is expected, even if the agent asks again before it ends the turn.
        check(&[Ask("a", OK), Cancelled, Ask("b", OK), TurnEnds, Ask("c", OK), TurnEnds, Ask("d", NEWS)]);
        check(&[Ask("a", OK), Cancelled, TurnEnds, Ask("b", OK), TurnEnds, Ask("c", NEWS)]);
        check(&[Ask("a", OK), CancelledBetween, Ask("b", OK), TurnEnds, Ask("c", NEWS)]);
        // A call of the cancelled turn does not count as the call of a later turn.
        check(&[
            Ask("a", OK),
            Cancelled,
            Arrives("a", false),
            Ask("b", OK),
            Arrives("a", false),
            Ask("c", waits(1)),
        ]);
    }
}
