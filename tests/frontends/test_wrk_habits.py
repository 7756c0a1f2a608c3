"""What published scripts rely on beyond wrk's documented interface: the same requests and the same print as
the real wrk's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony_frontends.wrk import run
from tests.frontends.conftest import Served, quick_desk
from tests.frontends.test_wrk import requests_of, skeleton
from tests.programs import program

Serve = Callable[..., Served]

SCRIPTS = {
    "the module wrk, numbers as bodies, keys that its objects do not know": """
        local tool = require("wrk")
        tool.method = "PUT"
        function setup(thread) thread:set("place", thread.place) end
        local count = 0
        function request()
           count = count + 1
           return wrk.format(nil, "/" .. place .. "/" .. wrk.thread.id, {Plain = true}, 7.5)
        end
        function done(summary, latency, requests) print(requests.total, latency.p99, latency[3]) end""",
    "nothing to send any more": """
        local count = 0
        function request()
           count = count + 1
           if count <= 6 then return wrk.format("POST", "/" .. count, {}, count) end
        end
        function done(summary) print("sent " .. summary.requests) end""",
    "a thread that stops when it has nothing to send": """
        local count = 0
        function request()
           count = count + 1
           if count > 99 then wrk.thread:stop() else return wrk.format("GET", "/" .. count) end
        end""",
    "ports by name, and addresses that answer": """
        for _, address in ipairs(wrk.lookup("127.0.0.1", "ftp")) do print(address) end
        function setup(thread)
           wrk.resolve(wrk.host, wrk.port)
           print(#wrk.addrs, wrk.addrs[1])
           thread.addr = wrk.addrs[1]
        end""",
    "an empty line behind the body": """
        local text = "POST /a HTTP/1.1\\r\\nHost: h\\r\\nContent-Length: 2\\r\\n\\r\\nab\\r\\n"
        function request() return text end""",
}


@pytest.mark.needs("wrk")
@pytest.mark.parametrize("name", SCRIPTS)
def test_habits_of_scripts_do_what_they_do_in_wrk(name: str, serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "habit.lua"
    script.write_text(SCRIPTS[name])
    argv = ["-c1", "-t1", "-d1s", "-s", str(script)]
    theirs, ours = serve("--delay", "2ms"), serve("--delay", "2ms")
    done = subprocess.run(
        [program("wrk"), *argv, theirs.url], capture_output=True, text=True, timeout=60, check=True
    )
    desk, out, err = quick_desk()
    assert run([*argv, ours.url], desk) == 0, err.getvalue()
    assert skeleton(out.getvalue()) == skeleton(done.stdout)
    seen, expected = requests_of(ours.recorded()), requests_of(theirs.recorded())
    assert set(seen) == set(expected)
    if len(expected) > 3:
        assert seen == expected
