//! Our client against the server of the h2 library, which shares no line with it: whatever is asked
//! and answered, both sides read the same.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use prony_h2::{Client, Config, ErrorCode, Event, Fields, Indexing};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::{LocalSet, spawn_local};

/// More than all of an exchange, so that neither side waits for the other to read.
const PIPE_BYTES: usize = 16 << 20;

type Lines = Vec<(String, String)>;

/// A request and its response, as one side means them or the other reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Exchange {
    method: String,
    path: String,
    request: Lines,
    body: Vec<u8>,
    status: u16,
    response: Lines,
    answer: Vec<u8>,
    /// RST_STREAM in place of the end of the answer.
    is_reset: bool,
}

/// What a server allows its client, and the client its server.
#[derive(Debug, Clone, Copy)]
struct Limits {
    client_window: u32,
    server_window: u32,
    table_bytes: u32,
    frame_bytes: u32,
    streams: u32,
    /// The client reads so much at once.
    read_bytes: usize,
}

fn lines() -> impl Strategy<Value = Lines> {
    let line = ("x-[a-z0-9-]{1,12}", "([!-~]([ -~]{0,60}[!-~])?)?");
    prop::collection::vec(line, 0..8).prop_map(|mut lines| {
        lines.sort();
        lines
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 1..200),
        (1usize..60_000).prop_map(|length| (0..length).map(|at| at as u8).collect()),
    ]
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let method = prop::sample::select(vec!["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);
    let asked = (method, "/[a-zA-Z0-9/_.~-]{0,40}", lines(), body());
    let answered = (200u16..600, lines(), body(), prop::bool::weighted(0.1));
    // With 204, 205 and 304 a body would be malformed.
    let bodiless = [204, 205, 304];
    (asked, answered).prop_map(move |(asked, answered)| Exchange {
        method: asked.0.to_owned(),
        path: asked.1,
        request: asked.2,
        body: asked.3,
        status: answered.0,
        response: answered.1,
        answer: if bodiless.contains(&answered.0) {
            Vec::new()
        } else {
            answered.2
        },
        is_reset: answered.3,
    })
}

fn limits() -> impl Strategy<Value = Limits> {
    let windows = (1u32..200_000, 1u32..200_000);
    let others = (0u32..8192, 16_384u32..40_000, 1u32..8, 1usize..20_000);
    (windows, others).prop_map(|(windows, others)| Limits {
        client_window: windows.0,
        server_window: windows.1,
        table_bytes: others.0,
        frame_bytes: others.1,
        streams: others.2,
        read_bytes: others.3,
    })
}

/// Header fields in the order of their names.
fn sorted(headers: &HeaderMap) -> Lines {
    let mut lines: Lines = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    lines.sort();
    lines
}

type Seen = Rc<RefCell<Vec<Exchange>>>;

async fn answer(
    request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
    meant: Rc<Vec<Exchange>>,
    seen: Seen,
) {
    let (mut head, mut body) = request.into_parts();
    let number: usize = head
        .headers
        .remove("number")
        .unwrap()
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let mut read = Vec::new();
    while let Some(bytes) = body.data().await {
        let bytes = bytes.unwrap();
        read.extend_from_slice(&bytes);
        body.flow_control().release_capacity(bytes.len()).unwrap();
    }
    let one = &meant[number];
    {
        let seen = &mut seen.borrow_mut()[number];
        seen.method = head.method.to_string();
        seen.path = head.uri.path().to_owned();
        seen.request = sorted(&head.headers);
        seen.body = read;
    }
    let mut response = Response::builder().status(one.status);
    for (name, value) in &one.response {
        response = response.header(name, value);
    }
    let is_short = one.answer.is_empty() && !one.is_reset;
    let response = response.body(()).unwrap();
    let mut stream = reply.send_response(response, is_short).unwrap();
    let mut left = Bytes::from(one.answer.clone());
    while !left.is_empty() {
        stream.reserve_capacity(left.len());
        let granted = poll_fn(|context| stream.poll_capacity(context)).await;
        let piece = left.split_to(granted.unwrap().unwrap().min(left.len()));
        let is_last = left.is_empty() && !one.is_reset;
        stream.send_data(piece, is_last).unwrap();
    }
    if one.is_reset {
        // A reset takes back what the library has not sent.
        tokio::task::yield_now().await;
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
}

async fn serve(io: DuplexStream, limits: Limits, meant: Rc<Vec<Exchange>>, seen: Seen) {
    let mut connection = Builder::new()
        .initial_window_size(limits.server_window)
        .header_table_size(limits.table_bytes)
        .max_frame_size(limits.frame_bytes)
        .max_concurrent_streams(limits.streams)
        .handshake(io)
        .await
        .unwrap();
    while let Some(accepted) = connection.accept().await {
        let (request, reply) = accepted.expect("the library takes what our client sends");
        spawn_local(answer(request, reply, Rc::clone(&meant), Rc::clone(&seen)));
    }
}

/// A request under way: its stream, and how much of its body is sent.
struct Sending {
    number: usize,
    id: u32,
    sent: usize,
}

async fn ask(mut io: DuplexStream, limits: Limits, meant: &[Exchange], seen: &Seen) {
    let config = Config {
        stream_window_bytes: limits.client_window,
        connection_window_bytes: 65_535,
        table_bytes: limits.table_bytes,
        max_head_bytes: 65_536,
    };
    let mut out = Vec::new();
    let mut client = Client::new(config, &mut out);
    let (mut waiting, mut open, mut over) = (0..meant.len(), Vec::<Sending>::new(), 0);
    let mut buffer = vec![0; limits.read_bytes];
    while over < meant.len() {
        let streams = client.max_streams().unwrap_or(100) as usize;
        while client.has_settings() && client.open_streams() < streams {
            let Some(number) = waiting.next() else { break };
            let one = &meant[number];
            let mut fields = Fields::default();
            for (name, value) in [
                (":method", one.method.as_str()),
                (":scheme", "http"),
                (":path", &one.path),
            ] {
                fields.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
            }
            fields.push(b"number", number.to_string().as_bytes(), Indexing::Passing);
            for (name, value) in &one.request {
                fields.push(name.as_bytes(), value.as_bytes(), Indexing::Kept);
            }
            let id = client.open(number as u32, &fields, one.body.is_empty(), &mut out);
            open.push(Sending {
                number,
                id,
                sent: 0,
            });
        }
        for sending in &mut open {
            let left = &meant[sending.number].body[sending.sent..];
            if !left.is_empty() {
                sending.sent += client.send(sending.id, left, true, &mut out);
            }
        }
        io.write_all(&out).await.unwrap();
        out.clear();
        let length = io.read(&mut buffer).await.unwrap();
        assert!(length > 0, "the library has left");
        let mut input = &buffer[..length];
        while let Some(event) = client.read(&mut input, &mut out).unwrap() {
            let seen = &mut seen.borrow_mut();
            match event {
                Event::Head { key, head, end } => {
                    let one = &mut seen[key as usize];
                    one.status = head.status;
                    let text = String::from_utf8(head.lines.clone()).unwrap();
                    let split = |line: &str| {
                        let (name, value) = line.split_once(": ").unwrap();
                        (name.to_owned(), value.to_owned())
                    };
                    one.response = text.split_terminator("\r\n").map(split).collect();
                    one.response.sort();
                    over += usize::from(end);
                }
                Event::Data { key, bytes, end } => {
                    seen[key as usize].answer.extend_from_slice(bytes);
                    over += usize::from(end);
                }
                Event::Reset { key, code } => {
                    assert_eq!(code, ErrorCode::INTERNAL_ERROR);
                    seen[key as usize].is_reset = true;
                    over += 1;
                }
                Event::Settings | Event::Window => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_library_and_our_client_read_the_same(
        limits in limits(),
        meant in prop::collection::vec(exchange(), 1..12),
    ) {
        let seen: Seen = Rc::new(RefCell::new(vec![Exchange::default(); meant.len()]));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (ours, theirs) = duplex(PIPE_BYTES);
        let all = Rc::new(meant.clone());
        LocalSet::new().block_on(&runtime, async {
            let serving = spawn_local(serve(theirs, limits, Rc::clone(&all), Rc::clone(&seen)));
            ask(ours, limits, &all, &seen).await;
            serving.abort();
        });
        let read = seen.borrow();
        for (meant, read) in meant.iter().zip(read.iter()) {
            prop_assert_eq!(meant, read);
        }
    }
}
