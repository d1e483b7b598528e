//! [`Authorities`]: root certificates for servers with a private certificate authority.
//!
//! Requests trust the authorities of Mozilla. `SSL_CERT_FILE` (a PEM file) and `SSL_CERT_DIR` (directories with PEM files) replace them,
//! [as in OpenSSL](https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/), and so do the authorities of a
//! [`Request`](super::Request).

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use ureq::tls::{PemItem, RootCerts, parse_pem};

use crate::text::shown_path;

/// The variable with a file of root certificates.
const FILE: &str = "SSL_CERT_FILE";
/// The variable with directories of root certificates.
const DIRECTORIES: &str = "SSL_CERT_DIR";

/// Root certificates that are trusted instead of those of Mozilla. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Authorities(pub(super) RootCerts);

/// A file with root certificates can't be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the certificates in {}, which `{setting}` names: {source}", shown_path(path))]
pub struct AuthoritiesError {
    /// The setting that names the file, for example `SSL_CERT_FILE`.
    pub setting: String,
    /// The path of the file or directory.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

impl Authorities {
    /// Returns the certificates in PEM texts. Other parts of the texts are ignored. Returns `None` if there is no certificate.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut found = Vec::new();
        for text in texts {
            found.extend(parse_pem(text).filter_map(|item| match item {
                Ok(PemItem::Certificate(certificate)) => Some(certificate),
                _ => None,
            }));
        }
        (!found.is_empty()).then(|| Self(RootCerts::from(found)))
    }

    /// Reads a PEM file. `setting` is the setting that names the file, for the error.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or if it contains no certificate.
    pub fn read(path: &Path, setting: &str) -> Result<Self, AuthoritiesError> {
        let failed = |source| AuthoritiesError { setting: setting.to_owned(), path: path.to_owned(), source };
        let text = fs::read(path).map_err(failed)?;
        Self::parse([&*text]).ok_or_else(|| failed(none()))
    }

    /// Returns the authorities that the user has set with environment variables. Returns `None` if there are none.
    pub(super) fn of_environment() -> Result<Option<Self>, AuthoritiesError> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let (file, directories) = (variable(FILE).map(PathBuf::from), variable(DIRECTORIES));
        let Some(directories) = directories else {
            return file.map(|file| Self::read(&file, FILE)).transpose();
        };
        let mut texts = Vec::new();
        if let Some(path) = file {
            let failed = |source| AuthoritiesError { setting: FILE.to_owned(), path: path.clone(), source };
            texts.push(fs::read(&path).map_err(failed)?);
        }
        // As in OpenSSL, files that can't be read are ignored, because a directory can contain others.
        let entries = env::split_paths(&directories).filter_map(|dir| fs::read_dir(dir).ok()).flatten();
        let files = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file());
        texts.extend(files.filter_map(|path| fs::read(path).ok()));
        let found = Self::parse(texts.iter().map(Vec::as_slice));
        let failed = || AuthoritiesError {
            setting: DIRECTORIES.to_owned(),
            path: PathBuf::from(&directories),
            source: none(),
        };
        found.ok_or_else(failed).map(Some)
    }
}

fn none() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no certificate in PEM format")
}
