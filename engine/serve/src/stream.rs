//! Requests that come on streams of HTTP/2, and the bodies of their responses: what `receive` is to
//! connections of HTTP/1.1. Sans-io, and it knows nothing of frames or windows.

use super::machine::{Action, ECHO_BYTES, HttpState, Machine, Phase, RequestState, ResponseHead};
use super::request::Head;
use super::routes::Endpoint;

impl Machine {
    /// The head of a request has come; `whole`: it has no body. `out` gets of the response what is
    /// body.
    pub fn stream_begins(
        &mut self,
        http: &mut HttpState,
        key: u64,
        head: &Head<'_>,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Action {
        let pending = self.pending(head);
        if whole {
            return self.begin(http, key, pending, out);
        }
        http.request().pending = Some(pending);
        Action::Read
    }

    /// Bytes of a request's body have come.
    pub fn stream_body(http: &mut HttpState, bytes: &[u8]) {
        let RequestState { pending, echo, .. } = http.request();
        let keep = pending
            .as_ref()
            .is_some_and(|pending| pending.endpoint == Endpoint::Echo);
        if keep && echo.len() <= ECHO_BYTES {
            echo.extend_from_slice(bytes);
        }
    }

    /// The body of a request has come whole.
    pub fn stream_ends(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        match http.request().pending.take() {
            Some(pending) => self.begin(http, key, pending, out),
            None => Action::Drop,
        }
    }

    /// The head of the response, once it is due and was not taken before; and whether nothing
    /// follows it.
    pub(super) fn take_head(http: &mut HttpState) -> Option<(Box<ResponseHead>, bool)> {
        let rest = http.request.as_mut()?.rest.as_mut()?;
        let head = rest.head.take()?;
        Some((
            head,
            rest.stream.is_done() && rest.made.len() == rest.dripped,
        ))
    }

    /// Appends more of a response's body, up to so many bytes in `out`. Anything but
    /// [`Action::Drain`]: that was all.
    pub fn fill(http: &mut HttpState, out: &mut Vec<u8>, limit: usize) -> Action {
        let Some(rest) = http.request().rest.as_mut() else {
            return Action::Drop;
        };
        rest.stream.fill(out, limit);
        if !rest.stream.is_done() {
            return Action::Drain;
        }
        http.request = None;
        http.phase = Phase::Reading;
        Action::Read
    }
}
