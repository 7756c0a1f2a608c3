//! The bare loop (`--bare`): HTTP/1.x that is answered at once, always with the same bytes, for as
//! little CPU time and memory as may be. Clients are measured against it; what they measure is
//! tested against hyper.

use std::future::poll_fn;
use std::io;
use std::mem::{MaybeUninit, take};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use prony_common::chunked::Chunked;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

use super::connection::{Connection, Ending};
use super::http1::HEAD_LIMIT_BYTES;
use super::io::Io;
use super::routes::{Endpoint, endpoint};
use super::template::{Template, write_head};
use super::thread::Thread;

const HEADERS_LIMIT: usize = 100;
const MALFORMED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nServer: prony\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub async fn serve(connection: &Rc<Connection>, io: &mut Io) -> Ending {
    let thread = &connection.thread;
    let mut peer = Peer::default();
    while !peer.is_closing {
        let received = poll_fn(|context| {
            let mut buffer = thread.buffer.borrow_mut();
            let mut read = ReadBuf::new(&mut buffer);
            ready!(Pin::new(&mut *io).poll_read(context, &mut read))?;
            peer.receive(thread, read.filled());
            Poll::Ready(io::Result::Ok(read.filled().len()))
        });
        if !received.await.is_ok_and(|length| length > 0) {
            break;
        }
        if io.write_all(&peer.output).await.is_err() || io.flush().await.is_err() {
            break;
        }
        // An idle connection keeps nothing.
        peer.output = Vec::new();
    }
    Ending::Close
}

/// The state of a connection; small while idle, as there may be very many.
#[derive(Debug, Default)]
struct Peer {
    served: u32,
    /// The connection ends with the output so far.
    is_closing: bool,
    /// The begin of a head.
    input: Vec<u8>,
    /// A request whose body is being read.
    body: Option<(Skip, Request)>,
    output: Vec<u8>,
}

impl Peer {
    /// Answers the requests in what was received.
    fn receive(&mut self, thread: &Thread, received: &[u8]) {
        let joined;
        let mut input = received;
        if !self.input.is_empty() {
            joined = [&take(&mut self.input), received].concat();
            input = &joined;
        }
        while !self.is_closing {
            if let Some((skip, request)) = &mut self.body {
                let Some(used) = skip.read(input) else {
                    return self.refuse(thread);
                };
                input = &input[used..];
                if !skip.is_done() {
                    return;
                }
                let request = *request;
                self.body = None;
                self.respond(thread, request);
            } else if input.is_empty() {
                return;
            } else {
                match read_head(input) {
                    Err(()) => self.refuse(thread),
                    Ok(None) => {
                        self.input = input.to_vec();
                        return;
                    }
                    Ok(Some((length, request, skip))) => {
                        input = &input[length..];
                        self.body = Some((skip, request));
                    }
                }
            }
        }
    }

    fn refuse(&mut self, thread: &Thread) {
        thread.counters.malformed.add(1);
        thread.counters.answered(400);
        self.output.extend_from_slice(MALFORMED);
        self.is_closing = true;
    }

    fn respond(&mut self, thread: &Thread, request: Request) {
        let counters = &thread.counters;
        let stats;
        self.is_closing = !request.keeps_alive;
        let Template { head, body } = if request.is_stats {
            counters.stats_requests.add(1);
            let body = thread.shared.totals_json().into_bytes();
            let head = write_head(200, "application/json", body.len() as u64);
            stats = Template { head, body };
            &stats
        } else {
            let behaviour = &thread.shared.behaviour;
            counters.requests.add(1);
            counters.answered(behaviour.settings.status);
            self.served = self.served.saturating_add(1);
            let limit = behaviour.close_after;
            self.is_closing |= limit.is_some_and(|(limit, _)| self.served >= limit);
            &thread.template
        };
        self.output.extend_from_slice(head);
        self.output.extend_from_slice(match self.is_closing {
            true => b"Connection: close\r\n\r\n",
            false if request.is_http10 => b"Connection: keep-alive\r\n\r\n",
            false => b"\r\n",
        });
        if !request.is_head {
            self.output.extend_from_slice(body);
        }
    }
}

/// What is left of a body, which nobody keeps.
#[derive(Debug)]
enum Skip {
    Length(u64),
    Chunked(Chunked),
}

impl Skip {
    fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
        }
    }

    /// How many of these bytes belong to the body; `None`: it is malformed.
    fn read(&mut self, input: &[u8]) -> Option<usize> {
        match self {
            Self::Length(left) => {
                let take = (*left).min(input.len() as u64);
                *left -= take;
                Some(take as usize)
            }
            Self::Chunked(chunked) => chunked.read(input, |_| {}).ok(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Request {
    is_stats: bool,
    is_head: bool,
    is_http10: bool,
    keeps_alive: bool,
}

/// A head and its length; `None`: more bytes are needed. An error: it is malformed.
fn read_head(input: &[u8]) -> Result<Option<(usize, Request, Skip)>, ()> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_LIMIT];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(input, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() <= HEAD_LIMIT_BYTES => return Ok(None),
        _ => return Err(()),
    };
    let path = parsed.path.unwrap_or_default();
    let mut request = Request {
        is_stats: endpoint(path) == Endpoint::Stats,
        is_head: parsed.method == Some("HEAD"),
        is_http10: parsed.version == Some(0),
        keeps_alive: parsed.version != Some(0),
    };
    let mut skip = Skip::Length(0);
    for header in parsed.headers.iter() {
        let value = header.value.trim_ascii();
        // Told apart by length first, as this runs for every header of every request.
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                if value.eq_ignore_ascii_case(b"close") {
                    request.keeps_alive = false;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    request.keeps_alive = true;
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let text = std::str::from_utf8(value).map_err(|_| ())?;
                skip = Skip::Length(text.parse().map_err(|_| ())?);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                skip = Skip::Chunked(Chunked::strict());
            }
            _ => {}
        }
    }
    Ok(Some((length, request, skip)))
}
