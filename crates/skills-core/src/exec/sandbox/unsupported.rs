//! The sandbox on systems without bubblewrap. `Bwrap` has no values here, so no program can run unconfined by mistake.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{SandboxError, SandboxWarning};
use crate::exec::Invocation;

#[derive(Debug, Clone)]
pub(super) enum Bwrap {}

/// The first process inside a sandbox.
#[derive(Debug)]
pub(in crate::exec) enum Init {}

impl Drop for Init {
    fn drop(&mut self) {
        match *self {}
    }
}

impl Bwrap {
    pub(super) fn find(_network: bool) -> Result<Self, SandboxError> {
        Err(SandboxError::NotFound)
    }

    pub(super) fn protect(&mut self, _: impl IntoIterator<Item = PathBuf>) {
        match *self {}
    }

    pub(super) fn set_read_only(&mut self, _: Vec<PathBuf>) {
        match *self {}
    }

    pub(super) fn program(&self) -> &Path {
        match *self {}
    }

    pub(super) fn check_directory(&self, _: &Path) -> Result<Option<SandboxWarning>, SandboxError> {
        match *self {}
    }

    pub(super) fn command(
        &self,
        _: &[OsString],
        _: &Path,
        _: &[PathBuf],
    ) -> Result<Vec<OsString>, SandboxError> {
        match *self {}
    }

    pub(super) fn wrap(&self, _: Invocation, _: &Path) -> Result<Invocation, SandboxError> {
        match *self {}
    }
}
