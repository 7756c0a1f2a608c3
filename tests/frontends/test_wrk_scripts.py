"""Scripts of wrk: all of its documented interface, over http, https and IPv6, beside the real wrk; scripts
that are explained, imported and run again; and random ones.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prony.errors import PronyError, UsageError
from prony.plan.load import WholeRun
from prony_frontends.base import explain
from prony_frontends.wrk import translate
from tests import command
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Served, changed, from_file, offered, read_plan
from tests.programs import program

real_wrk = pytest.mark.needs("wrk")
Serve = Callable[..., Served]

RESPONSES = 10
"""After so many a thread of that script stops itself."""
INTERFACE = Path(__file__).parent / "interface.lua"


def certificate(folder: Path) -> tuple[str, ...]:
    """A server's options for TLS with a certificate of its own making."""
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    key, chain = folder / "key.pem", folder / "cert.pem"
    subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", chain], check=True, capture_output=True)
    return ("--tls", "--cert", str(chain), "--key", str(key))


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def requests_of(recorded: bytes, address: str) -> Counter[str]:
    """The requests as they came, headers in any order (Lua's tables have none)."""
    text = recorded.decode().replace(address, "ADDRESS")
    found: Counter[str] = Counter()
    for piece in re.split(r"(?=(?:GET|PUT|POST|DELETE) /)", text):
        head, _, body = piece.partition("\r\n\r\n")
        lines = head.split("\r\n")
        if piece:
            found["|".join([lines[0], *sorted(lines[1:]), body])] += 1
    return found


@pytest.mark.parametrize("way", ["http", pytest.param("https", marks=pytest.mark.needs("openssl")), "ipv6"])
@real_wrk
def test_the_whole_interface_is_that_of_wrk(way: str, serve: Serve, tmp_path: Path) -> None:
    """Two threads with a connection each; each stops itself after ten responses."""
    if way == "ipv6" and not has_ipv6():
        pytest.skip("this host has no IPv6 loopback address")
    options = certificate(tmp_path) if way == "https" else ()
    listen = "[::1]:0" if way == "ipv6" else "127.0.0.1:0"
    scheme = "https" if way == "https" else "http"

    def said(server: Served, text: str) -> list[str]:
        wanted = (
            "setup",
            "init",
            "wrk",
            "thread\t",
            "summary",
            "errors",
            "latency\t",
            "requests\t",
            "7 ",
            "to ",
        )
        lines = [line for line in text.splitlines() if line.startswith(wanted)]
        # wrk writes an address of IPv6 without brackets.
        return [line.replace(str(server.port), "PORT").replace("[::1]", "::1") for line in lines]

    def argv(server: Served) -> list[str]:
        url = f"{scheme}://{server.address}/start?a=1"
        return ["-c2", "-t2", "-d2s", "-H", "X-Given: g", "-s", str(INTERFACE), url, "--", "one", "-two"]

    theirs, ours = serve(*options, listen=listen), serve(*options, listen=listen)
    real = subprocess.run(
        [program("wrk"), *argv(theirs)], capture_output=True, text=True, timeout=60, check=True
    )
    report = offered(translate(argv(ours)))
    assert report.script is not None
    assert report.script.error is None
    printed = report.script.printed_setup + report.script.printed_run + report.script.printed_done
    assert said(ours, printed) == said(theirs, real.stdout)
    assert report.totals.completed == 2 * RESPONSES
    assert f"summary\t{2 * RESPONSES}\ttrue\ttrue" in printed
    counted = theirs.ended(), ours.ended()
    assert counted[0]["requests"] == counted[1]["requests"]
    # wrk tries an address of its own before the script does.
    assert counted[0]["connections"] == counted[1]["connections"] + 1
    asked = requests_of(ours.recorded(), ours.address)
    # Each user of ours has a turn of its own at the script, as each connection of wrk's has.
    assert asked == requests_of(theirs.recorded(), theirs.address)


PIPELINED = """
local responses, seen = 0, {}
function init() piece = wrk.format(nil, "/1") .. wrk.format("HEAD", "/2") .. wrk.format("GET", "/3") end
function request() return piece end
function response(status, headers, body)
   responses = responses + 1
   if responses <= 6 then seen[#seen + 1] = status .. ":" .. #body end
   if responses == 9 then
      print("seen", table.concat(seen, " "))
      wrk.thread:stop()
   end
end
"""


def test_requests_that_go_out_together_are_answered_one_by_one(serve: Serve, tmp_path: Path) -> None:
    script = tmp_path / "piece.lua"
    script.write_text(PIPELINED)
    server = serve("--body-bytes", "5")
    report = offered(translate(["-c1", "-t1", "-d20s", "-s", str(script), server.url + "/"]))
    assert report.script is not None
    assert report.script.printed_run == "seen\t200:5 200:0 200:5 200:5 200:0 200:5\n"
    assert (report.script.pipeline, report.totals.completed, report.totals.errors) == (3, 9, {})
    assert server.ended()["requests"] == 9


def test_a_script_is_explained_imported_and_run_again(serve: Serve, tmp_path: Path) -> None:
    """The plan holds the script by its name, and `prony run` sends what wrk's command line sent."""
    script = tmp_path / "again.lua"
    script.write_text(
        "function init(args) n, most = 0, tonumber(args[1]) end\n"
        "function request() n = n + 1 return wrk.format('PUT', args_path or '/again', nil, 'n=' .. n) end\n"
        "function response() if n > most then wrk.thread:stop() end end\n"
    )
    server = serve()
    argv = ["-c1", "-t1", "-d20s", "-s", str(script), server.url + "/", "--", "6"]
    file = tmp_path / "plan.yaml"
    words = ["import", "-o", str(file), str(script), "--", *argv[:3], *argv[5:]]
    done = command.run(words)
    assert done.returncode == 0, done.stderr
    assert read_plan(file) == read_plan(_written(tmp_path / "plan" / "plan.yaml", explain(translate(argv))))
    script_of = from_file(file).trial.script
    assert script_of is not None
    assert (script_of.file, script_of.args) == (str(script), ("6",))
    first = offered(translate(argv))
    sent = server.recorded()
    done = command.run(["run", file, "--db", tmp_path / "r.db"])
    assert done.returncode == demanded_code(tmp_path / "r.db"), done.stderr
    assert first.totals.completed == 6
    once = requests_of(sent, server.address)
    assert requests_of(server.recorded(), server.address) == once + once
    assert server.ended()["requests"] == 12


def _written(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_a_script_stands_beside_its_plan(tmp_path: Path) -> None:
    script = _written(tmp_path / "a.lua", "wrk.path = '/a'")
    text = explain(translate(["-d1", "-s", str(script), "http://127.0.0.1:9/"])).replace(str(script), "a.lua")
    read = from_file(_written(tmp_path / "plan.yaml", text))
    assert read.trial.script == translate(["-d1", "-s", str(script), "http://127.0.0.1:9/"]).trial.script


FLAGS = ["-c", "-d", "-t", "-H", "-L", "--latency", "--timeout", "-v", "--", "-c4", "-t2", "-d1s", "4", "1k",
         "2m", "1h", "X: 1", "X:1", "--threads=3", "--duration", "-T", "3s", "-x"]  # fmt: skip
URLS = ["http://127.0.0.1:1/a", "https://h/ä b", "h/", "http://[/", "http://[::1]:8/${x}"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(FLAGS) | st.text(max_size=6), max_size=7), st.sampled_from(URLS))
def test_any_words_translate_or_are_refused(words: list[str], url: str) -> None:
    try:
        made = translate([*words, url])
    except UsageError:
        return
    assert explain(made)


NAMES = ["request", "response", "delay", "init", "setup", "done", "wrk", "wrk.path", "wrk.headers",
         "wrk.body", "wrk.format", "wrk.method", "print", "x", "wrk.thread", "wrk.init",
         "wrk.request"]  # fmt: skip
VALUES = [
    "nil", "1", "-7.5", "'text'", "'GET / HTTP/1.1\\r\\n\\r\\n'", "{}", "{a = {b = 1}}", "print", "0/0",
    "true", "function() end", "function() return wrk.format() end", "function() return 3 end", "wrk.format()",
    "function() error({}) end", "function(...) return ... end", "wrk.lookup('127.0.0.1', '80')",
    "function() return 'GET / HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n' end", "('\\0\\255'):rep(9)",
    "function(t) t:set('k', {1}) t:stop() end", "coroutine.create(print)",
    "setmetatable({}, {__index = error})",
]  # fmt: skip
LINES = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.builds("local ok, why = pcall({})".format, st.sampled_from(NAMES)),
    st.builds("print({})".format, st.sampled_from(VALUES)),
    st.text(alphabet="=(){}'\"\n abwrk.end,-#", max_size=9),
)


@pytest.fixture
def running(serve: Serve) -> Served:
    return serve()


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(LINES, max_size=5))
def test_any_script_runs_or_is_refused(running: Served, tmp_path: Path, lines: list[str]) -> None:
    script = _written(tmp_path / "random.lua", "\n".join(lines))
    load = translate(["-c2", "-t2", "-d1s", "-s", str(script), running.url + "/"])
    try:
        report = offered(changed(load, measured=WholeRun(duration_s=0.1)))
    except PronyError as refused:
        said = str(refused).strip()
    else:
        assert report.script is not None
        said = report.script.error or ""
        assert (report.reason == "script") == bool(said) or report.script.printed_done
    assert "panick" not in said
    assert "\n" not in said
