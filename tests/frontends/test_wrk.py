"""`prony wrk`: its command line, its units and layout, and the real wrk on the same script and server."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from prony.errors import UsageError
from prony.plan.step import Step
from prony_frontends._wrk import layout
from prony_frontends._wrk.arguments import WrongUsage, parse
from prony_frontends.counted import CountedValues
from prony_frontends.wrk import run, translate
from tests.exit_codes import demanded_code
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Front, Served
from tests.programs import program

real_wrk = pytest.mark.needs("wrk")
Serve = Callable[..., Served]

COLUMNS = (
    "timeStamp,duration_microseconds,num_requests,total_bytes,connect_errors,read_errors,write_errors,"
    "error_status_codes,timeouts,requests_per_sec,bytes_per_sec,lat_min_microseconds,lat_max_microseconds,"
    "lat_mean_microseconds,lat_stdev_microseconds,lat_percentile_90_microseconds,"
    "lat_percentile_95_microseconds,lat_percentile_99_microseconds"
)
FIGURES = layout.WrkFigures(
    latency_us=CountedValues.of([(100, 50), (300, 40), (2500, 9), (1_200_000, 1)]),
    rates_per_s=CountedValues.of([(900, 1), (56_200, 2)]),
    requests=22_464_657,
    elapsed_s=30.0,
    bytes_read=19_069_771_940,
    errors={"connect": 0, "read": 3, "write": 0, "timeout": 1},
    bad_status=7,
)
REPORT = """\
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    12.39ms  119.96ms   1.20s    99.00%
    Req/Sec    37.77k    31.93k   56.20k    66.67%
  Latency Distribution
     50%  100.00us
     75%  300.00us
     90%  300.00us
     99%    2.50ms
  22464657 requests in 30.00s, 17.76GB read
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 7
Requests/sec: 748821.90
Transfer/sec:    606.21MB
"""
SCRIPTS = {
    "post": 'wrk.method = "POST"\nwrk.body = "a=1"\nwrk.headers["Content-Type"] = "text/plain"\n',
    "counter": """
        counter = 0
        request = function()
           counter = counter + 1
           wrk.headers["X-Counter"] = counter
           return wrk.format("GET", "/item/" .. counter % 3)
        end""",
    "pipeline": """
        init = function(args)
           local r = {}
           for i = 1, 3 do r[i] = wrk.format(nil, "/?p=" .. i) end
           req = table.concat(r)
        end
        request = function() return req end""",
    "delay": "function delay() return 20 end",
    "token": """
        local token = nil
        request = function()
           return wrk.format("GET", token and "/with" or "/without", token and {["X-Token"] = token} or nil)
        end
        response = function(status, headers, body)
           local whole = #body == tonumber(headers["Content-Length"])
           if not token and status == 200 and whole then token = "t" end
        end""",
    "setup": """
        local threads = {}
        function setup(thread)
           table.insert(threads, thread)
           thread:set("id", #threads)
        end
        function init(args) count = 0 end
        function request()
           count = count + 1
           return wrk.format("GET", "/" .. id)
        end
        function done(summary, latency, requests)
           for _, thread in ipairs(threads) do
              print("thread " .. thread:get("id"), thread:get("count") > 1)
           end
        end""",
}
EVERYDAY = "counter"


def test_the_report_is_laid_out_to_the_blank() -> None:
    assert layout.begin(10, "http://h/", 2, 10) == (
        "Running 10s test @ http://h/\n  2 threads and 10 connections\n"
    )
    assert layout.report(FIGURES, distribution=True) == REPORT
    short = layout.report(layout.WrkFigures(CountedValues.of([]), CountedValues.of([]), 0, 1.0, 0), False)
    assert "Distribution" not in short
    assert "errors" not in short
    assert short.endswith("Requests/sec:      0.00\nTransfer/sec:       0.00B\n")


@pytest.mark.parametrize(
    ("seconds", "text"), [(50, "50s"), (51, "1m"), (60, "1m"), (3000, "50m"), (7200, "120m")]
)
def test_times_climb_where_wrk_lets_them(seconds: int, text: str) -> None:
    assert layout.time_s(seconds) == text


def test_the_command_line_is_wrks() -> None:
    argv = ["-t2", "-c", "1k", "--duration", "2m", "-H", "A: b", "--latency", "http://h/x", "--timeout=3"]
    asked = parse([*argv, "--", "-n", "c"])
    assert (asked.threads, asked.connections, asked.duration_s, asked.timeout_s) == (2, 1000, 120, 3)
    assert (asked.headers, asked.latency, asked.rest) == ({"A": "b"}, True, ("-n", "c"))
    assert parse(["-c7", "-t3", "http://h/"]).open_connections == 6


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        ([], "no URL"),
        (["-c1", "-t2", "http://h/"], "number of connections must be >= threads"),
        (["-t", "x", "http://h/"], "expected a whole number"),
        (["--nothing", "http://h/"], "nothing"),
        (["h:80"], "invalid URL"),
        (["http://h/a b"], "invalid URL: http://h/a b"),
        (["http://h/?ü"], "invalid URL: http://h/"),
        (["-d0", "http://h/"], "at least 1"),
    ],
)
def test_wrong_usage_is_told_as_by_wrk(argv: list[str], part: str, front: Front) -> None:
    with pytest.raises(WrongUsage, match=part):
        parse(argv)
    assert run(argv, front.context()) == 1
    assert part in front.err.getvalue()
    assert front.out.getvalue().startswith("Usage: prony wrk")


def test_what_is_not_done_is_refused(tmp_path: Path) -> None:
    with refuses("unsupported", "--header", "'A b: c'"):
        parse(["-H", "A b: c", "http://h/"])
    with pytest.raises(UsageError, match=r"nowhere\.lua cannot be opened"):
        parse(["-s", str(tmp_path / "nowhere.lua"), "http://h/"])


@pytest.mark.parametrize(
    ("url", "path", "notes"),
    [
        ("http://h:8080", "/", 0),
        ("http://h?a=/b", "/", 1),
        ("http://h/?a=b", "/?a=b", 0),
        ("http://h/a?b=c#d", "/a?b=c#d", 0),
        ("http://u:p@[::1]:80//a", "//a", 0),
    ],
)
def test_the_path_is_what_wrk_makes_of_the_url(url: str, path: str, notes: int) -> None:
    made = translate([url])
    (step,) = made.trial.workload.steps
    assert isinstance(step, Step)
    assert step.path == path
    assert len(made.notes) == notes


def test_a_script_behind_a_descriptor_is_its_file(tmp_path: Path) -> None:
    script = tmp_path / "a.lua"
    script.write_text("wrk.path = '/a'")
    with script.open() as file:
        assert parse(["-s", f"/dev/fd/{file.fileno()}", "http://h/"]).script == script.resolve()
    reading, writing = os.pipe()
    try:
        with pytest.raises(UsageError, match="can be read only once"):
            parse(["-s", f"/dev/fd/{reading}", "http://h/"])
    finally:
        os.close(reading)
        os.close(writing)


def test_a_header_that_wrk_drops_is_dropped_with_a_note() -> None:
    made = translate(["-H", "A:b", "-H", "C: d", "-H", "E", "http://h/"])
    (step,) = made.trial.workload.steps
    assert isinstance(step, Step)
    assert dict(step.headers) == {"C": "d"}
    assert [note.code for note in made.notes] == ["header_not_sent"] * 2
    assert noted(made.notes, "header_not_sent", "'A:b'")
    assert noted(made.notes, "header_not_sent", "'E'")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-s", "nowhere.lua", "http://h/"], "nowhere.lua cannot be opened"),
        (["http://h:99999/"], "port"),
    ],
)
def test_whatever_else_is_wrong_ends_with_1(front: Front, argv: list[str], said: str) -> None:
    assert run(argv, front.context(explain=True)) == 1
    assert said in front.err.getvalue()
    assert front.out.getvalue() == ""


def test_explain_prints_the_plan(front: Front, tmp_path: Path) -> None:
    script = tmp_path / "a.lua"
    script.write_text("wrk.path = '/a'")
    argv = ["-c4", "-t2", "-d3s", "-s", str(script), "http://127.0.0.1:9/${x}", "--", "one"]
    assert run(argv, front.context(explain=True)) == 0
    plan = yaml.safe_load(front.out.getvalue())
    assert plan["script"] == {
        "file": str(script), "args": ["one"], "url": "http://127.0.0.1:9/${x}", "threads": 2,
    }  # fmt: skip
    assert plan["workloads"]["steps"] == [{"path": "/$${x}"}]
    assert (plan["loads"], plan["measured"]) == ({"users": 4}, {"duration_s": 3.0})


def skeleton(text: str) -> list[str]:
    """The lines with every number and its unit taken out, and blanks before a number made one."""
    lines = [
        re.sub(r" *\d+(\.\d+)?(us|ms|s|m|k|K|M|G|B|KB|MB|GB)*", " #", line) for line in text.splitlines()
    ]
    return [re.sub(r"# +", "# ", line) for line in lines]


def requests_of(recorded: bytes) -> Counter[str]:
    """The requests as they came, headers in any order (Lua's tables have none)."""
    found: Counter[str] = Counter()
    for head in recorded.decode().split("\r\n\r\n"):
        lines = [re.sub(r"^(X-Counter|Host): .*", r"\1", line) for line in head.split("\r\n")]
        if lines != [""]:
            found["|".join([lines[0], *sorted(lines[1:])])] += 1
    return found


@real_wrk
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.everyday if one == EVERYDAY else ()) for one in SCRIPTS]
)
def test_the_real_wrk_sends_and_prints_the_same(
    name: str, serve: Serve, front: Front, tmp_path: Path
) -> None:
    script = tmp_path / f"{name}.lua"
    script.write_text(SCRIPTS[name])
    argv = ["-c1", "-t1", "-d1s", "--latency", "-s", str(script)]
    theirs, ours = serve("--delay", "2ms"), serve("--delay", "2ms")
    done = subprocess.run(
        [program("wrk"), *argv, theirs.url + "/"], capture_output=True, text=True, timeout=60, check=True
    )
    assert run([*argv, ours.url + "/"], front.context(exit_like_original=True)) == 0, front.err.getvalue()
    assert skeleton(front.out.getvalue()) == skeleton(done.stdout)
    seen, expected = requests_of(ours.recorded()), requests_of(theirs.recorded())
    # The last requests may have been on their way when the run ended, and the recorded part may end in one.
    assert set(seen) >= {request for request, count in expected.items() if count > 2}
    assert set(expected) >= {request for request, count in seen.items() if count > 2}


def test_experiment_a_writes_its_line(serve: Serve, front: Front, tmp_path: Path) -> None:
    script = tmp_path / "csv.lua"
    script.write_text(
        f"""
        function init(args) wrk.method, wrk.path, wrk.body = args[1], args[2], args[3] end
        function done(summary, latency, requests)
           io.write("{COLUMNS}\\n")
           io.write(string.format("%s,%d,%d,%d,%d,%d,%d,%d,%d,%f,%f,%f,%f,%f,%f,%f,%f,%f\\n",
              os.date("%Y-%m-%dT%H:%M:%S"), summary.duration, summary.requests, summary.bytes,
              summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.status,
              summary.errors.timeout, summary.requests / summary.duration * 1e6,
              summary.bytes / summary.duration * 1e6, latency.min, latency.max, latency.mean, latency.stdev,
              latency:percentile(90), latency:percentile(95), latency:percentile(99)))
        end"""
    )
    server = serve("--delay", "1ms")
    argv = ["-c4", "-t2", "-d1s", "-s", str(script), server.url, "--", "PUT", "/echo", "{}"]
    assert run(argv, front.context(exit_like_original=True)) == 0, front.err.getvalue()
    heading, line = front.out.getvalue().splitlines()[-2:]
    assert heading == COLUMNS
    values = dict(zip(COLUMNS.split(","), line.split(","), strict=True))
    assert int(values["num_requests"]) > 0
    assert float(values["lat_min_microseconds"]) <= float(values["lat_mean_microseconds"])
    assert float(values["lat_percentile_90_microseconds"]) <= float(values["lat_percentile_99_microseconds"])
    assert server.recorded().startswith(b"PUT /echo HTTP/1.1\r\n")
    assert front.err.getvalue().splitlines()[-2].startswith("prony: ")


def test_what_a_script_says_on_standard_error_gets_there(
    serve: Serve, front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "says.lua"
    script.write_text(
        "function init() io.stderr:write('begun\\n') end\n"
        "function done() io.stderr:write('at \\255 the end') end"
    )
    code = run(["-c1", "-t1", "-d1s", "-s", str(script), serve().url], front.context())
    assert code == demanded_code(front.store)
    said = capsys.readouterr().err
    assert "begun\n" in said
    assert said.endswith("at \N{REPLACEMENT CHARACTER} the end")


def test_a_script_may_leave(serve: Serve, front: Front, tmp_path: Path) -> None:
    """Published scripts do: when their input is not there, or to fail a pipeline after the run."""
    script = tmp_path / "gate.lua"
    script.write_text("done = function(summary)\n  print('too slow')\n  os.exit(7)\nend")
    argv = ["-c1", "-t1", "-d1s", "-s", str(script), serve().url]
    assert run(argv, front.context(exit_like_original=True)) == 7
    assert front.out.getvalue().endswith("too slow\n")
    assert "gate.lua:3: os.exit(7) ended the script" in front.err.getvalue()
    script.write_text("if true then print('no paths.txt') os.exit() end")
    assert run(argv, front.context()) == 0
    assert (
        "gate.lua:1: os.exit(0) ended the script; the last it printed: no paths.txt\n" in front.err.getvalue()
    )


def test_other_programs_of_a_script_print_where_it_prints(serve: Serve, front: Front, tmp_path: Path) -> None:
    """And not among the engine's events; nor do they read its commands."""
    script = tmp_path / "calls.lua"
    script.write_text(
        "print(os.execute('echo hello; exit 3'), os.execute())\n"
        "local pipe = io.popen('cat; echo there')\nprint(pipe:read('*l'), pipe:close())\n"
        "local to = io.popen('cat', 'w') to:write('aside') to:close()\n"
        "function done() os.execute('echo the end') end\n"
    )
    argv = ["-c1", "-t1", "-d1s", "-s", str(script), serve().url]
    assert run(argv, front.context(exit_like_original=True)) == 0, front.err.getvalue()
    assert "hello\n768\t1\nthere\ttrue\n" in front.out.getvalue()
    assert front.out.getvalue().endswith("the end\n")


@pytest.mark.parametrize("line", ["for line in io.lines() do end", "io.read()", "io.stdin:read('*a')"])
def test_a_script_that_reads_standard_input_is_refused(
    line: str, serve: Serve, front: Front, tmp_path: Path
) -> None:
    script = tmp_path / "reads.lua"
    script.write_text(f"-- urls from a pipe\n{line}\n")
    server = serve()
    assert run(["-s", str(script), server.url], front.context()) == 1
    assert "reads.lua:2: standard input cannot be read here" in front.err.getvalue()
    assert server.ended()["requests"] == 0


def test_an_error_of_the_script_is_told_with_its_line(serve: Serve, front: Front, tmp_path: Path) -> None:
    script = tmp_path / "bad.lua"
    script.write_text(
        "local n = 0\nfunction response()\n n = n + 1\n if n == 5 then error('enough') end\nend"
    )
    server = serve()
    argv = ["-c1", "-t1", "-d20s", "-s", str(script), server.url]
    assert run(argv, front.context(exit_like_original=True)) == 1
    assert "bad.lua:4: enough" in front.err.getvalue()
    assert "Requests/sec:" in front.out.getvalue()
    script.write_text("function init(\n")
    before = server.ended()["requests"]
    assert run(["-s", str(script), serve().url], front.context()) == 1
    assert "bad.lua:2:" in front.err.getvalue()
    assert before >= 5


def test_nobody_listens(front: Front) -> None:
    assert run(["-c1", "-t1", "-d1s", "http://127.0.0.1:1/"], front.context()) == 1
    assert "127.0.0.1:1" in front.err.getvalue()
    assert front.out.getvalue() == ""


def test_without_a_url_there_is_no_load() -> None:
    with pytest.raises(WrongUsage, match="no URL"):
        translate(["-v"])
