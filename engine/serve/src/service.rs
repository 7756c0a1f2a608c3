//! From a request to its response, whatever the version of HTTP: outcome, queue, stall, work, delay,
//! and what each outcome looks like.

use std::future::pending;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, SERVER};
use http::request::Parts;
use http::{Method, Response, StatusCode, Version};

use super::behaviour::{Closing, Content, Settings, has_body};
use super::body::Body;
use super::clock;
use super::connection::{Connection, Ending};
use super::counters::Counters;
use super::random::Outcome;
use super::routes::{Endpoint, endpoint};
use super::shared::Shared;

/// Longest body that `/echo` keeps.
const ECHO_BYTES: usize = 16 * 1024 * 1024;
const WRONG_PAGE: &str = "<html><body><h1>Something went wrong</h1><p>This is not what was asked for.</p></body></html>\n";
const ERROR_TEXT: &str = "This error is injected.\n";
const TOO_LONG: &str = "The body is too long for /echo, which keeps at most 16 MiB.\n";
const BAD_BODY: &str = "The length of the request body is unclear.\n";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

/// A request whose head has come, and what `/echo` keeps of its body.
#[derive(Debug)]
pub struct Received {
    head: Parts,
    endpoint: Endpoint,
    /// The number of the request on its connection, from 1.
    number: u32,
    echo: Vec<u8>,
}

impl Received {
    pub fn new(connection: &Connection, head: Parts) -> Self {
        let endpoint = endpoint(head.uri.path());
        let served = &connection.served;
        if endpoint != Endpoint::Stats {
            served.set(served.get().saturating_add(1));
        }
        Self {
            head,
            endpoint,
            number: served.get(),
            echo: Vec::new(),
        }
    }

    pub fn keep(&mut self, bytes: &[u8]) {
        if self.endpoint == Endpoint::Echo && self.echo.len() <= ECHO_BYTES {
            self.echo.extend_from_slice(bytes);
        }
    }

    /// Whether the response has nothing that could be cut.
    fn is_bodiless(&self) -> bool {
        self.head.method == Method::HEAD
            || (self.endpoint == Endpoint::Echo && self.echo.is_empty())
    }
}

#[derive(Debug)]
pub enum Answer {
    Response(Response<Body>),
    Fault(Ending),
}

/// Answers a request whose body has come whole.
pub async fn answer(connection: &Connection, received: Received) -> Answer {
    let thread = &connection.thread;
    let counters = &thread.counters;
    let found = thread.routes.borrow_mut().find(&received.head.uri);
    if received.endpoint == Endpoint::Stats {
        counters.stats_requests.add(1);
        let totals = Content::Bytes(Bytes::from(thread.shared.totals_json()));
        let json = HeaderValue::from_static("application/json");
        let body = Body::new(totals, false);
        return Answer::Response(response(&received, 200, json, body));
    }
    counters.requests.add(1);
    let (settings, refusal) = match found {
        Ok(settings) => (settings, None),
        Err(reason) => (thread.routes.borrow().usual(), Some(reason)),
    };
    let closing = match thread.shared.behaviour.close_after {
        Some((limit, closing)) if received.number >= limit => closing,
        _ => settings.closing,
    };
    let made = |status, kind, content: Content| {
        counters.answered(status);
        let bodied = has_body(status);
        let content = if bodied { content } else { Content::Pattern(0) };
        // HTTP/1.0 knows no chunks.
        let knows_chunks = received.head.version != Version::HTTP_10;
        let mut body = Body::new(content, settings.chunked && bodied && knows_chunks);
        body.closing = closing;
        body.drip_ns = settings.drip_ns;
        response(&received, status, kind, body)
    };
    let text = |status, text: &str| {
        let content = Content::Bytes(Bytes::copy_from_slice(text.as_bytes()));
        Answer::Response(made(status, TEXT, content))
    };
    if let Some(reason) = refusal {
        return text(400, &format!("{reason}\n"));
    }
    let mut outcome = Outcome::Normal;
    if settings.shares.sum() > 0.0 {
        outcome = thread.random.borrow_mut().outcome(&settings.shares);
        if outcome == Outcome::Truncate && received.is_bodiless() {
            outcome = Outcome::Normal;
        }
    }
    if outcome != Outcome::Error || !settings.errors_fast {
        wait(connection, &settings).await;
    }
    counters.fault(outcome);
    match outcome {
        Outcome::Error => text(settings.error_status, ERROR_TEXT),
        Outcome::WrongBody => {
            let html = HeaderValue::from_static("text/html");
            let page = Content::Bytes(Bytes::from_static(WRONG_PAGE.as_bytes()));
            Answer::Response(made(200, html, page))
        }
        Outcome::Reset => Answer::Fault(Ending::Reset),
        Outcome::Garbage => Answer::Fault(Ending::Garbage),
        Outcome::NoAnswer => Answer::Fault(Ending::Mute),
        Outcome::HeaderEndless => Answer::Fault(Ending::Endless(None)),
        Outcome::Normal | Outcome::Truncate => {
            if received.echo.len() > ECHO_BYTES {
                return text(413, TOO_LONG);
            }
            let (kind, content) = match received.endpoint {
                Endpoint::Echo => (
                    received.head.headers.get(CONTENT_TYPE).cloned(),
                    Content::Bytes(Bytes::copy_from_slice(&received.echo)),
                ),
                _ => (
                    HeaderValue::from_str(&settings.content_type).ok(),
                    settings.body.clone(),
                ),
            };
            let octets = HeaderValue::from_static("application/octet-stream");
            let whole = made(settings.status, kind.unwrap_or(octets), content);
            Answer::Response(match outcome {
                Outcome::Truncate => whole.map(Body::cut),
                _ => whole,
            })
        }
    }
}

/// A response; the body is left out of one to HEAD.
fn response(received: &Received, status: u16, kind: HeaderValue, body: Body) -> Response<Body> {
    let length = body.left_bytes();
    let is_chunked = body.is_chunked;
    let mut response = Response::new(match received.head.method {
        Method::HEAD => body.without_content(),
        _ => body,
    });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let head = response.headers_mut();
    head.insert(SERVER, HeaderValue::from_static("prony"));
    if has_body(status) {
        head.insert(CONTENT_TYPE, kind);
        if !is_chunked {
            head.insert(CONTENT_LENGTH, length.into());
        }
    }
    response
}

/// The answer to a request with a body that cannot be read.
pub fn refuse_body(connection: &Connection) -> Response<Body> {
    let counters = &connection.thread.counters;
    counters.malformed.add(1);
    counters.answered(400);
    let mut body = Body::new(
        Content::Bytes(Bytes::from_static(BAD_BODY.as_bytes())),
        false,
    );
    body.closing = Closing::Announced;
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// A request that waits for its response; one that is given up meanwhile is counted.
struct Waiting<'a>(Option<(&'a Shared, &'a Counters)>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some((shared, counters)) = self.0
            && !shared.is_stopped()
        {
            counters.abandoned.add(1);
        }
    }
}

/// Queue, stall, work and delay.
async fn wait(connection: &Connection, settings: &Rc<Settings>) {
    let thread = &connection.thread;
    let shared = &*thread.shared;
    let (behaviour, clock) = (&shared.behaviour, &shared.clock);
    let released_ns = |ns| match &behaviour.stall {
        Some(stall) => stall.release_ns(ns, connection.number),
        None => ns,
    };
    let mut waiting = Waiting(Some((shared, &thread.counters)));
    let _worker = match &shared.workers {
        Some(workers) => workers.acquire().await,
        None => None,
    };
    let now_ns = clock.now_ns();
    let released = released_ns(now_ns);
    if released > now_ns {
        thread.timers.until(released).await;
    }
    let begin_ns = clock.now_ns();
    if settings.work_ns > 0 {
        let work_ns = (settings.work_ns as f64 * behaviour.work_factor(begin_ns)) as u64;
        clock::burn(work_ns, &shared.stop);
        if shared.is_stopped() {
            // The work was not finished, so that there is nothing to answer.
            return pending().await;
        }
    }
    let now_ns = clock.now_ns();
    let drawn_ns = thread.random.borrow_mut().delay_ns(&settings.delay);
    let factor = behaviour.delay_factor(begin_ns, settings.delay.is_tail(drawn_ns));
    // The delay counts from the end of the work, as waiting for a backend does.
    let due_ns = released_ns(now_ns + (drawn_ns as f64 * factor) as u64);
    if due_ns > now_ns {
        thread.timers.until(due_ns).await;
    }
    waiting.0 = None;
}
