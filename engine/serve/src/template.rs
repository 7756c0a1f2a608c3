//! The response of the bare loop, written once.

use http::StatusCode;

use super::behaviour::{PIECE_BYTES, Settings, has_body};

/// What every request gets.
#[derive(Debug)]
pub struct Template {
    /// Without its end.
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl Template {
    pub fn new(settings: &Settings) -> Self {
        let content = &settings.body;
        let length = content.length();
        Self {
            head: write_head(settings.status, &settings.content_type, length),
            body: match has_body(settings.status) {
                true => (0..length)
                    .step_by(PIECE_BYTES as usize)
                    .flat_map(|at| content.piece(at, length.min(at + PIECE_BYTES)))
                    .collect(),
                false => Vec::new(),
            },
        }
    }
}

/// A head without its end.
pub fn write_head(status: u16, kind: &str, length: u64) -> Vec<u8> {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\nServer: prony\r\n", status.as_str());
    if has_body(status.as_u16()) {
        head += &format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
    }
    head.into_bytes()
}
