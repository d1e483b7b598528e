//! Who is notified that lists have changed: clients of the older revisions, on their connection, and subscriptions of
//! the stateless one (`subscriptions/listen`).

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

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

/// A client that takes nothing for this long counts as gone.
const SEND_TIME: Duration = Duration::from_secs(5);

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
        if before.skills().ptr_eq(after.skills()) {
            return Self::default();
        }
        Self {
            tools: before.definitions() != after.definitions(),
            skills: !Difference::between(before.skills(), after.skills()).changes_only_instructions(),
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

/// Where changes are sent to.
#[derive(Clone)]
enum Listener {
    Client(Peer<RoleServer>),
    Subscription(SubscriptionSink),
}

impl Listener {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Client(peer) if peer.is_transport_closed())
    }

    /// Whether this is the client at the other end of `peer`: both have what it said when it came.
    fn is_client(&self, peer: &Peer<RoleServer>) -> bool {
        let Self::Client(other) = self else { return false };
        match (other.peer_info(), peer.peer_info()) {
            (Some(other), Some(info)) => Arc::ptr_eq(&other, &info),
            // Whoever did not say who it is.
            (other, info) => other.is_none() && info.is_none(),
        }
    }

    /// Sends a notification. Returns whether the other side is still there.
    async fn notify(&self, notification: ServerNotification) -> bool {
        match self {
            Self::Client(peer) => {
                matches!(timeout(SEND_TIME, peer.send_notification(notification)).await, Ok(Ok(())))
            }
            Self::Subscription(sink) => {
                let wanted = wants(sink.accepted(), &notification);
                !wanted || matches!(timeout(SEND_TIME, sink.send(notification)).await, Ok(Ok(())))
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

/// Everybody who is notified of the changes in one session.
#[derive(Default)]
pub(super) struct Listeners {
    /// Guards the listeners. Taken alone, and never while something is sent.
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    /// The number of the newest.
    newest: u64,
    listeners: Vec<(u64, Listener)>,
}

impl Registry {
    fn add(&mut self, listener: Listener) -> u64 {
        // Agents come and go without a word.
        self.listeners.retain(|(_, listener)| !listener.is_gone());
        self.newest += 1;
        self.listeners.push((self.newest, listener));
        self.newest
    }
}

impl Listeners {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }

    fn remove(&self, number: u64) {
        self.registry().listeners.retain(|(other, _)| *other != number);
    }

    /// A client has connected.
    pub(super) fn connected(&self, peer: Peer<RoleServer>) {
        let mut registry = self.registry();
        // Nothing keeps a client from saying so again and again.
        if !registry.listeners.iter().any(|(_, listener)| listener.is_client(&peer)) {
            registry.add(Listener::Client(peer));
        }
    }

    /// The part of a filter that is granted: whole lists, and no single resource.
    pub(super) fn accept(requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        accepted
    }

    /// A subscription was opened; it ends when the value is dropped.
    pub(super) fn subscribed(&self, sink: SubscriptionSink) -> Subscribed<'_> {
        Subscribed { listeners: self, number: self.registry().add(Listener::Subscription(sink)) }
    }

    /// Notifies everybody of a change.
    pub(super) async fn notify(&self, lists: Lists) {
        let listeners = self.registry().listeners.clone();
        for (number, listener) in listeners {
            for notification in lists.notifications() {
                if !listener.notify(notification).await {
                    self.remove(number);
                    break;
                }
            }
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.registry().listeners.len()
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
