use std::path::Path;
use std::time::Duration;

use prony_script::{Called, Caller, Interpreter, Setup};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(super) const USER: Caller = Caller {
    thread: 0,
    place: 0,
    started: 1,
};

pub(super) struct Opened {
    pub(super) script: Box<dyn Interpreter>,
    _folder: TempDir,
}

pub(super) fn config() -> String {
    json!({"variables": {"given": [1, 2]}, "rows": {"rows": [["a"]]}, "target": "http://h:1/base", "origin": "http://h:1", "headers": null,
           "cookies": {}, "user_agent": "A", "timeout_ms": 1000, "env": {"HOME_OF": "here"}})
    .to_string()
}

pub(super) fn try_open(
    name: &str,
    source: &str,
    tasks: &[Value],
    limit_ms: u64,
) -> Result<Opened, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    std::fs::write(&file, source).unwrap();
    std::fs::write(folder.path().join("beside.js"), "exports.seven = 7;\n").unwrap();
    std::fs::write(
        folder.path().join("beside.mjs"),
        "export const eight = 8;\n",
    )
    .unwrap();
    let tasks: Vec<String> = tasks.iter().map(Value::to_string).collect();
    let script = super::open(&Setup {
        file: &file,
        source: source.as_bytes(),
        url: "",
        args: &[config()],
        threads: 1,
        request: None,
        tasks: &tasks,
        address: None,
        call_timeout: Duration::from_millis(limit_ms),
        on_hang: |_| {},
    })?;
    script.begin_load();
    Ok(Opened {
        script,
        _folder: folder,
    })
}

/// A task that calls `f` as a step, and takes `x`.
pub(super) fn step() -> Value {
    json!({"kind": "function", "functions": ["f"], "give": ["x"], "take": ["x"]})
}

pub(super) fn opened(source: &str, task: Value) -> Opened {
    try_open("p.js", source, &[task], 120_000).unwrap()
}

pub(super) fn call(opened: &Opened, given: &[&str]) -> Called {
    let given: Vec<Vec<u8>> = given.iter().map(|text| text.as_bytes().to_vec()).collect();
    opened.script.call(USER, 0, &given).unwrap()
}

pub(super) fn texts(called: Called) -> Vec<String> {
    let values = called.expect("the user goes on").into_iter();
    values
        .map(|value| String::from_utf8(value).unwrap())
        .collect()
}

#[test]
fn a_step_reads_and_sets_variables_of_its_user() {
    let source = "exports.f = (context, ee, done) => { context.vars.x = [context.vars.x, context.vars.given]; return done(); };";
    let script = opened(source, step());
    assert_eq!(texts(call(&script, &["\"a\""])), ["[\"a\",[1,2]]"]);
    // What came back is what is given next: it is the same value, and not read anew.
    assert_eq!(
        texts(call(&script, &["[\"a\",[1,2]]"])),
        ["[[\"a\",[1,2]],[1,2]]"]
    );
    let other = Caller { started: 2, ..USER };
    let again = script.script.call(other, 0, &[b"\"b\"".to_vec()]).unwrap();
    assert_eq!(
        texts(again),
        ["[\"b\",[1,2]]"],
        "another user has variables of its own"
    );
}

#[test]
fn what_was_never_set_is_null() {
    let script = opened("exports.f = (context, ee, done) => done();", step());
    assert_eq!(texts(call(&script, &[""])), ["null"]);
}

#[test]
fn promises_that_resolve_at_once_are_waited_for() {
    let source = "exports.f = async (context) => { await null; await Promise.resolve(); context.vars.x = await 5; };";
    assert_eq!(texts(call(&opened(source, step()), &[""])), ["5"]);
}

#[test]
fn what_never_comes_is_counted_by_name() {
    for (source, counted) in [
        (
            "exports.f = async () => { await new Promise(() => {}); };",
            "errors.f() waits for a promise that nothing in Prony's JavaScript settles (it has no timers and no network)",
        ),
        (
            "exports.f = (context, ee, done) => {};",
            "errors.f() did not call its callback, and Prony's JavaScript has no timers and no network to wait for",
        ),
        (
            "exports.f = (context, ee, done) => { setTimeout(done, 100); };",
            "errors.setTimeout() waits, which a function cannot do in Prony; use think",
        ),
    ] {
        let script = opened(source, step());
        assert_eq!(call(&script, &[""]), None);
        assert_eq!(script.script.figures().counters[counted], 1, "{source}");
    }
}

#[test]
fn errors_fail_the_user_and_are_counted_by_code_or_message() {
    for (source, name) in [
        (
            "exports.f = (c, e, done) => done(new Error('no luck'));",
            "errors.no luck",
        ),
        (
            "exports.f = () => { throw new Error('thrown'); };",
            "errors.thrown",
        ),
        (
            "exports.f = async () => { throw Object.assign(new Error('x'), {code: 'E_X'}); };",
            "errors.E_X",
        ),
        (
            "exports.f = (c, e, done) => done('a text');",
            "errors.undefined",
        ),
    ] {
        let script = opened(source, step());
        assert_eq!(call(&script, &[""]), None, "{source}");
        assert_eq!(
            script.script.figures().counters.get(name),
            Some(&1),
            "{source}"
        );
        assert_eq!(script.script.error(), None, "the run goes on");
    }
}

#[test]
fn a_step_that_is_not_there_is_counted_and_passed_over() {
    let script = opened("", step());
    assert_eq!(texts(call(&script, &["1"])), ["1"]);
    assert_eq!(
        script.script.figures().counters["errors.Undefined function \"f\""],
        1
    );
}

#[test]
fn an_endless_loop_is_ended_and_is_an_error_of_the_run() {
    for source in [
        "exports.f = () => { for (;;) {} };",
        "exports.f = () => { try { for (;;) {} } catch (e) {} };",
        "exports.f = async () => { for (;;) await null; };",
    ] {
        let script = try_open("p.js", source, &[step()], 200).unwrap();
        let why = script.script.call(USER, 0, &[Vec::new()]).unwrap_err();
        assert!(why.contains("p.js: f() was ended after 0.2 s"), "{why}");
    }
    let why = try_open("p.js", "for (;;) {}", &[step()], 200)
        .err()
        .unwrap();
    assert!(
        why.contains("p.js: the script was ended after 0.2 s"),
        "{why}"
    );
}

#[test]
fn memory_has_an_end() {
    let source = "exports.f = () => { const kept = []; for (;;) kept.push('x'.repeat(1e6) + kept.length); };";
    let script = opened(source, step());
    assert_eq!(call(&script, &[""]), None);
    let counters = script.script.figures().counters;
    assert_eq!(
        counters.keys().next().map(String::as_str),
        Some("errors.out of memory")
    );
}

#[test]
fn functions_count_and_print() {
    let source = "exports.f = (context, ee, done) => { ee.emit('counter', 'c', 2); ee.emit('rate', 'r'); \
        ee.emit('histogram', 'h', 1.5); ee.emit('error', 'E'); console.log('said', {a: 1}); done(); };";
    let script = opened(source, step());
    call(&script, &[""]);
    let figures = script.script.figures();
    assert_eq!(
        (figures.counters["c"], figures.counters["errors.E"]),
        (2, 1)
    );
    assert_eq!((figures.rates["r"], figures.histograms["h"][&15]), (1, 1));
    assert_eq!(script.script.printed().run, "said {\"a\":1}\n");
}

#[test]
fn modules_of_both_kinds_load_files_beside_them() {
    let common = "const { seven } = require('./beside'); exports.f = (c, e, done) => { c.vars.x = seven; done(); };";
    let script = try_open("p.js", common, &[step()], 10_000).unwrap();
    assert_eq!(texts(call(&script, &[""])), ["7"]);
    let module = "import { eight } from './beside.mjs';\nexport function f(c, e, done) { c.vars.x = eight; done(); }";
    for name in ["p.mjs", "p.js"] {
        let script = try_open(name, module, &[step()], 10_000).unwrap();
        assert_eq!(texts(call(&script, &[""])), ["8"]);
    }
}

#[test]
fn modules_import_the_little_that_is_there() {
    let source = "import { randomUUID } from 'node:crypto';\nimport { v4 } from 'uuid';\n\
        export function f(c, e, done) { c.vars.x = [randomUUID().length, v4().length]; done(); }";
    let script = try_open("p.mjs", source, &[step()], 10_000).unwrap();
    assert_eq!(texts(call(&script, &[""])), ["[36,36]"]);
}

#[test]
fn what_is_not_there_is_refused_by_name_before_the_load() {
    for (name, source, part) in [
        (
            "p.js",
            "const faker = require('faker');",
            "require('faker')",
        ),
        (
            "p.js",
            "\nrequire('http').get('x');",
            "p.js:2: require('http')",
        ),
        ("p.mjs", "import axios from 'axios';", "'axios'"),
        ("p.js", "exports.f = (", "p.js"),
        ("p.js", "\n\nthrow new Error('at once');", "p.js:3: at once"),
    ] {
        let why = try_open(name, source, &[step()], 10_000).err().unwrap();
        assert!(why.contains(part), "{why}");
        assert!(!why.contains('\n'), "{why}");
    }
}

#[test]
fn the_little_that_is_there_of_nodes_library_works() {
    let source = "const crypto = require('crypto'); const { v4 } = require('uuid'); exports.f = (c, e, done) => { c.vars.x = \
        [crypto.randomUUID().length, v4() !== v4(), process.env.HOME_OF, Buffer.from('ü:b').toString('base64'), \
         Buffer.from('w7w6Yg==', 'base64').toString(), crypto.randomBytes(4).toString('hex').length, btoa('ab')]; done(); };";
    let expected = "[36,true,\"here\",\"w7w6Yg==\",\"ü:b\",8,\"YWI=\"]";
    assert_eq!(texts(call(&opened(source, step()), &[""])), [expected]);
}

pub(super) fn before(edit: Value) -> Value {
    let mut task = json!({"kind": "before", "functions": ["f"], "method": "POST", "has_body": true, "compressed": true,
        "give": ["id"], "take": ["request.path", "request.headers", "request.body"],
        "params": {"url": "/a/{{ id }}", "json": {"id": "{{ id }}", "text": "n{{ id }}"}, "headers": {"X-A": "1"}}});
    task.as_object_mut()
        .unwrap()
        .extend(edit.as_object().unwrap().clone());
    task
}

#[test]
fn a_request_is_filled_in_after_its_functions() {
    let source = "exports.f = (request, context, ee, next) => { context.vars.id = context.vars.id + 1; \
        request.headers.Token = 't{{ id }}'; request.json.more = [context.funcs.$randomNumber(3, 3)]; next(); };";
    let sent = texts(call(&opened(source, before(json!({}))), &["7"]));
    assert_eq!(sent[0], "base/a/8");
    assert_eq!(
        sent[1],
        "user-agent: A\r\nx-a: 1\r\ntoken: t8\r\ncontent-type: application/json\r\naccept-encoding: gzip, deflate, br\r\n"
    );
    assert_eq!(sent[2], r#"{"id":8,"text":"n8","more":[3]}"#);
}

#[test]
fn queries_forms_and_other_paths_are_written_as_artillery_writes_them() {
    let source =
        "exports.f = (request, context, ee, next) => { request.url = '/other?x=1#part'; next(); };";
    let params = json!({"params": {"url": "/a", "qs": {"q": "a b&c", "l": [1, 2]}, "form": {"n": "{{ id }} ~"}}});
    let sent = texts(call(&opened(source, before(params)), &["\"ü\""]));
    assert_eq!(sent[0], "base/other?q=a+b%26c&l=1&l=2");
    assert!(sent[1].contains("content-type: application/x-www-form-urlencoded\r\n"));
    assert_eq!(sent[2], "n=%C3%BC+%7E");
}

#[test]
fn a_request_that_cannot_be_sent_fails_the_user() {
    for (source, part) in [
        (
            "request.url = 'http://elsewhere/'",
            "errors.the URL leads to another server",
        ),
        (
            "request.headers.a = 'x\\r\\ny: z'",
            "errors.ERR_INVALID_CHAR",
        ),
        ("request.url = 'nowhere'", "errors.Invalid URL - nowhere"),
    ] {
        let source =
            format!("exports.f = (request, context, ee, next) => {{ {source}; next(); }};");
        let script = opened(&source, before(json!({})));
        assert_eq!(call(&script, &["1"]), None);
        let counters = script.script.figures().counters;
        assert!(
            counters.keys().any(|name| name.starts_with(part)),
            "{counters:?}"
        );
    }
}

#[test]
fn a_response_is_read_by_its_functions() {
    let source = "exports.f = (request, response, context, ee, next) => { context.vars.x = [response.statusCode, \
        response.headers['x-token'], response.headers['set-cookie'].length, JSON.parse(response.body).id, request.url]; next(); };";
    let task = json!({"kind": "after", "functions": ["f"], "method": "GET", "alone": true, "has_body": false, "compressed": false,
        "params": {"url": "/a"}, "give": ["response.head", "response.body"], "take": ["x"]});
    let head = "HTTP/1.1 201 Created\r\nX-Token: t\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n";
    let seen = texts(call(&opened(source, task), &[head, r#"{"id": 4}"#]));
    assert_eq!(seen, [r#"[201,"t",2,4,"http://h:1/base/a"]"#]);
}

#[test]
fn conditions_and_loops_ask_functions() {
    let asked =
        |kind: &str| json!({"kind": kind, "functions": ["f"], "give": ["x"], "take": ["result"]});
    let condition = opened("exports.f = (vars) => vars.x > 2;", asked("condition"));
    assert_eq!(texts(call(&condition, &["3"])), ["true"]);
    assert_eq!(texts(call(&condition, &["2"])), ["false"]);
    let source = "exports.f = (context, next) => next(context.vars.x < 3);";
    let again = opened(source, asked("while"));
    assert_eq!(texts(call(&again, &["2"])), ["true"]);
    assert_eq!(texts(call(&again, &["3"])), ["false"]);
}

#[test]
fn a_script_that_writes_requests_is_not_javascript() {
    let task = json!({"kind": "function"}).to_string();
    let refused = super::open(&Setup {
        file: Path::new("p.js"),
        source: b"",
        url: "",
        args: &[],
        threads: 1,
        request: Some(prony_script::DefaultRequest {
            secure: false,
            host: "h",
            port: None,
            method: "GET",
            path: "/".to_owned(),
            headers: Vec::new(),
            body: None,
        }),
        tasks: &[task],
        address: None,
        call_timeout: Duration::from_secs(1),
        on_hang: |_| {},
    });
    assert!(refused.unwrap_err().contains("which blocks call"));
}

#[test]
fn what_artillery_fails_for_fails_the_user() {
    let task = json!({"kind": "fail", "functions": [], "give": [], "take": [], "error": "Invalid URL - x"});
    let script = opened("", task);
    assert_eq!(call(&script, &[]), None);
    let counters = script.script.figures().counters;
    assert_eq!(counters["errors.Invalid URL - x"], 1);
}

#[test]
fn the_rows_of_a_file_are_read_once_and_not_for_each_user() {
    let source = "exports.f = (c, e, done) => { globalThis.seen ??= c.vars.rows; \
        c.vars.x = [c.vars.rows, seen === c.vars.rows, c.vars.given === globalThis.given]; globalThis.given = c.vars.given; done(); };";
    let script = opened(source, step());
    assert_eq!(texts(call(&script, &[""])), [r#"[[["a"]],true,false]"#]);
    let other = Caller { started: 2, ..USER };
    let again = script.script.call(other, 0, &[Vec::new()]).unwrap();
    assert_eq!(texts(again), [r#"[[["a"]],true,false]"#]);
}

#[test]
fn bytes_of_any_kind_are_a_body() {
    for made in ["new Uint8Array([255, 0, 65])", "Buffer.from([255, 0, 65])"] {
        let source =
            format!("exports.f = (request, c, e, next) => {{ request.body = {made}; next(); }};");
        let task = before(json!({"params": {"url": "/a"}}));
        let sent = call(&opened(&source, task), &["1"]).unwrap();
        assert_eq!(sent[2], [255, 0, 65], "{made}");
    }
}

#[test]
fn surroundings_that_cannot_be_read_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.js");
    std::fs::write(&file, "").unwrap();
    let opened = super::open(&Setup {
        file: &file,
        source: b"",
        url: "",
        args: &["{\"variables\": {\"n\": Infinity}}".to_owned()],
        threads: 1,
        request: None,
        tasks: &[step().to_string()],
        address: None,
        call_timeout: Duration::from_secs(10),
        on_hang: |_| {},
    });
    let why = opened.err().unwrap();
    assert!(
        why.contains("args[0] cannot be read: expected value at line 1"),
        "{why}"
    );
}
