use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::scenario::vars::ValueCounts;

/// A template with what it draws from.
struct Rendered {
    template: Template,
    shared: Shared,
    vars: Vars,
    rng: SmallRng,
}

impl Rendered {
    fn new(text: &str) -> Result<Self, BadTemplate> {
        let mut scope = Scope {
            captured: vec!["id".to_owned(), "later".to_owned()],
            visible: vec![0],
            ..Scope::default()
        };
        let template = Template::compile(text, &mut scope)?;
        let shared = Shared {
            sequences: (0..scope.sequences()).map(|_| AtomicU64::new(0)).collect(),
            ..Shared::default()
        };
        let mut vars = Vars::new(ValueCounts {
            variables: 0,
            captured: 2,
            counters: scope.user_sequences(),
            feeders: 0,
        });
        vars.captured[0] = Some(b"a \"7\"\r\n\xff".as_slice().into());
        Ok(Self {
            template,
            shared,
            vars,
            rng: SmallRng::seed_from_u64(1),
        })
    }

    fn bytes(&mut self, place: RequestPart) -> Vec<u8> {
        let mut out = Vec::new();
        self.template
            .render(place, &self.shared, &mut self.vars, &mut self.rng, &mut out);
        out
    }

    fn next(&mut self) -> String {
        String::from_utf8(self.bytes(RequestPart::Body)).unwrap()
    }
}

fn texts(text: &str, count: usize) -> Vec<String> {
    let mut rendered = Rendered::new(text).unwrap();
    (0..count).map(|_| rendered.next()).collect()
}

fn refusal(text: &str) -> BadTemplate {
    Template::compile(text, &mut Scope::default()).unwrap_err()
}

#[test]
fn sequences_count_as_they_are_told() {
    assert_eq!(texts("a${sequence}", 3), ["a1", "a2", "a3"]);
    assert_eq!(
        texts("${sequence start=10 step=-5}", 4),
        ["10", "5", "0", "-5"]
    );
    assert_eq!(texts("${sequence}/${sequence}", 2), ["1/1", "2/2"]);
    assert_eq!(
        texts("${sequence name=n}/${sequence name=n}", 2),
        ["1/2", "3/4"]
    );
    assert_eq!(texts("${sequence per=user start=7}", 2), ["7", "8"]);
    for (one, other) in [("", "step=2"), ("", "end=9"), ("per=user", "per=iteration")] {
        let text = format!("${{sequence name=n {one}}}${{sequence name=n {other}}}");
        assert!(refusal(&text).why.contains("another"), "{text}");
    }
}

#[test]
fn a_sequence_with_an_end_begins_again() {
    assert_eq!(texts("${sequence end=3}", 5), ["1", "2", "3", "1", "2"]);
    assert_eq!(
        texts("${sequence start=2 step=2 end=5 per=user}", 3),
        ["2", "4", "2"]
    );
    assert_eq!(
        texts("${sequence start=0 step=-2 end=-3}", 3),
        ["0", "-2", "0"]
    );
    assert_eq!(texts("${sequence start=7 end=7}", 2), ["7", "7"]);
    for text in [
        "${sequence end=0}",
        "${sequence step=-1 end=2}",
        "${sequence step=0 end=2}",
    ] {
        assert!(refusal(text).why.contains("ends at"), "{text}");
    }
}

#[test]
fn a_sequence_begins_again_with_each_iteration_of_its_user() {
    let mut rendered = Rendered::new("${sequence start=5 per=iteration}").unwrap();
    let mut drawn = Vec::new();
    for iteration in [1, 1, 1, 2, 3, 3] {
        rendered.vars.iteration = iteration;
        drawn.push(rendered.next());
    }
    assert_eq!(drawn, ["5", "6", "7", "5", "5", "6"]);
}

#[test]
fn segments_of_a_path_stand_behind_one_slash() {
    let written = |value: &str, closed: bool| {
        let mut out = [b"/a/", value.as_bytes()].concat();
        make_safe(&mut out, 3, RequestPart::Path, &[Filter::Segments(closed)]);
        String::from_utf8(out).unwrap()
    };
    for (value, open, closed) in [
        ("b", "/a/b", "/a/b/"),
        ("", "/a/", "/a/"),
        ("/", "/a/", "/a/"),
        ("//b///c/", "/a/b/c/", "/a/b/c/"),
        ("/b?x=//", "/a/b?x=//", "/a/b?x=///"),
    ] {
        assert_eq!(
            (written(value, false), written(value, true)),
            (open.to_owned(), closed.to_owned())
        );
    }
}

#[test]
fn numbers_have_as_many_digits_as_are_asked_for_and_can_be_added_to() {
    assert_eq!(texts("${sequence start=9 | digits 3}", 2), ["009", "010"]);
    assert_eq!(texts("${sequence start=-7 | digits 3}", 1), ["-007"]);
    assert_eq!(texts("${sequence start=1234 | digits 3}", 1), ["1234"]);
    assert_eq!(texts("${sequence | plus -3 | digits 2}", 2), ["-02", "-01"]);
    let mut rendered = Rendered::new("${id | plus 1}").unwrap();
    rendered.vars.captured[0] = Some(b"no number".as_slice().into());
    assert_eq!(rendered.next(), "no number");
}

#[test]
fn digests_are_written_in_hexadecimal() {
    let mut rendered = Rendered::new("${id | md5}/${id | sha1 | upper}").unwrap();
    rendered.vars.captured[0] = Some(b"abc".as_slice().into());
    assert_eq!(
        rendered.next(),
        "900150983cd24fb0d6963f7d28e17f72/A9993E364706816ABA3E25717850C26C9CD0D89D"
    );
}

#[test]
fn a_uuid_is_of_its_run_and_other_values_are_of_the_seed() {
    let both = |text: &str| (texts(text, 1), texts(text, 1));
    let (one, other) = both("${random string 20}");
    assert_eq!(one, other);
    let (one, other) = both("${uuid}");
    assert_ne!(one, other);
}

#[test]
fn random_values_are_within_their_bounds() {
    let drawn: BTreeSet<String> = texts("${random int -1 1}", 200).into_iter().collect();
    assert_eq!(
        drawn.iter().map(String::as_str).collect::<Vec<_>>(),
        ["-1", "0", "1"]
    );
    let chosen: BTreeSet<String> = texts("${random choice red green}", 200)
        .into_iter()
        .collect();
    assert_eq!(chosen.len(), 2);
    let letters = texts("${random string 12}", 2);
    assert!(letters[0] != letters[1] && letters.iter().all(|text| text.len() == 12));
    let uuids = texts("${uuid}", 2);
    assert!(
        uuids[0] != uuids[1]
            && uuids
                .iter()
                .all(|text| text.len() == 36 && &text[14..15] == "4")
    );
}

#[test]
fn captured_values_are_made_safe_for_their_place() {
    let at = |text: &str, place: RequestPart| Rendered::new(text).unwrap().bytes(place);
    assert_eq!(at("${id}", RequestPart::Body), b"a \"7\"\r\n\xff");
    assert_eq!(at("${id}", RequestPart::Header), b"a \"7\"  \xff");
    assert_eq!(at("/${id}", RequestPart::Path), b"/a%20\"7\"%0D%0A%FF");
    assert_eq!(
        at("${id | url}", RequestPart::Body),
        b"a%20%227%22%0D%0A%FF"
    );
    assert_eq!(at("${id | form}", RequestPart::Path), b"a+%227%22%0D%0A%FF");
    assert_eq!(
        at("${id | upper}", RequestPart::Path),
        b"A%20\"7\"%0D%0A%EF%BF%BD"
    );
    assert_eq!(at("${id | base64}", RequestPart::Header), b"YSAiNyINCv8=");
    assert_eq!(
        at("${id | upper | lower | url}", RequestPart::Body),
        b"a%20%227%22%0D%0A%EF%BF%BD"
    );
    let json = String::from_utf8(at("\"${id|json}\"", RequestPart::Body)).unwrap();
    assert_eq!(
        serde_json::from_str::<String>(&json).unwrap(),
        "a \"7\"\r\n\u{fffd}"
    );
}

#[test]
fn a_value_as_json_is_taken_apart() {
    let value = r#"{"id":7,"name":"a \"b\"","none":null,"list":[true,{"k":"x y"}]}"#;
    for (text, expected) in [
        ("${id | at /id}", "7"),
        ("${id | at /name}", r#""a \"b\"""#),
        ("${id | at /name | text}", "a \"b\""),
        ("${id | at /list/1/k | text | url}", "x%20y"),
        ("${id | at /list | at /0}", "true"),
        ("${id | at /list}", r#"[true,{"k":"x y"}]"#),
        ("${id | at /nothing}", "null"),
        ("${id | at /nothing | text}", "null"),
        ("${id | at /none}", "null"),
        ("${id | text}", value),
    ] {
        let mut rendered = Rendered::new(text).unwrap();
        rendered.vars.captured[0] = Some(value.as_bytes().into());
        assert_eq!(rendered.next(), expected, "{text}");
    }
    assert_eq!(texts("${id | at /id}", 1), ["null"]);
}

#[test]
fn a_dollar_alone_is_a_dollar_and_two_escape_a_placeholder() {
    assert_eq!(texts("5$ $x $${uuid} $", 1), ["5$ $x ${uuid} $"]);
    assert!(Rendered::new("$${uuid}").unwrap().template.is_literal());
}

#[test]
fn what_cannot_be_rendered_is_refused_where_it_stands() {
    for (text, at, part) in [
        ("é${nme}", 2, "not known"),
        ("ab${", 3, "no }"),
        ("${}", 1, "empty"),
        ("${later}", 1, "not known"),
        ("${random int 2 1}", 1, "lower bound first"),
        ("${random int a 1}", 1, "whole number"),
        ("${random}", 1, "random int LOW HIGH"),
        ("${random string 0}", 1, "from 1 to"),
        ("${sequence by=2}", 1, "start=N"),
        (
            "${uuid|xml}",
            1,
            "json, url, form, text, upper, lower, base64, segments, digits N, plus N, md5, sha1",
        ),
        ("${uuid | digits 0}", 1, "1 to 64"),
        ("${uuid | plus x}", 1, "whole number"),
        ("${uuid | at id}", 1, "at /POINTER"),
        ("${uuid}${two words}", 8, "not known"),
    ] {
        let bad = refusal(text);
        assert!(bad.at == at && bad.why.contains(part), "{text}: {bad:?}");
    }
    let later = Rendered::new("${later}").err().unwrap();
    assert!(later.why.contains("earlier step"), "{later:?}");
}

proptest! {
    /// A template renders what replacing its placeholders one by one gives.
    #[test]
    fn a_template_renders_what_a_naive_renderer_renders(words in proptest::collection::vec("[a-z$ ]{0,6}[a-z ]", 1..6), id in "[a-z0-9]{1,8}", count in 1usize..4) {
        // No word ends in a dollar sign, which would escape the placeholder behind it.
        let text = words.join("${id}") + "${sequence start=5 step=3}";
        let mut rendered = Rendered::new(&text).unwrap();
        rendered.vars.captured[0] = Some(id.as_bytes().into());
        for n in 0..count {
            let naive = text
                .replace("${id}", &id)
                .replace("${sequence start=5 step=3}", &(5 + 3 * n).to_string());
            prop_assert_eq!(rendered.next(), naive);
        }
    }

    /// Any text is either refused or rendered; neither panics.
    #[test]
    fn any_text_compiles_or_is_refused(text in "([a-z ${}|=0-9é-]|\\$\\{|sequence|random|int|string|uuid|id| -?[0-9]{1,20}|choice|text|at /)*") {
        if let Ok(mut rendered) = Rendered::new(&text) {
            for place in [RequestPart::Path, RequestPart::Header, RequestPart::Body] {
                rendered.bytes(place);
            }
        }
    }

    /// Nothing that is rendered into a path or a header can end its line.
    #[test]
    fn no_value_breaks_out_of_its_line(value in proptest::collection::vec(any::<u8>(), 0..30)) {
        let mut rendered = Rendered::new("${id}").unwrap();
        rendered.vars.captured[0] = Some(value.into());
        for place in [RequestPart::Path, RequestPart::Header] {
            let bytes = rendered.bytes(place);
            prop_assert!(!bytes.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
            prop_assert!(place == RequestPart::Header || !bytes.contains(&b' '));
        }
    }
}
