use super::*;
use crate::scenario::vars::ValueCounts;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::json;

fn look(captures: Value, expects: Value) -> Result<(Look, Vars), String> {
    let captures: Vec<Capture> = serde_json::from_value(captures).unwrap();
    let expects: Expect = serde_json::from_value(expects).unwrap();
    let numbered = Numbered::new("/${a_2}/${a_1}/${ba_3}/${a_04}/${a_5x}/${a_2}".to_owned());
    let mut next = 0;
    let look = Look::compile(&captures, &expects, None, &numbered, |_| {
        next += 1;
        next - 1
    })?;
    let vars = Vars::new(ValueCounts {
        captured: next,
        ..ValueCounts::default()
    });
    Ok((look, vars))
}

fn rng() -> SmallRng {
    SmallRng::seed_from_u64(1)
}

fn response(body: &[u8]) -> CapturedResponse {
    let mut seen = CapturedResponse::new(true);
    seen.begin(b"HTTP/1.1 200 OK\r\nLocation: /people/7\r\n\r\n");
    seen.feed(body);
    seen
}

fn taken(captures: Value, body: &str) -> (Option<Missed>, Vec<Option<String>>) {
    let (look, mut vars) = look(captures, json!({})).unwrap();
    let missed = look.take(
        &response(body.as_bytes()),
        true,
        &Shared::default(),
        &mut vars,
        &mut rng(),
    );
    let text = |value: &Option<Box<[u8]>>| {
        value
            .as_ref()
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    (missed, vars.captured.iter().map(text).collect())
}

#[test]
fn values_come_from_json_headers_and_regexes() {
    let (missed, values) = taken(
        json!([{"name": "a", "json": "/items/1/id"}, {"name": "b", "header": "location"},
            {"name": "c", "regex": "\"id\":(\\d+)"}, {"name": "d", "regex": "i.ems"}, {"name": "e", "json": "/items/0"}]),
        r#"{"items":[{"id":41},{"id":"forty two"}]}"#,
    );
    assert_eq!(missed, None);
    let expected = ["forty two", "/people/7", "41", "items", r#"{"id":41}"#];
    assert_eq!(values, expected.map(|text| Some(text.to_owned())));
}

#[test]
fn what_is_not_found_is_said_or_has_its_default() {
    let missing = taken(json!([{"name": "a", "json": "/id"}]), r#"{"id":null}"#);
    assert_eq!(missing, (Some(Missed::Capture), vec![None]));
    let none = taken(
        json!([{"name": "a", "json": "/id", "default": "-"}]),
        "not JSON",
    );
    assert_eq!(none, (None, vec![Some("-".to_owned())]));
}

#[test]
fn a_value_that_is_too_long_is_not_kept() {
    let body = |bytes: usize| format!(r#"{{"id":"{}"}}"#, "x".repeat(bytes));
    let plain = json!([{"name": "a", "json": "/id"}]);
    let (missed, values) = taken(plain.clone(), &body(MAX_VALUE_BYTES));
    assert!(missed.is_none() && values[0].is_some());
    let long = body(MAX_VALUE_BYTES + 1);
    assert_eq!(taken(plain, &long), (Some(Missed::TooLong), vec![None]));
    let other = json!([{"name": "a", "json": "/id", "default": "-"}]);
    let instead = (Some(Missed::TooLong), vec![Some("-".to_owned())]);
    assert_eq!(taken(other, &long), instead);
    let list = format!(r#"{{"items":[{0},{0}]}}"#, body(MAX_VALUE_BYTES / 2));
    let listed = json!([{"name": "a", "jsonpath": "$.items[*].id", "match": -1, "as_json": true}]);
    assert_eq!(taken(listed, &list).0, Some(Missed::TooLong));
}

#[test]
fn which_of_several_is_taken_is_said() {
    let body = r#"{"items":[{"id":41},{"id":42}]}"#;
    let which = |number: i64| {
        taken(
            json!([{"name": "a", "jsonpath": "$.items[*].id", "match": number}]),
            body,
        )
    };
    assert_eq!(which(2), (None, vec![Some("42".to_owned())]));
    assert_eq!(which(3), (Some(Missed::Capture), vec![None]));
    let (missed, any) = which(0);
    assert!(missed.is_none() && ["41", "42"].contains(&any[0].as_deref().unwrap()));
    // The value itself, then those that something refers to, then their count.
    let all = taken(
        json!([{"name": "a", "regex": "\\d(\\d)", "match": -1}]),
        body,
    );
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(all, (None, vec![None, text("1"), text("2"), text("2")]));
    let one = taken(json!([{"name": "a", "regex": "4[2]", "match": -1}]), body);
    assert_eq!(one, (None, vec![None, text("42"), None, text("1")]));
    let none = json!({"name": "a", "regex": "x", "match": -1, "optional": true});
    assert_eq!(
        taken(json!([none]), body),
        (None, vec![None, None, None, text("0")])
    );
}

#[test]
fn what_is_expected_may_hold_values_of_the_run() {
    let expect: Expect =
        serde_json::from_value(json!({"json": [{"pointer": "/a", "equals_json": "{\"k\":${v}}"}]}))
            .unwrap();
    let mut scope = Scope::default();
    let slot = scope.capture("v");
    scope.visible.push(slot);
    let mut look = Look::compile(&[], &expect, None, &Numbered::default(), |_| 0).unwrap();
    look.fill(&expect, &mut scope).unwrap();
    let mut vars = Vars::new(ValueCounts {
        captured: 1,
        ..ValueCounts::default()
    });
    for (value, body, met) in [
        ("7", r#"{"a":{"k":7}}"#, true),
        ("\"7\"", r#"{"a":{"k":7}}"#, false),
        ("[1,2]", r#"{"a":{"k":[1, 2]}}"#, true),
        ("", r#"{"a":{"k":7}}"#, false),
        ("7", "{}", false),
    ] {
        vars.set(0, value.as_bytes().to_vec());
        let response = response(body.as_bytes());
        let missed = look.take(&response, true, &Shared::default(), &mut vars, &mut rng());
        assert_eq!(missed.is_none(), met, "{value} {body}");
    }
    scope.visible.clear();
    assert!(look.fill(&expect, &mut scope).unwrap_err().contains("/a"));
}

#[test]
fn texts_may_hold_values_of_the_run() {
    let of = |text: Value| -> Look {
        let expect: Expect = serde_json::from_value(json!({ "filled": [text] })).unwrap();
        assert!(expect.needs_copy());
        let mut scope = Scope::default();
        let slot = scope.capture("v");
        scope.visible.push(slot);
        let mut look = Look::compile(&[], &expect, None, &Numbered::default(), |_| 0).unwrap();
        look.fill(&expect, &mut scope).unwrap();
        look
    };
    let mut vars = Vars::new(ValueCounts {
        captured: 1,
        ..ValueCounts::default()
    });
    for (text, value, missed) in [
        (json!({"text": "b${v}"}), "c", None),
        (json!({"text": "b${v}"}), "d", Some(Missed::Expectation)),
        (json!({"text": "b${v}", "absent": true}), "d", None),
        (json!({"text": "ab${v}", "whole": true}), "c", None),
        (
            json!({"text": "b${v}", "whole": true}),
            "c",
            Some(Missed::Expectation),
        ),
        (
            json!({"text": "${v}", "in": "status", "whole": true}),
            "200",
            None,
        ),
        (
            json!({"text": "${v}", "in": "status"}),
            "404",
            Some(Missed::Head),
        ),
        (json!({"text": "X: ${v}", "in": "head"}), "1", None),
        (
            json!({"text": "X: ${v}", "in": "head"}),
            "2",
            Some(Missed::Head),
        ),
    ] {
        vars.set(0, value.as_bytes().to_vec());
        let mut seen = CapturedResponse::new(true);
        seen.begin(b"HTTP/1.1 200 OK\r\nX: 1\r\n\r\n");
        seen.feed(b"abc");
        let found = of(text.clone()).take(&seen, true, &Shared::default(), &mut vars, &mut rng());
        assert_eq!(found, missed, "{text} {value}");
    }
}

#[test]
fn all_that_are_found_are_kept_as_one_list() {
    let capture =
        json!([{"name": "a", "jsonpath": "$..id", "match": -1, "as_json": true, "default": "[]"}]);
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        taken(capture.clone(), r#"[{"id":41},{"id":"x"}]"#),
        (
            None,
            vec![text(r#"[41,"x"]"#), text("41"), text(r#""x""#), text("2")]
        )
    );
    assert_eq!(
        taken(capture, "[]"),
        (None, vec![text("[]"), None, None, text("0")])
    );
}

#[test]
fn what_is_optional_stays_as_it_was_and_what_is_always_taken_is() {
    let captures = json!([{"name": "a", "json": "/id", "optional": true}, {"name": "b", "json": "/id", "always": true}]);
    let (look, mut vars) = look(captures, json!({})).unwrap();
    vars.set(0, b"before".to_vec());
    assert_eq!(
        look.take(
            &response(br#"{"id":7}"#),
            false,
            &Shared::default(),
            &mut vars,
            &mut rng()
        ),
        None
    );
    let values = |vars: &Vars| {
        vars.captured
            .iter()
            .map(|value| value.as_deref().map(<[u8]>::to_vec))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        values(&vars),
        [Some(b"before".to_vec()), Some(b"7".to_vec())]
    );
    look.take(
        &response(b"{}"),
        true,
        &Shared::default(),
        &mut vars,
        &mut rng(),
    );
    assert_eq!(values(&vars), [Some(b"before".to_vec()), None]);
}

#[test]
fn from_a_response_whose_json_is_wrong_only_what_is_always_taken_is() {
    let captures = json!([{"name": "a", "json": "/id", "optional": true}, {"name": "b", "json": "/id", "always": true}]);
    let expect = json!({"json": [{"pointer": "/ok", "equals": true}]});
    let (look, mut vars) = look(captures, expect).unwrap();
    let mut missed = |body: &str| {
        let missed = look.take(
            &response(body.as_bytes()),
            true,
            &Shared::default(),
            &mut vars,
            &mut rng(),
        );
        let taken = [0, 1].map(|slot| vars.captured[slot].as_deref().map(<[u8]>::to_vec));
        (missed, taken)
    };
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        missed(r#"{"id":1,"ok":true}"#),
        (None, [text("1"), text("1")])
    );
    assert_eq!(
        missed(r#"{"id":2,"ok":false}"#),
        (Some(Missed::Expectation), [text("1"), text("2")])
    );
}

#[test]
fn json_and_regexes_are_expected_to_be_there_or_not() {
    let judged = |expect: Value, body: &str| {
        let (look, mut vars) = look(json!([]), expect).unwrap();
        look.take(
            &response(body.as_bytes()),
            true,
            &Shared::default(),
            &mut vars,
            &mut rng(),
        )
    };
    let missed = Some(Missed::Expectation);
    for (expect, body, expected) in [
        (json!({"pointer": "/a"}), r#"{"a":null}"#, None),
        (
            json!({"pointer": "/a", "equals": [1]}),
            r#"{"a":[1]}"#,
            None,
        ),
        (json!({"pointer": "/b"}), r#"{"a":1}"#, missed),
        (
            json!({"pointer": "/a", "equals": null}),
            r#"{"a":1}"#,
            missed,
        ),
        (json!({"pointer": ""}), "no JSON", missed),
        (json!({"pointer": "/b", "absent": true}), r#"{"a":1}"#, None),
        (
            json!({"pointer": "/a", "absent": true}),
            r#"{"a":1}"#,
            missed,
        ),
        (json!({"pointer": "/a", "absent": true}), "no JSON", missed),
        (
            json!({"pointer": "/a", "matches": "^1\\d$"}),
            r#"{"a":12}"#,
            None,
        ),
        (
            json!({"pointer": "/a", "matches": "^true$"}),
            r#"{"a":true}"#,
            None,
        ),
        (
            json!({"pointer": "/a", "matches": "^x"}),
            r#"{"a":"xy"}"#,
            None,
        ),
        (
            json!({"pointer": "/a", "matches": "\""}),
            r#"{"a":"xy"}"#,
            missed,
        ),
        (
            json!({"pointer": "/b", "matches": ""}),
            r#"{"a":1}"#,
            missed,
        ),
        (
            json!({"path": "$.a[*].b", "matches": "^2$"}),
            r#"{"a":[{"b":1},{"b":2}]}"#,
            None,
        ),
        (
            json!({"path": "$.a[*].b", "equals": "2"}),
            r#"{"a":[{"b":1},{"b":2}]}"#,
            missed,
        ),
        (json!({"path": "$..b"}), r#"{"a":[]}"#, missed),
        (json!({"path": "$..b"}), r#"{"a":{"b":null}}"#, None),
        (json!({"path": "$..b", "absent": true}), r#"{"a":[]}"#, None),
    ] {
        assert_eq!(judged(json!({"json": [expect]}), body), expected, "{body}");
    }
    assert_eq!(
        judged(json!({"body_matches": ["^h.l", "o$"]}), "hello"),
        None
    );
    assert_eq!(
        judged(json!({"body_matches": ["^h", "x"]}), "hello"),
        missed
    );
    assert_eq!(judged(json!({"body_not_matches": ["x"]}), "hello"), None);
    assert_eq!(
        judged(json!({"body_not_matches": ["x", "l+"]}), "hello"),
        missed
    );
    let head = Some(Missed::Head);
    for (expect, expected) in [
        (
            json!({"head_matches": ["^HTTP/\\S+ 200 OK\r\n", "(?i)location: /p"]}),
            None,
        ),
        (json!({"head_matches": ["Content-Type"]}), head),
        (json!({"head_not_matches": ["Content-Type"]}), None),
        (json!({"head_not_matches": ["Location"]}), head),
    ] {
        assert_eq!(judged(expect.clone(), "hello"), expected, "{expect}");
    }
    let contrary = json!({"json": [{"pointer": "/a", "matches": "x", "equals": 1}]});
    assert!(
        look(json!([]), contrary)
            .unwrap_err()
            .contains("several things")
    );
    assert!(
        look(json!([]), json!({"body_matches": ["("]}))
            .unwrap_err()
            .contains("expect.body_matches has a regex")
    );
    assert!(
        look(
            json!([]),
            json!({"json": [{"pointer": "/a", "matches": "("}]})
        )
        .unwrap_err()
        .contains("\"/a\": has a regex")
    );
}

#[test]
fn captures_that_cannot_work_are_refused() {
    for (capture, part) in [
        (json!({"name": "a"}), "capture \"a\" expected exactly one"),
        (json!({"name": "uuid", "json": "/id"}), "name"),
        (json!({"name": "a b", "json": "/id"}), "name"),
        (
            json!({"name": "a", "status": true, "match": -2}),
            "match -2",
        ),
        (
            json!({"name": "a", "status": true, "optional": true, "default": ""}),
            "one of them",
        ),
    ] {
        let refusal = look(json!([capture]), json!({})).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
}

proptest! {
    /// Whatever the body is, taking never panics.
    #[test]
    fn any_body_can_be_looked_at(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (look, mut vars) = look(json!([{"name": "a", "json": "/a/0"}, {"name": "b", "regex": "a(b)?"}]),
            json!({"json": [{"pointer": "/x"}], "body_not_matches": ["^a"]})).unwrap();
        look.take(&response(&body), true, &Shared::default(), &mut vars, &mut rng());
    }
}
