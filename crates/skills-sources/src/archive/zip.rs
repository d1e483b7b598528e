//! Reads [zip archives](https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT) whose files are stored or deflated.
//!
//! The name of a file is in the central directory and in the file's own header, and programs differ in the one they use. Both must be
//! the same, and everything between the files and the end of the archive must be accounted for.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
};

use flate2::{Crc, bufread::DeflateDecoder};

use super::{Kind, Limited, Member, Visit, invalid, quoted, too_large, unreadable};
use crate::git::{GitError, Limits, mebibytes, tree::Mode};

/// The size of the end record without its comment, of a header in the central directory, and of the header of a file.
const END_BYTES: usize = 22;
const CENTRAL_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The values that refer to the fields of zip64.
const ZIP64_COUNT: u64 = 0xffff;
const ZIP64_SIZE: u64 = 0xffff_ffff;
/// The flags of encrypted files and of an encrypted central directory.
const ENCRYPTED: u64 = 1 | 1 << 6 | 1 << 13;
/// The extra field with another name of the file.
const OTHER_NAME: u64 = 0x7075;
/// The flag of a file whose sizes come after its content.
const SIZES_FOLLOW: u64 = 1 << 3;

/// An entry of the central directory.
struct Central {
    member: Member,
    flags: u64,
    method: u64,
    crc: u32,
    packed: u64,
    /// The position of the file's header.
    offset: u64,
}

/// Calls `visit` for each entry. At most [`Limits::bytes`] are unpacked.
pub(super) fn read(file: &mut File, limits: &Limits, visit: Visit<'_>) -> Result<(), GitError> {
    let max = limits.bytes;
    let directory = central_directory(file, limits)?;
    let mut starts = Vec::new();
    // The end of the last entry so far.
    let mut end = 0;
    let mut order: Vec<&Central> = directory.entries.iter().collect();
    skills_core::order::sort_by_key(&mut order, |entry| entry.offset);
    for entry in order {
        let start = content_start(file, entry)?;
        if entry.offset < end || start + entry.packed > directory.offset {
            return Err(invalid(format!("{} overlaps with another file", quoted(&entry.member.path))));
        }
        end = start + entry.packed;
        starts.push((entry.offset, start));
    }
    let mut left = max;
    for entry in &directory.entries {
        let position = starts.binary_search_by_key(&entry.offset, |(offset, _)| *offset);
        let start = position.map_or(0, |at| starts[at].1);
        file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        let packed = BufReader::new((&mut *file).take(entry.packed));
        let unpacked: Box<dyn Read> =
            if entry.method == 0 { Box::new(packed) } else { Box::new(DeflateDecoder::new(packed)) };
        let unpacked = Limited { input: unpacked, left, max };
        let mut content =
            Content { input: unpacked, left: entry.member.size, crc: Crc::new(), is_read: false };
        visit(&entry.member, &mut content)?;
        if content.is_read {
            content.finish(entry)?;
        }
        left = content.input.left;
    }
    Ok(())
}

/// The content of a file, which must have the size and the checksum in its header.
struct Content<R> {
    input: R,
    left: u64,
    crc: Crc,
    is_read: bool,
}

impl<R: Read> Read for Content<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_read = true;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.input.read(&mut buffer[..most])?;
        self.left -= length as u64;
        self.crc.update(&buffer[..length]);
        Ok(length)
    }
}

impl<R: Read> Content<R> {
    fn finish(&mut self, entry: &Central) -> Result<(), GitError> {
        io::copy(self, &mut io::sink()).map_err(unreadable)?;
        let name = || quoted(&entry.member.path);
        if self.left > 0 {
            return Err(invalid(format!("{} is smaller than its header says", name())));
        }
        if self.input.read(&mut [0]).map_err(unreadable)? > 0 {
            return Err(invalid(format!("{} is larger than its header says", name())));
        }
        if self.crc.sum() != entry.crc {
            return Err(invalid(format!("{} has a wrong checksum", name())));
        }
        Ok(())
    }
}

/// The central directory.
struct Directory {
    entries: Vec<Central>,
    /// The position of the directory, where the files end.
    offset: u64,
}

fn central_directory(file: &mut File, limits: &Limits) -> Result<Directory, GitError> {
    let length = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let tail_start = length.saturating_sub(0xffff + END_BYTES as u64);
    let tail = read_at(file, tail_start, length - tail_start)?;
    // The comment must end with the file, so that there is nothing after it.
    let is_end = |at: &usize| {
        let record = &tail[*at..];
        record.starts_with(b"PK\x05\x06") && END_BYTES as u64 + field(record, 20, 2) == record.len() as u64
    };
    let last = tail.len().checked_sub(END_BYTES).ok_or_else(|| invalid("it is truncated"))?;
    let at = (0..=last).rev().find(is_end);
    let at = at.ok_or_else(|| invalid("it is truncated, or there is data after its end"))?;
    let record = &tail[at..];
    let count = field(record, 10, 2);
    let size = field(record, 12, 4);
    let offset = field(record, 16, 4);
    if count == ZIP64_COUNT || size == ZIP64_SIZE || offset == ZIP64_SIZE {
        return Err(too_large("it has the format zip64, which is not supported".to_owned()));
    }
    if field(record, 4, 4) != 0 || field(record, 8, 2) != count {
        return Err(invalid("it is a part of several files"));
    }
    if offset + size != tail_start + at as u64 {
        return Err(invalid("there is data outside of its files"));
    }
    let max_bytes = limits.path_bytes();
    if size > max_bytes {
        return Err(too_large(format!("the list of files is larger than {}", mebibytes(max_bytes))));
    }
    let bytes = read_at(file, offset, size)?;
    let mut entries = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() && entries.len() as u64 <= count {
        let (entry, after) = central(rest)?;
        entries.push(entry);
        rest = after;
    }
    if entries.len() as u64 != count {
        let number = if rest.is_empty() { entries.len().to_string() } else { "more".to_owned() };
        return Err(invalid(format!("it should have {count} files, but has {number}")));
    }
    Ok(Directory { entries, offset })
}

/// Reads a header of the central directory. Returns the rest of the directory.
fn central(bytes: &[u8]) -> Result<(Central, &[u8]), GitError> {
    let wrong = || invalid("its list of files is invalid");
    if !bytes.starts_with(b"PK\x01\x02") || bytes.len() < CENTRAL_BYTES {
        return Err(wrong());
    }
    let lengths = [28, 30, 32].map(|at| usize::try_from(field(bytes, at, 2)).unwrap_or_default());
    let (path, rest) = bytes[CENTRAL_BYTES..].split_at_checked(lengths[0]).ok_or_else(wrong)?;
    let (extra, rest) = rest.split_at_checked(lengths[1]).ok_or_else(wrong)?;
    let rest = rest.get(lengths[2]..).ok_or_else(wrong)?;
    let flags = field(bytes, 8, 2);
    let method = field(bytes, 10, 2);
    let packed = field(bytes, 20, 4);
    let size = field(bytes, 24, 4);
    let offset = field(bytes, 42, 4);
    if flags & ENCRYPTED != 0 {
        return Err(invalid(format!("{} is encrypted", quoted(path))));
    }
    if !matches!(method, 0 | 8) {
        return Err(invalid(format!("{} has the unknown compression {method}", quoted(path))));
    }
    if [packed, size, offset].contains(&ZIP64_SIZE) {
        return Err(too_large(format!("{} has the format zip64, which is not supported", quoted(path))));
    }
    check_extra(path, extra)?;
    let system = field(bytes, 5, 1);
    let kind = kind(system, field(bytes, 38, 4), path);
    let crc = u32::try_from(field(bytes, 16, 4)).unwrap_or_default();
    let member = Member { path: path.to_vec(), kind, size };
    Ok((Central { member, flags, method, crc, packed, offset }, rest))
}

/// Returns the kind of an entry by the attributes of the operating system on which the archive was made.
fn kind(system: u64, attributes: u64, path: &[u8]) -> Kind {
    const UNIX: u64 = 3;
    const MACOS: u64 = 19;
    let is_unix = matches!(system, UNIX | MACOS);
    let mode = if is_unix { attributes >> 16 } else { 0 };
    match mode & 0o170_000 {
        0o120_000 => Kind::File(Mode::Link),
        0o040_000 => Kind::Directory,
        0 | 0o100_000 if path.ends_with(b"/") => Kind::Directory,
        0 | 0o100_000 if mode & 0o111 != 0 => Kind::File(Mode::Program),
        0 | 0o100_000 => Kind::File(Mode::File),
        _ => Kind::File(Mode::Unknown),
    }
}

/// Checks that no extra field gives a file another name.
fn check_extra(path: &[u8], mut extra: &[u8]) -> Result<(), GitError> {
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let length = usize::try_from(field(head, 2, 2)).unwrap_or_default();
        let Some((value, rest)) = rest.split_at_checked(length) else { break };
        // The name comes after a version and a checksum.
        if field(head, 0, 2) == OTHER_NAME && value.get(5..) != Some(path) {
            return Err(two_names(path));
        }
        extra = rest;
    }
    Ok(())
}

fn two_names(path: &[u8]) -> GitError {
    invalid(format!("{} has another name in its own header", quoted(path)))
}

/// Reads the own header of a file, compares it with the central directory, and returns the position of the content.
fn content_start(file: &mut File, entry: &Central) -> Result<u64, GitError> {
    let path = &entry.member.path;
    let header = read_at(file, entry.offset, LOCAL_BYTES as u64)?;
    if !header.starts_with(b"PK\x03\x04") {
        return Err(invalid(format!("{} has no header", quoted(path))));
    }
    let name_bytes = field(&header, 26, 2);
    let extra_bytes = field(&header, 28, 2);
    let at = entry.offset + LOCAL_BYTES as u64;
    if read_at(file, at, name_bytes)? != *path {
        return Err(two_names(path));
    }
    check_extra(path, &read_at(file, at + name_bytes, extra_bytes)?)?;
    let sizes = [field(&header, 18, 4), field(&header, 22, 4)];
    let is_unknown = entry.flags & SIZES_FOLLOW != 0 || sizes.contains(&ZIP64_SIZE);
    let is_same = field(&header, 8, 2) == entry.method
        && (field(&header, 6, 2) ^ entry.flags) & (ENCRYPTED | SIZES_FOLLOW) == 0
        && (is_unknown || sizes == [entry.packed, entry.member.size]);
    if !is_same {
        return Err(invalid(format!("{} has two different headers", quoted(path))));
    }
    Ok(at + name_bytes + extra_bytes)
}

fn read_at(file: &mut File, offset: u64, length: u64) -> Result<Vec<u8>, GitError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    file.take(length).read_to_end(&mut bytes).map_err(unreadable)?;
    if (bytes.len() as u64) < length {
        return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

/// Returns a number of `size` bytes, the lowest first.
fn field(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
