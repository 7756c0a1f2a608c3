//! `prony-engine run` with a script in Lua: the interface of wrk, one part after the other, against
//! a server that says what it saw.

mod run_support;

use std::sync::{Arc, Mutex};

use run_support::{Ended, HELLO, Server, drivers, plan, run};
use serde_json::Value;
use tempfile::NamedTempFile;

type Seen = Arc<Mutex<Vec<String>>>;

/// Keeps what it was sent and answers by the path: /token gives a token, everything else says hello.
fn server() -> (Server, Seen) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let server = Server::start(move |peer| {
        while let Some(request) = peer.request() {
            let response = if request.contains(" /token ") {
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Token: t-7\r\n\r\n"
            } else if request.starts_with("HEAD ") {
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
            } else if request.contains(" /missing ") {
                "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"
            } else {
                HELLO
            };
            kept.lock().unwrap().push(request);
            peer.send(response);
        }
    });
    (server, seen)
}

fn run_script(lua: &str, driver: &str, edit: impl FnOnce(&mut Value)) -> (Ended, Vec<String>) {
    let file = NamedTempFile::with_suffix(".lua").unwrap();
    std::fs::write(file.path(), lua).unwrap();
    let (server, seen) = server();
    let plan = plan(server.address, driver, |plan| {
        plan["script"]["file"] = file.path().to_str().unwrap().into();
        plan["script"]["url"] = "http://given/".into();
        edit(plan);
    });
    let ended = run(&plan);
    let seen = seen.lock().unwrap().clone();
    (ended, seen)
}

#[test]
fn the_first_head_of_a_run_may_be_that_of_a_response_to_head() {
    let lua = r#"function request() return wrk.format("HEAD", "/") end"#;
    for driver in drivers() {
        let (ended, _) = run_script(lua, driver, |plan| {
            plan["stop"]["total_requests"] = 2.into();
        });
        let head = &ended.finished()["totals"]["first_head"];
        assert_eq!(head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    }
}

fn first_lines(seen: &[String]) -> Vec<&str> {
    seen.iter().filter_map(|text| text.lines().next()).collect()
}

#[test]
fn a_static_script_sends_what_it_set_and_is_not_called_again() {
    let lua = r#"
        wrk.method = "POST"
        wrk.body = "a=1&b=2"
        wrk.headers["Content-Type"] = "application/x-www-form-urlencoded""#;
    for driver in drivers() {
        let (ended, seen) = run_script(lua, driver, |plan| {
            plan["stop"]["total_requests"] = 7.into();
            plan["scenarios"][0]["steps"][0]["path"] = "/form".into();
        });
        let finished = ended.finished();
        assert_eq!(finished["script"]["dynamic"], false);
        assert_eq!(finished["totals"]["completed"], 7);
        assert_eq!(seen.len(), 7);
        for request in &seen {
            assert!(request.starts_with("POST /form HTTP/1.1\r\n"), "{request}");
            assert!(request.ends_with("\r\n\r\na=1&b=2"), "{request}");
            let mut headers: Vec<&str> = request.lines().skip(1).take(3).collect();
            headers.sort_unstable();
            assert_eq!(headers[0], "Content-Length: 7");
            assert_eq!(
                headers[1],
                "Content-Type: application/x-www-form-urlencoded"
            );
            assert!(headers[2].starts_with("Host: 127.0.0.1:"), "{request}");
        }
    }
}

#[test]
fn request_is_called_for_every_send_and_once_before_the_load() {
    let lua = r#"
        local counter = 0
        request = function()
            counter = counter + 1
            return wrk.format(nil, "/" .. counter)
        end"#;
    let (ended, seen) = run_script(lua, "auto", |plan| {
        plan["stop"]["total_requests"] = 4.into();
    });
    assert_eq!(ended.finished()["script"]["dynamic"], true);
    let paths = ["/2", "/3", "/4", "/5"].map(|path| format!("GET {path} HTTP/1.1"));
    assert_eq!(first_lines(&seen), paths);
}

#[test]
fn a_response_may_change_what_is_sent_next() {
    let lua = r#"
        local token = nil
        request = function()
            if token then return wrk.format("GET", "/private", {["Authorization"] = token}) end
            return wrk.format("GET", "/token")
        end
        response = function(status, headers, body)
            if not token and status == 200 then
                token = headers["X-Token"]
                response = nil
            end
        end"#;
    let (ended, seen) = run_script(lua, "auto", |plan| {
        plan["stop"]["total_requests"] = 3.into();
    });
    ended.finished();
    assert!(seen[0].starts_with("GET /token "));
    assert!(seen[1].starts_with("GET /private "));
    assert!(seen[2].contains("Authorization: t-7\r\n") && seen[2].contains("Host: 127"));
}

#[test]
fn several_requests_go_out_in_one_piece_and_each_response_counts() {
    let lua = r#"
        local seen = {}
        request = function()
            return wrk.format("GET", "/1") .. wrk.format("HEAD", "/2") .. wrk.format("GET", "/missing")
        end
        response = function(status, headers, body) seen[#seen + 1] = status .. body end
        function done() end
        local stopped = 0
        local inner = response
        response = function(...)
            inner(...)
            stopped = stopped + 1
            if stopped == 9 then
                print(table.concat(seen, " "))
                wrk.thread:stop()
            end
        end"#;
    for driver in drivers() {
        let (ended, seen) = run_script(lua, driver, |_| {});
        let finished = ended.finished();
        assert_eq!(finished["reason"], "stopped");
        assert_eq!(finished["script"]["pipeline"], 3);
        let totals = &finished["totals"];
        assert_eq!(
            (&totals["sent"], &totals["completed"]),
            (&9.into(), &9.into())
        );
        assert_eq!(totals["failed"], 0, "{totals}");
        assert_eq!(totals["connections_opened"], 1);
        assert_eq!(seen.len(), 9);
        let printed = "200hello 200 404none ".repeat(3);
        assert_eq!(
            finished["script"]["printed_run"],
            format!("{}\n", printed.trim_end())
        );
    }
}

#[test]
fn threads_are_set_up_one_by_one_and_read_at_the_end() {
    let lua = r##"
        local threads, number = {}, 0
        function setup(thread)
            number = number + 1
            thread:set("id", number)
            thread:set("given", {deep = {1, "two", true}})
            threads[#threads + 1] = thread
            io.write("setup ", number, " ", tostring(thread.addr):match("^[^:]+"), "\n")
        end
        function init(args)
            sent = 0
            assert(given.deep[2] == "two")
            print("init", id, args[0], args[1], #args)
        end
        function request()
            sent = sent + 1
            return wrk.format("GET", "/" .. id)
        end
        function done(summary, latency, requests)
            for _, thread in ipairs(threads) do print(thread:get("id"), thread:get("sent")) end
            print(summary.requests, summary.errors.status, #latency > 0, latency.min <= latency.mean,
                latency:percentile(99) <= latency.max, latency.stdev >= 0, select("#", latency(1)))
            io.stdout:write(string.format("%d\n", summary.bytes))
        end"##;
    let (ended, seen) = run_script(lua, "auto", |plan| {
        plan["load"]["users"] = 4.into();
        plan["script"]["threads"] = 2.into();
        plan["script"]["args"] = serde_json::json!(["extra"]);
        plan["stop"]["iterations_per_user"] = 5.into();
    });
    let script = &ended.finished()["script"];
    assert_eq!(script["error"], Value::Null, "{script}");
    assert_eq!(
        script["printed_setup"],
        "setup 1 127.0.0.1\ninit\t1\thttp://given/\textra\t1\nsetup 2 127.0.0.1\ninit\t2\thttp://given/\textra\t1\n"
    );
    // The first thread was asked once more, before the load.
    let done = script["printed_done"].as_str().unwrap();
    assert!(
        done.starts_with("1\t11\n2\t10\n20\t0\ttrue\ttrue\ttrue\ttrue\t2\n"),
        "{done}"
    );
    for id in [1, 2] {
        let path = format!("GET /{id} HTTP/1.1");
        assert_eq!(
            first_lines(&seen)
                .iter()
                .filter(|line| **line == path)
                .count(),
            10
        );
    }
}

#[test]
fn delays_come_before_every_request_of_a_connection() {
    let lua = "function delay() return 30 end";
    let (ended, _) = run_script(lua, "auto", |plan| {
        plan["stop"]["total_requests"] = 3.into();
    });
    let totals = &ended.finished()["totals"];
    assert_eq!(
        (&totals["completed"], &totals["think_count"]),
        (&3.into(), &3.into())
    );
}

#[test]
fn an_error_names_file_and_line_and_ends_the_run_with_a_report() {
    let lua = "local n = 0\nfunction request()\n n = n + 1\n if n > 3 then return nil .. '' end\n return wrk.format()\nend";
    let (ended, _) = run_script(lua, "auto", |plan| {
        plan["load"]["users"] = 2.into();
    });
    let finished = ended.finished();
    assert_eq!(finished["reason"], "script");
    assert_eq!(finished["totals"]["sent"], 2);
    let error = finished["script"]["error"].as_str().unwrap();
    assert!(
        error.contains(".lua:4: attempt to concatenate a nil value"),
        "{error}"
    );

    let lua = "function response(status)\n error('enough: ' .. status)\nend";
    let (ended, _) = run_script(lua, "auto", |_| {});
    let error = ended.finished()["script"]["error"].as_str().unwrap();
    assert!(error.contains(".lua:2: enough: 200"), "{error}");

    let lua = "function done(summary)\n\n summary.none.x = 1\nend";
    let (ended, _) = run_script(lua, "auto", |plan| {
        plan["stop"]["total_requests"] = 1.into();
    });
    let finished = ended.finished();
    assert_eq!(finished["totals"]["completed"], 1);
    let error = finished["script"]["error"].as_str().unwrap();
    assert!(error.contains(".lua:3: "), "{error}");
}

#[test]
fn a_user_with_nothing_to_send_keeps_its_connection_to_the_end() {
    let lua = r#"
        local counter = 0
        function request()
            counter = counter + 1
            if counter == 3 then return "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n" end
            return counter < 5 and wrk.format(nil, "/" .. counter) or nil
        end"#;
    for driver in drivers() {
        let (ended, seen) = run_script(lua, driver, |plan| {
            plan["stop"] = serde_json::json!({"after_ms": 300});
        });
        let finished = ended.finished();
        assert_eq!(finished["totals"]["completed"], 3);
        assert!(finished["elapsed_ms"].as_f64().unwrap() >= 300.0);
        assert_eq!(finished["script"]["error"], Value::Null);
        let sent = ["/2", "/a b", "/4"].map(|path| format!("GET {path} HTTP/1.1"));
        assert_eq!(first_lines(&seen), sent);
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_the_first_request() {
    for (lua, part) in [
        ("wrk.path = ", ".lua:1: unexpected symbol"),
        ("\nfunction init() error('no') end", ".lua:2: no"),
        (
            "function request() return 'GET /' end",
            "is not a request: request 1 in it has no end",
        ),
        (
            "function request() return 7 end",
            "is not a request: request 1 in it has no end",
        ),
        (
            "function request() return nil end",
            "request() returned nothing that can be sent",
        ),
        (
            "function setup(thread) thread:set('f', print) end",
            ".lua:1: a function cannot go from one thread to another",
        ),
        (
            "function init() wrk.lookup('localhost', 'x') end",
            "the service \"x\" is not known",
        ),
    ] {
        let (ended, seen) = run_script(lua, "auto", |_| {});
        assert_eq!(ended.code, Some(2), "{lua}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{lua}: {}", ended.stderr);
        assert!(seen.is_empty());
    }
    let (ended, _) = run_script("", "auto", |plan| {
        plan["connection"]["reuse"] = "per_request".into();
    });
    assert!(
        ended.code == Some(2) && ended.stderr.contains("sends Connection: close"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_thread_connects_to_the_address_that_it_was_given() {
    let (other, seen_by_other) = server();
    let lua = format!(
        "function setup(thread)
            local addrs = wrk.lookup('127.0.0.1', '{}')
            assert(wrk.connect(addrs[1]))
            thread.addr = addrs[1]
            print(thread.addr)
        end",
        other.address.port()
    );
    let (ended, seen) = run_script(&lua, "auto", |plan| {
        plan["stop"]["total_requests"] = 3.into();
    });
    let script = &ended.finished()["script"];
    assert_eq!(script["printed_setup"], format!("{}\n", other.address));
    assert!(seen.is_empty());
    assert_eq!(seen_by_other.lock().unwrap().len(), 3);
}

#[test]
fn rates_are_counted_where_they_are_asked_for() {
    let server = Server::answering(HELLO);
    let plan = plan(server.address, "auto", |plan| {
        plan["load"]["users"] = 4.into();
        plan["stop"]["after_ms"] = 500.into();
        plan["rates"] = serde_json::json!({"groups": 2, "every_ms": 50.0});
    });
    let ended = run(&plan);
    let rates = ended.finished()["rates"].as_array().unwrap();
    let spans: u64 = rates.iter().map(|pair| pair[1].as_u64().unwrap()).sum();
    // Two groups, at most ten spans each; on a busy machine fewer.
    assert!((1..=20).contains(&spans), "{rates:?}");
    assert!(rates.iter().all(|pair| pair[0].as_u64().unwrap() > 0));
}

#[test]
fn what_does_not_come_to_an_end_is_ended_and_named() {
    // Compiled, uncompiled, in a coroutine, behind a pcall, and in every function. The limit is
    // long for a busy machine.
    let endless = "while true do end";
    let cases = [
        ("\nlocal n = 0\nfor i = 1, 1e4 do n = n + i end\nwhile true do n = n + 1 end".to_owned(), ":4: the script outside"),
        (format!("function setup(thread)\n {endless} end"), ":2: setup()"),
        (format!("\n\nfunction init(args) {endless} end"), ":3: init()"),
        ("function request()\n local t = {}\n for i = 1, math.huge do t[1] = tostring(i) end\nend".to_owned(), ":3: request()"),
        ("function request() return wrk.format() end\nfunction response(status)\n repeat pcall(error, 'x') until false\nend".to_owned(), ":3: response()"),
        (format!("function delay()\n return coroutine.wrap(function() {endless} end)()\nend"), ":2: delay()"),
        (format!("function done()\n pcall(function()\n {endless} end)\n {endless}\nend"), ": done()"),
    ];
    std::thread::scope(|scope| {
        for (lua, part) in &cases {
            scope.spawn(move || {
                let (ended, _) = run_script(lua, "auto", |plan| {
                    plan["script"]["call_timeout_ms"] = 1500.into();
                    plan["stop"]["total_requests"] = 2.into();
                });
                let error = match ended.code {
                    Some(0) => ended.finished()["script"]["error"]
                        .as_str()
                        .unwrap_or_default(),
                    _ => ended.stderr.as_str(),
                };
                assert!(error.contains(part), "{lua}: {error}");
                assert!(
                    error.contains(" was ended after 1.5 s; expected it to come to an end"),
                    "{error}"
                );
                assert_eq!(error.trim_end().lines().count(), 1, "{error}");
            });
        }
    });
}

/// The exit code, and what is said, of a script whose `init` has this body, which does not come back.
fn init_that_waits(body: &str, timeout_ms: u32) -> (Option<i32>, String) {
    let lua = format!("local ffi = require('ffi') function init() {body} end");
    let (ended, seen) = run_script(&lua, "auto", |plan| {
        plan["script"]["call_timeout_ms"] = timeout_ms.into();
    });
    assert!(seen.is_empty());
    (ended.code, ended.stderr)
}

#[test]
fn a_script_that_waits_in_a_call_of_the_system_is_ended() {
    let poll = "ffi.cdef 'int poll(void *, unsigned long, int);' ffi.C.poll(nil, 0, 60000)
        error('nobody ended it')";
    // Long for a busy machine.
    let (code, said) = init_that_waits(poll, 1500);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains(": init() was ended after 1.5 s"), "{said}");
}

#[test]
fn a_script_that_waits_where_no_signal_ends_it_is_given_up() {
    // Locked twice by the same thread.
    let locks = "ffi.cdef 'int pthread_mutex_lock(void *);' local lock = ffi.new('char[64]')
        ffi.C.pthread_mutex_lock(lock) ffi.C.pthread_mutex_lock(lock)";
    let (code, said) = init_that_waits(locks, 200);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("waits in a function outside of Lua"),
        "{said}"
    );
    assert!(said.contains("init() was ended"), "{said}");
}

#[test]
fn arrivals_of_an_open_load_are_what_request_returns() {
    let lua = "local n = 0
        request = function() n = n + 1; return wrk.format(nil, '/' .. n) end
        response = function(status) if status ~= 200 then error('status ' .. status) end end";
    for driver in drivers() {
        let (ended, seen) = run_script(lua, driver, |plan| {
            plan["load"] = serde_json::json!({"model": "open", "max_users": 3, "connections": 3, "at_cap": "wait",
                "phases": [{"duration_ms": 100, "from_per_s": 200, "to_per_s": 200}]});
        });
        let finished = ended.finished();
        assert_eq!(finished["totals"]["completed"], 20);
        assert_eq!(finished["totals"]["offered"], 20);
        assert_eq!(finished["window"]["latency"]["count"], 20);
        let mut paths = first_lines(&seen);
        paths.sort_unstable();
        let mut expected: Vec<String> = (2..22).map(|n| format!("GET /{n} HTTP/1.1")).collect();
        expected.sort();
        assert_eq!(paths, expected);
    }
}
