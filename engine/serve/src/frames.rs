//! What is read of HTTP/2 beside h2: its preface, and the frames by which h2 refuses streams.

use h2::Reason;

pub const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD_BYTES: usize = 9;

/// Counts RST_STREAM with REFUSED_STREAM among the frames that are sent: h2 refuses streams by
/// itself and says so nowhere else.
#[derive(Debug, Default)]
pub struct RefusedStreams {
    /// The head of a frame, and the code of RST_STREAM.
    begin: Vec<u8>,
    skip: usize,
}

impl RefusedStreams {
    const RST_STREAM: u8 = 3;

    /// Those that end with these bytes.
    pub fn count(&mut self, mut bytes: &[u8]) -> u64 {
        let mut refused = 0;
        while !bytes.is_empty() {
            let skip = self.skip.min(bytes.len());
            self.skip -= skip;
            bytes = &bytes[skip..];
            let needed = match self.begin.get(3) {
                Some(&Self::RST_STREAM) => FRAME_HEAD_BYTES + 4,
                _ => FRAME_HEAD_BYTES,
            };
            let take = (needed - self.begin.len()).min(bytes.len());
            self.begin.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            match self.begin[..] {
                [_, _, _, Self::RST_STREAM, _, _, _, _, _, a, b, c, d] => {
                    let code = u32::from_be_bytes([a, b, c, d]);
                    refused += u64::from(code == u32::from(Reason::REFUSED_STREAM));
                    self.begin.clear();
                }
                [a, b, c, kind, _, _, _, _, _] if kind != Self::RST_STREAM => {
                    self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
                    self.begin.clear();
                }
                _ => {}
            }
        }
        refused
    }
}
