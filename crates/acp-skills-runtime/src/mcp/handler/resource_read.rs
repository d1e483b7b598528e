//! Reports a file of a skill that was read as a resource.

use std::time::Duration;

use rmcp::{ErrorData, model::ReadResourceResult};

use super::{
    super::{calls, resources},
    Handler,
};
use crate::activity::Activity;

impl Handler {
    /// Reports the file with this URI for the record, and for the session if it could be read.
    pub(super) fn resource_read(
        &self,
        uri: &str,
        read: &Result<ReadResourceResult, ErrorData>,
        time: Duration,
    ) {
        if let Some((skill, path)) = resources::place(&self.now(), uri) {
            let bytes = read.as_ref().ok().map(resources::bytes);
            self.recorded(calls::resource(&skill, path, bytes, time));
        }
        let place = resources::parse(uri).filter(|_| read.is_ok());
        if let (Some(observer), Some((skill, path))) = (&self.reports.observer, place) {
            observer(&Activity::ResourceRead { session: self.session, skill, path });
        }
    }
}
