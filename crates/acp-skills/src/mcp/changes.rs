//! Who hears that lists have changed: clients of the older revisions, on their connection, and subscriptions of the
//! stateless one (`subscriptions/listen`).

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    Peer, RoleServer,
    model::{
        PromptListChangedNotification, ResourceListChangedNotification, ServerNotification,
        SubscriptionFilter, ToolListChangedNotification,
    },
    service::SubscriptionSink,
};
use skills_core::{Difference, Toolbox};
use tokio::time::timeout;

/// How long a client may take nothing before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which lists have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// The tools, or what they take.
    tools: bool,
    /// The prompts and the resources, which show the same of a skill.
    skills: bool,
}

impl Lists {
    /// What differs between these tools.
    pub(super) fn between(before: &Toolbox, after: &Toolbox) -> Self {
        if before.skills().is(after.skills()) {
            return Self::default();
        }
        Self {
            tools: before.definitions() != after.definitions(),
            skills: !Difference::between(before.skills(), after.skills()).is_only_inside(),
        }
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }

    fn notifications(self) -> Vec<ServerNotification> {
        let mut all = Vec::new();
        if self.tools {
            all.push(ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default()));
        }
        if self.skills {
            all.push(ServerNotification::PromptListChangedNotification(
                PromptListChangedNotification::default(),
            ));
            all.push(ServerNotification::ResourceListChangedNotification(
                ResourceListChangedNotification::default(),
            ));
        }
        all
    }
}

/// Somebody who hears of changes.
#[derive(Clone)]
enum Listener {
    Client(Peer<RoleServer>),
    Subscription(SubscriptionSink),
}

impl Listener {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Client(peer) if peer.is_transport_closed())
    }

    /// Sends a notification. Returns whether there is still somebody.
    async fn hear(&self, notification: ServerNotification) -> bool {
        match self {
            Self::Client(peer) => {
                matches!(timeout(PATIENCE, peer.send_notification(notification)).await, Ok(Ok(())))
            }
            Self::Subscription(sink) => {
                let wanted = wants(sink.accepted(), &notification);
                !wanted || matches!(timeout(PATIENCE, sink.send(notification)).await, Ok(Ok(())))
            }
        }
    }
}

fn wants(filter: &SubscriptionFilter, notification: &ServerNotification) -> bool {
    let wish = match notification {
        ServerNotification::ToolListChangedNotification(_) => filter.tools_list_changed,
        ServerNotification::PromptListChangedNotification(_) => filter.prompts_list_changed,
        ServerNotification::ResourceListChangedNotification(_) => filter.resources_list_changed,
        _ => None,
    };
    wish == Some(true)
}

/// Everybody who hears of the changes in one session.
#[derive(Default)]
pub(super) struct Listeners {
    all: Mutex<(u64, Vec<(u64, Listener)>)>,
}

impl Listeners {
    fn all(&self) -> MutexGuard<'_, (u64, Vec<(u64, Listener)>)> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, listener: Listener) -> u64 {
        let mut all = self.all();
        let (next, listeners) = &mut *all;
        // Agents come and go, and nobody says when.
        listeners.retain(|(_, listener)| !listener.is_gone());
        *next += 1;
        listeners.push((*next, listener));
        *next
    }

    fn remove(&self, number: u64) {
        self.all().1.retain(|(other, _)| *other != number);
    }

    /// A client has connected.
    pub(super) fn connected(&self, peer: Peer<RoleServer>) {
        self.add(Listener::Client(peer));
    }

    /// What of a filter is heard of: whole lists, and no single resource.
    pub(super) fn accept(requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        accepted
    }

    /// A subscription was opened; it ends when the value is dropped.
    pub(super) fn subscribed(&self, sink: SubscriptionSink) -> Subscribed<'_> {
        Subscribed { listeners: self, number: self.add(Listener::Subscription(sink)) }
    }

    /// Tells everybody of a change.
    pub(super) async fn tell(&self, lists: Lists) {
        let listeners = self.all().1.clone();
        for (number, listener) in listeners {
            for notification in lists.notifications() {
                if !listener.hear(notification).await {
                    self.remove(number);
                    break;
                }
            }
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all().1.len()
    }
}

/// A subscription that is open.
pub(super) struct Subscribed<'l> {
    listeners: &'l Listeners,
    number: u64,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        self.listeners.remove(self.number);
    }
}
