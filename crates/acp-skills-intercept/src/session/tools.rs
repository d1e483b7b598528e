//! [`ToolsState`]: the agent's progress from the entry in `mcpServers` to the list of the skill tools. Prompts are held until
//! the agent has this list, or until a timeout.
//!
//! All transitions are in [`ToolsState::next`]. Timers cannot be cancelled, so each has a number, and a state ignores the
//! end of any timer but its own.

use crate::keys::Timer;

/// The agent's progress with the skills server in one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ToolsState {
    /// `mcpServers` has no entry for the skills server. The user turned the server off, the agent refused it, or the session
    /// has no skills.
    #[default]
    NotOffered,
    /// The entry is in `mcpServers`. The session is not open yet, and no prompt is held, so no timer runs.
    Offered,
    /// The connect timeout runs.
    Connecting(Timer),
    /// The agent connected before the connect timeout. The rest of the timeout for the list of tools runs.
    Listing(Timer),
    /// The agent did not list the tools in time, so prompts are not held any more. If a timer still runs, a connection is
    /// in time.
    Missing(Option<Timer>),
    /// The agent has the list of tools.
    Listed,
}

/// An event that changes a [`ToolsState`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolsEvent {
    /// The request that sets up the session is written without an entry for the skills server.
    Withdrawn,
    /// The request is written with an entry for the skills server.
    Offered {
        /// True if the agent has the tools without connecting again.
        has_tools: bool,
    },
    /// A prompt has to be held.
    PromptHeld {
        /// The number for a timer.
        timer: Timer,
    },
    /// The agent has opened the session.
    Opened {
        /// The number for a timer.
        timer: Timer,
    },
    /// The agent has connected to the server.
    Connected,
    /// The agent has listed the tools.
    Listed,
    /// A timer has ended.
    TimerEnded {
        /// The timer.
        timer: Timer,
        /// The number for another timer. `None` if the agent has not connected, or if there is no time left.
        next: Option<Timer>,
    },
    /// Prompts must not be held any longer.
    GivenUp,
}

/// The consequence of a [`ToolsEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolsEffect {
    /// No action is needed.
    None,
    /// The connect timeout starts.
    StartConnectTimer(Timer),
    /// The rest of the timeout starts.
    StartListTimer(Timer),
    /// The agent has connected by itself. Agents that connect only to call a tool do so later.
    ConnectedInTime,
    /// The agent did not list the tools in time: held prompts are sent without the tools.
    TimedOut,
}

impl ToolsState {
    /// Returns the state after `event`, and the consequence.
    pub(crate) fn next(self, event: ToolsEvent) -> (Self, ToolsEffect) {
        use ToolsEvent as Event;
        match (self, event) {
            (_, Event::Withdrawn) => (Self::NotOffered, ToolsEffect::None),
            (_, Event::Offered { has_tools: false }) => (Self::Offered, ToolsEffect::None),
            (_, Event::Offered { has_tools: true } | Event::Listed) => (Self::Listed, ToolsEffect::None),
            // We start the timeout when the first prompt has to wait, and then start over once the session is open.
            (Self::Offered, Event::PromptHeld { timer })
            | (Self::Offered | Self::Connecting(_) | Self::Listing(_), Event::Opened { timer }) => {
                (Self::Connecting(timer), ToolsEffect::StartConnectTimer(timer))
            }
            (
                Self::Offered | Self::Connecting(_) | Self::Listing(_) | Self::Missing(Some(_)),
                Event::Connected,
            ) => (self, ToolsEffect::ConnectedInTime),
            (Self::Connecting(running), Event::TimerEnded { timer, next: Some(next) })
                if running == timer =>
            {
                (Self::Listing(next), ToolsEffect::StartListTimer(next))
            }
            (Self::Connecting(running) | Self::Listing(running), Event::TimerEnded { timer, .. })
                if running == timer =>
            {
                (Self::Missing(None), ToolsEffect::TimedOut)
            }
            (Self::Missing(Some(running)), Event::TimerEnded { timer, .. }) if running == timer => {
                (Self::Missing(None), ToolsEffect::None)
            }
            (Self::Offered, Event::GivenUp) => (Self::Missing(None), ToolsEffect::TimedOut),
            (Self::Connecting(running) | Self::Listing(running), Event::GivenUp) => {
                (Self::Missing(Some(running)), ToolsEffect::TimedOut)
            }
            (state, _) => (state, ToolsEffect::None),
        }
    }

    /// Returns true if prompts are held for the tools.
    pub(crate) fn is_awaited(self) -> bool {
        matches!(self, Self::Offered | Self::Connecting(_) | Self::Listing(_))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    /// Compares all transitions with `tools/transitions.txt`. `1` is the running timer, `2` is a new one. `-` means no change.
    #[test]
    fn every_state_handles_every_event() {
        let running = Timer(1);
        let new = Timer(2);
        let states = [
            ToolsState::NotOffered,
            ToolsState::Offered,
            ToolsState::Connecting(running),
            ToolsState::Listing(running),
            ToolsState::Missing(None),
            ToolsState::Missing(Some(running)),
            ToolsState::Listed,
        ];
        let events = [
            ToolsEvent::Withdrawn,
            ToolsEvent::Offered { has_tools: false },
            ToolsEvent::Offered { has_tools: true },
            ToolsEvent::PromptHeld { timer: new },
            ToolsEvent::Opened { timer: new },
            ToolsEvent::Connected,
            ToolsEvent::Listed,
            ToolsEvent::TimerEnded { timer: running, next: None },
            ToolsEvent::TimerEnded { timer: running, next: Some(new) },
            ToolsEvent::TimerEnded { timer: Timer(0), next: Some(new) },
            ToolsEvent::GivenUp,
        ];
        let short = |text: String| {
            (0..3).fold(text, |text, number| {
                text.replace(&format!("(Timer({number}))"), &format!("({number})"))
                    .replace(&format!(" Timer({number})"), &format!(" {number}"))
            })
        };
        let mut table = String::new();
        for event in events {
            table += &short(format!("{event:?}\n"));
            for state in states {
                let (next, effect) = state.next(event);
                let effect =
                    if effect == ToolsEffect::None { String::new() } else { format!(", {effect:?}") };
                let next = if next == state { "-".to_owned() } else { format!("{next:?}") };
                table += &short(format!("    {state:?} -> {next}{effect}\n"));
            }
        }
        expect_file!["tools/transitions.txt"].assert_eq(&table);
    }
}
