//! What the header block of a response says, and the last blocks that were read: who
//! sends the same fields again sends the same bytes, and these are then not decoded again.

use crate::hpack::{BadBlock, Decoder, field_bytes};

/// Blocks that are remembered.
const REMEMBERED: usize = 8;
/// Longer ones are not.
const LONGEST_REMEMBERED_BYTES: usize = 1024;

/// The fields of one header block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// 0: there is none.
    pub status: u16,
    /// The fields but for pseudo-header fields, each as `name: value` and an end of a line.
    pub lines: Vec<u8>,
    pub content_length: Option<u64>,
    /// What RFC 9113, section 6.5.2, counts for the list.
    pub list_bytes: usize,
    /// The list is longer than is allowed; the rest of it is not there.
    pub too_long: bool,
    /// Why it is malformed (RFC 9113, sections 8.1.1 to 8.3).
    pub fault: Option<&'static str>,
    /// Fields but for pseudo-header fields, right or wrong.
    pub fields: u32,
}

impl Head {
    /// Fields of the list, pseudo-header fields among them.
    pub(crate) fn all_fields(&self) -> u32 {
        self.fields + u32::from(self.status != 0)
    }

    fn clear(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.clear();
        *self = Self {
            lines,
            ..Self::default()
        };
    }

    fn add(&mut self, name: &[u8], value: &[u8], max_bytes: usize) {
        self.list_bytes += field_bytes(name, value);
        if self.list_bytes > max_bytes {
            self.too_long = true;
            return;
        }
        if let Err(fault) = self.add_checked(name, value) {
            self.fault.get_or_insert(fault);
        }
    }

    fn add_checked(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        if value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err("a field's value holds a NUL, a carriage return or a line feed");
        }
        let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        if blank(value.first()) || blank(value.last()) {
            return Err("a field's value begins or ends with a blank");
        }
        if name.first() == Some(&b':') {
            if name != b":status" {
                return Err("a pseudo-header field that no response has");
            }
            if self.fields > 0 {
                return Err(":status behind other fields");
            }
            if self.status != 0 {
                return Err("more than one :status");
            }
            let &[
                hundreds @ b'1'..=b'9',
                tens @ b'0'..=b'9',
                ones @ b'0'..=b'9',
            ] = value
            else {
                return Err(":status is not three digits");
            };
            let digit = |byte: u8| u16::from(byte - b'0');
            let number = digit(hundreds) * 100 + digit(tens) * 10 + digit(ones);
            self.status = number;
            return Ok(());
        }
        self.fields += 1;
        if name.is_empty() || !name.iter().all(|byte| is_name(*byte)) {
            return Err("a field's name is not a token in lower case");
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => {
                return Err("a field that belongs to a connection of HTTP/1.1");
            }
            b"content-length" => self.add_length(value)?,
            _ => {}
        }
        self.lines.extend_from_slice(name);
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn add_length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        const FAULT: &str = "content-length is not a number, or there are two";
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(FAULT);
        }
        let length = std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse().ok());
        if length.is_none()
            || self
                .content_length
                .is_some_and(|known| Some(known) != length)
        {
            return Err(FAULT);
        }
        self.content_length = length;
        Ok(())
    }
}

/// RFC 9110, section 5.6.2, without capitals (RFC 9113, section 8.2.1).
fn is_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.'
        | b'^' | b'_' | b'`' | b'|' | b'~')
}

#[derive(Debug, Default)]
struct Known {
    block: Vec<u8>,
    head: Head,
}

/// Reads header blocks of a connection.
#[derive(Debug)]
pub(crate) struct Heads {
    decoder: Decoder,
    max_bytes: usize,
    known: Vec<Known>,
    /// The version of the tables for which `known` holds.
    version: u64,
    next: usize,
    /// Of a block that is not remembered.
    passing: Head,
}

/// Where a head that was read is, until the next is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadPlace(Option<u8>);

impl Heads {
    pub fn new(table_bytes: u32, max_bytes: u32) -> Self {
        Self {
            decoder: Decoder::new(table_bytes),
            max_bytes: max_bytes as usize,
            known: Vec::new(),
            version: 0,
            next: 0,
            passing: Head::default(),
        }
    }

    pub fn get(&self, place: HeadPlace) -> &Head {
        place
            .0
            .map_or(&self.passing, |place| &self.known[usize::from(place)].head)
    }

    pub fn read(&mut self, block: &[u8]) -> Result<HeadPlace, BadBlock> {
        let version = self.decoder.version();
        if version == self.version
            && let Some(place) = self.known.iter().position(|known| known.block == block)
        {
            return Ok(HeadPlace(Some(place as u8)));
        }
        self.passing.clear();
        let (head, max_bytes) = (&mut self.passing, self.max_bytes);
        self.decoder
            .decode(block, |name, value| head.add(name, value, max_bytes))?;
        // A block that changes the tables means something else the next time.
        if self.decoder.version() != version || block.len() > LONGEST_REMEMBERED_BYTES {
            return Ok(HeadPlace(None));
        }
        if self.version != version {
            self.version = version;
            self.known.clear();
            self.next = 0;
        }
        let place = self.next % REMEMBERED;
        self.next = place + 1;
        if place == self.known.len() {
            self.known.push(Known::default());
        }
        let known = &mut self.known[place];
        known.block.clear();
        known.block.extend_from_slice(block);
        std::mem::swap(&mut known.head, &mut self.passing);
        Ok(HeadPlace(Some(place as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::{Encoder, Indexing};

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::default();
        for (name, value) in fields {
            head.add(name.as_bytes(), value.as_bytes(), 1000);
        }
        head
    }

    #[test]
    fn a_head_is_a_status_and_lines() {
        let head = head(&[(":status", "204"), ("content-length", "12"), ("x", "")]);
        assert_eq!(
            (head.status, head.content_length, head.fault),
            (204, Some(12), None)
        );
        assert_eq!(head.lines, b"content-length: 12\r\nx: \r\n");
    }

    #[test]
    fn what_makes_a_response_malformed_is_named() {
        let status = (":status", "200");
        for (fields, part) in [
            (&[status, ("Server", "x")][..], "lower case"),
            (&[status, ("", "x")], "lower case"),
            (&[status, ("a b", "x")], "lower case"),
            (&[status, ("a", "x\r\ny: 1")], "line feed"),
            (&[status, ("a", "x\0")], "NUL"),
            (&[status, ("a", " x")], "blank"),
            (&[status, ("connection", "close")], "connection of HTTP/1.1"),
            (
                &[status, ("transfer-encoding", "chunked")],
                "connection of HTTP/1.1",
            ),
            (&[("a", "x"), status], "behind other fields"),
            (&[status, status], "more than one"),
            (&[(":status", "20")], "three digits"),
            (&[(":status", "099")], "three digits"),
            (&[(":status", "2x0")], "three digits"),
            (&[status, (":path", "/")], "pseudo-header"),
            (&[status, ("content-length", "-1")], "content-length"),
            (
                &[status, ("content-length", "1"), ("content-length", "2")],
                "content-length",
            ),
            (
                &[status, ("content-length", "99999999999999999999")],
                "content-length",
            ),
        ] {
            let fault = head(fields).fault.unwrap();
            assert!(fault.contains(part), "{fields:?}: {fault}");
        }
        assert_eq!(
            head(&[status, ("content-length", "7"), ("content-length", "7")]).fault,
            None
        );
    }

    #[test]
    fn of_a_list_that_is_too_long_only_the_beginning_is_kept() {
        let mut head = Head::default();
        for _ in 0..1000 {
            head.add(b"a", b"0123456789", 1000);
        }
        assert!(head.too_long && head.lines.len() < 1000);
        assert_eq!(head.list_bytes, 43_000);
    }

    /// One byte of a block may stand for 4 KiB.
    #[test]
    fn a_block_that_unfolds_is_not_kept() {
        let mut encoder = Encoder::new(4096);
        let mut block = Vec::new();
        encoder.field(b"a", &[b'x'; 4000], Indexing::Kept, &mut block);
        for _ in 0..16_000 {
            encoder.field(b"a", &[b'x'; 4000], Indexing::Kept, &mut block);
        }
        let mut heads = Heads::new(4096, 65_536);
        let place = heads.read(&block).unwrap();
        let head = heads.get(place);
        assert!(head.too_long && head.lines.len() < 65_536);
    }

    #[test]
    fn a_block_is_remembered_while_the_tables_stay() {
        let (mut heads, mut encoder) = (Heads::new(4096, 1000), Encoder::new(4096));
        let block = |encoder: &mut Encoder, fields: &[(&str, &str, Indexing)]| {
            let mut block = Vec::new();
            for (name, value, indexing) in fields {
                encoder.field(name.as_bytes(), value.as_bytes(), *indexing, &mut block);
            }
            block
        };
        let status = (":status", "200", Indexing::Kept);
        let first = block(&mut encoder, &[status, ("a", "1", Indexing::Kept)]);
        assert_eq!(heads.read(&first).unwrap(), HeadPlace(None));
        let again = block(&mut encoder, &[status, ("a", "1", Indexing::Kept)]);
        let place = heads.read(&again).unwrap();
        assert_eq!(place, HeadPlace(Some(0)));
        assert_eq!(heads.read(&again).unwrap(), place);
        assert_eq!(heads.get(place).lines, b"a: 1\r\n");
        // The same bytes mean another field now.
        heads
            .read(&block(&mut encoder, &[("b", "2", Indexing::Kept)]))
            .unwrap();
        let place = heads.read(&again).unwrap();
        assert_eq!(heads.get(place).lines, b"b: 2\r\n");
        // More blocks than are remembered.
        for number in 0..40 {
            let value = (number % 10).to_string();
            let place = heads
                .read(&block(&mut encoder, &[("c", &value, Indexing::Passing)]))
                .unwrap();
            assert_eq!(heads.get(place).lines, format!("c: {value}\r\n").as_bytes());
        }
    }
}
