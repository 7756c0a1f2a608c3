"""Mistakes in scripts of wrk: one sentence, exit code 1, and nothing sent where it shows before the load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony_frontends.wrk import run
from tests.frontends.conftest import Front, Served

Serve = Callable[..., Served]
BEFORE = {
    "function init() error('no') end": "own.lua:1: no",
    "function setup(t) t.foo.bar = 1 end": "own.lua:1: attempt to index field 'foo'",
    "function request() local x = nil + 1 end": "own.lua:1: attempt to perform arithmetic on a nil value",
    "function request() return 5 end": "what request() returned is not a request: request 1 in it has no end",
    "function request() return 'hello\\r\\n\\r\\n' end": "request 1 in it is not HTTP",
    "wrk.path = '/a b'": "request 1 in it is not HTTP",
    "function f() return 1 + f() end\nfunction request() return f() end": "own.lua:1: stack overflow",
    "function request() return ('x'):rep(2^31) end": "request() returned nothing that can be sent",
    "wrk.headers = nil": "own.lua:1: wrk.headers: found nil, expected a table",
    "wrk.body = 'a'\nwrk.body = {}": "own.lua:2: wrk.body: found a table, expected a string",
    "\nfunction init()\nwrk.headers = 'A: b' end": "own.lua:3: wrk.headers: found a string, expected a table",
    "local w = wrk\nw.body = true": "own.lua: wrk.body: found a boolean, expected a string",
    "wrk = nil": "own.lua:1: attempt to index global 'wrk'",
    "function request()\nlocal text = wrk.format(nil, nil, 5)\nreturn text end":
        "own.lua:2: headers of wrk.format: found a number, expected a table",
    "function request()\nlocal body = {}\nreturn wrk.format(nil, nil, nil, body)\nend":
        "own.lua:3: body of wrk.format: found a table, expected a string",
    "local f = wrk.format\nlocal function g() return f(nil, nil, 1) end\nfunction request()\nreturn g()\nend":
        "own.lua:3: headers of wrk.format: found a number, expected a table",
    "function setup(t) t:set('f', print) end": "own.lua:1: a function cannot go from one thread to another",
    "require('nothing')": "own.lua:1: module 'nothing' not found:",
    "for line in io.lines('nowhere.txt') do end": "nowhere.txt: No such file or directory",
    "function request() coroutine.yield() end": "attempt to yield across C-call boundary",
    "\x1bLJ\x02": "cannot load",
    "error('one\\ntwo')": "own.lua:1: one",
}  # fmt: skip
DURING = {
    "function response(status, headers, body) headers.x.y = 1 end": "own.lua:1: attempt to index field 'x'",
    "function delay() return -5 end": "delay() returned -5, expected milliseconds from 0 to a day",
    "function delay() return 0/0 end": "delay() returned NaN, expected milliseconds from 0 to a day",
    "function done(summary) print(summary.foo.bar) end": "own.lua:1: attempt to index field 'foo'",
}  # fmt: skip


def arguments(folder: Path, text: str) -> list[str]:
    file = folder / "own.lua"
    file.write_text(text, encoding="utf-8")
    return ["-c1", "-t1", "-d1s", "-s", str(file)]


@pytest.mark.parametrize(("text", "said"), BEFORE.items())
def test_a_mistake_that_shows_before_the_load(
    text: str, said: str, serve: Serve, front: Front, tmp_path: Path
) -> None:
    server = serve()
    assert run([*arguments(tmp_path, text), server.url], front.context()) == 1
    assert said in front.err.getvalue()
    assert front.err.getvalue().count("\n") == 1
    assert front.out.getvalue() == ""
    assert server.ended()["requests"] == 0


@pytest.mark.parametrize(("text", "said"), DURING.items())
def test_a_mistake_that_shows_during_the_load_or_after_it(
    text: str, said: str, serve: Serve, front: Front, tmp_path: Path
) -> None:
    argv = [*arguments(tmp_path, text), serve().url]
    assert run(argv, front.context(exit_like_original=True)) == 1
    assert said in front.err.getvalue()
    assert "Requests/sec:" in front.out.getvalue()
