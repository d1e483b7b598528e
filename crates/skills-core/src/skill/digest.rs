//! [`Sha256`]: the checksum of a fetched file.

use std::{fmt, io};

use sha2::Digest;

/// A SHA-256 checksum. It is displayed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// Computes the checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Computes the checksum of everything that remains to be read from `content`.
    ///
    /// # Errors
    /// Returns an error if reading from `content` fails.
    pub fn of_content(content: &mut dyn io::Read) -> io::Result<Self> {
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match content.read(&mut buffer) {
                Ok(0) => return Ok(Self(hasher.finalize().into())),
                Ok(length) => hasher.update(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the checksum as bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits with an optional prefix `sha256:`. Returns `None` for any other text.
    ///
    /// ```
    /// use skills_core::skill::Sha256;
    ///
    /// let digest = Sha256::of(b"text");
    /// assert_eq!(Sha256::parse(&format!("sha256:{digest}")), Some(digest));
    /// assert_eq!(Sha256::parse("md5:1cb251ec0d568de6a929b520c4aed8d1"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.trim();
        let hex = hex.strip_prefix("sha256:").unwrap_or(hex).as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_matches_the_example_of_the_standard() {
        // The example in FIPS 180-4.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256::of(b"abc").to_string(), known);
        for wrong in ["", "sha256:", &known[1..], &format!("{}g", &known[1..]), &format!("{}é", &known[2..])]
        {
            assert_eq!(Sha256::parse(wrong), None, "{wrong}");
        }
    }
}
