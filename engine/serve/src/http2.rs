//! HTTP/2 on a connection, by h2, the library below hyper: a fault needs the number of its stream.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::EXPECT;
use http::{Request, Response, StatusCode};
use tokio::task::{spawn_local, yield_now};

use super::behaviour::Closing;
use super::body::Body;
use super::connection::{Connection, Ending, unless};
use super::http1::{self, HEAD_LIMIT_BYTES};
use super::io::Io;
use super::service::{self, Answer, Received};

/// Of all streams of a connection together: only that of a stream is an option.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

pub async fn serve(connection: &Rc<Connection>, io: &mut Io) -> Ending {
    let counters = &connection.thread.counters;
    counters.http2_connections.add(1);
    let limits = connection.thread.shared.http2.unwrap_or_default();
    let handshake = h2::server::Builder::new()
        .initial_window_size(limits.window_bytes)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEAD_LIMIT_BYTES as u32)
        // Clients may give up as many requests as they like.
        .max_pending_accept_reset_streams(usize::MAX)
        .max_local_error_reset_streams(None)
        .handshake::<_, Bytes>(io);
    let mut http = match connection.until_ended(handshake).await {
        Ok(Ok(http)) => http,
        Ok(Err(error)) => return broken(connection, &error),
        Err(ending) => return ending,
    };
    loop {
        match connection.until_ended(http.accept()).await {
            Ok(Some(Ok((request, reply)))) => begin(connection, request, reply),
            Ok(Some(Err(error))) => return broken(connection, &error),
            Ok(None) => return Ending::Close,
            Err(Ending::Leave) => http.graceful_shutdown(),
            Err(ending) => return ending,
        }
    }
}

/// The client broke the protocol, or left.
fn broken(connection: &Connection, error: &h2::Error) -> Ending {
    if error.is_library() {
        connection.thread.counters.malformed.add(1);
    }
    Ending::Close
}

fn begin(
    connection: &Rc<Connection>,
    request: Request<RecvStream>,
    mut reply: SendResponse<Bytes>,
) {
    let (head, body) = request.into_parts();
    let expects = head.headers.get(EXPECT).map(|value| value.as_bytes());
    if expects.is_some_and(|value| value.eq_ignore_ascii_case(b"100-continue")) {
        let mut go_on = Response::new(());
        *go_on.status_mut() = StatusCode::CONTINUE;
        // Refused, the client sends its body all the same.
        let _ = reply.send_informational(go_on);
    }
    let connection = Rc::clone(connection);
    let received = Received::new(&connection, head);
    spawn_local(async move {
        let reset = poll_fn(|context| reply.poll_reset(context));
        let answered = unless(reset, answer(&connection, received, body)).await;
        // Without an answer the client has given the stream up.
        match answered.flatten() {
            Some(Answer::Response(response)) => {
                // A client that gives up the stream meanwhile ends it.
                let _ = respond(&connection, reply, response).await;
            }
            Some(Answer::Fault(Ending::Reset)) => reply.send_reset(Reason::INTERNAL_ERROR),
            Some(Answer::Fault(ending)) => {
                match ending {
                    Ending::Mute => {}
                    Ending::Endless(_) => {
                        let stream = reply.stream_id().as_u32();
                        connection.end(Ending::Endless(Some(stream)));
                    }
                    ending => connection.end(ending),
                }
                // Let go of before the client or the connection has, the stream would be reset.
                let _ = poll_fn(|context| reply.poll_reset(context)).await;
            }
            None => {}
        }
    });
}

async fn answer(
    connection: &Connection,
    mut received: Received,
    mut body: RecvStream,
) -> Option<Answer> {
    while let Some(bytes) = body.data().await {
        let bytes = bytes.ok()?;
        received.keep(&bytes);
        body.flow_control().release_capacity(bytes.len()).ok()?;
    }
    Some(service::answer(connection, received).await)
}

async fn respond(
    connection: &Connection,
    mut reply: SendResponse<Bytes>,
    response: Response<Body>,
) -> Result<(), h2::Error> {
    let (head, mut body) = response.into_parts();
    let (closing, is_reset) = (body.closing, body.is_cut && body.is_chunked);
    let is_empty = body.is_done() && !is_reset;
    let mut stream = reply.send_response(Response::from_parts(head, ()), is_empty)?;
    if !is_empty {
        send(connection, &mut stream, &mut body, is_reset).await?;
    }
    match closing {
        _ if body.is_cut => {}
        Closing::Never => {}
        Closing::Announced => connection.end(Ending::Leave),
        Closing::Silent => connection.end(Ending::Close),
    }
    Ok(())
}

async fn send(
    connection: &Connection,
    stream: &mut SendStream<Bytes>,
    body: &mut Body,
    is_reset: bool,
) -> Result<(), h2::Error> {
    let thread = &connection.thread;
    let mut due_ns = thread.shared.clock.now_ns();
    if body.drip_ns.is_some() {
        body.piece_bytes = 1;
    }
    while let Some(mut piece) = body.next() {
        if let Some(drip_ns) = body.drip_ns {
            thread.timers.until(due_ns).await;
            due_ns += drip_ns;
        }
        while !piece.is_empty() {
            stream.reserve_capacity(piece.len());
            let granted = match poll_fn(|context| stream.poll_capacity(context)).await {
                Some(granted) => granted?.min(piece.len()),
                None => return Ok(()),
            };
            let part = piece.split_to(granted);
            let is_last = piece.is_empty() && body.is_done() && !is_reset;
            stream.send_data(part, is_last)?;
        }
    }
    if is_reset {
        // A reset takes back what h2 has not sent.
        yield_now().await;
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
    Ok(())
}

/// The begin of a header block of a stream, and CONTINUATION to follow it for ever.
pub fn endless_head(stream: u32) -> (Vec<u8>, Vec<u8>) {
    /// `:status: 200` of the static table of HPACK.
    const STATUS_200: u8 = 0x88;
    const HEADERS: u8 = 1;
    const CONTINUATION: u8 = 9;
    let (name, value) = http1::ENDLESS_FIELD;
    // A literal that goes into no table; both lengths are below 127.
    let mut line = vec![0];
    for text in [name.to_ascii_lowercase().as_str(), value] {
        line.push(text.len() as u8);
        line.extend_from_slice(text.as_bytes());
    }
    let lines = line.repeat(http1::ENDLESS_LINES);
    let frame = |kind: u8, payload: &[u8]| {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, 0]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        frame
    };
    (frame(HEADERS, &[STATUS_200]), frame(CONTINUATION, &lines))
}
