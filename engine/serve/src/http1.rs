//! HTTP/1.x on a connection, by hyper.

use std::convert::Infallible;
use std::future::pending;
use std::rc::Rc;

use http::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::behaviour::Closing;
use super::body::Body;
use super::connection::{Connection, Ending};
use super::io::Io;
use super::service::{self, Answer, Received};

/// Longest request head that is read; a longer one is answered with 431.
pub const HEAD_LIMIT_BYTES: usize = 64 * 1024;
pub const ENDLESS_FIELD: (&str, &str) = (
    "X-Endless",
    "this header goes on until the client has had enough",
);
pub const ENDLESS_LINES: usize = 64;

pub async fn serve(connection: &Rc<Connection>, io: &mut Io) -> Ending {
    let service = service_fn(|request| {
        let connection = Rc::clone(connection);
        async move { Ok::<_, Infallible>(answer(connection, request).await) }
    });
    let http = http1::Builder::new()
        .half_close(true)
        .title_case_headers(true)
        .auto_date_header(false)
        .max_header_size(HEAD_LIMIT_BYTES)
        .max_buf_size(HEAD_LIMIT_BYTES)
        .serve_connection(TokioIo::new(io), service);
    match connection.until_ended(http).await {
        Err(ending) => ending,
        Ok(Ok(())) => Ending::Close,
        Ok(Err(error)) => {
            if error.is_parse() {
                let counters = &connection.thread.counters;
                counters.malformed.add(1);
                // hyper has answered by itself.
                counters.answered(if error.is_parse_too_large() { 431 } else { 400 });
            }
            Ending::Close
        }
    }
}

/// Nothing comes back where the connection ends instead.
async fn answer(connection: Rc<Connection>, request: Request<Incoming>) -> Response<Body> {
    if connection.is_ending() {
        return pending().await;
    }
    let (head, mut body) = request.into_parts();
    let version = head.version;
    let mut received = Received::new(&connection, head);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => received.keep(frame.data_ref().map_or(&[], |data| &data[..])),
            Err(error) if error.is_incomplete_message() => {
                connection.end(Ending::Close);
                return pending().await;
            }
            Err(_) => return service::refuse_body(&connection),
        }
    }
    match service::answer(&connection, received).await {
        Answer::Response(response) => {
            let (mut parts, mut body) = response.into_parts();
            let head = &mut parts.headers;
            if body.is_chunked {
                head.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            match body.closing {
                Closing::Never => {}
                Closing::Announced => {
                    head.insert(CONNECTION, HeaderValue::from_static("close"));
                    // To HTTP/1.0 hyper would say both, close and keep-alive.
                    parts.version = version;
                }
                Closing::Silent => body.ends = Some(Rc::clone(&connection)),
            }
            connection.drip_ns.set(body.drip_ns);
            Response::from_parts(parts, body)
        }
        Answer::Fault(ending) => {
            connection.end(ending);
            pending().await
        }
    }
}

/// The begin of a head, and lines to follow it for ever.
pub fn endless_head() -> (Vec<u8>, Vec<u8>) {
    let begin = b"HTTP/1.1 200 OK\r\nServer: prony\r\n".to_vec();
    let (name, value) = ENDLESS_FIELD;
    let line = format!("{name}: {value}\r\n");
    (begin, line.repeat(ENDLESS_LINES).into_bytes())
}
