use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Fragments of responses, right and wrong: random sequences of them come nearer to trouble than
/// random bytes.
const PARTS: &[&str] = &[
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switching\r\n",
    "HTTP/1.0 204 No Content\r\n",
    "HTTP/1.1 304 Not Modified\n",
    "HTTP/1.1 99 x\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 0\r\n",
    "content-length: 3, 3\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Connection: close\r\n",
    "X: \u{e9}\r\n folded\r\n",
    "NoColon\r\n",
    " : \n",
    "\r\n",
    "\n",
    "\r",
    "abc",
    "3\r\nabc\r\n",
    "3;x=\"y\"\r\nabc\r\n",
    "3;x\nabc\n",
    "0\r\n",
    "0\r\nT: 1\r\n\r\n",
    "fffffffffffffffff\r\n",
    "-1\r\n",
];
const TEMPLATE_PARTS: &[&str] = &[
    "${",
    "$${",
    "}",
    "$",
    "sequence",
    " start=-3",
    " step=9223372036854775807",
    " name=a",
    " per=user",
    "random int ",
    "random choice ",
    "random string ",
    "1 ",
    "-9223372036854775808 ",
    "9223372036854775807 ",
    "uuid",
    "id",
    " | json",
    " | url",
    "\u{1f600}",
    "\r\n",
    "/a b",
];
const PLAN: &str = r#"{"version":1,"target":{"url":"http://127.0.0.1:1"},"load":{"model":"open","arrivals":"poisson","session":"user","max_users":9,
    "phases":[{"duration_ms":10,"from_per_s":0,"to_per_s":5}]},"scenarios":[{"name":"a","loops":2,"steps":[{"path":"/${uuid}",
    "expect":{"status":[200],"json":[{"pointer":"/a","equals":[1,null]}]},"capture":[{"name":"x","json":"/id","default":"1"}],
    "think":{"kind":"uniform","min_ms":1,"max_ms":2},"body":{"text":"b","chunked":true}}]}],"stop":{"after_ms":1},
    "window":{"mode":"fixed","warmup_ms":0,"duration_ms":1},"marks":[1],"timeouts":{"connect_ms":1,"request_ms":2}}"#;

/// As many as proptest is set to (`PROPTEST_CASES`), and else few enough for every test run.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(600),
    }
}

fn joined(parts: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    vec(proptest::sample::select(parts), 0..most).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn responses_do_not_depend_on_their_pieces(message in joined(PARTS, 12), cuts in vec(0usize..400, 0..6), head: bool) {
        response(message.as_bytes(), &cuts, head);
    }

    #[test]
    fn any_bytes_are_a_response_or_none(message in vec(any::<u8>(), 0..300), cuts in vec(0usize..300, 0..6), head: bool) {
        response(&message, &cuts, head);
    }

    #[test]
    fn chunks_do_not_depend_on_their_pieces(message in joined(&PARTS[15..], 12), cuts in vec(0usize..300, 0..6)) {
        chunked(message.as_bytes(), &cuts);
    }

    #[test]
    fn any_bytes_are_chunks_or_none(message in vec(any::<u8>(), 0..300), cuts in vec(0usize..300, 0..6)) {
        chunked(&message, &cuts);
    }

    #[test]
    fn any_text_is_a_template_or_refused(text in joined(TEMPLATE_PARTS, 14)) {
        template(&text);
    }

    #[test]
    fn any_characters_are_a_template_or_refused(text in "\\PC{0,60}") {
        template(&text);
    }

    #[test]
    fn a_damaged_plan_is_read_or_refused(at in 0..PLAN.len(), to in proptest::option::of(any::<char>()), until in 0..PLAN.len()) {
        let mut characters: Vec<char> = PLAN.chars().collect();
        match to {
            Some(to) => characters[at] = to,
            None => drop(characters.drain(at.min(until)..at.max(until))),
        }
        plan(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn any_number_in_a_plan_is_taken_or_refused(which in 0usize..14, number in prop_oneof![any::<f64>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()), Just("1e999".to_owned()), Just("null".to_owned()), Just("[]".to_owned())]) {
        let digits: Vec<usize> = PLAN.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let at = digits[which * digits.len() / 14];
        plan(&format!("{}{number}{}", &PLAN[..at], &PLAN[at + 1..]));
    }
}

#[test]
fn the_plan_of_these_tests_is_one() {
    assert!(read_plan(PLAN).is_ok(), "{:?}", read_plan(PLAN).err());
    plan(PLAN);
}

/// Found by fuzzing: httparse takes a line feed within an extension for a part of it.
#[test]
fn a_line_feed_ends_a_chunks_line_wherever_it_stands() {
    let message = b"0;;0;;;\n\n\r\n";
    for cut in 0..=message.len() {
        chunked(message, &[cut]);
    }
    let mut decoder = Chunked::lenient();
    assert_eq!(decoder.read(message, |_| ()), Ok(9));
    assert!(decoder.is_done());
}

#[test]
fn a_corpus_reads_as_httparse_and_the_standard_say() {
    let answered = |status, body_bytes| ReadOutcome::Answered { status, body_bytes };
    let cases: [(&str, ReadOutcome); 12] = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            answered(200, 3),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef",
            answered(200, 3),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            ReadOutcome::NoResponse,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", answered(200, 13)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            answered(200, 3),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            ReadOutcome::NoResponse,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", ReadOutcome::NoResponse),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            answered(204, 0),
        ),
        (
            "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
            answered(200, 0),
        ),
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", answered(200, 0)),
        ("HTTP/2 200 OK\r\n\r\n", ReadOutcome::NoResponse),
        ("", ReadOutcome::NoResponse),
    ];
    for (message, expected) in cases {
        for cut in 0..=message.len() {
            assert_eq!(
                response(message.as_bytes(), &[cut], false),
                expected,
                "{message:?} cut at {cut}"
            );
        }
    }
}
