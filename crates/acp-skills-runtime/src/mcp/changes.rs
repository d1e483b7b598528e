//! Notifications that the lists of tools, prompts or resources have changed. Clients of the older revisions of MCP
//! get them on their connection. Clients of the stateless revision get them on subscriptions
//! (`subscriptions/listen`).

use std::{sync::Arc, time::Duration};

use acp_skills_intercept::Difference;
use parking_lot::{Mutex, MutexGuard};
use rmcp::{
    Peer, RoleServer,
    model::{
        PromptListChangedNotification, ResourceListChangedNotification, ServerNotification,
        SubscriptionFilter, ToolListChangedNotification,
    },
    service::SubscriptionSink,
};
use skills_core::Toolbox;
use tokio::time::timeout;

use super::tool_list::ToolList;

/// The send timeout. A client that doesn't accept a notification in this time counts as disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The lists that have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// True if the list of tools has to change.
    tools: bool,
    /// True if prompts and resources have changed. Both show the same properties of a skill.
    skills: bool,
}

impl Lists {
    /// Returns the lists that differ between two toolboxes. `tools` is the list of tools that the agent has received.
    pub(super) fn between(before: &Toolbox, after: &Toolbox, tools: &mut ToolList) -> Self {
        if before.skills().ptr_eq(after.skills()) {
            return Self::default();
        }
        let skills = !Difference::between(before.skills(), after.skills()).changes_only_instructions();
        // If the list follows the skills, a description contains the catalog.
        Self { tools: tools.changed(after) || (skills && tools.follows()), skills }
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

/// A receiver of notifications.
#[derive(Clone)]
enum Listener {
    Client(Peer<RoleServer>),
    Subscription(SubscriptionSink),
}

impl Listener {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Client(peer) if peer.is_transport_closed())
    }

    /// Returns true if this is the client at the other end of `peer`. Clones of a peer share the client's
    /// information.
    fn is_client(&self, peer: &Peer<RoleServer>) -> bool {
        let Self::Client(other) = self else { return false };
        match (other.peer_info(), peer.peer_info()) {
            (Some(other), Some(info)) => Arc::ptr_eq(&other, &info),
            // Without this information, we can't tell clients apart.
            (other, info) => other.is_none() && info.is_none(),
        }
    }

    /// Sends a notification. Returns false if the receiver disconnected.
    async fn notify(&self, notification: ServerNotification) -> bool {
        match self {
            Self::Client(peer) => {
                matches!(timeout(SEND_TIMEOUT, peer.send_notification(notification)).await, Ok(Ok(())))
            }
            Self::Subscription(sink) => {
                let wanted = wants(sink.accepted(), &notification);
                !wanted || matches!(timeout(SEND_TIMEOUT, sink.send(notification)).await, Ok(Ok(())))
            }
        }
    }
}

fn wants(filter: &SubscriptionFilter, notification: &ServerNotification) -> bool {
    let wanted = match notification {
        ServerNotification::ToolListChangedNotification(_) => filter.tools_list_changed,
        ServerNotification::PromptListChangedNotification(_) => filter.prompts_list_changed,
        ServerNotification::ResourceListChangedNotification(_) => filter.resources_list_changed,
        _ => None,
    };
    wanted == Some(true)
}

/// The receivers of the notifications of one session.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Guards the receivers. It is not held while notifications are sent, and no other lock is taken while it is
    /// held.
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    /// The number of the latest receiver.
    newest: u64,
    listeners: Vec<(u64, Listener)>,
}

impl Registry {
    fn add(&mut self, listener: Listener) -> u64 {
        // Clients can disconnect without telling us, so remove those that are gone.
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

    /// Adds a client that has connected.
    pub(super) fn connected(&self, peer: Peer<RoleServer>) {
        let mut registry = self.registry();
        // Only add the client once, even if it sends `notifications/initialized` again.
        if !registry.listeners.iter().any(|(_, listener)| listener.is_client(&peer)) {
            registry.add(Listener::Client(peer));
        }
    }

    /// Removes the receivers that have disconnected.
    pub(super) fn remove_disconnected(&self) {
        let mut registry = self.registry();
        registry.listeners.retain(|(_, listener)| !listener.is_gone());
        registry.listeners.shrink_to_fit();
    }

    /// Returns the accepted part of a filter: whole lists, but no single resources.
    pub(crate) fn accept(requested: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        accepted
    }

    /// Adds a subscription. It ends when the returned value is dropped.
    pub(super) fn subscribed(&self, sink: SubscriptionSink) -> Subscribed<'_> {
        Subscribed { listeners: self, number: self.registry().add(Listener::Subscription(sink)) }
    }

    /// Notifies all receivers of a change.
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

    /// Returns the number of receivers.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.registry().listeners.len()
    }
}

/// An open subscription.
pub(super) struct Subscribed<'l> {
    listeners: &'l Listeners,
    number: u64,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        self.listeners.remove(self.number);
    }
}
