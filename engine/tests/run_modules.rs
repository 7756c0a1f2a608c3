//! Modules that scripts require: those that the engine brings, and those that are installed.

mod run_support;

use std::path::Path;
use std::process::Command;

use run_support::{HELLO, Server, plan, run};
use serde_json::Value;

/// What a script prints before the load, run in a folder of its own; its error where it has one.
fn printed(lua: &str, folder: &Path) -> Result<String, String> {
    let file = folder.join("script.lua");
    std::fs::write(&file, lua).unwrap();
    let server = Server::answering(HELLO);
    let plan = plan(server.address, "epoll", |plan| {
        plan["script"]["file"] = file.to_str().unwrap().into();
        plan["stop"]["total_requests"] = 1.into();
    });
    let ended = run(&plan);
    if ended.code != Some(0) {
        return Err(ended.stderr);
    }
    let said: &Value = &ended.finished()["script"]["printed_setup"];
    // Once for each thread, and once for `setup` and `done`.
    let text = said.as_str().unwrap();
    Ok(text[..text.len() / 2].to_owned())
}

/// The same with the modules that the engine brings, whichever are installed on this host.
fn result(lua: &str) -> Result<String, String> {
    let lua = format!("package.path, package.cpath = '', '' {lua}");
    printed(&lua, tempfile::tempdir().unwrap().path())
}

#[test]
fn socket_has_a_clock_and_a_wait() {
    let lua = r#"local socket = require("socket")
        local from = socket.gettime()
        socket.sleep(0.02)
        local took = socket.gettime() - from
        socket.sleep(-1); socket.sleep(0)
        print(took >= 0.02, from > 1.7e9, math.abs(from - os.time()) < 5)"#;
    assert_eq!(result(lua).unwrap(), "true\ttrue\ttrue\n");
    let missing = result("local s = require 'socket'\ns.tcp()").unwrap_err();
    assert!(
        missing.contains("script.lua:2: socket.tcp is not here"),
        "{missing}"
    );
}

#[test]
fn cjson_writes_and_reads_json_as_lua_cjson_does() {
    for (lua, expected) in [
        (
            r#"cjson.encode({1, "a", true, cjson.null, 1.5, {}})"#,
            r#"[1,"a",true,null,1.5,{}]"#,
        ),
        (r#"cjson.encode({[1] = 1, [3] = 3})"#, "[1,null,3]"),
        // Keys come in the order of a Lua table.
        (r##"#cjson.encode({[7] = "x", k = 1})"##, "15"),
        (
            r#"cjson.encode("a/\"\\\n\1\127\195\164")"#,
            "\"a\\/\\\"\\\\\\n\\u0001\\u007f\u{e4}\"",
        ),
        (r#"cjson.encode(12345678901234)"#, "12345678901234"),
        (r#"cjson.encode(1/3)"#, "0.33333333333333"),
        (
            r#"cjson.decode(' {"a": [1, -2.5e3, "x"], "b": {"c": null}} ').a[2]"#,
            "-2500",
        ),
        (
            r#"cjson.decode('{"b": {"c": null}}').b.c == cjson.null"#,
            "true",
        ),
        (
            r#"cjson.decode('"\\u00e4\\ud83d\\ude00\\n\\/"')"#,
            "\u{e4}\u{1f600}\n/",
        ),
        (r##"#cjson.decode("[[],{},[1,[2]]]")"##, "3"),
        (
            r#"cjson.decode(cjson.encode({k = {1, {z = false}}})).k[2].z"#,
            "false",
        ),
        (
            r#"select(2, require("cjson.safe").decode("[1,")) ~= nil"#,
            "true",
        ),
        (r#"cjson.new().encode({})"#, "{}"),
    ] {
        let lua = format!("local cjson = require('cjson')\nio.write(tostring({lua}))");
        assert_eq!(result(&lua).unwrap(), expected, "{lua}");
    }
}

#[test]
fn what_is_no_json_is_an_error_with_the_line_of_the_script() {
    for (call, part) in [
        (
            "decode('')",
            "Expected value but found T_END at character 1",
        ),
        ("decode('[1 2]')", "Expected comma or array end"),
        ("decode('{\"a\" 1}')", "Expected colon"),
        ("decode('{a: 1}')", "Expected object key string"),
        ("decode('1 x')", "Expected the end"),
        ("decode('\"\\\\q\"')", "Expected value"),
        ("decode('\"\\1\"')", "Expected value"),
        ("decode('nul')", "Expected value"),
        ("decode(('['):rep(2000))", "too many nested"),
        ("encode(print)", "Cannot serialise function"),
        ("encode({[{}] = 1})", "table key must be"),
        ("encode(0/0)", "NaN or Inf"),
        ("encode({[1] = 1, [1000] = 2})", "excessively sparse"),
        (
            "encode_sparse_array(true)",
            "cjson.encode_sparse_array is not here",
        ),
    ] {
        let lua = format!("local cjson = require('cjson')\nlocal x = cjson.{call}");
        let error = result(&lua).unwrap_err();
        assert!(
            error.contains("script.lua:2: ") && error.contains(part),
            "{call}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn installed_modules_are_loaded_those_in_c_too_and_come_before_the_engines() {
    let folder = tempfile::tempdir().unwrap();
    let c = r#"
        typedef struct lua_State lua_State;
        extern void lua_pushnumber(lua_State *, double);
        extern double luaL_checknumber(lua_State *, int);
        extern void lua_createtable(lua_State *, int, int);
        extern void lua_setfield(lua_State *, int, const char *);
        extern void lua_pushcclosure(lua_State *, int (*)(lua_State *), int);
        static int twice(lua_State *L) { lua_pushnumber(L, 2 * luaL_checknumber(L, 1)); return 1; }
        int luaopen_inc(lua_State *L) {
            lua_createtable(L, 0, 1); lua_pushcclosure(L, twice, 0); lua_setfield(L, -2, "twice"); return 1;
        }"#;
    std::fs::write(folder.path().join("inc.c"), c).unwrap();
    std::fs::write(
        folder.path().join("cjson.lua"),
        "return {own = 'installed'}",
    )
    .unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "inc.so", "inc.c"])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(built.success());
    let shown = folder.path().display();
    let lua = format!(
        "package.cpath = '{shown}/?.so;' .. package.cpath\npackage.path = '{shown}/?.lua;' .. package.path\n\
         io.write(require('inc').twice(21), require('cjson').own)"
    );
    assert_eq!(printed(&lua, folder.path()).unwrap(), "42installed");
}

#[test]
fn a_module_that_is_not_there_is_named() {
    let error = result("local x = require('no.such.module')").unwrap_err();
    assert!(
        error.contains("module 'no.such.module' not found"),
        "{error}"
    );
}
