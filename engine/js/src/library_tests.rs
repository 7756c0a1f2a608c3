//! What the part of Node's library that a processor finds does, and the packages beside it.

use std::process::Command;
use std::time::Duration;

use prony_script::Setup;
use serde_json::{Value, json};

use super::tests::{USER, before, call, config, opened, step, texts};

fn value(source: &str) -> Value {
    let source = format!("exports.f = (c, e, done) => {{ c.vars.x = {source}; done(); }};");
    let seen = texts(call(&opened(&source, step()), &[""]));
    serde_json::from_str(&seen[0]).unwrap()
}

#[test]
fn installed_packages_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write(
        "node_modules/common/index.js",
        "exports.one = require('./lib/one'); exports.from = require('path').basename(__filename);",
    );
    write("node_modules/common/lib/one.js", "module.exports = 1;");
    write(
        "node_modules/modern/package.json",
        "{\"exports\": {\"import\": \"./m.js\"}}",
    );
    write("node_modules/modern/m.js", "export const two = 2;\n");
    let file = folder.path().join("load/p.js");
    write("load/p.js", "");
    let tasks = [step().to_string()];
    for (name, source) in [
        (
            "p.js",
            "const { one, from } = require('common'); const { two } = require('modern'); \
             exports.f = (c, e, done) => { c.vars.x = [one, from, two]; done(); };",
        ),
        (
            "p.mjs",
            "import common from 'common';\nimport { two } from 'modern';\n\
             export const f = (c, e, done) => { c.vars.x = [common.one, common.from, two]; done(); };",
        ),
    ] {
        let file = file.with_file_name(name);
        std::fs::write(&file, source).unwrap();
        let script = super::open(&Setup {
            file: &file,
            source: source.as_bytes(),
            url: "",
            args: &[config()],
            threads: 1,
            request: None,
            tasks: &tasks,
            address: None,
            call_timeout: Duration::from_secs(10),
            on_hang: |_| {},
        })
        .unwrap();
        script.begin_load();
        let seen = texts(script.call(USER, 0, &[Vec::new()]).unwrap());
        assert_eq!(seen, [r#"[1,"index.js",2]"#], "{name}");
    }
}

#[test]
fn files_are_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = json!(folder.path().join("a/b.txt"));
    let source = format!(
        "(() => {{ const fs = require('fs'), path = require('path'), file = {path}; let code; \
         try {{ fs.readFileSync(file); }} catch (error) {{ code = error.code; }} \
         const was = fs.existsSync(file); fs.mkdirSync(path.dirname(file), {{recursive: true}}); \
         fs.writeFileSync(file, 'ü'); fs.appendFileSync(file, '1\\n'); \
         return [code, was, fs.readFileSync(file, 'utf8'), fs.readFileSync(file).length, fs.readdirSync(path.dirname(file)), \
         path.join('a', '../b', './c.d'), path.extname('x.tar.gz'), path.resolve('/a', 'b/..', 'c')]; }})()"
    );
    assert_eq!(
        value(&source),
        json!([
            "ENOENT",
            false,
            "ü1\n",
            4,
            ["b.txt"],
            "b/c.d",
            ".gz",
            "/a/c"
        ])
    );
}

#[test]
fn uuids_are_those_of_rfc_9562() {
    for (source, expected) in [
        (
            "require('uuid').v5('www.example.com', require('uuid').v5.DNS)",
            json!("2ed6657d-e927-568b-95e1-2665a8aea6a2"),
        ),
        (
            "require('uuid').v3('www.example.com', require('uuid').v3.DNS)",
            json!("5df41881-3aed-3515-88a7-2f4a814cf09e"),
        ),
        (
            "require('uuid').v1({ msecs: 1645557742000, nsecs: 0, clockseq: 0x33c8, node: [0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46] })",
            json!("c232ab00-9414-11ec-b3c8-9f6bdeced846"),
        ),
        (
            "require('uuid').v7({ msecs: 0x17f22e279b0 }).slice(0, 15)",
            json!("017f22e2-79b0-7"),
        ),
        (
            "(({ v1, v4, v7, version, validate, NIL }) => [version(v1()), version(v4()), version(v7()), validate(NIL), validate('x'), v1() === v1()])(require('uuid'))",
            json!([1, 4, 7, true, false, false]),
        ),
        (
            "(({ parse, stringify, MAX }) => stringify(parse(MAX)) === MAX)(require('uuid'))",
            json!(true),
        ),
        (
            "require('uuid/v5')('x', [...new Uint8Array(16)], [], 0).length",
            json!(16),
        ),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn urls_queries_digests_and_formats_are_nodes() {
    for (source, expected) in [
        (
            "(({ host, pathname, search, href }) => [host, pathname, search, href])(new URL('b?x=1 2', 'http://H:80/a/c'))",
            json!(["h", "/a/b", "?x=1%202", "http://h/a/b?x=1%202"]),
        ),
        (
            "(() => { const url = new URL('https://h:8443/'); url.searchParams.append('q', 'a b'); return url.toString(); })()",
            json!("https://h:8443/?q=a+b"),
        ),
        (
            "String(new URLSearchParams({ a: 1, b: 'ü' }))",
            json!("a=1&b=%C3%BC"),
        ),
        (
            "require('querystring').stringify({ a: [1, 2], b: 'c d' })",
            json!("a=1&a=2&b=c%20d"),
        ),
        (
            "require('crypto').createHash('sha1').update('a').update('bc').digest('hex')",
            json!("a9993e364706816aba3e25717850c26c9cd0d89d"),
        ),
        (
            "require('node:crypto').createHmac('sha256', 'Jefe').update('what do ya want for nothing?').digest('base64')",
            json!("W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="),
        ),
        (
            "require('util').format('%s is %d, %j', 'a', '1', { b: 2 }, 'c')",
            json!("a is 1, {\"b\":2} c"),
        ),
        (
            "Buffer.concat([Buffer.from('a'), Buffer.alloc(3, 'xy')]).toString()",
            json!("axyx"),
        ),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn a_form_is_sent_with_the_bytes_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photo.jpg");
    std::fs::write(&file, [0xff, 0xd8, 0x00, 0x80]).unwrap();
    let source = format!(
        "const FormData = require('form-data'), fs = require('fs'); exports.f = (request, context, ee, next) => {{ \
         const form = new FormData(); form.append('n', 1); form.append('file', fs.createReadStream({})); \
         request.body = form; next(); }};",
        json!(file)
    );
    let task = before(json!({"params": {"url": "/a"}}));
    let sent = call(&opened(&source, task), &["1"]).unwrap();
    let headers = String::from_utf8(sent[1].clone()).unwrap();
    let (_, boundary) = headers.split_once("boundary=").unwrap();
    let boundary = boundary.lines().next().unwrap();
    let mut expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n1\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"photo.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
    )
    .into_bytes();
    expected.extend([0xff, 0xd8, 0x00, 0x80]);
    expected.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    assert_eq!(sent[2], expected);
}

/// What a source throws: its code, or its message where it has none.
fn thrown(source: &str) -> String {
    let tried = format!(
        "(() => {{ try {{ {source}; return 'nothing'; }} catch (error) {{ return error.code || error.message; }} }})()"
    );
    value(&tried).as_str().unwrap().to_owned()
}

#[test]
fn what_is_no_plain_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for file in [json!(pipe), json!("/dev/zero"), json!("/dev/null")] {
        for act in [
            format!("require('fs').readFileSync({file})"),
            format!("require('fs').readFileSync({file}, 'utf8')"),
            format!("require('fs').writeFileSync({file}, 'x')"),
            format!("require('fs').appendFileSync({file}, 'x')"),
        ] {
            assert_eq!(thrown(&act), "EINVAL", "{act}");
        }
    }
    assert_eq!(thrown("require('fs').readFileSync('/')"), "EISDIR");
    let stat = "(({ isFile, isDirectory }) => [isFile(), isDirectory()])(require('fs').statSync('/dev/zero'))";
    assert_eq!(value(stat), json!([false, false]));
}

#[test]
fn files_and_folders_that_are_there_stay_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (json!(folder.path().join("a.txt")), json!(folder.path()));
    for (act, code) in [
        (
            format!("require('fs').writeFileSync({file}, 'x')"),
            "nothing",
        ),
        (
            format!("require('fs').writeFileSync({file}, 'y', {{ flag: 'wx' }})"),
            "ERR_INVALID_ARG_VALUE",
        ),
        (
            format!("require('fs').appendFileSync({file}, 'y', {{ flag: 'ax' }})"),
            "ERR_INVALID_ARG_VALUE",
        ),
        (
            format!("require('fs').writeFileSync({file}, 'y', {{ flag: 'a' }})"),
            "nothing",
        ),
        (format!("require('fs').mkdirSync({path})"), "EEXIST"),
        (
            format!("require('fs').mkdirSync({path} + '/b/c')"),
            "ENOENT",
        ),
        (
            format!("require('fs').mkdirSync({path} + '/b/c', {{ recursive: true }})"),
            "nothing",
        ),
        (
            format!("require('fs').mkdirSync({path}, {{ recursive: true }})"),
            "nothing",
        ),
    ] {
        assert_eq!(thrown(&act), code, "{act}");
    }
    assert_eq!(
        std::fs::read_to_string(folder.path().join("a.txt")).unwrap(),
        "xy"
    );
    assert!(folder.path().join("b/c").is_dir());
}

#[test]
fn many_bytes_need_little_more_than_themselves() {
    let source = "(() => { const text = Buffer.alloc(6 << 20, 233).toString('latin1'); const back = Buffer.from(text, 'latin1'); \
        return [text.length, back.length, back[9], back.subarray(0, 2).toString('hex'), Buffer.from('e97', 'hex').length]; })()";
    assert_eq!(value(source), json!([6 << 20, 6 << 20, 233, "e9e9", 1]));
    // Bytes that are no text of UTF-8 are the sign for that.
    assert_eq!(
        value("Buffer.from([97, 255]).toString()"),
        json!("a\u{fffd}")
    );
    assert_eq!(
        value("new TextDecoder().decode(new Uint8Array([195, 188]).buffer)"),
        json!("ü")
    );
    assert_eq!(
        value("[btoa('\u{e9}a'), atob('6WE=').charCodeAt(0)]"),
        json!(["6WE=", 233])
    );
}

#[test]
fn what_would_be_answered_wrongly_is_refused() {
    for (source, code) in [
        (
            "require('crypto').createHmac('sha256', undefined)",
            "ERR_INVALID_ARG_TYPE",
        ),
        (
            "require('crypto').createHmac('sha256', 7)",
            "ERR_INVALID_ARG_TYPE",
        ),
        (
            "require('assert').deepEqual(new Map(), new Map())",
            "assert compares no Map in Prony's JavaScript",
        ),
        (
            "require('url').format({ protocol: 'http', host: 'h' })",
            "url.format() takes a text or a URL in Prony's JavaScript, and no parts",
        ),
    ] {
        assert_eq!(thrown(source), code, "{source}");
    }
    for (source, expected) in [
        (
            "require('url').parse('/a?x=1&y=b%20c', true).query",
            json!({"x": "1", "y": "b c"}),
        ),
        ("require('url').parse('/a', true).query", json!({})),
        ("require('url').parse('/a?x=1').query", json!("x=1")),
        (
            "require('url').format(new URL('http://h/a'))",
            json!("http://h/a"),
        ),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn what_is_asserted_is_compared_by_its_keys() {
    for (one, other, loosely, strictly) in [
        ("{ a: 1, b: [2] }", "{ b: [2], a: 1 }", true, true),
        ("{ a: 1 }", "{ a: '1' }", true, false),
        ("[1, 2]", "[1, 3]", false, false),
        ("[1]", "{ 0: 1 }", false, false),
        ("{ a: undefined }", "{}", false, false),
        ("{ a: undefined }", "{ b: undefined }", false, false),
        ("{ a: NaN }", "{ a: null }", false, false),
        ("NaN", "NaN", true, true),
        ("'1'", "1", true, false),
        ("new Date(5)", "new Date(5)", true, true),
        ("new Date(5)", "new Date(6)", false, false),
        ("{ length: [] }", "{ length: [] }", true, true),
        ("null", "{}", false, false),
    ] {
        for (name, same) in [("deepEqual", loosely), ("deepStrictEqual", strictly)] {
            let seen = thrown(&format!("require('assert').{name}({one}, {other})"));
            assert_eq!(
                seen,
                if same { "nothing" } else { "ERR_ASSERTION" },
                "{name} {one} {other}"
            );
        }
    }
}
