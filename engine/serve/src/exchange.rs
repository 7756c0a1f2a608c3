//! The reading half of a connection's state machine. Sans-io: bytes come in, bytes and a `Step` go out; sockets,
//! readiness and the kernel's buffers are the event loop's affair.

use super::cases::Place;
use super::draw::Fate;
use super::machine::{Detail, ECHO_BYTES, Exchange, Machine, OUT_BYTES, Pending, Phase, Step};
use super::request::{self, BodyReader, Fault, Head};

/// How long a closed connection is still read from, so that the client gets the end instead of a reset.
const LINGER_NS: u64 = 1_000_000_000;

impl Machine {
    /// Takes bytes that the client sent.
    pub fn received(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Step {
        match exchange.phase {
            Phase::Mute | Phase::Lingering => return Step::Ignore,
            Phase::Reading => {}
            _ => {
                exchange.detail().input.extend_from_slice(bytes);
                return Step::Hold;
            }
        }
        let saved = exchange
            .detail
            .as_mut()
            .filter(|detail| !detail.input.is_empty());
        if let Some(detail) = saved {
            detail.input.extend_from_slice(bytes);
            // A head has no end without a line feed: a request that comes byte by byte is not read anew for each.
            let hopeless = detail.body.is_none() && !bytes.contains(&b'\n');
            if hopeless && detail.input.len() <= request::HEAD_LIMIT_BYTES {
                return Step::Read;
            }
            return self.resume(exchange, key, out);
        }
        let (used, step) = self.consume(exchange, key, bytes, out);
        if used < bytes.len() {
            exchange.detail().input.extend_from_slice(&bytes[used..]);
        }
        Self::tidy(exchange);
        step
    }

    /// Goes on with what was received before.
    fn resume(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        let mut input = match exchange.detail.as_mut() {
            Some(detail) if !detail.input.is_empty() => std::mem::take(&mut detail.input),
            _ => {
                Self::tidy(exchange);
                return Step::Read;
            }
        };
        let (used, step) = self.consume(exchange, key, &input, out);
        if used < input.len() {
            input.drain(..used);
            exchange.detail().input = input;
        }
        Self::tidy(exchange);
        step
    }

    /// An idle connection keeps nothing.
    fn tidy(exchange: &mut Exchange) {
        if exchange.phase == Phase::Reading
            && exchange
                .detail
                .as_ref()
                .is_some_and(|detail| detail.input.is_empty() && detail.pending.is_none())
        {
            exchange.detail = None;
        }
    }

    /// Reads and answers as many requests as there are; returns how many bytes were used up.
    fn consume(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Step) {
        let mut at = 0;
        loop {
            let pending = if exchange
                .detail
                .as_ref()
                .is_some_and(|detail| detail.body.is_some())
            {
                match Self::read_body(exchange.detail(), &input[at..]) {
                    Ok((used, None)) => return (at + used, Step::Read),
                    Ok((used, Some(pending))) => {
                        at += used;
                        pending
                    }
                    Err(fault) => return (input.len(), self.refuse(fault, out)),
                }
            } else if at == input.len() {
                return (at, Step::Read);
            } else {
                match request::read_head(&input[at..]) {
                    Ok(None) => return (at, Step::Read),
                    Err(fault) => return (input.len(), self.refuse(fault, out)),
                    Ok(Some(head)) => {
                        at += head.length;
                        let pending = self.pending(&head);
                        let body = BodyReader::new(head.framing);
                        if !body.is_done() {
                            if head.expects_continue && !head.http10 && at == input.len() {
                                out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                            }
                            let detail = exchange.detail();
                            detail.pending = Some(pending);
                            detail.body = Some(body);
                            continue;
                        }
                        pending
                    }
                }
            };
            let step = self.begin(exchange, key, pending, out);
            if step != Step::Read {
                return (at, step);
            }
            if out.len() > OUT_BYTES {
                return (at, Step::Drain);
            }
        }
    }

    fn pending(&mut self, head: &Head<'_>) -> Pending {
        let (place, found) = self.cases.find(head.target);
        let (case, refusal) = match found {
            Ok(case) => (case, None),
            Err(reason) => (self.cases.usual(), Some(reason)),
        };
        let content_type = match head.content_type {
            Some(value) if place == Place::Echo => {
                Some(String::from_utf8_lossy(value).into_owned())
            }
            _ => None,
        };
        Pending {
            case,
            place,
            head_only: head.head_only,
            http10: head.http10,
            keep_alive: head.keep_alive,
            content_type,
            refusal,
            fate: Fate::Answer,
        }
    }

    /// Takes body bytes; gives the request back when its body is whole.
    fn read_body(detail: &mut Detail, input: &[u8]) -> Result<(usize, Option<Pending>), Fault> {
        let Detail {
            body: Some(body),
            echo,
            pending,
            ..
        } = detail
        else {
            return Ok((0, None));
        };
        let keep = pending
            .as_ref()
            .is_some_and(|pending| pending.place == Place::Echo);
        let used = body.read(input, |bytes| {
            if keep && echo.len() <= ECHO_BYTES {
                echo.extend_from_slice(bytes);
            }
        })?;
        if !body.is_done() {
            return Ok((used, None));
        }
        detail.body = None;
        Ok((used, detail.pending.take()))
    }

    /// All bytes made so far are sent, and `out` is empty.
    pub fn drained(&mut self, exchange: &mut Exchange, key: u64, out: &mut Vec<u8>) -> Step {
        if exchange.phase != Phase::Streaming {
            return self.resume(exchange, key, out);
        }
        let Some(rest) = exchange.detail().rest.as_mut() else {
            return Step::Drop;
        };
        rest.stream.fill(out, OUT_BYTES);
        if !rest.stream.is_done() {
            return Step::Drain;
        }
        let close = rest.close;
        exchange.detail().rest = None;
        let step = Self::after_answer(exchange, close);
        self.go_on(exchange, key, step, out)
    }

    /// After an answer that came later than its request: goes on with what the client has sent meanwhile.
    pub(super) fn go_on(
        &mut self,
        exchange: &mut Exchange,
        key: u64,
        step: Step,
        out: &mut Vec<u8>,
    ) -> Step {
        if step == Step::Read {
            self.resume(exchange, key, out)
        } else {
            step
        }
    }

    /// The event loop has ended the sending side of the connection.
    pub fn linger(&mut self, exchange: &mut Exchange, key: u64) {
        exchange.detail = None;
        let until_ns = self.shared.clock.now_ns() + LINGER_NS;
        self.wait(exchange, key, Phase::Lingering, until_ns);
    }

    /// The connection is gone.
    pub fn closed(&mut self, exchange: &mut Exchange) {
        if matches!(
            exchange.phase,
            Phase::Queued | Phase::Stalled | Phase::Serving
        ) {
            self.counters.abandoned.add(1);
        }
        self.release_worker(exchange);
        *exchange = Exchange {
            ticket: exchange.ticket.wrapping_add(1),
            ..Exchange::default()
        };
    }
}

/// A machine with one connection and no socket.
#[cfg(test)]
pub(super) mod testing {
    use std::sync::Arc;

    use super::super::script::{Script, Settings};
    use super::super::shared::Shared;
    use super::super::timers::Deadline;
    use super::*;

    pub struct Bench {
        machine: Machine,
        exchange: Exchange,
        out: Vec<u8>,
        sent: Vec<u8>,
    }

    impl Bench {
        pub fn new(change: impl FnOnce(&mut Settings)) -> Self {
            let mut settings = Settings::default();
            change(&mut settings);
            let script = Script {
                settings,
                stall: None,
                close_after: None,
                workers: None,
                warmup: None,
                slowdown: None,
                start_factor: 1.0,
                seed: 1,
            };
            let shared = Shared::new(script, 1, None, None).unwrap();
            Self {
                machine: Machine::new(Arc::new(shared), 0),
                exchange: Exchange::default(),
                out: Vec::new(),
                sent: Vec::new(),
            }
        }

        /// Hands over bytes; goes on by itself while there is more to send.
        pub fn receive(&mut self, bytes: &[u8]) -> Step {
            let Self {
                machine,
                exchange,
                out,
                sent,
            } = self;
            let mut step = machine.received(exchange, 0, bytes, out);
            while step == Step::Drain {
                sent.append(out);
                step = machine.drained(exchange, 0, out);
            }
            step
        }

        /// Makes the earliest deadline due.
        pub fn due(&mut self, congested: bool) -> Option<Step> {
            let deadline: Deadline = self.machine.timers.pop_due(u64::MAX)?;
            self.machine
                .due(&mut self.exchange, deadline, congested, &mut self.out)
        }

        pub fn close(&mut self) {
            self.machine.closed(&mut self.exchange);
        }

        pub fn sent(&mut self) -> Vec<u8> {
            self.sent.append(&mut self.out);
            std::mem::take(&mut self.sent)
        }

        pub fn keeps_nothing(&self) -> bool {
            self.exchange.detail.is_none()
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
            std::mem::size_of::<Exchange>() <= 32,
            "{}",
            std::mem::size_of::<Exchange>()
        );
        let mut bench = Bench::new(|_| {});
        for request in REQUESTS {
            assert_eq!(bench.receive(request.as_bytes()), Step::Read);
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
            prop_assert_eq!(whole.receive(wire.as_bytes()), Step::Read);
            let mut cut = Bench::new(|_| {});
            let mut rest = wire.as_bytes();
            for length in cuts {
                let (piece, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                if !piece.is_empty() {
                    prop_assert_eq!(cut.receive(piece), Step::Read);
                }
            }
            if !rest.is_empty() {
                prop_assert_eq!(cut.receive(rest), Step::Read);
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
