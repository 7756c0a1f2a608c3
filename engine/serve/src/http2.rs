//! HTTP/2 on one connection: streams become requests of the state machine, and its responses become
//! frames as the client's windows allow. Sans-io; it knows nothing of sockets or of what is answered.

mod message;
mod preface;

use std::collections::VecDeque;

use prony_h2::frame::PREFACE;
use prony_h2::{Config, ErrorCode, Event, Fields, Head, Indexing, Server};

use super::behaviour::Closing;
use super::machine::{Action, Machine, OUT_BYTES, Phase};
use super::options::Http2Limits;
use super::request::{self, Framing};
use super::streams::Streams;
use super::timers::Deadline;
pub use preface::{Speaks, spoken};

use message::{expects_continue, field, write_endless, write_fields};

/// Of all streams of a connection together: only that of a stream is an option.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
const HEADER_TABLE_BYTES: u32 = 4096;
/// Of a body as much is made at once as goes into a frame.
const FRAME_BYTES: usize = 16 * 1024;
/// Streams that are over and still among those whose windows are used up, at most.
const MAX_STALE: usize = 64;
const STATS: &[u8] = b"/__prony/stats";

/// What the connections of a thread share.
#[derive(Debug)]
pub struct Thread<'a> {
    pub machine: &'a mut Machine,
    pub streams: &'a mut Streams,
    /// Bytes of a body that the state machine has just made; empty between calls.
    pub made: &'a mut Vec<u8>,
}

#[derive(Debug)]
pub struct Http2 {
    server: Server,
    /// The connection's slot.
    place: u32,
    /// Requests taken.
    served: u32,
    /// Streams with something to send, by their keys, and those whose windows are used up.
    sending: VecDeque<u64>,
    blocked: Vec<u64>,
    fields: Fields,
    /// The client opens no more streams.
    client_leaves: bool,
    leaves: bool,
    /// The connection ends with what was written.
    closes: bool,
    /// The stream whose head does not end: nothing else may be sent any more.
    endless: Option<u64>,
}

/// What became of a stream's turn to send.
enum Turn {
    /// There is more to send.
    More,
    Blocked,
    /// Nothing more for now.
    Over,
}

impl Http2 {
    /// The client's preface has come; SETTINGS go to `out`.
    pub fn new(limits: Http2Limits, place: u32, out: &mut Vec<u8>) -> Self {
        let config = Config {
            stream_window_bytes: limits.window_bytes,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            table_bytes: HEADER_TABLE_BYTES,
            max_head_bytes: request::HEAD_LIMIT_BYTES as u32,
        };
        let mut server = Server::new(config, limits.streams, out);
        // It was compared before; the server has still to hear it.
        let heard = server.read(&mut &PREFACE[..], out);
        debug_assert!(matches!(heard, Ok(None)));
        Self {
            server,
            place,
            served: 0,
            sending: VecDeque::new(),
            blocked: Vec::new(),
            fields: Fields::default(),
            client_leaves: false,
            leaves: false,
            closes: false,
            endless: None,
        }
    }

    /// Takes bytes that the client sent.
    pub fn received(
        &mut self,
        thread: &mut Thread<'_>,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Action {
        loop {
            let (key, action) = match self.server.read(&mut bytes, out) {
                Ok(None) => break,
                Ok(Some(Event::Head { key: id, head, end })) => {
                    let key = thread.streams.open(self.place, id);
                    let action = match begin(thread, key, head, end, self.served) {
                        Some(action) => action,
                        None => Action::Reset,
                    };
                    self.served += u32::from(head.path != STATS);
                    let asks = !end && expects_continue(head);
                    self.server.accept(id, Streams::place(key));
                    if asks && action == Action::Read {
                        self.fields.clear();
                        self.fields.push(b":status", b"100", Indexing::Kept);
                        self.server.respond(id, &self.fields, false, out);
                    }
                    (key, action)
                }
                Ok(Some(Event::Data { key, bytes, end })) => {
                    let key = thread.streams.key(key);
                    let Some(stream) = thread.streams.find(key) else {
                        continue;
                    };
                    Machine::stream_body(&mut stream.http, bytes);
                    if !end {
                        continue;
                    }
                    let http = &mut stream.http;
                    (key, thread.machine.stream_ends(http, key, thread.made))
                }
                Ok(Some(Event::Trailers { key })) => {
                    let key = thread.streams.key(key);
                    let Some(stream) = thread.streams.find(key) else {
                        continue;
                    };
                    let http = &mut stream.http;
                    (key, thread.machine.stream_ends(http, key, thread.made))
                }
                Ok(Some(
                    Event::Reset { key, .. }
                    | Event::Broken { key, .. }
                    | Event::HeadTooLong { key },
                )) => {
                    let key = thread.streams.key(key);
                    thread.streams.close(key, thread.machine);
                    continue;
                }
                Ok(Some(Event::GoAway { .. })) => {
                    self.client_leaves = true;
                    continue;
                }
                Ok(Some(Event::Settings | Event::Window)) => {
                    self.sending.extend(self.blocked.drain(..));
                    continue;
                }
                // Only servers send them.
                Ok(Some(Event::Interim { .. } | Event::Unprocessed { .. })) => continue,
                Err(error) => {
                    thread.machine.counters.malformed.add(1);
                    self.server.leave(error.code, out);
                    self.closes = true;
                    return Action::Close;
                }
            };
            self.act(thread, key, action, out);
        }
        let refused = self.server.take_tally().streams_refused;
        thread.machine.counters.streams_refused.add(refused);
        self.pump(thread, out)
    }

    /// A deadline of a stream is due. `congested`: earlier output is still waiting for the kernel.
    pub fn due(
        &mut self,
        thread: &mut Thread<'_>,
        deadline: Deadline,
        congested: bool,
        out: &mut Vec<u8>,
    ) -> Action {
        if let Some(stream) = thread.streams.find(deadline.key) {
            let http = &mut stream.http;
            if let Some(action) = thread.machine.due(http, deadline, congested, thread.made) {
                self.act(thread, deadline.key, action, out);
            }
        }
        self.go_on(thread, congested, out)
    }

    /// A stream was given the worker it waited for.
    pub fn grant(
        &mut self,
        thread: &mut Thread<'_>,
        key: u64,
        congested: bool,
        out: &mut Vec<u8>,
    ) -> Action {
        if let Some(stream) = thread.streams.find(key) {
            let action = thread.machine.grant(&mut stream.http, key, thread.made);
            self.act(thread, key, action, out);
        }
        self.go_on(thread, congested, out)
    }

    /// Bodies wait while the kernel takes nothing.
    fn go_on(&mut self, thread: &mut Thread<'_>, congested: bool, out: &mut Vec<u8>) -> Action {
        match congested {
            true => Action::Drain,
            false => self.pump(thread, out),
        }
    }

    /// Writes bodies, as far as the windows allow and without more at once than is sent at once.
    pub fn pump(&mut self, thread: &mut Thread<'_>, out: &mut Vec<u8>) -> Action {
        if self.endless.is_none() {
            while let Some(key) = self.sending.pop_front() {
                match self.send(thread, key, out) {
                    Turn::More => self.sending.push_back(key),
                    Turn::Blocked => self.blocked.push(key),
                    Turn::Over => {}
                }
                if out.len() > OUT_BYTES && !self.sending.is_empty() {
                    return Action::Drain;
                }
            }
        }
        // Streams that were given up are not waited for.
        if self.blocked.len() > MAX_STALE + 2 * self.server.open_streams() {
            self.blocked
                .retain(|key| thread.streams.find(*key).is_some());
        }
        let gone = self.client_leaves && self.server.open_streams() == 0;
        match self.closes || self.server.has_left() || gone {
            true => Action::Close,
            false => Action::Read,
        }
    }

    /// The connection is over, and with it all of its streams.
    pub fn end(&mut self, streams: &mut Streams, machine: &mut Machine) {
        for place in self.server.keys().collect::<Vec<_>>() {
            streams.close(streams.key(place), machine);
        }
    }

    /// Does on a stream what the state machine says.
    fn act(&mut self, thread: &mut Thread<'_>, key: u64, action: Action, out: &mut Vec<u8>) {
        let Thread {
            machine,
            streams,
            made,
        } = thread;
        let Some(stream) = streams.find(key) else {
            return made.clear();
        };
        if self.endless.is_some_and(|endless| endless != key) {
            return made.clear();
        }
        match action {
            Action::Reset | Action::Drop => {
                made.clear();
                self.server.reset(stream.id, ErrorCode::INTERNAL_ERROR, out);
                return streams.close(key, machine);
            }
            Action::Ignore => return,
            Action::Hold | Action::Drain | Action::Read | Action::Close => {}
        }
        if stream.http.phase == Phase::Endless {
            let begins = self.endless.replace(key).is_none();
            write_endless(stream.id, begins, made, out);
            return made.clear();
        }
        if let Some((head, empty)) = Machine::take_head(&mut stream.http) {
            write_fields(&head, &mut self.fields);
            stream.responded = true;
            stream.closing = head.closing;
            stream.cut = head.cut && head.length.is_none();
            self.server
                .respond(stream.id, &self.fields, empty && !stream.cut, out);
            if empty && !stream.cut {
                return self.over(thread, key, out);
            }
            stream.whole = empty;
        }
        if !stream.responded {
            if action == Action::Close {
                // What is no HTTP at all: it ends the connection.
                out.append(made);
                self.closes = true;
            }
            return made.clear();
        }
        stream.unsent.append(made);
        stream.whole |= matches!(action, Action::Read | Action::Close);
        if !std::mem::replace(&mut stream.queued, true) {
            self.sending.push_back(key);
        }
    }

    /// Sends of a stream's body what fits into a frame.
    fn send(&mut self, thread: &mut Thread<'_>, key: u64, out: &mut Vec<u8>) -> Turn {
        let Some(stream) = thread.streams.find(key) else {
            return Turn::Over;
        };
        let id = stream.id;
        if stream.unsent.is_empty() && !stream.whole {
            if stream.http.phase != Phase::Streaming {
                stream.queued = false;
                return Turn::Over;
            }
            let limit = self.server.window_bytes(id).min(FRAME_BYTES);
            if limit == 0 {
                return Turn::Blocked;
            }
            let action = Machine::fill(&mut stream.http, &mut stream.unsent, limit);
            stream.whole = action != Action::Drain;
        }
        let ends = stream.whole && !stream.cut;
        let taken = self.server.send(id, &stream.unsent, ends, out);
        stream.unsent.drain(..taken);
        if !stream.unsent.is_empty() {
            return Turn::Blocked;
        }
        if !stream.whole {
            return Turn::More;
        }
        if stream.cut {
            self.server.reset(id, ErrorCode::INTERNAL_ERROR, out);
        }
        self.over(thread, key, out);
        Turn::Over
    }

    /// The response has gone out whole.
    fn over(&mut self, thread: &mut Thread<'_>, key: u64, out: &mut Vec<u8>) {
        let closing = thread
            .streams
            .find(key)
            .map_or(Closing::Never, |stream| stream.closing);
        thread.streams.close(key, thread.machine);
        match closing {
            Closing::Never => {}
            Closing::Silent => self.closes = true,
            Closing::Announced if self.leaves => {}
            Closing::Announced => {
                self.leaves = true;
                self.server.leave(ErrorCode::NO_ERROR, out);
            }
        }
    }
}

/// Hands a request to the state machine; `None`: its target is not text.
fn begin(
    thread: &mut Thread<'_>,
    key: u64,
    head: &Head,
    whole: bool,
    served: u32,
) -> Option<Action> {
    let stream = thread.streams.find(key)?;
    let target = std::str::from_utf8(&head.path).ok();
    let Some(target) = target else {
        thread.machine.counters.malformed.add(1);
        return None;
    };
    let request = request::Head {
        target,
        head_only: head.method == b"HEAD",
        http10: false,
        keep_alive: true,
        expects_continue: false,
        framing: Framing::None,
        content_type: field(head, b"content-type"),
        length: 0,
    };
    stream.http.served = served;
    let http = &mut stream.http;
    Some(
        thread
            .machine
            .stream_begins(http, key, &request, whole, thread.made),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use prony_h2::Client;

    use super::super::behaviour::{Behaviour, Settings};
    use super::super::shared::Shared;
    use super::*;

    const CONFIG: Config = Config {
        stream_window_bytes: 1,
        connection_window_bytes: 65_535,
        table_bytes: 4096,
        max_head_bytes: 65_536,
    };

    #[test]
    fn streams_that_wait_for_a_window_and_are_given_up_leave_nothing_behind() {
        let limits = Http2Limits::default();
        let behaviour = Behaviour {
            settings: Settings::default(),
            stall: None,
            close_after: None,
            workers: None,
            warmup: None,
            slowdown: None,
            start_factor: 1.0,
            seed: 1,
        };
        let shared = Shared::new(behaviour, 1, None, Some(limits), None).unwrap();
        let mut machine = Machine::new(Arc::new(shared), 0);
        let (mut streams, mut made) = (Streams::default(), Vec::new());
        let mut thread = Thread {
            machine: &mut machine,
            streams: &mut streams,
            made: &mut made,
        };
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        let mut client = Client::new(CONFIG, &mut to_server);
        let mut http2 = Http2::new(limits, 0, &mut to_client);
        to_server.drain(..PREFACE.len());
        http2.received(&mut thread, &to_server, &mut to_client);
        let mut input = &to_client[..];
        while client.read(&mut input, &mut to_server).unwrap().is_some() {}
        let mut request = Fields::default();
        for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/")] {
            request.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
        }
        for key in 0..1000 {
            to_server.clear();
            let id = client.open(key, &request, true, &mut to_server);
            client.reset(id, ErrorCode::CANCEL, &mut to_server);
            let (head, reset) = to_server.split_at(to_server.len() - 13);
            http2.received(&mut thread, head, &mut to_client);
            assert_eq!(http2.server.open_streams(), 1);
            http2.received(&mut thread, reset, &mut to_client);
        }
        assert_eq!(http2.server.open_streams(), 0);
        assert!(http2.blocked.len() <= MAX_STALE, "{}", http2.blocked.len());
    }
}
