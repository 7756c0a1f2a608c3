use proptest::prelude::*;

use super::*;

fn host(name: &str) -> CookieHost {
    CookieHost::new(name, false)
}

/// A response to a request for this target at this time, with these values of `Set-Cookie`.
fn answer(jar: &mut Jar, host: &CookieHost, target: &str, ms: i64, set: &[&[u8]]) -> u64 {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    for value in set {
        head.extend_from_slice(&[b"Set-Cookie: ".as_slice(), value, b"\r\n"].concat());
    }
    let mut seen = CapturedResponse::new(false);
    seen.begin(&head);
    jar.requests(target.as_bytes());
    jar.keep(&seen, host, ms)
}

/// The value of the header `Cookie`.
fn sent(jar: &mut Jar, host: &CookieHost, target: &str, ms: i64) -> Vec<u8> {
    let mut out = Vec::new();
    jar.write(target.as_bytes(), host, false, ms, &mut out);
    let line = out.strip_suffix(b"\r\n").unwrap_or_default();
    line.strip_prefix(b"Cookie: ").unwrap_or_default().to_vec()
}

/// After responses at second 1, one after the other: what goes to the same host.
fn kept(name: &str, from: &str, set: &[&str], to: &str) -> String {
    let (mut jar, host) = (Jar::default(), host(name));
    for value in set {
        answer(&mut jar, &host, from, 1_000, &[value.as_bytes()]);
    }
    String::from_utf8(sent(&mut jar, &host, to, 1_000)).unwrap()
}

#[test]
fn cookies_come_back_to_their_path_the_longer_path_and_the_older_first() {
    let set = [
        "a=1; HttpOnly",
        "b=2; Path=/",
        "c=3",
        "a=4",
        "d=5; Path=/shop/x",
    ];
    for (to, expected) in [
        ("/shop/x?y", "d=5; a=4; c=3; b=2"),
        ("/shop/x/", "d=5; a=4; c=3; b=2"),
        ("/shop", "a=4; c=3; b=2"),
        ("/shopping", "b=2"),
        ("http://h/shop/", "a=4; c=3; b=2"),
        ("http://h", "b=2"),
        ("/", "b=2"),
    ] {
        assert_eq!(kept("h", "/shop/cart?x=1/2", &set, to), expected, "{to}");
    }
    assert_eq!(kept("h", "/", &[], "/"), "");
    assert_eq!(kept("h", "/a", &["x=1; Path=b"], "/"), "x=1");
    assert_eq!(kept("h", "/a/b/c", &["x=1"], "/a/b"), "x=1");
}

#[test]
fn a_cookie_ends_when_its_server_says_so() {
    for end in [
        "a=; Max-Age=0",
        "a=; Max-Age=-1",
        "a=; Expires=Thu, 01-Jan-1970 00:00:00 GMT",
    ] {
        assert_eq!(kept("h", "/", &["a=1", end], "/"), "", "{end}");
    }
    let host = host("h");
    for (until, before_ms, after_ms) in [
        ("Max-Age=2", 2_999, 3_000),
        ("Expires=Thu, 01 Jan 1970 00:00:03 GMT", 2_999, 3_000),
        (
            "Max-Age=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            2_999,
            3_000,
        ),
        ("Max-Age=9223372036854775807", 1_000, i64::MAX / 1_000_000),
    ] {
        let mut jar = Jar::default();
        answer(
            &mut jar,
            &host,
            "/",
            1_000,
            &[b"s=1", format!("a=1; {until}").as_bytes()],
        );
        assert_eq!(
            sent(&mut jar, &host, "/", before_ms),
            b"s=1; a=1",
            "{until}"
        );
        let ended = sent(&mut jar, &host, "/", after_ms) == b"s=1";
        assert_eq!(ended, after_ms == 3_000, "{until}");
    }
}

#[test]
fn any_octets_are_kept() {
    let (mut jar, host) = (Jar::default(), host("h"));
    answer(
        &mut jar,
        &host,
        "/",
        0,
        &[b"v=caf\xe9; Path=/", b"w=\"1,2\""],
    );
    assert_eq!(sent(&mut jar, &host, "/use", 0), b"v=caf\xe9; w=\"1,2\"");
}

#[test]
fn a_domain_is_that_of_the_host_or_above_it() {
    for (name, set, to, goes) in [
        ("a.shop.example", "x=1", "a.shop.example", true),
        ("a.shop.example", "x=1", "b.a.shop.example", false),
        (
            "a.shop.example",
            "x=1; Domain=a.shop.example",
            "b.a.shop.example",
            true,
        ),
        (
            "a.shop.example",
            "x=1; Domain=.SHOP.example",
            "b.shop.example",
            true,
        ),
        (
            "a.shop.example",
            "x=1; Domain=shop.example",
            "shop.example",
            true,
        ),
        (
            "a.shop.example",
            "x=1; Domain=shop.example",
            "workshop.example",
            false,
        ),
        (
            "a.shop.example",
            "x=1; Domain=other.example",
            "other.example",
            false,
        ),
        (
            "a.shop.example",
            "x=1; Domain=b.a.shop.example",
            "b.a.shop.example",
            false,
        ),
        ("a.shop.example", "x=1; Domain=example", "b.example", false),
        ("a.shop.example", "x=1; Domain=", "a.shop.example", true),
        ("localhost", "x=1; Domain=localhost", "localhost", true),
        ("127.0.0.1", "x=1; Domain=127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "x=1; Domain=0.0.1", "127.0.0.1", false),
        (
            "xn--bcher-kva.example",
            "x=1; Domain=b\u{fc}cher.example",
            "a.xn--bcher-kva.example",
            true,
        ),
    ] {
        let mut jar = Jar::default();
        answer(&mut jar, &host(name), "/", 0, &[set.as_bytes()]);
        let found = sent(&mut jar, &host(to), "/", 0);
        assert_eq!(found == b"x=1", goes, "{name}: {set} -> {to}");
        assert!(goes || found.is_empty());
    }
}

#[test]
fn a_secure_cookie_only_goes_out_over_tls() {
    let mut jar = Jar::default();
    let (plain, secure) = (host("h"), CookieHost::new("H", true));
    answer(&mut jar, &secure, "/", 0, &[b"a=1; Secure", b"b=2"]);
    assert_eq!(sent(&mut jar, &secure, "/", 0), b"a=1; b=2");
    assert_eq!(sent(&mut jar, &plain, "/", 0), b"b=2");
}

#[test]
fn given_cookies_are_for_the_host_alone() {
    let mut jar = Jar::default();
    jar.give("a", "1", "/x", &host("h.example"));
    assert_eq!(sent(&mut jar, &host("h.example"), "/x/y", 0), b"a=1");
    assert_eq!(sent(&mut jar, &host("b.h.example"), "/x/y", 0), b"");
    answer(&mut jar, &host("h.example"), "/x/y", 0, &[b"a=2"]);
    assert_eq!(sent(&mut jar, &host("h.example"), "/x/y", 0), b"a=2");
}

#[test]
fn a_cookie_of_more_than_4_kib_is_not_kept_and_counted() {
    let (mut jar, host) = (Jar::default(), host("h"));
    let mut set = |bytes: usize| {
        let cookie = format!("a={}", "x".repeat(bytes - 2));
        let dropped = answer(&mut jar, &host, "/", 0, &[cookie.as_bytes()]);
        (dropped, sent(&mut jar, &host, "/", 0).len())
    };
    assert_eq!(set(4096), (0, 4096));
    // It takes the place of the one before all the same, which the server no longer means.
    assert_eq!(set(4097), (1, 0));
}

#[test]
fn the_oldest_cookies_make_room_for_new_ones() {
    let (mut jar, host) = (Jar::default(), host("h"));
    let set = |jar: &mut Jar, cookie: String| answer(jar, &host, "/", 0, &[cookie.as_bytes()]);
    // Set anew, it is not the oldest any more.
    let many = ["n0=0; Path=/", "n1=0; Max-Age=5", "n0=1; Path=/"].map(str::to_owned);
    let many = many
        .into_iter()
        .chain((2..200).map(|number| format!("n{number}=1")));
    let dropped: u64 = many.map(|cookie| set(&mut jar, cookie)).sum();
    assert_eq!(dropped, 20);
    let text = String::from_utf8(sent(&mut jar, &host, "/", 0)).unwrap();
    assert!(
        text.starts_with("n20=1; ") && text.ends_with("n199=1"),
        "{text}"
    );
    let large = (0..100).map(|number| format!("l{number}={}", "x".repeat(4_000)));
    let dropped: u64 = large.map(|cookie| set(&mut jar, cookie)).sum();
    let text = String::from_utf8(sent(&mut jar, &host, "/", 0)).unwrap();
    assert!(text.len() < MAX_JAR_BYTES + 200, "{}", text.len());
    assert_eq!(text.split("; ").count() as u64, 280 - dropped);
    assert!(text.contains("l99="));
}

/// Section 5.3 and 5.4, as they are written there.
#[derive(Default)]
struct Model(Vec<Entry>);

#[derive(Clone)]
struct Entry {
    name: u8,
    value: u8,
    path: &'static str,
    domain: &'static str,
    host_only: bool,
    secure: bool,
    ends_s: i64,
    created: usize,
}

const HOSTS: [&str; 4] = ["a.b.example", "b.example", "c.b.example", "d.example"];
const PATHS: [&str; 5] = ["/", "/p", "/p/q", "/pq", "/p/q/"];

fn is_in(host: &str, domain: &str) -> bool {
    host == domain || host.ends_with(&format!(".{domain}"))
}

impl Model {
    fn set(&mut self, mut new: Entry, host: &str, now_s: i64) {
        if !new.host_only && !is_in(host, new.domain) {
            return;
        }
        let same =
            |one: &Entry| one.name == new.name && one.path == new.path && one.domain == new.domain;
        self.0.retain(|one| one.ends_s > now_s);
        if let Some(known) = self.0.iter().find(|one| same(one)) {
            new.created = known.created;
        }
        self.0.retain(|one| !same(one));
        if new.ends_s > now_s {
            self.0.push(new);
        }
    }

    fn sent(&self, host: &str, path: &str, secure: bool, now_s: i64) -> Vec<u8> {
        let mut all: Vec<&Entry> = self.0.iter().collect();
        all.retain(|one| {
            let here = host == one.domain || !one.host_only && is_in(host, one.domain);
            let below = path == one.path
                || path.starts_with(one.path)
                    && (one.path.ends_with('/') || path[one.path.len()..].starts_with('/'));
            here && below && (secure || !one.secure) && one.ends_s > now_s
        });
        all.sort_by_key(|one| (std::cmp::Reverse(one.path.len()), one.created));
        let pairs: Vec<String> = all
            .iter()
            .map(|one| format!("{}={}", one.name, one.value))
            .collect();
        pairs.join("; ").into_bytes()
    }
}

#[derive(Debug, Clone)]
struct Act {
    host: usize,
    secure: bool,
    later_s: i64,
    /// Name, value, path, domain (none of them for the last number), Max-Age, Secure.
    set: (u8, u8, usize, usize, Option<i64>, bool),
    asks: usize,
}

fn act() -> impl Strategy<Value = Act> {
    let set = (
        0u8..3,
        0u8..9,
        0usize..5,
        0usize..5,
        proptest::option::of(-1i64..5),
        any::<bool>(),
    );
    (0usize..4, any::<bool>(), 0i64..3, set, 0usize..5).prop_map(
        |(host, secure, later_s, set, asks)| Act {
            host,
            secure,
            later_s,
            set,
            asks,
        },
    )
}

proptest! {
    #[test]
    fn it_keeps_and_sends_as_the_standard_says(acts in proptest::collection::vec(act(), 1..40)) {
        let (mut jar, mut model, mut now_s) = (Jar::default(), Model::default(), 1_000i64);
        for (number, act) in acts.iter().enumerate() {
            now_s += act.later_s;
            let ms = now_s * 1_000;
            let host = CookieHost::new(HOSTS[act.host], act.secure);
            let (name, value, path, domain, age_s, secure) = act.set;
            let (path, domain) = (PATHS[path], HOSTS.get(domain).copied());
            let mut text = format!("{name}={value}; Path={path}");
            text += &domain.map_or(String::new(), |domain| format!("; Domain={domain}"));
            text += &age_s.map_or(String::new(), |age_s| format!("; Max-Age={age_s}"));
            text += if secure { "; Secure" } else { "" };
            prop_assert_eq!(answer(&mut jar, &host, "/x", ms, &[text.as_bytes()]), 0);
            let ends_s = age_s.map_or(i64::MAX, |age_s| if age_s <= 0 { i64::MIN } else { now_s + age_s });
            let new = Entry {
                name, value, path, secure, ends_s,
                domain: domain.unwrap_or(HOSTS[act.host]),
                host_only: domain.is_none(),
                created: number,
            };
            model.set(new, HOSTS[act.host], now_s);
            let asks = PATHS[act.asks];
            let expected = model.sent(HOSTS[act.host], asks, act.secure, now_s);
            prop_assert_eq!(sent(&mut jar, &host, asks, ms), expected, "{:?}", act);
        }
    }

    #[test]
    fn no_server_breaks_a_request(
        sets in proptest::collection::vec(proptest::collection::vec(32u8..=255, 0..60), 0..20),
        target in "[!-~]{0,20}",
    ) {
        let (mut jar, host) = (Jar::default(), host("h"));
        let all: Vec<&[u8]> = sets.iter().map(Vec::as_slice).collect();
        answer(&mut jar, &host, &target, 0, &all);
        let mut out = Vec::new();
        jar.write(target.as_bytes(), &host, false, 0, &mut out);
        let line = out.strip_suffix(b"\r\n").unwrap_or(&out);
        prop_assert!(!line.contains(&b'\n') && !line.contains(&b'\r'));
        prop_assert_eq!(out.is_empty(), line.is_empty());
    }
}
