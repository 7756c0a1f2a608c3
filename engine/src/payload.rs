//! What is sent on a connection: bytes by number, which are sent again and again, or bytes that
//! were written for one send, with a file behind them that is read while it goes out. It knows
//! nothing of sockets or requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// What is sent.
#[derive(Debug)]
pub enum Payload {
    /// The byte string of this index among those that the driver was given before it started.
    Fixed(u32),
    /// Bytes made for this send.
    Owned(Outgoing),
}

/// A file is read and sent in pieces of this size.
const PIECE_BYTES: u64 = 256 * 1024;

/// A file that follows the bytes.
#[derive(Debug)]
pub struct Rest {
    file: Arc<File>,
    at: u64,
    left: u64,
    /// In the chunked coding, one chunk per piece.
    chunked: bool,
    /// The last, empty chunk has been made.
    ended: bool,
}

impl Rest {
    pub fn new(file: Arc<File>, length: u64, chunked: bool) -> Self {
        Self {
            file,
            at: 0,
            left: length,
            chunked,
            ended: !chunked,
        }
    }

    /// How many bytes will still go out.
    fn wire_bytes(&self) -> u64 {
        if !self.chunked {
            return self.left;
        }
        let framing = |piece: u64| {
            if piece == 0 {
                0
            } else {
                format!("{piece:x}").len() as u64 + 4
            }
        };
        let whole = self.left / PIECE_BYTES * framing(PIECE_BYTES);
        self.left + whole + framing(self.left % PIECE_BYTES) + 5
    }
}

/// Bytes for one send, and the file that follows them.
#[derive(Debug, Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    rest: Option<Box<Rest>>,
}

impl Outgoing {
    pub fn new(bytes: Vec<u8>, rest: Option<Rest>) -> Self {
        Self {
            bytes,
            rest: rest.map(Box::new),
        }
    }

    /// The bytes to send now.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes and all that follows.
    pub fn wire_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.rest.as_ref().map_or(0, |rest| rest.wire_bytes())
    }

    /// After [`Self::bytes`] were sent: puts what follows in their place. False when nothing does;
    /// an error when the file cannot be read or has become shorter.
    pub fn refill(&mut self) -> io::Result<bool> {
        let Some(rest) = &mut self.rest else {
            return Ok(false);
        };
        self.bytes.clear();
        let piece = rest.left.min(PIECE_BYTES) as usize;
        if piece > 0 {
            if rest.chunked {
                self.bytes
                    .extend_from_slice(format!("{piece:x}\r\n").as_bytes());
            }
            let from = self.bytes.len();
            self.bytes.resize(from + piece, 0);
            rest.file.read_exact_at(&mut self.bytes[from..], rest.at)?;
            if rest.chunked {
                self.bytes.extend_from_slice(b"\r\n");
            }
            rest.at += piece as u64;
            rest.left -= piece as u64;
        }
        if rest.left == 0 && !rest.ended {
            rest.ended = true;
            self.bytes.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(!self.bytes.is_empty())
    }

    /// Takes apart what is sent up to the first empty line and what follows it.
    pub fn split_at_empty_line(mut self) -> (Self, Self) {
        const END: &[u8] = b"\r\n\r\n";
        let at =
            memchr::memmem::find(&self.bytes, END).map_or(self.bytes.len(), |at| at + END.len());
        let bytes = self.bytes.split_off(at);
        let rest = self.rest.take();
        (self, Self { bytes, rest })
    }

    /// The memory, to be used again, with whatever it held last.
    pub fn into_spare(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announced_length_is_what_goes_out() {
        let file = tempfile::tempfile().unwrap();
        for length in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 17] {
            file.set_len(length).unwrap();
            for chunked in [false, true] {
                let rest = Rest::new(Arc::new(file.try_clone().unwrap()), length, chunked);
                let mut outgoing = Outgoing::new(b"head".to_vec(), Some(rest));
                let announced = outgoing.wire_bytes();
                let mut sent = outgoing.bytes().len();
                while outgoing.refill().unwrap() {
                    sent += outgoing.bytes().len();
                }
                assert_eq!(announced, sent as u64, "{length} {chunked}");
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let mut outgoing = Outgoing::new(Vec::new(), Some(Rest::new(Arc::new(file), 10, false)));
        assert!(outgoing.refill().is_err());
    }
}
