//! Frames (RFC 9113, sections 4 and 6): their headers read and written, and the whole of those that
//! are small. What they mean is not known here.

use crate::error::{ConnectionError, ErrorCode};

/// What a client sends first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const HEADER_BYTES: usize = 9;
/// What either side may send in a frame until SETTINGS say otherwise.
pub const DEFAULT_FRAME_BYTES: u32 = 16_384;
pub const MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// Of streams and of the connection, until SETTINGS and WINDOW_UPDATE say otherwise.
pub const DEFAULT_WINDOW_BYTES: u32 = 65_535;
pub const MAX_WINDOW_BYTES: u32 = (1 << 31) - 1;
pub const MAX_STREAM: u32 = (1 << 31) - 1;

pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

pub mod flag {
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// The nine bytes before a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub length: u32,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHeader {
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            // The first bit is reserved and ignored.
            stream: u32::from_be_bytes(stream) & MAX_STREAM,
        }
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let length = self.length.to_be_bytes();
        out.extend_from_slice(&[length[1], length[2], length[3], self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes a whole frame.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let header = FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    header.write(out);
    out.extend_from_slice(payload);
}

/// Writes a header block, as HEADERS and as many CONTINUATION as it takes.
pub fn write_block(stream: u32, block: &[u8], end: bool, max_bytes: usize, out: &mut Vec<u8>) {
    let most = max_bytes.max(1);
    let (first, mut rest) = block.split_at(block.len().min(most));
    let ends = |rest: &[u8]| {
        if rest.is_empty() {
            flag::END_HEADERS
        } else {
            0
        }
    };
    let end = if end { flag::END_STREAM } else { 0 };
    write(kind::HEADERS, ends(rest) | end, stream, first, out);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(most));
        rest = behind;
        write(kind::CONTINUATION, ends(rest), stream, piece, out);
    }
}

pub fn write_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    write(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes(), out);
}

pub fn write_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    write(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes(), out);
}

pub fn write_goaway(last_stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last_stream.to_be_bytes());
    payload[4..].copy_from_slice(&code.0.to_be_bytes());
    write(kind::GOAWAY, 0, 0, &payload, out);
}

/// The payload of HEADERS without padding and priority (RFC 9113, section 6.2).
pub fn block_of_headers<'a>(
    header: &FrameHeader,
    payload: &'a [u8],
) -> Result<&'a [u8], ConnectionError> {
    let (mut payload, mut padding) = (payload, 0);
    if header.has(flag::PADDED) {
        let (length, rest) = payload.split_first().ok_or(ConnectionError::frame_size(
            "padded HEADERS without a length of the padding",
        ))?;
        (padding, payload) = (usize::from(*length), rest);
    }
    if header.has(flag::PRIORITY) {
        payload = payload.get(5..).ok_or(ConnectionError::frame_size(
            "HEADERS too short for its priority",
        ))?;
    }
    let length = payload
        .len()
        .checked_sub(padding)
        .ok_or(ConnectionError::protocol(
            "HEADERS with more padding than payload",
        ))?;
    Ok(&payload[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(length in 0..=MAX_FRAME_BYTES, kind: u8, flags: u8, stream in 0..=MAX_STREAM) {
            let header = FrameHeader { length, kind, flags, stream };
            let mut out = Vec::new();
            header.write(&mut out);
            prop_assert_eq!(FrameHeader::read(&out.try_into().unwrap()), header);
        }

        #[test]
        fn a_block_is_cut_and_joined(block: Vec<u8>, most in 1..40_usize, end: bool) {
            let mut out = Vec::new();
            write_block(3, &block, end, most, &mut out);
            let (mut joined, mut rest, mut last) = (Vec::new(), &out[..], 0);
            while !rest.is_empty() {
                let header = FrameHeader::read(rest[..HEADER_BYTES].try_into().unwrap());
                let expected = if joined.is_empty() && last == 0 { kind::HEADERS } else { kind::CONTINUATION };
                prop_assert!(header.kind == expected || joined.is_empty());
                prop_assert!(header.length as usize <= most && header.stream == 3);
                prop_assert_eq!(last & flag::END_HEADERS, 0);
                last = header.flags;
                let to = HEADER_BYTES + header.length as usize;
                joined.extend_from_slice(&rest[HEADER_BYTES..to]);
                rest = &rest[to..];
            }
            prop_assert_ne!(last & flag::END_HEADERS, 0);
            prop_assert_eq!(joined, block);
        }
    }

    #[test]
    fn the_reserved_bit_of_a_stream_is_ignored() {
        let header = FrameHeader::read(&[0, 0, 1, 6, 0, 0x80, 0, 0, 5]);
        assert_eq!((header.length, header.stream), (1, 5));
    }

    #[test]
    fn padding_and_priority_are_taken_off() {
        let header = |flags| FrameHeader {
            length: 0,
            kind: kind::HEADERS,
            flags,
            stream: 1,
        };
        let both = header(flag::PADDED | flag::PRIORITY);
        assert_eq!(
            block_of_headers(&both, &[2, 0, 0, 0, 0, 9, b'a', b'b', 0, 0]),
            Ok(&b"ab"[..])
        );
        assert!(block_of_headers(&both, &[6, 0, 0, 0, 0, 9, b'a', b'b', 0, 0]).is_err());
        assert!(block_of_headers(&both, &[0, 0, 0]).is_err());
        assert!(block_of_headers(&header(flag::PADDED), &[]).is_err());
        assert_eq!(block_of_headers(&header(0), b"ab"), Ok(&b"ab"[..]));
    }
}
