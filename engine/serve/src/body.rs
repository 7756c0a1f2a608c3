//! The body of a response, made piece by piece so that a long one needs no memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::behaviour::{Closing, Content, PIECE_BYTES};
use super::connection::{Connection, Ending};

/// Largest chunk of a chunked response.
const CHUNK_BYTES: u64 = 16 * 1024;

#[derive(Debug)]
pub struct Body {
    content: Content,
    at: u64,
    /// Where it ends: the length, or less when it is cut.
    stop: u64,
    pub piece_bytes: u64,
    /// Its length is not declared.
    pub is_chunked: bool,
    /// It ends before its length; then the connection does.
    pub is_cut: bool,
    pub closing: Closing,
    pub drip_ns: Option<u64>,
    /// The connection that ends with it, unannounced.
    pub ends: Option<Rc<Connection>>,
}

impl Body {
    pub fn new(content: Content, is_chunked: bool) -> Self {
        let length = content.length();
        Self {
            // At least two chunks where there are two bytes, or it would test nothing.
            piece_bytes: match is_chunked {
                true => length.div_ceil(2).clamp(1, CHUNK_BYTES),
                false => PIECE_BYTES,
            },
            content,
            at: 0,
            stop: length,
            is_chunked,
            is_cut: false,
            closing: Closing::Never,
            drip_ns: None,
            ends: None,
        }
    }

    /// Ends after half of the content.
    pub fn cut(mut self) -> Self {
        self.stop /= 2;
        self.is_cut = true;
        self.closing = Closing::Silent;
        self
    }

    /// Of the same response to HEAD.
    pub fn without_content(mut self) -> Self {
        self.stop = 0;
        self
    }

    pub fn left_bytes(&self) -> u64 {
        self.stop - self.at
    }

    pub fn is_done(&self) -> bool {
        self.at == self.stop
    }

    pub fn next(&mut self) -> Option<Bytes> {
        if self.is_done() {
            return None;
        }
        let to = self.stop.min(self.at + self.piece_bytes);
        let piece = self.content.piece(self.at, to);
        self.at = to;
        Some(piece)
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.next() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if self.is_cut => {
                // No end of the message: the connection ends once this much is sent.
                if let Some(connection) = &self.ends {
                    connection.end(Ending::Close);
                }
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_done() && !self.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        match self.is_cut || self.is_chunked {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.left_bytes()),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(connection) = &self.ends {
            connection.end(Ending::Close);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(mut body: Body) -> Vec<Bytes> {
        std::iter::from_fn(|| body.next()).collect()
    }

    #[test]
    fn pieces_add_up() {
        let content = Content::Bytes(Bytes::from_static(b"abcde"));
        assert_eq!(pieces(Body::new(content.clone(), true)), ["abc", "de"]);
        assert_eq!(pieces(Body::new(content.clone(), true).cut()), ["ab"]);
        assert_eq!(pieces(Body::new(content.clone(), false).cut()), ["ab"]);
        assert_eq!(pieces(Body::new(content, false)), ["abcde"]);
        assert!(pieces(Body::new(Content::Pattern(0), true)).is_empty());
    }

    proptest! {
        #[test]
        fn chunks_change_nothing_but_the_pieces(length in 0u64..200_000) {
            let whole = |chunked| pieces(Body::new(Content::Pattern(length), chunked)).concat();
            prop_assert_eq!(whole(false).len() as u64, length);
            prop_assert_eq!(whole(false), whole(true));
        }
    }
}
