//! Reads tar archives that are compressed with gzip: the formats
//! [ustar and pax](https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html), and the long names of GNU tar.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

use super::{Kind, Limited, Member, Visit, invalid, quoted, unreadable};
use crate::git::{GitError, tree::Mode};

/// The size of a header, to a multiple of which contents are padded.
const BLOCK: usize = 512;
/// The maximum size of a long name or of a pax header, in bytes.
const MAX_HEADER_BYTES: u64 = 64 * 1024;

/// Calls `visit` for each entry. At most `max` bytes are unpacked.
pub(super) fn read(input: impl BufRead, max: u64, visit: Visit<'_>) -> Result<(), GitError> {
    let mut unpacked = Limited::new(MultiGzDecoder::new(input), max);
    entries(&mut unpacked, visit)
}

fn entries(input: &mut dyn Read, visit: Visit<'_>) -> Result<(), GitError> {
    let mut next = Next::default();
    let mut header = [0; BLOCK];
    loop {
        input.read_exact(&mut header).map_err(unreadable)?;
        if header.iter().all(|byte| *byte == 0) {
            return end(input);
        }
        check_sum(&header)?;
        let size = number(&header[124..136]).filter(|size| i64::try_from(*size).is_ok());
        let size = size.ok_or_else(|| invalid("a header has an invalid size"))?;
        let kind = header[156];
        match kind {
            b'L' => next.name = Some(until_zero(&extension(input, size)?).to_vec()),
            b'K' => drop(extension(input, size)?),
            b'x' => next.add(&extension(input, size)?)?,
            b'g' => {
                let mut all = Next::default();
                all.add(&extension(input, size)?)?;
                if all.pax_path.is_some() || all.pax_size.is_some() {
                    return Err(invalid("a pax header sets the path or the size of all files"));
                }
            }
            _ => {
                let member = std::mem::take(&mut next).member(&header, kind, size)?;
                let mut content = input.take(member.size);
                visit(&member, &mut content)?;
                let left = content.limit();
                skip(input, left + padding(member.size))?;
            }
        }
    }
}

/// Parts of the next entry that come before its header.
#[derive(Default)]
struct Next {
    name: Option<Vec<u8>>,
    pax_path: Option<Vec<u8>>,
    pax_size: Option<u64>,
}

impl Next {
    /// Adds the records of a pax header, such as `11 path=a\n`. The first number is the length of the record.
    fn add(&mut self, mut records: &[u8]) -> Result<(), GitError> {
        let wrong = || invalid("a pax header is invalid");
        while !records.is_empty() {
            let space = records.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
            let length = decimal(&records[..space]).and_then(|length| usize::try_from(length).ok());
            let (record, rest) =
                length.and_then(|length| records.split_at_checked(length)).ok_or_else(wrong)?;
            let record = record.get(space + 1..).and_then(|record| record.strip_suffix(b"\n"));
            let record = record.ok_or_else(wrong)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
            let value = &record[equals + 1..];
            let is_new = match &record[..equals] {
                b"path" => self.pax_path.replace(value.to_vec()).is_none(),
                b"size" => self.pax_size.replace(decimal(value).ok_or_else(wrong)?).is_none(),
                key if key.starts_with(b"GNU.sparse.") => return Err(sparse()),
                _ => true,
            };
            if !is_new {
                return Err(invalid("a pax header sets a value twice"));
            }
            records = rest;
        }
        Ok(())
    }

    /// Returns the entry of a header.
    fn member(self, header: &[u8; BLOCK], kind: u8, size: u64) -> Result<Member, GitError> {
        let path = match (self.pax_path, self.name) {
            (Some(path), Some(name)) if path != name => {
                return Err(invalid(format!(
                    "a file has two names: {} and {}",
                    quoted(&path),
                    quoted(&name)
                )));
            }
            (Some(path), _) | (None, Some(path)) => path,
            (None, None) => name(header),
        };
        // Some programs use one size and some the other one, so that a file could hide further headers.
        if self.pax_size.is_some_and(|other| other != size) {
            return Err(invalid(format!("{} has two sizes", quoted(&path))));
        }
        let is_program = number(&header[100..108]).is_some_and(|mode| mode & 0o111 != 0);
        let kind = match kind {
            b'0' | 0 | b'7' if path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' => Kind::File(if is_program { Mode::Program } else { Mode::File }),
            b'1' | b'2' => Kind::File(Mode::Link),
            b'5' => Kind::Directory,
            b'S' => return Err(sparse()),
            // Devices, FIFOs and other types.
            _ => Kind::File(Mode::Unknown),
        };
        // Links, devices and directories have no content. If one has a size, some programs skip as many bytes, and others don't.
        if size > 0 && !matches!(kind, Kind::File(Mode::File | Mode::Program)) {
            return Err(invalid(format!("{} is not a file, but has a content", quoted(&path))));
        }
        Ok(Member { path, kind, size })
    }
}

fn sparse() -> GitError {
    invalid("sparse files are not supported")
}

/// Returns the name in a header.
fn name(header: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_zero(&header[..100]);
    let prefix = until_zero(&header[345..500]);
    // GNU tar uses this place for other values.
    let has_prefix = &header[257..263] == b"ustar\0" && !prefix.is_empty();
    if has_prefix { [prefix, b"/", name].concat() } else { name.to_owned() }
}

fn until_zero(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reads the content of a header that extends the next one.
fn extension(input: &mut dyn Read, size: u64) -> Result<Vec<u8>, GitError> {
    if size > MAX_HEADER_BYTES {
        return Err(super::too_large(format!("a header is larger than {} KiB", MAX_HEADER_BYTES / 1024)));
    }
    let mut content = Vec::new();
    input.take(size).read_to_end(&mut content).map_err(unreadable)?;
    if (content.len() as u64) < size {
        return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
    }
    skip(input, padding(size))?;
    Ok(content)
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

fn skip(input: &mut dyn Read, bytes: u64) -> Result<(), GitError> {
    let skipped = io::copy(&mut input.take(bytes), &mut io::sink()).map_err(unreadable)?;
    if skipped < bytes { Err(unreadable(io::ErrorKind::UnexpectedEof.into())) } else { Ok(()) }
}

/// Checks that only zeros follow the end of the archive. This also checks the checksum of gzip.
fn end(input: &mut dyn Read) -> Result<(), GitError> {
    let mut buffer = [0; 16 * BLOCK];
    loop {
        let length = input.read(&mut buffer).map_err(unreadable)?;
        if length == 0 {
            return Ok(());
        }
        if buffer[..length].iter().any(|byte| *byte != 0) {
            return Err(invalid("there is data after its end"));
        }
    }
}

/// Checks the checksum of a header, which counts its own field as spaces.
fn check_sum(header: &[u8; BLOCK]) -> Result<(), GitError> {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let actual = sum(&header[..148]) + 8 * u64::from(b' ') + sum(&header[156..]);
    if number(&header[148..156]) == Some(actual) {
        return Ok(());
    }
    Err(invalid("a header has a wrong checksum"))
}

/// Returns an octal number, which ends with a space or a zero, or the binary number of GNU tar.
fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, rest @ ..] = field {
        return rest.iter().try_fold(0_u64, |sum, byte| sum.checked_mul(256)?.checked_add(u64::from(*byte)));
    }
    let text = std::str::from_utf8(until_zero(field)).ok()?.trim_matches(' ');
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}
