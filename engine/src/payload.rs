//! What is sent on a connection: bytes by number, which are sent again and again, or bytes that
//! were written for one send, with a file behind them. It knows nothing of sockets or requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What is sent.
#[derive(Debug)]
pub enum Payload {
    /// The byte string of this index among those that the driver was given before it started.
    Fixed(u32),
    /// Bytes made for this send.
    Owned(Outgoing),
}

impl Payload {
    /// Bytes, with nothing behind them.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self::Owned(Outgoing::new(bytes, None))
    }

    /// The bytes to send now, by those of fixed payloads.
    pub fn now<'a>(&'a self, fixed: &'a [Vec<u8>]) -> &'a [u8] {
        match self {
            Self::Fixed(index) => &fixed[*index as usize],
            Self::Owned(outgoing) => outgoing.bytes(),
        }
    }
}

/// No thread that measures reads, or encrypts, more of a body in one turn: what others wait for
/// comes between two pieces.
pub const PIECE_BYTES: usize = 64 * 1024;

/// A file that follows the bytes.
#[derive(Debug)]
pub struct Rest {
    file: Arc<File>,
    at: u64,
    left: u64,
    /// In the chunked coding, one chunk per piece.
    chunked: bool,
    /// The last piece has been taken.
    ended: bool,
    /// The piece that is being read.
    pub read: Option<Receiver<io::Result<Vec<u8>>>>,
}

impl Rest {
    pub fn new(file: Arc<File>, length: u64, chunked: bool) -> Self {
        Self {
            file,
            at: 0,
            left: length,
            chunked,
            ended: length == 0 && !chunked,
            read: None,
        }
    }

    /// How many bytes go out, before the first piece was taken.
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
        let piece = PIECE_BYTES as u64;
        self.left + self.left / piece * framing(piece) + framing(self.left % piece) + 5
    }

    /// Whether a piece is being read or is still to be.
    fn follows(&self) -> bool {
        self.read.is_some() || !self.ended
    }

    /// The next piece, to be read into this memory. `None`: there is none.
    pub fn next_piece(&mut self, bytes: Vec<u8>) -> Option<Piece> {
        if self.ended {
            return None;
        }
        let length = self.left.min(PIECE_BYTES as u64);
        let at = self.at;
        self.at += length;
        self.left -= length;
        self.ended = self.left == 0;
        Some(Piece {
            bytes,
            file: Arc::clone(&self.file),
            at,
            length: length as usize,
            chunked: self.chunked,
            last: self.ended,
        })
    }
}

/// A piece of a file that is to be read.
#[derive(Debug)]
pub struct Piece {
    bytes: Vec<u8>,
    file: Arc<File>,
    at: u64,
    length: usize,
    chunked: bool,
    last: bool,
}

impl Piece {
    /// As it goes out; an error when the file cannot be read or has become shorter.
    pub fn read(self) -> io::Result<Vec<u8>> {
        let mut bytes = self.bytes;
        bytes.clear();
        if self.length > 0 {
            if self.chunked {
                bytes.extend_from_slice(format!("{:x}\r\n", self.length).as_bytes());
            }
            let from = bytes.len();
            bytes.resize(from + self.length, 0);
            self.file.read_exact_at(&mut bytes[from..], self.at)?;
            if self.chunked {
                bytes.extend_from_slice(b"\r\n");
            }
        }
        if self.chunked && self.last {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(bytes)
    }
}

/// Bytes for one send, and the file that follows them.
#[derive(Debug, Default)]
pub struct Outgoing {
    pub bytes: Vec<u8>,
    pub rest: Option<Box<Rest>>,
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

    /// Whether anything follows them.
    #[inline]
    pub fn follows(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.follows())
    }

    /// The bytes and all that follows.
    pub fn wire_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.rest.as_ref().map_or(0, |rest| rest.wire_bytes())
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
        let piece = PIECE_BYTES as u64;
        for length in [0, 1, piece - 1, piece, 2 * piece + 17] {
            file.set_len(length).unwrap();
            for chunked in [false, true] {
                let mut rest = Rest::new(Arc::new(file.try_clone().unwrap()), length, chunked);
                let announced = rest.wire_bytes();
                let mut sent = 0;
                while let Some(piece) = rest.next_piece(Vec::new()) {
                    let bytes = piece.read().unwrap();
                    assert!((1..PIECE_BYTES + 20).contains(&bytes.len()));
                    sent += bytes.len();
                }
                assert_eq!(announced, sent as u64, "{length} {chunked}");
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let mut rest = Rest::new(Arc::new(file), 10, false);
        let piece = rest.next_piece(Vec::new()).unwrap();
        assert_eq!(
            piece.read().unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
