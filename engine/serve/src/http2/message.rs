//! Heads of requests and responses, between the values of the state machine and the fields of HTTP/2.

use prony_h2::frame::{self, kind};
use prony_h2::{Fields, Head, Indexing};

use crate::machine::ResponseHead;

/// Whether the body of a request waits for a response with status 100.
pub fn expects_continue(head: &Head) -> bool {
    field(head, b"expect").is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

/// The value of a field, its name in lower case.
pub fn field<'a>(head: &'a Head, name: &[u8]) -> Option<&'a [u8]> {
    head.lines.split(|byte| *byte == b'\n').find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(b": ")?;
        Some(value.strip_suffix(b"\r").unwrap_or(value))
    })
}

pub fn write_fields(head: &ResponseHead, fields: &mut Fields) {
    fields.clear();
    let status = head.status.to_string();
    fields.push(b":status", status.as_bytes(), Indexing::Kept);
    fields.push(b"server", b"prony", Indexing::Kept);
    if let Some(content_type) = &head.content_type {
        fields.push(b"content-type", content_type.as_bytes(), Indexing::Kept);
    }
    if let Some(length) = head.length {
        let length = length.to_string();
        fields.push(b"content-length", length.as_bytes(), Indexing::Kept);
    }
}

/// A header block without an end: HEADERS, and CONTINUATION for all that follows.
pub fn write_endless(id: u32, begins: bool, lines: &[u8], out: &mut Vec<u8>) {
    /// `:status: 200` of the static table.
    const STATUS_200: u8 = 0x88;
    let mut block = Vec::new();
    if begins {
        frame::write(kind::HEADERS, 0, id, &[STATUS_200], out);
    }
    for line in lines.split(|byte| *byte == b'\n') {
        let Some((name, value)) = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.trim_end().split_once(": "))
        else {
            continue;
        };
        // A literal that goes into no table; both lengths are below 127.
        block.push(0);
        for text in [name.to_ascii_lowercase().as_str(), value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    frame::write(kind::CONTINUATION, 0, id, &block, out);
}
