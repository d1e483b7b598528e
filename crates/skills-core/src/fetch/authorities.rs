//! [`Authorities`]: root certificates for servers with a private certificate authority.
//!
//! Requests trust the authorities of Mozilla. `SSL_CERT_FILE` (a PEM file) and `SSL_CERT_DIR` (directories with PEM files) replace them,
//! [as in OpenSSL](https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/), and so do the authorities of a
//! [`Request`](super::Request).

use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use ureq::tls::{Certificate, PemItem, RootCerts, parse_pem};

use crate::text::shown_path;

/// The variable with a file of root certificates.
const FILE: &str = "SSL_CERT_FILE";
/// The variable with directories of root certificates.
const DIRECTORIES: &str = "SSL_CERT_DIR";

/// The maximum size of a file with certificates. The bundle of Mozilla has about 200 KiB.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

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

/// The certificates of the environment variables, which don't change. Read when they are needed first.
static OF_ENVIRONMENT: OnceLock<Option<Authorities>> = OnceLock::new();

impl Authorities {
    /// Returns the certificates in a PEM text. Other parts of the text are ignored. Returns `None` if there is no certificate.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::of(certificates(text))
    }

    /// Reads a PEM file. `setting` is the setting that names the file, for the error.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or if it contains no certificate.
    pub fn read(path: &Path, setting: &str) -> Result<Self, AuthoritiesError> {
        read(path, setting).map(|found| Self(RootCerts::from(found)))
    }

    fn of(found: Vec<Certificate<'static>>) -> Option<Self> {
        (!found.is_empty()).then(|| Self(RootCerts::from(found)))
    }

    /// Returns the authorities that the user has set with environment variables. Returns `None` if there are none.
    pub(super) fn of_environment() -> Result<Option<Self>, AuthoritiesError> {
        if let Some(found) = OF_ENVIRONMENT.get() {
            return Ok(found.clone());
        }
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let file = variable(FILE).map(|path| read(Path::new(&path), FILE)).transpose()?;
        let directories = variable(DIRECTORIES);
        if file.is_none() && directories.is_none() {
            return Ok(OF_ENVIRONMENT.get_or_init(|| None).clone());
        }
        let mut found = file.unwrap_or_default();
        // As in OpenSSL, files that can't be read are ignored, because a directory can contain others.
        let listed = directories.iter().flat_map(env::split_paths).filter_map(|dir| fs::read_dir(dir).ok());
        let files = listed.flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_file());
        for certificate in files.filter_map(|path| bytes_of(&path).ok()).flat_map(|text| certificates(&text))
        {
            // Such directories contain each certificate under several names.
            if !found.iter().any(|known| known.der() == certificate.der()) {
                found.push(certificate);
            }
        }
        let failed = || AuthoritiesError {
            setting: DIRECTORIES.to_owned(),
            path: directories.unwrap_or_default().into(),
            source: none(),
        };
        let found = Self::of(found).ok_or_else(failed)?;
        Ok(OF_ENVIRONMENT.get_or_init(|| Some(found)).clone())
    }
}

fn read(path: &Path, setting: &str) -> Result<Vec<Certificate<'static>>, AuthoritiesError> {
    let failed = |source| AuthoritiesError { setting: setting.to_owned(), path: path.to_owned(), source };
    let found = certificates(&bytes_of(path).map_err(failed)?);
    if found.is_empty() { Err(failed(none())) } else { Ok(found) }
}

/// Reads a regular file of at most [`MAX_FILE_BYTES`]. A FIFO could block, and a device could be endless.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if !fs::metadata(path)?.is_file() {
        return invalid("not a regular file");
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { invalid("larger than 16 MiB") } else { Ok(bytes) }
}

fn certificates(text: &[u8]) -> Vec<Certificate<'static>> {
    let items = parse_pem(text).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    items.collect()
}

fn none() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no certificate in PEM format")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn devices_are_not_read() {
        let error = Authorities::read(Path::new("/dev/zero"), FILE).unwrap_err();
        assert!(error.to_string().ends_with("not a regular file"), "{error}");
    }
}
