"""Scripts beside the real wrk where the two are most likely to differ: modules, scripts that leave, requests
that are none, and more print than is kept.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony_frontends.wrk import run
from tests.frontends.conftest import Front, Served, quick_desk
from tests.frontends.test_wrk import requests_of
from tests.programs import program

Serve = Callable[..., Served]
real_wrk = pytest.mark.needs("wrk")

MODULES = r"""
local socket, cjson = require("socket"), require("cjson")
local begun, count = socket.gettime(), 0
function request()
   count = count + 1
   if count > 6 then return wrk.thread:stop() end
   local known = type(begun) == "number" and socket.gettime() >= begun
   local back = cjson.decode('{"list": [1, 2.5, "x", null, true], "deep": {"a": {"b": "\\u00e9\\/"}}}')
   local body = cjson.encode({count, known, back.list[2], back.deep.a.b, back.list[4] == cjson.null, {}, ""})
   return wrk.format("POST", "/" .. count, {["X-Null"] = cjson.encode(cjson.null)}, body)
end
function done() print(cjson.encode({1, 2}), pcall(cjson.decode, "{")) end
"""
BODIES = [f'[{count},true,2.5,"é\\/",true,{{}},""]' for count in range(2, 7)]
"""The first is made to look at it, and not sent."""


def wrk(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("wrk"), *argv], capture_output=True, text=True, timeout=60, check=False, cwd=folder,
    )  # fmt: skip


def script(folder: Path, text: str) -> list[str]:
    file = folder / "own.lua"
    file.write_text(text, encoding="utf-8")
    return ["-c1", "-t1", "-d1s", "-s", str(file)]


def test_luasocket_and_cjson(serve: Serve, tmp_path: Path) -> None:
    """Those that are installed or Prony's own: the result is one."""
    desk, out, err = quick_desk()
    server = serve()
    assert run([*script(tmp_path, MODULES), server.url], desk) == 0, err.getvalue()
    server.ended()
    heads = server.recorded().decode().split("\r\n\r\n")
    assert [body.partition("POST ")[0] for body in heads[1:]] == BODIES
    assert "[1,2]\tfalse\tExpected object key string but found T_END at character 2\n" in out.getvalue()


@real_wrk
def test_luasocket_and_cjson_of_the_real_wrk(serve: Serve, tmp_path: Path) -> None:
    """Where both are installed for LuaJIT, as by Debian's lua-socket and lua-cjson. Elsewhere the real wrk
    does not run such a script at all, and the test above says what lua-cjson would have written.
    """
    argv = script(tmp_path, MODULES)
    theirs, ours = serve(), serve()
    done = wrk([*argv, theirs.url], tmp_path)
    if "not found:" in done.stderr:
        pytest.skip("wrk finds no LuaSocket and lua-cjson here (apt-get install lua-socket lua-cjson)")
    desk, out, err = quick_desk()
    assert run([*argv, ours.url], desk) == done.returncode == 0, err.getvalue()
    assert requests_of(ours.recorded()) == requests_of(theirs.recorded())
    assert out.getvalue().splitlines()[-1] == done.stdout.splitlines()[-1]


LEAVING = {
    "in request": ("function request() n = (n or 0) + 1; if n == 4 then CALL end return wrk.format() end", 2),
    "in response": ("function response() print('one') n = (n or 0) + 1; if n == 2 then CALL end end", 2),
    "in init": ("function init() CALL end", 0),
    "outside": ("CALL", 0),
}


@real_wrk
@pytest.mark.parametrize(("call", "code"), [("os.exit(7)", 7), ("os.exit()", 0)])
@pytest.mark.parametrize("where", LEAVING)
def test_a_script_that_leaves_ends_as_with_wrk(
    where: str, call: str, code: int, serve: Serve, front: Front, tmp_path: Path
) -> None:
    """With the same requests, prints and exit code; what was measured is printed behind it."""
    text, sent = LEAVING[where]
    argv = script(tmp_path, text.replace("CALL", f"print('leaves') {call}"))
    theirs, ours = serve(), serve()
    done = wrk([*argv, theirs.url], tmp_path)
    got = run([*argv, ours.url], front.context(exit_like_original=True))
    assert got == done.returncode == code
    assert ours.ended()["requests"] == theirs.ended()["requests"] == sent
    if sent:
        # Whether wrk says that it is running before a thread of it ends the process is left to chance.
        theirs_said, ours_said = done.stdout.splitlines(), front.out.getvalue().splitlines()
        printed = [line for line in theirs_said if line in ("one", "leaves")]
        assert [line for line in ours_said if line in ("one", "leaves")] == printed
        assert any(line.startswith("Requests/sec:") for line in ours_said)
    assert f"{call[:-1]}{'0' if call == 'os.exit()' else ''}) ended the script" in front.err.getvalue()


@real_wrk
@pytest.mark.parametrize("returned", ["nil", "''", "{}", "true"])
def test_a_first_request_that_is_none_is_refused(
    returned: str, serve: Serve, front: Front, tmp_path: Path
) -> None:
    """The real wrk sends nothing, for as long as -d says."""
    argv = script(tmp_path, f"function request() return {returned} end")
    theirs, ours = serve(), serve()
    done = wrk([*argv, theirs.url], tmp_path)
    assert theirs.ended()["requests"] == 0
    assert run([*argv, ours.url], front.context()) == 1
    assert ours.ended()["requests"] == 0
    assert "request() returned nothing that can be sent" in front.err.getvalue()
    assert " 0 requests in " in done.stdout or done.returncode != 0


LINE = "x" * 1023
LOUD = "function done() for i = 1, 5000 do print(('x'):rep(1023)) end io.write('the end') end"
KEPT_LINES = 4096
"""4 MiB."""


@real_wrk
def test_of_more_print_than_4_mib_the_beginning_is_kept(serve: Serve, front: Front, tmp_path: Path) -> None:
    argv = script(tmp_path, LOUD)
    done = wrk([*argv, serve().url], tmp_path)
    assert done.stdout.count(LINE) == 5000
    assert run([*argv, serve().url], front.context(exit_like_original=True)) == done.returncode == 0
    assert front.out.getvalue().count(f"{LINE}\n") == KEPT_LINES
    assert "printed more than 4 MiB" in front.err.getvalue()
