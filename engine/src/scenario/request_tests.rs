use super::*;
use crate::plan::Step;
use crate::scenario::template::Scope;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};

fn compile(step: Value) -> Result<Request, String> {
    let step: Step = serde_json::from_value(step).unwrap();
    Request::compile(
        &step,
        "h:1",
        HttpVersion::V1_1,
        None,
        None,
        &mut Scope::default(),
    )
}

fn written(request: &Request, last: bool) -> String {
    let mut context = RenderContext {
        shared: &Shared::default(),
        vars: &mut Vars::default(),
        rng: &mut SmallRng::seed_from_u64(1),
    };
    let mut outgoing = request.write(last, &mut context, Vec::new());
    let mut all = outgoing.bytes().to_vec();
    while let Some(piece) = outgoing
        .rest
        .as_mut()
        .and_then(|rest| rest.next_piece(Vec::new()))
    {
        all.extend(piece.read().unwrap());
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn http_1_0_asks_for_a_connection_that_stays_and_says_nothing_of_one_that_does_not() {
    let request = |step: Value| {
        let step: Step = serde_json::from_value(step).unwrap();
        Request::compile(
            &step,
            "h:1",
            HttpVersion::V1_0,
            None,
            None,
            &mut Scope::default(),
        )
        .unwrap()
    };
    let bare = request(json!({"path": "/a"}));
    assert_eq!(
        written(&bare, false),
        "GET /a HTTP/1.0\r\nHost: h:1\r\nConnection: keep-alive\r\n\r\n"
    );
    assert_eq!(written(&bare, true), "GET /a HTTP/1.0\r\nHost: h:1\r\n\r\n");
    let listed = request(json!({"path": "/a", "headers": [["connection", "x"]]}));
    assert_eq!(
        written(&listed, false),
        "GET /a HTTP/1.0\r\nHost: h:1\r\nconnection: x\r\n\r\n"
    );
}

#[test]
fn host_and_length_are_added_only_where_missing() {
    let bare = compile(json!({"path": "/a"})).unwrap();
    assert!(bare.is_fixed());
    assert_eq!(
        written(&bare, false),
        "GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n"
    );
    assert_eq!(
        written(&bare, true),
        "GET /a HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n"
    );
    let full = compile(json!({"method": "PUT", "path": "/",
        "headers": [["host", "x"], ["connection", "close"]], "body": "12"}))
    .unwrap();
    let expected = "PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nContent-Length: 2\r\n\r\n12";
    assert_eq!(written(&full, false), expected);
    assert_eq!(written(&full, true), expected);
}

#[test]
fn what_the_engine_adds_stands_where_it_is_told() {
    let with = |at: Value| {
        compile(
            json!({"method": "PUT", "path": "/", "body": "a${random int 7 7}", "auth": {"bearer": "t"},
            "added_headers_at": at, "headers": [["Connection", "keep-alive"], ["Host", "x"]]}),
        )
    };
    for (at, head) in [
        (
            json!(1),
            "Connection: keep-alive\r\nContent-Length: 2\r\nHost: x\r\nAuthorization: Bearer t",
        ),
        (
            json!(0),
            "Content-Length: 2\r\nConnection: keep-alive\r\nHost: x\r\nAuthorization: Bearer t",
        ),
        (
            Value::Null,
            "Connection: keep-alive\r\nHost: x\r\nAuthorization: Bearer t\r\nContent-Length: 2",
        ),
        (
            json!(2),
            "Connection: keep-alive\r\nHost: x\r\nContent-Length: 2\r\nAuthorization: Bearer t",
        ),
    ] {
        let sent = written(&with(at).unwrap(), false);
        assert_eq!(sent, format!("PUT / HTTP/1.1\r\n{head}\r\n\r\na7"));
    }
    let refusal = with(json!(3)).unwrap_err();
    assert!(refusal.contains("expected at most 2"), "{refusal}");
}

#[test]
fn a_redirected_request_has_its_cookies_where_the_first_had_them() {
    let step: Step = serde_json::from_value(json!({"method": "POST", "path": "/", "body": "b",
        "added_headers_at": 1, "headers": [["Connection", "keep-alive"], ["Host", "x"]]}))
    .unwrap();
    let scope = &mut Scope::default();
    let host = Arc::new(CookieHost::new("h", false));
    let cookies = Some(Arc::clone(&host));
    let request = Request::compile(&step, "h:1", HttpVersion::V1_1, cookies, None, scope).unwrap();
    let mut vars = Vars::default();
    vars.cookies.give("a", "1", "/", &host);
    let mut context = RenderContext {
        shared: &Shared::default(),
        vars: &mut vars,
        rng: &mut SmallRng::seed_from_u64(1),
    };
    let first = request.write(false, &mut context, Vec::new());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(
        text(first.bytes()),
        "POST / HTTP/1.1\r\nConnection: keep-alive\r\nCookie: a=1\r\nContent-Length: 1\r\nHost: x\r\n\r\nb"
    );
    for (as_get, line, length) in [(true, "GET", ""), (false, "POST", "Content-Length: 1\r\n")] {
        let again = Again {
            before: first.bytes(),
            path: "/to",
            as_get,
        };
        let sent = request.write_again(&again, false, &mut vars, Vec::new());
        let body = if as_get { "" } else { "b" };
        assert_eq!(
            text(sent.bytes()),
            format!(
                "{line} /to HTTP/1.1\r\nConnection: keep-alive\r\nCookie: a=1\r\n{length}Host: x\r\n\r\n{body}"
            )
        );
    }
}

#[test]
fn bodies_come_from_text_base64_and_files_with_or_without_a_length() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from a file").unwrap();
    let with = |body: Value| written(&compile(json!({"path": "/", "body": body})).unwrap(), false);
    assert!(with(json!({"text": "x"})).ends_with("Content-Length: 1\r\n\r\nx"));
    assert!(with(json!({"base64": "aGk="})).ends_with("Content-Length: 2\r\n\r\nhi"));
    assert!(with(json!({"file": file.path()})).ends_with("Content-Length: 11\r\n\r\nfrom a file"));
    let chunked = with(json!({"text": "sixteen letters!", "chunked": true}));
    assert!(
        chunked.ends_with("Transfer-Encoding: chunked\r\n\r\n10\r\nsixteen letters!\r\n0\r\n\r\n"),
        "{chunked}"
    );
    assert!(with(json!({"text": "", "chunked": true})).ends_with("\r\n\r\n0\r\n\r\n"));
}

#[test]
fn a_body_may_be_joined_from_parts() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "${not a name}").unwrap();
    let parts = json!([{"text": "a${random int 7 7}"}, {"file": file.path()}, {"text": "z"}]);
    let request = compile(json!({"path": "/", "body": {"parts": parts}})).unwrap();
    assert!(written(&request, false).ends_with("Content-Length: 16\r\n\r\na7${not a name}z"));
    for (body, part) in [
        (json!({"parts": [{}]}), "not exactly one of text and file"),
        (json!({"parts": [{"file": "nowhere"}]}), "cannot be read"),
        (
            json!({"text": "x", "parts": [{"text": "y"}]}),
            "file and parts",
        ),
    ] {
        let refusal = compile(json!({"path": "/", "body": body})).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn a_long_file_is_read_while_it_is_sent() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "0123456789".repeat(300_000);
    std::fs::write(file.path(), &text).unwrap();
    for chunked in [false, true] {
        let body = json!({"file": file.path(), "chunked": chunked});
        let request = compile(json!({"path": "/", "body": body})).unwrap();
        assert!(!request.is_fixed());
        let sent = written(&request, false);
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        if chunked {
            let mut chunks = prony_common::chunked::Chunked::lenient();
            let mut plain = Vec::new();
            let used = chunks
                .read(body.as_bytes(), |piece| plain.extend_from_slice(piece))
                .unwrap();
            assert!(chunks.is_done() && used == body.len() && plain == text.as_bytes());
        } else {
            assert!(head.ends_with("Content-Length: 3000000"), "{head}");
            assert!(body == text);
        }
    }
}

#[test]
fn credentials_become_a_header() {
    let basic =
        json!({"path": "/", "auth": {"basic": {"user": "Aladdin", "password": "open sesame"}}});
    let basic = written(&compile(basic).unwrap(), false);
    assert!(
        basic.contains("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"),
        "{basic}"
    );
    let bearer = compile(json!({"path": "/", "auth": {"bearer": "t-${uuid}"}})).unwrap();
    assert!(written(&bearer, false).contains("Authorization: Bearer t-"));
    assert!(!bearer.is_fixed());
}

#[test]
fn a_header_that_says_so_makes_chunks_of_the_body() {
    let with = |step: Value| written(&compile(step).unwrap(), false);
    let coding = ["Transfer-encoding", "Chunked"];
    let text = with(json!({"method": "PUT", "path": "/", "body": "hello", "headers": [coding]}));
    assert!(
        text.ends_with("\r\nTransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        "{text}"
    );
    assert!(!text.contains("Content-Length"), "{text}");
    let none = with(json!({"path": "/", "headers": [coding]}));
    assert!(none.ends_with("Chunked\r\n\r\n0\r\n\r\n"), "{none}");
    let drawn = with(
        json!({"method": "PUT", "path": "/", "body": "${random int 5 5}", "headers": [coding]}),
    );
    assert!(drawn.ends_with("\r\n\r\n1\r\n5\r\n0\r\n\r\n"), "{drawn}");
}

#[test]
fn steps_that_contradict_themselves_are_refused() {
    for (step, part) in [
        (
            json!({"path": "/", "body": {"text": "a", "file": "b"}}),
            "exactly one",
        ),
        (json!({"path": "/", "body": {"base64": "?"}}), "not base64"),
        (
            json!({"path": "/", "body": {"file": "nowhere.bin"}}),
            "cannot be read",
        ),
        (
            json!({"path": "/", "body": "${uuid}", "headers": [["content-length", "3"]]}),
            "leave the header out",
        ),
        (
            json!({"path": "/", "body": {"text": "a", "chunked": true}, "headers": [["Content-Length", "1"]]}),
            "says twice",
        ),
        (
            json!({"path": "/", "body": "a", "headers": [["transfer-encoding", "chunked"], ["Content-Length", "1"]]}),
            "says twice",
        ),
        (
            json!({"path": "/", "body": "hello", "headers": [["Content-Length", "3"]]}),
            "a body of 5 bytes",
        ),
        (
            json!({"path": "/", "headers": [["content-length", "1"]]}),
            "a body of 0 bytes",
        ),
        (
            json!({"path": "/", "body": "a", "headers": [["Transfer-Encoding", "gzip"]]}),
            "expected chunked",
        ),
        (
            json!({"path": "/", "body": "a${uuid}", "headers": [["Transfer-Encoding", "${uuid}"]]}),
            "expected chunked",
        ),
        (
            json!({"path": "/", "auth": {"bearer": "a"}, "headers": [["Authorization", "b"]]}),
            "one of them",
        ),
        (
            json!({"path": "/", "expect_continue": true}),
            "expected a body",
        ),
        (json!({"path": "/${a}"}), "path, character 2"),
        (
            json!({"path": "/", "headers": [["X", "é${a"]]}),
            "header X, character 2",
        ),
    ] {
        let refusal = compile(step).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
}

proptest! {
    /// The declared length is that of the body, whatever is rendered.
    #[test]
    fn the_length_is_right(text in "[a-zé]{0,20}", letters in 1usize..40, seed: u64) {
        let body = format!("{text}${{random string {letters}}}${{random int -5 100000}}{text}");
        let request = compile(json!({"method": "POST", "path": "/", "body": body})).unwrap();
        let mut context = RenderContext { shared: &Shared::default(), vars: &mut Vars::default(), rng: &mut SmallRng::seed_from_u64(seed) };
        let sent = request.write(false, &mut context, Vec::new());
        let sent = String::from_utf8(sent.bytes().to_vec()).unwrap();
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        let declared = head.rsplit_once("Content-Length: ").unwrap().1;
        prop_assert_eq!(declared.parse::<usize>().unwrap(), body.len());
    }
}

fn with_cookies(step: Value) -> Result<Request, String> {
    let step: Step = serde_json::from_value(step).unwrap();
    Request::compile(
        &step,
        "h:1",
        HttpVersion::V1_1,
        Some(Arc::new(CookieHost::new("h", false))),
        None,
        &mut Scope::default(),
    )
}

#[test]
fn cookies_of_a_request_go_into_the_jar_and_replace_a_cookie_header() {
    let step = json!({"path": "/a", "headers": [["Cookie", "x=1"], ["B", "2"]], "set_cookies": "c=1\nd=2; Path=/"});
    let request = with_cookies(step).unwrap();
    assert_eq!(
        written(&request, false),
        "GET /a HTTP/1.1\r\nHost: h:1\r\nB: 2\r\nCookie: c=1; d=2\r\n\r\n"
    );
    let request = with_cookies(json!({"path": "/a", "header_lines": "cookie: x=1\r\n"})).unwrap();
    assert_eq!(
        written(&request, false),
        "GET /a HTTP/1.1\r\nHost: h:1\r\ncookie: x=1\r\n\r\n"
    );
    let why = compile(json!({"path": "/a", "set_cookies": "c=1"})).unwrap_err();
    assert!(why.contains("users keep no cookies"), "{why}");
}

#[test]
fn lines_stand_where_they_are_wanted_and_are_headers_as_others() {
    let step = json!({
        "path": "/a b\t", "path_as": "verbatim", "headers": [["A", "1"], ["B", "2"]],
        "header_lines": "host:z\r\nX:b  \r\n", "header_lines_at": 1
    });
    assert_eq!(
        written(&compile(step).unwrap(), false),
        "GET /a b\t HTTP/1.1\r\nA: 1\r\nhost:z\r\nX:b  \r\nB: 2\r\n\r\n"
    );
    let step = json!({
        "path": "/", "method": "POST", "body": "x", "headers": [["Host", "z"]],
        "header_lines": "A:1\r\n", "header_lines_at": 0, "added_headers_at": 0
    });
    assert_eq!(
        written(&compile(step).unwrap(), false),
        "POST / HTTP/1.1\r\nA:1\r\nContent-Length: 1\r\nHost: z\r\n\r\nx"
    );
    let why = compile(json!({"path": "/", "header_lines_at": 1})).unwrap_err();
    assert!(why.contains("header_lines_at is 1"), "{why}");
}

#[test]
fn headers_go_out_in_latin_1_and_values_of_a_path_as_in_a_url() {
    let mut scope = Scope::default();
    let slot = scope.capture("v");
    let step: Step = serde_json::from_value(json!({
        "path": "/a/../b/${v}?c=${v}", "path_as": "url",
        "headers": [["x", "é ${v}"]], "node_headers": true
    }))
    .unwrap();
    scope.visible.push(slot);
    let request =
        Request::compile(&step, "h:1", HttpVersion::V1_1, None, None, &mut scope).unwrap();
    let shared = Shared::default();
    let mut vars = Vars::new(crate::scenario::vars::ValueCounts {
        captured: 1,
        ..Default::default()
    });
    vars.set(slot, "ü\"#?".as_bytes().to_vec());
    assert!(!request.cannot_hold(&shared, &vars));
    let mut context = RenderContext {
        shared: &shared,
        vars: &mut vars,
        rng: &mut SmallRng::seed_from_u64(1),
    };
    let outgoing = request.write(false, &mut context, Vec::new());
    assert_eq!(
        outgoing.bytes(),
        b"GET /b/%C3%BC%22 HTTP/1.1\r\nHost: h:1\r\nx: \xe9 \xfc\"#?\r\n\r\n"
    );
    let before_text = json!({"path": "/", "method": "POST", "body": "x", "headers": [["x", "é"]], "node_headers": true});
    assert!(written(&compile(before_text).unwrap(), false).contains("\r\nx: é\r\n"));
    vars.set(slot, "5 €".as_bytes().to_vec());
    assert!(request.cannot_hold(&shared, &vars));
    vars.set(slot, b"100%".to_vec());
    assert!(request.cannot_hold(&shared, &vars));
}
