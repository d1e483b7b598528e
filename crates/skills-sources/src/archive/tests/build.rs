//! Builders for archives that no usual program would write.

use std::io::Write;

use flate2::{
    Compression, Crc,
    write::{DeflateEncoder, GzEncoder},
};

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the records of a pax header.
pub(super) fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        let mut length = rest.len() + 1;
        while length != rest.len() + length.to_string().len() {
            length += 1;
        }
        text.extend([length.to_string(), rest]);
    }
    text.into_bytes()
}

/// A tar archive.
#[derive(Clone, Default)]
pub(super) struct Tar(Vec<u8>);

impl Tar {
    pub(super) fn file(self, path: &str, content: &[u8]) -> Self {
        self.entry(path, b'0', content)
    }

    pub(super) fn entry(self, path: &str, kind: u8, content: &[u8]) -> Self {
        self.linked_with(path, kind, "", content)
    }

    pub(super) fn linked(self, path: &str, kind: u8, target: &str) -> Self {
        self.linked_with(path, kind, target, b"")
    }

    pub(super) fn linked_with(mut self, path: &str, kind: u8, target: &str, content: &[u8]) -> Self {
        self.header(path, kind, target, content.len() as u64);
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// Adds a header whose content is missing.
    pub(super) fn sized(mut self, path: &str, size: u64) -> Self {
        self.header(path, b'0', "", size);
        self
    }

    fn header(&mut self, path: &str, kind: u8, target: &str, size: u64) {
        let mut header = [0; 512];
        header[..path.len()].copy_from_slice(path.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        if size < 1 << 33 {
            header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        } else {
            header[124] = 0x80;
            header[128..136].copy_from_slice(&size.to_be_bytes());
        }
        header[156] = kind;
        header[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend(header);
    }

    /// Returns the archive without compression.
    pub(super) fn raw(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }

    pub(super) fn end(self) -> Vec<u8> {
        gzip(&self.raw())
    }
}

/// A file of a zip archive, with the values in its headers.
struct File {
    local: Vec<u8>,
    central: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    packed: Vec<u8>,
    size: u32,
    local_size: u32,
    mode: u32,
    extra: Vec<u8>,
}

impl File {
    fn new(path: &str, content: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(content);
        let size = u32::try_from(content.len()).unwrap();
        Self {
            local: path.as_bytes().to_vec(),
            central: path.as_bytes().to_vec(),
            flags: 1 << 11,
            method: 0,
            crc: crc.sum(),
            packed: content.to_vec(),
            size,
            local_size: size,
            mode: 0o100_644,
            extra: Vec::new(),
        }
    }

    fn deflated(path: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        Self { method: 8, packed: encoder.finish().unwrap(), ..Self::new(path, content) }
    }
}

/// A zip archive.
#[derive(Clone, Default)]
pub(super) struct Zip {
    files: Vec<u8>,
    directory: Vec<u8>,
    number: u16,
    is_split: bool,
    is_zip64: bool,
}

impl Zip {
    fn add(mut self, file: &File) -> Self {
        let offset = u32::try_from(self.files.len()).unwrap();
        self.add_local(file);
        self.add_central(file, offset);
        self
    }

    fn add_local(&mut self, file: &File) {
        let is_streamed = file.flags & 1 << 3 != 0;
        let packed = u32::try_from(file.packed.len()).unwrap();
        let known = |value: u32| if is_streamed { 0 } else { value };
        self.files.extend(b"PK\x03\x04\x14\0");
        for value in [file.flags, file.method, 0, 0] {
            self.files.extend(value.to_le_bytes());
        }
        for value in [known(file.crc), known(packed), known(file.local_size)] {
            self.files.extend(value.to_le_bytes());
        }
        for length in [file.local.len(), file.extra.len()] {
            self.files.extend(u16::try_from(length).unwrap().to_le_bytes());
        }
        self.files.extend([&file.local[..], &file.extra, &file.packed].concat());
        if is_streamed {
            self.files.extend(b"PK\x07\x08");
            for value in [file.crc, packed, file.size] {
                self.files.extend(value.to_le_bytes());
            }
        }
    }

    fn add_central(&mut self, file: &File, offset: u32) {
        self.number += 1;
        // Made on Unix.
        self.directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        for value in [file.flags, file.method, 0, 0] {
            self.directory.extend(value.to_le_bytes());
        }
        for value in [file.crc, u32::try_from(file.packed.len()).unwrap(), file.size] {
            self.directory.extend(value.to_le_bytes());
        }
        for length in [file.central.len(), file.extra.len(), 0, 0, 0] {
            self.directory.extend(u16::try_from(length).unwrap().to_le_bytes());
        }
        self.directory.extend((file.mode << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend([&file.central[..], &file.extra].concat());
    }

    pub(super) fn file(self, path: &str, content: &[u8]) -> Self {
        self.add(&File::new(path, content))
    }

    pub(super) fn deflated(self, path: &str, content: &[u8]) -> Self {
        self.add(&File::deflated(path, content))
    }

    pub(super) fn directory(self, path: &str) -> Self {
        self.add(&File { mode: 0o040_755, ..File::new(path, b"") })
    }

    /// Adds a file whose sizes come after its content.
    pub(super) fn streamed(self, path: &str, content: &[u8]) -> Self {
        self.add(&File { flags: 1 << 3, ..File::deflated(path, content) })
    }

    pub(super) fn named(self, local: &str, central: &str, content: &[u8]) -> Self {
        self.named_bytes(local.as_bytes(), central.as_bytes(), content)
    }

    pub(super) fn named_bytes(self, local: &[u8], central: &[u8], content: &[u8]) -> Self {
        self.add(&File {
            local: local.to_vec(),
            central: central.to_vec(),
            flags: 0,
            ..File::new("", content)
        })
    }

    pub(super) fn with_mode(self, path: &str, mode: u32, content: &[u8]) -> Self {
        self.add(&File { mode, ..File::new(path, content) })
    }

    pub(super) fn local_size(self, path: &str, local_size: u32, content: &[u8]) -> Self {
        self.add(&File { local_size, ..File::new(path, content) })
    }

    pub(super) fn wrong_crc(self, path: &str, content: &[u8]) -> Self {
        self.add(&File { crc: 1, ..File::new(path, content) })
    }

    pub(super) fn wrong_size(self, path: &str, size: u32, content: &[u8]) -> Self {
        self.add(&File { size, local_size: size, ..File::new(path, content) })
    }

    /// Adds a deflated file that claims to be smaller.
    pub(super) fn lying(self, path: &str, size: u32, content: &[u8]) -> Self {
        self.add(&File { size, local_size: size, ..File::deflated(path, content) })
    }

    pub(super) fn flags(self, path: &str, flags: u16) -> Self {
        self.add(&File { flags, ..File::new(path, b"xyz") })
    }

    pub(super) fn method(self, path: &str, method: u16) -> Self {
        self.add(&File { method, ..File::new(path, b"\xff\xff\xff") })
    }

    /// Adds a file with another name in an extra field.
    pub(super) fn unicode_path(self, path: &str, other: &str) -> Self {
        let length = u16::try_from(other.len() + 5).unwrap().to_le_bytes();
        let extra = [&[0x75, 0x70][..], &length, &[1, 0, 0, 0, 0], other.as_bytes()].concat();
        self.add(&File { extra, ..File::new(path, b"x") })
    }

    /// Adds two names for the same content.
    pub(super) fn overlapping(mut self) -> Self {
        let offset = u32::try_from(self.files.len()).unwrap();
        let file = File::new("a/x", b"xyz");
        self.add_local(&file);
        self.add_central(&file, offset);
        self.add_central(&file, offset);
        self
    }

    /// Adds bytes between the central directory and the end record.
    pub(super) fn hidden(mut self, bytes: &[u8]) -> Self {
        let end = self.clone().end_record();
        self.files.extend([&self.directory[..], bytes, &end].concat());
        self.directory = Vec::new();
        self.number = u16::MAX;
        self
    }

    pub(super) fn count(self, number: u16) -> Self {
        Self { number, ..self }
    }

    pub(super) fn parts(self) -> Self {
        Self { is_split: true, ..self }
    }

    pub(super) fn zip64(self) -> Self {
        Self { is_zip64: true, ..self }
    }

    fn end_record(&self) -> Vec<u8> {
        let mut record = b"PK\x05\x06".to_vec();
        let disk = u16::from(self.is_split);
        let number = if self.is_zip64 { u16::MAX } else { self.number };
        for value in [disk, disk, number, number] {
            record.extend(value.to_le_bytes());
        }
        for length in [self.directory.len(), self.files.len()] {
            record.extend(u32::try_from(length).unwrap().to_le_bytes());
        }
        record.extend([0, 0]);
        record
    }

    pub(super) fn end(self) -> Vec<u8> {
        // `hidden` has added an end record already.
        if self.directory.is_empty() && self.number == u16::MAX {
            return self.files;
        }
        [self.files.clone(), self.directory.clone(), self.end_record()].concat()
    }
}
