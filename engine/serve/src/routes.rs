//! From a request target to its settings: the server's own, or those with the overrides of the query
//! (`/?delay=150ms&bytes=1024`). A query is parsed once and cached.

use std::collections::HashMap;
use std::rc::Rc;

use http::Uri;
use percent_encoding::percent_decode_str;

use super::behaviour::Settings;

/// Distinct queries that are cached; more (one with a counter in it) are parsed each time.
const REMEMBERED: usize = 1024;

/// What a path stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    Any,
    Echo,
    Stats,
}

/// The routes of one thread.
#[derive(Debug)]
pub struct Routes {
    usual: Rc<Settings>,
    known: HashMap<Box<str>, Rc<Settings>>,
}

impl Routes {
    pub fn new(settings: Settings) -> Self {
        Self {
            usual: Rc::new(settings),
            known: HashMap::new(),
        }
    }

    /// The server's own settings.
    pub fn usual(&self) -> Rc<Settings> {
        Rc::clone(&self.usual)
    }

    /// The settings for a target, or one sentence on why its query is invalid.
    pub fn find(&mut self, target: &Uri) -> Result<Rc<Settings>, String> {
        let query = target.query().unwrap_or_default();
        if query.is_empty() {
            return Ok(self.usual());
        }
        if let Some(settings) = self.known.get(query) {
            return Ok(Rc::clone(settings));
        }
        let mut settings = Settings::clone(&self.usual);
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8_lossy();
            let (key, value) = (decoded(key), decoded(value));
            // Unknown keys belong to the workload (`?name=x`).
            settings
                .set(&key, &value)
                .map_err(|reason| format!("{key}={value}: {reason}"))?;
        }
        settings.check()?;
        let settings = Rc::new(settings);
        if self.known.len() < REMEMBERED {
            self.known.insert(query.into(), Rc::clone(&settings));
        }
        Ok(settings)
    }
}

/// Tells the special paths from all others.
pub fn endpoint(path: &str) -> Endpoint {
    match path {
        "/echo" => Endpoint::Echo,
        "/__prony/stats" => Endpoint::Stats,
        _ => Endpoint::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::super::behaviour::Content;
    use super::super::values::Delay;
    use super::*;
    use proptest::prelude::*;

    fn find(routes: &mut Routes, target: &str) -> Result<Rc<Settings>, String> {
        routes.find(&target.parse().unwrap())
    }

    #[test]
    fn special_paths_are_told_apart() {
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
            let uri: Uri = target.parse().unwrap();
            assert_eq!(endpoint(uri.path()), expected, "{target}");
        }
    }

    #[test]
    fn a_query_overrides_and_is_remembered() {
        let mut routes = Routes::new(Settings::default());
        let target = "/?delay=fixed%3A150ms&bytes=1024&status=503&chunked";
        let first = find(&mut routes, target).unwrap();
        assert_eq!(first.delay, Delay::Fixed { ns: 150_000_000 });
        assert_eq!(
            (first.body.clone(), first.status),
            (Content::Pattern(1024), 503)
        );
        assert!(first.chunked);
        assert!(Rc::ptr_eq(&first, &find(&mut routes, target).unwrap()));
    }

    #[test]
    fn foreign_keys_are_let_through_and_bad_values_are_not() {
        let mut routes = Routes::new(Settings::default());
        let foreign = find(&mut routes, "/person?name=x&page=2").unwrap();
        assert_eq!(foreign, routes.usual());
        let message = find(&mut routes, "/?delay=soon").unwrap_err();
        assert!(message.contains("delay=soon"), "{message}");
        assert!(find(&mut routes, "/?reset=0.6&garbage=0.6").is_err());
    }

    #[test]
    fn no_more_queries_are_remembered_than_the_limit() {
        let mut routes = Routes::new(Settings::default());
        for number in 0..REMEMBERED + 50 {
            let found = find(&mut routes, &format!("/?bytes={number}")).unwrap();
            assert_eq!(found.body, Content::Pattern(number as u64));
        }
        assert_eq!(routes.known.len(), REMEMBERED);
    }

    proptest! {
        #[test]
        fn no_target_panics(target in "\\PC{0,60}", query in "(delay|bytes|reset|errors|x)=[%0-9a-f:,=]{0,12}") {
            let mut routes = Routes::new(Settings::default());
            for target in [target.clone(), format!("/?{query}&{target}")] {
                if let Ok(uri) = target.parse() {
                    let _ = routes.find(&uri);
                }
            }
        }
    }
}
