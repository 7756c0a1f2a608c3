//! From a request target to its handler: the server's own settings, or those with the overrides of
//! the query (`/?delay=150ms&bytes=1024`). A target is parsed once and cached.

use std::collections::HashMap;
use std::rc::Rc;

use super::behaviour::{Settings, has_body};
use super::response::{self, BodyWriter, ConnectionHeader, Framing};
use super::values::Delay;

/// Distinct targets that are cached; more (a query with a counter in it) are parsed each time.
const REMEMBERED: usize = 1024;
/// Responses up to this length are kept as bytes.
const READY_BYTES: u64 = 16 * 1024;

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Any,
    Echo,
    Stats,
}

/// Settings, prepared for responding.
#[derive(Debug)]
pub struct Handler {
    pub settings: Settings,
    /// The whole response for HTTP/1.1 with keep-alive, when it is short and not dripped.
    pub ready: Option<Vec<u8>>,
    /// There is neither work nor delay.
    pub immediate: bool,
    pub has_faults: bool,
}

impl Handler {
    fn new(settings: Settings) -> Self {
        let ready =
            (settings.drip_ns.is_none() && settings.body.length() <= READY_BYTES).then(|| {
                let mut out = Vec::new();
                response::write_head(
                    settings.status,
                    &settings.content_type,
                    framing(&settings),
                    ConnectionHeader::Nothing,
                    &mut out,
                );
                if has_body(settings.status) {
                    BodyWriter::new(settings.body.clone(), settings.chunked)
                        .fill(&mut out, usize::MAX);
                }
                out
            });
        Self {
            ready,
            immediate: settings.work_ns == 0 && settings.delay == Delay::None,
            has_faults: settings.shares.sum() > 0.0,
            settings,
        }
    }
}

/// The framing of an ordinary response to HTTP/1.1.
pub fn framing(settings: &Settings) -> Framing {
    if !has_body(settings.status) {
        Framing::Nothing
    } else if settings.chunked {
        Framing::Chunked
    } else {
        Framing::Length(settings.body.length())
    }
}

/// The routes of one thread.
#[derive(Debug)]
pub struct Routes {
    usual: Rc<Handler>,
    /// For the endpoints without faults.
    plain: Rc<Handler>,
    known: HashMap<Box<str>, Rc<Handler>>,
}

impl Routes {
    pub fn new(settings: Settings) -> Self {
        Self {
            usual: Rc::new(Handler::new(settings)),
            plain: Rc::new(Handler::new(Settings::default())),
            known: HashMap::new(),
        }
    }

    /// The server's own handler.
    pub fn usual(&self) -> Rc<Handler> {
        Rc::clone(&self.usual)
    }

    /// The endpoint and handler of `target`, or one sentence on why its query is invalid.
    pub fn find(&mut self, target: &str) -> (Endpoint, Result<Rc<Handler>, String>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let endpoint = endpoint(path);
        if endpoint == Endpoint::Stats {
            return (endpoint, Ok(Rc::clone(&self.plain)));
        }
        if query.is_empty() {
            return (endpoint, Ok(self.usual()));
        }
        if let Some(handler) = self.known.get(target) {
            return (endpoint, Ok(Rc::clone(handler)));
        }
        (endpoint, self.read(target, query))
    }

    fn read(&mut self, target: &str, query: &str) -> Result<Rc<Handler>, String> {
        let mut settings = self.usual.settings.clone();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decoded(key), decoded(value));
            // Unknown keys belong to the workload (`?name=x`).
            settings
                .set(&key, &value)
                .map_err(|reason| format!("{key}={value}: {reason}"))?;
        }
        settings.check()?;
        let handler = if settings == self.usual.settings {
            self.usual()
        } else {
            Rc::new(Handler::new(settings))
        };
        if self.known.len() < REMEMBERED {
            self.known.insert(target.into(), Rc::clone(&handler));
        }
        Ok(handler)
    }
}

/// Tells the special paths from all others; a target in absolute form (`http://host/path`) counts
/// by its path.
fn endpoint(target: &str) -> Endpoint {
    let path = if target.starts_with('/') {
        target
    } else {
        let (_scheme, rest) = target.split_once("://").unwrap_or_default();
        rest.find('/').map_or("/", |at| &rest[at..])
    };
    match path {
        "/echo" => Endpoint::Echo,
        "/__prony/stats" => Endpoint::Stats,
        _ => Endpoint::Any,
    }
}

/// Resolves `%3A` and the like; what is not such an escape stays as it is.
fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |offset: usize| {
            bytes
                .get(at + offset)
                .and_then(|byte| (*byte as char).to_digit(16))
        };
        match (bytes[at], digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::behaviour::Body;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn special_paths_are_told_apart() {
        let mut routes = Routes::new(Settings::default());
        for (target, expected) in [
            ("/", Endpoint::Any),
            ("/echo", Endpoint::Echo),
            ("/echo?delay=1ms", Endpoint::Echo),
            ("/echoes", Endpoint::Any),
            ("/__prony/stats", Endpoint::Stats),
            ("http://127.0.0.1:80/echo", Endpoint::Echo),
            ("http://127.0.0.1:80", Endpoint::Any),
            ("/redirect?to=http://x/echo", Endpoint::Any),
        ] {
            assert_eq!(routes.find(target).0, expected, "{target}");
        }
    }

    #[test]
    fn a_query_overrides_and_is_remembered() {
        let mut routes = Routes::new(Settings::default());
        let first = routes
            .find("/?delay=fixed%3A150ms&bytes=1024&status=503&chunked")
            .1
            .unwrap();
        assert_eq!(first.settings.delay, Delay::Fixed { ns: 150_000_000 });
        assert_eq!(
            (first.settings.body.clone(), first.settings.status),
            (Body::Pattern(1024), 503)
        );
        assert!(first.settings.chunked && !first.immediate);
        let again = routes
            .find("/?delay=fixed%3A150ms&bytes=1024&status=503&chunked")
            .1
            .unwrap();
        assert!(Rc::ptr_eq(&first, &again));
    }

    #[test]
    fn foreign_keys_are_let_through_and_bad_values_are_not() {
        let mut routes = Routes::new(Settings::default());
        let usual = routes.usual();
        assert!(Rc::ptr_eq(
            &usual,
            &routes.find("/person?name=x&page=2").1.unwrap()
        ));
        let message = routes.find("/?delay=soon").1.unwrap_err();
        assert!(message.contains("delay=soon"), "{message}");
        assert!(routes.find("/?reset=0.6&garbage=0.6").1.is_err());
    }

    #[test]
    fn no_more_targets_are_remembered_than_the_limit() {
        let mut routes = Routes::new(Settings::default());
        for number in 0..REMEMBERED + 50 {
            assert_eq!(
                routes
                    .find(&format!("/?bytes={number}"))
                    .1
                    .unwrap()
                    .settings
                    .body,
                Body::Pattern(number as u64)
            );
        }
        assert_eq!(routes.known.len(), REMEMBERED);
    }

    #[test]
    fn ready_responses_are_whole() {
        let handler = Handler::new(Settings {
            body: Body::Pattern(5),
            ..Settings::default()
        });
        let text = String::from_utf8(handler.ready.unwrap()).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n")
                && text.ends_with("Content-Length: 5\r\n\r\nThe r"),
            "{text}"
        );
        let empty = Handler::new(Settings {
            status: 204,
            ..Settings::default()
        });
        assert!(empty.ready.unwrap().ends_with(b"prony\r\n\r\n"));
        assert!(
            Handler::new(Settings {
                drip_ns: Some(1),
                ..Settings::default()
            })
            .ready
            .is_none()
        );
    }

    proptest! {
        #[test]
        fn no_target_panics(target in "\\PC{0,60}", query in "(delay|bytes|reset|errors|x)=[%0-9a-f:,=]{0,12}") {
            let mut routes = Routes::new(Settings::default());
            let _ = routes.find(&target);
            let _ = routes.find(&format!("/?{query}&{target}"));
        }
    }
}
