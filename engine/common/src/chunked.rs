//! The chunked coding of RFC 9112, section 7.1, decoded from pieces of any size. It knows nothing
//! of heads.

/// The extensions of one chunk, and all trailers together, may not be longer than this.
pub const MAX_OVERHEAD_BYTES: u32 = 64 * 1024;

/// Why it is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadChunk {
    /// Not the chunked coding.
    Malformed,
    /// More extensions or trailers than [`MAX_OVERHEAD_BYTES`].
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the digits of a size.
    Size {
        digits: u8,
    },
    /// After the digits, up to the line feed.
    Extension,
    /// After the carriage return of a size's line, where only a line feed may follow.
    SizeLineFeed,
    Data,
    /// After the data: an optional carriage return, then a line feed.
    DataEnd,
    DataLineFeed,
    /// At the start of a trailer line or of the last, empty line.
    TrailerStart,
    /// Within a trailer line.
    Trailer,
    /// After the carriage return of the last line.
    LastLineFeed,
    Done,
}

/// Reads one chunked body.
#[derive(Debug, Clone)]
pub struct Chunked {
    state: State,
    left: u64,
    overhead: u32,
    strict: bool,
}

impl Chunked {
    /// As a client reads responses: a line may also end with a line feed alone.
    pub fn lenient() -> Self {
        Self {
            state: State::Size { digits: 0 },
            left: 0,
            overhead: 0,
            strict: false,
        }
    }

    /// As a server reads requests: a line ends with a carriage return and a line feed. What others
    /// read in another way is how requests are smuggled.
    pub fn strict() -> Self {
        Self {
            strict: true,
            ..Self::lenient()
        }
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Reads from `input`, hands pieces of the body to `body`, and returns how many bytes belong to
    /// this message.
    pub fn read(&mut self, input: &[u8], mut body: impl FnMut(&[u8])) -> Result<usize, BadChunk> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if self.state == State::Data {
                let take = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(input.len() - at);
                body(&input[at..at + take]);
                at += take;
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = State::DataEnd;
                }
                continue;
            }
            self.state = self.step(input[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// One byte outside of the data.
    fn step(&mut self, byte: u8) -> Result<State, BadChunk> {
        let next = match (self.state, byte) {
            (State::Size { digits }, _) if byte.is_ascii_hexdigit() => {
                if digits == 16 {
                    return Err(BadChunk::Malformed);
                }
                let value = (byte as char).to_digit(16).ok_or(BadChunk::Malformed)?;
                self.left = self.left << 4 | u64::from(value);
                return Ok(State::Size { digits: digits + 1 });
            }
            (State::Size { digits: 0 }, _) => return Err(BadChunk::Malformed),
            (State::Size { .. } | State::Extension, b'\r') if self.strict => State::SizeLineFeed,
            (State::Size { .. } | State::Extension, b'\n') if self.strict => {
                return Err(BadChunk::Malformed);
            }
            (State::Size { .. } | State::Extension | State::SizeLineFeed, b'\n') => {
                if self.left == 0 {
                    State::TrailerStart
                } else {
                    State::Data
                }
            }
            (State::Size { .. }, b';' | b' ' | b'\t' | b'\r') | (State::Extension, _) => {
                State::Extension
            }
            (State::DataEnd, b'\r') => State::DataLineFeed,
            (State::DataEnd | State::TrailerStart, b'\n') if self.strict => {
                return Err(BadChunk::Malformed);
            }
            (State::DataEnd | State::DataLineFeed, b'\n') => {
                self.overhead = 0;
                State::Size { digits: 0 }
            }
            (State::TrailerStart, b'\r') => State::LastLineFeed,
            (State::TrailerStart | State::LastLineFeed, b'\n') => State::Done,
            (State::TrailerStart, _) => State::Trailer,
            (State::Trailer, b'\n') => State::TrailerStart,
            (State::Trailer, _) => State::Trailer,
            _ => return Err(BadChunk::Malformed),
        };
        if matches!(next, State::Extension | State::Trailer) {
            self.overhead += 1;
            if self.overhead > MAX_OVERHEAD_BYTES {
                return Err(BadChunk::TooLong);
            }
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), BadChunk> {
        let mut chunked = Chunked::lenient();
        let mut body = Vec::new();
        let mut used = 0;
        for piece in pieces {
            used += chunked.read(piece, |part| body.extend_from_slice(part))?;
        }
        Ok((body, used, chunked.is_done()))
    }

    #[test]
    fn data_extensions_and_trailers_are_told_apart() {
        let input = b"5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\nHTTP";
        let (body, used, done) = read(&[input]).unwrap();
        assert_eq!(body, b"hello world");
        assert_eq!(used, input.len() - 4);
        assert!(done);
    }

    #[test]
    fn every_split_gives_the_same_body() {
        let input = b"a\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n";
        for cut in 0..input.len() {
            let (body, used, done) = read(&[&input[..cut], &input[cut..]]).unwrap();
            assert_eq!(
                (body.as_slice(), used, done),
                (b"0123456789x".as_slice(), input.len(), true)
            );
        }
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        for bad in [
            b"zz\r\n".as_slice(),
            b"\r\n",
            b"5\r\nhelloX",
            b"11112222333344445\r\n",
            b"0\r\n\rX",
        ] {
            assert_eq!(read(&[bad]), Err(BadChunk::Malformed), "{bad:?}");
        }
        let endless = [b"1;".as_slice(), &vec![b'a'; 70_000]].concat();
        assert_eq!(read(&[&endless]), Err(BadChunk::TooLong));
    }

    #[test]
    fn a_strict_reader_takes_no_line_feed_alone_and_the_same_bodies() {
        let strict = |input: &[u8]| {
            let mut body = Vec::new();
            let mut chunked = Chunked::strict();
            let used = chunked.read(input, |part| body.extend_from_slice(part))?;
            Ok((body, used, chunked.is_done()))
        };
        let good = b"5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\n";
        assert_eq!(strict(good), read(&[good]));
        for bad in ["5\n", "5;a\n", "5\r\r", "5\r\nhello\n", "0\r\n\n"] {
            assert_eq!(strict(bad.as_bytes()), Err(BadChunk::Malformed), "{bad:?}");
            assert!(read(&[bad.as_bytes()]).is_ok(), "{bad:?}");
        }
    }
}
