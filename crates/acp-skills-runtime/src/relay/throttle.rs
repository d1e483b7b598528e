//! [`Throttled`]: the output of the client, which is not read while too many of its messages wait for the agent.

use std::{
    io::{self, Read},
    sync::Arc,
};

use super::hub::Hub;

/// A reader of the client's output with back-pressure for messages that were held.
pub(super) struct Throttled<R> {
    source: R,
    hub: Arc<Hub>,
}

impl<R> Throttled<R> {
    pub(super) fn new(source: R, hub: &Arc<Hub>) -> Self {
        Self { source, hub: Arc::clone(hub) }
    }
}

impl<R: Read> Read for Throttled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.hub.await_room()?;
        self.source.read(buffer)
    }
}
