//! [`random_hex`]: the path and the token of a session.

/// The length of a session's path and of its token.
pub(super) const ID_LENGTH: usize = 64;

/// Returns random bytes in hexadecimal, [`ID_LENGTH`] digits in all.
pub(crate) fn random_hex() -> Result<String, getrandom::Error> {
    use std::fmt::Write;
    let mut bytes = [0; ID_LENGTH / 2];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(ID_LENGTH), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
