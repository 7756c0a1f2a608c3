//! The reading half of a connection's state machine. Sans-io: bytes come in, bytes and an
//! [`Action`] go out; sockets, readiness and the kernel's buffers are the event loop's affair.

use super::machine::{
    Action, ECHO_BYTES, HttpState, Machine, OUT_BYTES, Pending, Phase, RequestState,
};
use super::random::Outcome;
use super::request::{self, BodyReader, Head, RequestError};
use super::routes::Endpoint;

/// How long a closed connection is still read, so that the client sees the end and not a reset.
const LINGER_NS: u64 = 1_000_000_000;

impl Machine {
    /// Takes bytes that the client sent.
    pub fn received(
        &mut self,
        http: &mut HttpState,
        key: u64,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Action {
        match http.phase {
            Phase::Mute | Phase::Lingering => return Action::Ignore,
            Phase::Reading => {}
            _ => {
                http.request().input.extend_from_slice(bytes);
                return Action::Hold;
            }
        }
        let saved = http
            .request
            .as_mut()
            .filter(|request| !request.input.is_empty());
        if let Some(request) = saved {
            request.input.extend_from_slice(bytes);
            // A head cannot end without a line feed: one that comes byte by byte is not parsed for
            // each.
            let hopeless = request.body.is_none() && !bytes.contains(&b'\n');
            if hopeless && request.input.len() <= request::HEAD_LIMIT_BYTES {
                return Action::Read;
            }
            return self.resume(http, key, out);
        }
        let (used, action) = self.consume(http, key, bytes, out);
        if used < bytes.len() {
            http.request().input.extend_from_slice(&bytes[used..]);
        }
        Self::tidy(http);
        action
    }

    /// Goes on with buffered input.
    fn resume(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        let mut input = match http.request.as_mut() {
            Some(request) if !request.input.is_empty() => std::mem::take(&mut request.input),
            _ => {
                Self::tidy(http);
                return Action::Read;
            }
        };
        let (used, action) = self.consume(http, key, &input, out);
        if used < input.len() {
            input.drain(..used);
            http.request().input = input;
        }
        Self::tidy(http);
        action
    }

    /// An idle connection keeps no buffers.
    fn tidy(http: &mut HttpState) {
        if http.phase == Phase::Reading
            && http
                .request
                .as_ref()
                .is_some_and(|request| request.input.is_empty() && request.pending.is_none())
        {
            http.request = None;
        }
    }

    /// Reads and responses all requests in `input`; returns the bytes consumed.
    fn consume(
        &mut self,
        http: &mut HttpState,
        key: u64,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Action) {
        let mut at = 0;
        loop {
            let pending = if http
                .request
                .as_ref()
                .is_some_and(|request| request.body.is_some())
            {
                match Self::read_body(http.request(), &input[at..]) {
                    Ok((used, None)) => return (at + used, Action::Read),
                    Ok((used, Some(pending))) => {
                        at += used;
                        pending
                    }
                    Err(error) => return (input.len(), self.refuse(error, out)),
                }
            } else if at == input.len() {
                return (at, Action::Read);
            } else {
                match request::read_head(&input[at..]) {
                    Ok(None) => return (at, Action::Read),
                    Err(error) => return (input.len(), self.refuse(error, out)),
                    Ok(Some(head)) => {
                        at += head.length;
                        let pending = self.pending(&head);
                        let body = BodyReader::new(head.framing);
                        if !body.is_done() {
                            if head.expects_continue && !head.http10 && at == input.len() {
                                out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                            }
                            let request = http.request();
                            request.pending = Some(pending);
                            request.body = Some(body);
                            continue;
                        }
                        pending
                    }
                }
            };
            let action = self.begin(http, key, pending, out);
            if action != Action::Read {
                return (at, action);
            }
            if out.len() > OUT_BYTES {
                return (at, Action::Drain);
            }
        }
    }

    pub(super) fn pending(&mut self, head: &Head<'_>) -> Pending {
        let (endpoint, found) = self.routes.find(head.target);
        let (handler, refusal) = match found {
            Ok(handler) => (handler, None),
            Err(reason) => (self.routes.usual(), Some(reason)),
        };
        let content_type = match head.content_type {
            Some(value) if endpoint == Endpoint::Echo => {
                Some(String::from_utf8_lossy(value).into_owned())
            }
            _ => None,
        };
        Pending {
            handler,
            endpoint,
            head_only: head.head_only,
            http10: head.http10,
            keep_alive: head.keep_alive,
            content_type,
            refusal,
            outcome: Outcome::Normal,
        }
    }

    /// Takes body bytes; gives the request back when its body is whole.
    fn read_body(
        request: &mut RequestState,
        input: &[u8],
    ) -> Result<(usize, Option<Pending>), RequestError> {
        let RequestState {
            body: Some(body),
            echo,
            pending,
            ..
        } = request
        else {
            return Ok((0, None));
        };
        let keep = pending
            .as_ref()
            .is_some_and(|pending| pending.endpoint == Endpoint::Echo);
        let used = body.read(input, |bytes| {
            if keep && echo.len() <= ECHO_BYTES {
                echo.extend_from_slice(bytes);
            }
        })?;
        if !body.is_done() {
            return Ok((used, None));
        }
        request.body = None;
        Ok((used, request.pending.take()))
    }

    /// All bytes made so far are sent, and `out` is empty.
    pub fn drained(&mut self, http: &mut HttpState, key: u64, out: &mut Vec<u8>) -> Action {
        if http.phase != Phase::Streaming {
            return self.resume(http, key, out);
        }
        let Some(rest) = http.request().rest.as_mut() else {
            return Action::Drop;
        };
        rest.stream.fill(out, OUT_BYTES);
        if !rest.stream.is_done() {
            return Action::Drain;
        }
        let close = rest.close;
        http.request().rest = None;
        let action = Self::after_response(http, close);
        self.go_on(http, key, action, out)
    }

    /// After a delayed response: goes on with what the client has sent meanwhile.
    pub(super) fn go_on(
        &mut self,
        http: &mut HttpState,
        key: u64,
        action: Action,
        out: &mut Vec<u8>,
    ) -> Action {
        if action == Action::Read {
            self.resume(http, key, out)
        } else {
            action
        }
    }

    /// The event loop has ended the sending side of the connection.
    pub fn linger(&mut self, http: &mut HttpState, key: u64) {
        http.request = None;
        let until_ns = self.shared.clock.now_ns() + LINGER_NS;
        self.wait(http, key, Phase::Lingering, until_ns);
    }

    /// The connection is gone.
    pub fn closed(&mut self, http: &mut HttpState) {
        if matches!(http.phase, Phase::Queued | Phase::Stalled | Phase::Serving) {
            self.counters.abandoned.add(1);
        }
        self.release_worker(http);
        *http = HttpState {
            ticket: http.ticket.wrapping_add(1),
            ..HttpState::default()
        };
    }
}

/// A machine with one connection and no socket.
#[cfg(test)]
pub(super) mod testing {
    use std::sync::Arc;

    use super::super::behaviour::{Behaviour, Settings};
    use super::super::shared::Shared;
    use super::super::timers::Deadline;
    use super::*;

    pub struct Bench {
        machine: Machine,
        http: HttpState,
        out: Vec<u8>,
        sent: Vec<u8>,
    }

    impl Bench {
        pub fn new(change: impl FnOnce(&mut Settings)) -> Self {
            let mut settings = Settings::default();
            change(&mut settings);
            let behaviour = Behaviour {
                settings,
                stall: None,
                close_after: None,
                workers: None,
                warmup: None,
                slowdown: None,
                start_factor: 1.0,
                seed: 1,
            };
            let shared = Shared::new(behaviour, 1, None, None, None).unwrap();
            Self {
                machine: Machine::new(Arc::new(shared), 0),
                http: HttpState::default(),
                out: Vec::new(),
                sent: Vec::new(),
            }
        }

        /// Hands over bytes; goes on by itself while there is more to send.
        pub fn receive(&mut self, bytes: &[u8]) -> Action {
            let Self {
                machine,
                http,
                out,
                sent,
            } = self;
            let mut action = machine.received(http, 0, bytes, out);
            while action == Action::Drain {
                sent.append(out);
                action = machine.drained(http, 0, out);
            }
            action
        }

        /// Makes the earliest deadline due.
        pub fn due(&mut self, congested: bool) -> Option<Action> {
            let deadline: Deadline = self.machine.timers.pop_due(u64::MAX)?;
            self.machine
                .due(&mut self.http, deadline, congested, &mut self.out)
        }

        pub fn close(&mut self) {
            self.machine.closed(&mut self.http);
        }

        pub fn sent(&mut self) -> Vec<u8> {
            self.sent.append(&mut self.out);
            std::mem::take(&mut self.sent)
        }

        pub fn keeps_nothing(&self) -> bool {
            self.http.request.is_none()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Bench;
    use super::*;
    use proptest::prelude::*;

    const REQUESTS: [&str; 6] = [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "HEAD /?bytes=7 HTTP/1.1\r\n\r\n",
        "POST /echo HTTP/1.1\r\nContent-Length: 11\r\n\r\nhello world",
        "PUT /echo?chunked HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n",
        "GET /?bytes=200000 HTTP/1.1\r\n\r\n",
        "GET /?delay=soon HTTP/1.1\r\n\r\n",
    ];

    #[test]
    fn an_idle_connection_is_small() {
        assert!(
            std::mem::size_of::<HttpState>() <= 32,
            "{}",
            std::mem::size_of::<HttpState>()
        );
        let mut bench = Bench::new(|_| {});
        for request in REQUESTS {
            assert_eq!(bench.receive(request.as_bytes()), Action::Read);
            assert!(bench.keeps_nothing(), "{request}");
        }
    }

    proptest! {
        #[test]
        fn requests_are_answered_alike_however_they_are_cut(
            picks in proptest::collection::vec(0usize..REQUESTS.len(), 1..6),
            cuts in proptest::collection::vec(1usize..40, 0..30),
        ) {
            let wire: String = picks.iter().map(|pick| REQUESTS[*pick]).collect();
            let mut whole = Bench::new(|_| {});
            prop_assert_eq!(whole.receive(wire.as_bytes()), Action::Read);
            let mut cut = Bench::new(|_| {});
            let mut rest = wire.as_bytes();
            for length in cuts {
                let (piece, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                if !piece.is_empty() {
                    prop_assert_eq!(cut.receive(piece), Action::Read);
                }
            }
            if !rest.is_empty() {
                prop_assert_eq!(cut.receive(rest), Action::Read);
            }
            prop_assert!(whole.sent() == cut.sent());
            prop_assert!(whole.keeps_nothing() && cut.keeps_nothing());
        }

        #[test]
        fn no_bytes_make_the_machine_panic(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..6),
            valid in 0usize..REQUESTS.len(),
        ) {
            let mut bench = Bench::new(|_| {});
            bench.receive(&REQUESTS[valid].as_bytes()[..REQUESTS[valid].len() / 2]);
            for piece in pieces {
                bench.receive(&piece);
            }
        }
    }
}
