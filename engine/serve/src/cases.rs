//! Which case a request target asks for: the server's own settings, or those with the overrides of its query
//! (`/?delay=150ms&bytes=1024`). A target is read once and remembered, so that asking again costs a look-up.

use std::collections::HashMap;
use std::rc::Rc;

use super::answer::{self, Framing, Note, Stream};
use super::script::{Settings, has_body};
use super::values::Delay;

/// Distinct targets that are remembered; more (a query with a counter in it) are read anew each time.
const REMEMBERED: usize = 1024;
/// Answers up to this length are kept ready as a whole.
const READY_BYTES: u64 = 16 * 1024;

/// The path's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Any,
    Echo,
    Stats,
}

/// Settings made ready for answering.
#[derive(Debug)]
pub struct Case {
    pub settings: Settings,
    /// The whole answer for HTTP/1.1 with keep-alive, when it is short and not dripped.
    pub ready: Option<Vec<u8>>,
    /// Neither work nor delay.
    pub immediate: bool,
    pub troubled: bool,
}

impl Case {
    fn new(settings: Settings) -> Self {
        let ready =
            (settings.drip_ns.is_none() && settings.body.length() <= READY_BYTES).then(|| {
                let mut out = Vec::new();
                answer::head(
                    settings.status,
                    &settings.content_type,
                    framing(&settings),
                    Note::Nothing,
                    &mut out,
                );
                if has_body(settings.status) {
                    Stream::new(settings.body.clone(), settings.chunked).fill(&mut out, usize::MAX);
                }
                out
            });
        Self {
            ready,
            immediate: settings.work_ns == 0 && settings.delay == Delay::None,
            troubled: settings.shares.sum() > 0.0,
            settings,
        }
    }
}

/// The framing of an ordinary answer to HTTP/1.1.
pub fn framing(settings: &Settings) -> Framing {
    if !has_body(settings.status) {
        Framing::Nothing
    } else if settings.chunked {
        Framing::Chunked
    } else {
        Framing::Length(settings.body.length())
    }
}

/// The cases of one thread.
#[derive(Debug)]
pub struct Cases {
    usual: Rc<Case>,
    /// For what meets no trouble.
    plain: Rc<Case>,
    known: HashMap<Box<str>, Rc<Case>>,
}

impl Cases {
    pub fn new(settings: Settings) -> Self {
        Self {
            usual: Rc::new(Case::new(settings)),
            plain: Rc::new(Case::new(Settings::default())),
            known: HashMap::new(),
        }
    }

    /// The server's own case.
    pub fn usual(&self) -> Rc<Case> {
        Rc::clone(&self.usual)
    }

    /// The place and case of `target`, or the sentence that says why its query is refused.
    pub fn find(&mut self, target: &str) -> (Place, Result<Rc<Case>, String>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let place = place(path);
        if place == Place::Stats {
            return (place, Ok(Rc::clone(&self.plain)));
        }
        if query.is_empty() {
            return (place, Ok(self.usual()));
        }
        if let Some(case) = self.known.get(target) {
            return (place, Ok(Rc::clone(case)));
        }
        (place, self.read(target, query))
    }

    fn read(&mut self, target: &str, query: &str) -> Result<Rc<Case>, String> {
        let mut settings = self.usual.settings.clone();
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decoded(key), decoded(value));
            // Keys that mean nothing here belong to the workload (`?name=x`) and are let through.
            settings
                .set(&key, &value)
                .map_err(|reason| format!("{key}={value}: {reason}"))?;
        }
        settings.check()?;
        let case = if settings == self.usual.settings {
            self.usual()
        } else {
            Rc::new(Case::new(settings))
        };
        if self.known.len() < REMEMBERED {
            self.known.insert(target.into(), Rc::clone(&case));
        }
        Ok(case)
    }
}

/// Tells the special paths from all others; a target in absolute form (`http://host/path`) counts by its path.
fn place(target: &str) -> Place {
    let path = if target.starts_with('/') {
        target
    } else {
        let (_scheme, rest) = target.split_once("://").unwrap_or_default();
        rest.find('/').map_or("/", |at| &rest[at..])
    };
    match path {
        "/echo" => Place::Echo,
        "/__prony/stats" => Place::Stats,
        _ => Place::Any,
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
    use super::super::script::Body;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn special_paths_are_told_apart() {
        let mut cases = Cases::new(Settings::default());
        for (target, expected) in [
            ("/", Place::Any),
            ("/echo", Place::Echo),
            ("/echo?delay=1ms", Place::Echo),
            ("/echoes", Place::Any),
            ("/__prony/stats", Place::Stats),
            ("http://127.0.0.1:80/echo", Place::Echo),
            ("http://127.0.0.1:80", Place::Any),
            ("/redirect?to=http://x/echo", Place::Any),
        ] {
            assert_eq!(cases.find(target).0, expected, "{target}");
        }
    }

    #[test]
    fn a_query_overrides_and_is_remembered() {
        let mut cases = Cases::new(Settings::default());
        let first = cases
            .find("/?delay=fixed%3A150ms&bytes=1024&status=503&chunked")
            .1
            .unwrap();
        assert_eq!(first.settings.delay, Delay::Fixed { ns: 150_000_000 });
        assert_eq!(
            (first.settings.body.clone(), first.settings.status),
            (Body::Pattern(1024), 503)
        );
        assert!(first.settings.chunked && !first.immediate);
        let again = cases
            .find("/?delay=fixed%3A150ms&bytes=1024&status=503&chunked")
            .1
            .unwrap();
        assert!(Rc::ptr_eq(&first, &again));
    }

    #[test]
    fn foreign_keys_are_let_through_and_bad_values_are_not() {
        let mut cases = Cases::new(Settings::default());
        let usual = cases.usual();
        assert!(Rc::ptr_eq(
            &usual,
            &cases.find("/person?name=x&page=2").1.unwrap()
        ));
        let message = cases.find("/?delay=soon").1.unwrap_err();
        assert!(message.contains("delay=soon"), "{message}");
        assert!(cases.find("/?reset=0.6&garbage=0.6").1.is_err());
    }

    #[test]
    fn no_more_targets_are_remembered_than_the_limit() {
        let mut cases = Cases::new(Settings::default());
        for number in 0..REMEMBERED + 50 {
            assert_eq!(
                cases
                    .find(&format!("/?bytes={number}"))
                    .1
                    .unwrap()
                    .settings
                    .body,
                Body::Pattern(number as u64)
            );
        }
        assert_eq!(cases.known.len(), REMEMBERED);
    }

    #[test]
    fn ready_answers_are_whole() {
        let case = Case::new(Settings {
            body: Body::Pattern(5),
            ..Settings::default()
        });
        let text = String::from_utf8(case.ready.unwrap()).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n")
                && text.ends_with("Content-Length: 5\r\n\r\nThe r"),
            "{text}"
        );
        let empty = Case::new(Settings {
            status: 204,
            ..Settings::default()
        });
        assert!(empty.ready.unwrap().ends_with(b"prony\r\n\r\n"));
        assert!(
            Case::new(Settings {
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
            let mut cases = Cases::new(Settings::default());
            let _ = cases.find(&target);
            let _ = cases.find(&format!("/?{query}&{target}"));
        }
    }
}
