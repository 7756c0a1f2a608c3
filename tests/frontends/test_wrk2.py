"""`prony wrk2`: its command line, the open load that it becomes, and its report.

wrk2 is in no package registry, and so is compared with what its documentation and its output are known to
be: the rate, times that count from when a request was due, and lines that its readers and HdrHistogram's own
tools understand.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.plan.load import OpenLoad
from prony_frontends._wrk import layout
from prony_frontends._wrk.arguments import WrongUsage
from prony_frontends._wrk.run import figures
from prony_frontends.base import Refused
from prony_frontends.counted import CountedValues
from prony_frontends.wrk2 import FRONT_END
from tests.frontends.conftest import Served, explained, offered, quick_desk
from tests.programs import program

URL = "http://127.0.0.1:8080/a"
run, translate = FRONT_END.run, FRONT_END.translate


def load(*flags: str) -> OpenLoad:
    made = translate([*flags, URL]).trial.load
    assert isinstance(made, OpenLoad)
    return made


def test_a_rate_is_an_open_load_over_the_connections() -> None:
    found = load("-t2", "-c", "101", "-d", "30s", "-R", "2k", "-L")
    assert (found.rate_per_s, found.max_users, found.connections) == (2000, 100, 100)
    assert (found.arrivals, found.at_cap, found.session) == ("constant", "wait", "request")
    assert load("-R1", "-D", "exp").arrivals == "poisson"


def test_the_plan_can_be_read_again() -> None:
    made = translate(["-R", "100", URL])
    assert explained(made).load == made.trial.load


def test_the_rate_must_be_said() -> None:
    with pytest.raises(WrongUsage, match="Throughput MUST be specified"):
        translate([URL])
    desk, out, err = quick_desk()
    assert run([URL], desk) == 1
    assert "Throughput MUST be specified" in err.getvalue()
    assert "prony wrk2 <options>" in out.getvalue()
    assert FRONT_END.name == "wrk2"


@pytest.mark.parametrize(("flags", "says"), [(["-D", "zipf"], "use fixed or exp"), (["-B"], "batches")])
def test_what_is_refused(flags: list[str], says: str) -> None:
    with pytest.raises(Refused, match=says):
        translate([*flags, "-R", "1", URL])


RECORDED = """\
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.00ms
 75.000%    1.00ms
 90.000%    2.00ms
 99.000%    4.00ms
 99.900%    4.00ms
 99.990%    4.00ms
 99.999%    4.00ms
100.000%    4.00ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.000     0.000000            8         1.00
       1.000     0.100000            8         1.11
       1.000     0.200000            8         1.25
       1.000     0.300000            8         1.43
       1.000     0.400000            8         1.67
       1.000     0.500000            8         2.00
       1.000     0.550000            8         2.22
       1.000     0.600000            8         2.50
       1.000     0.650000            8         2.86
       1.000     0.700000            8         3.33
       1.000     0.750000            8         4.00
       1.000     0.775000            8         4.44
       1.000     0.800000            8         5.00
       2.000     0.825000            9         5.71
       2.000     0.850000            9         6.67
       2.000     0.875000            9         8.00
       2.000     0.887500            9         8.89
       2.000     0.900000            9        10.00
       4.000     0.912500           10        11.43
       4.000     1.000000           10          inf
#[Mean    =        1.400, StdDeviation   =        0.966]
#[Max     =        4.000, Total count    =           10]
----------------------------------------------------------
"""


def test_the_distribution_and_the_spectrum() -> None:
    times = CountedValues.of([(1000, 8), (2000, 1), (4000, 1)])
    assert layout.recorded(times, "Recorded Latency") == RECORDED
    assert "100.000%" in layout.recorded(CountedValues.of([]), "Recorded Latency")


def test_a_script_makes_the_arrivals(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, script = serve(), tmp_path / "s.lua"
    script.write_text(
        'local socket = require("socket")\nmath.randomseed(socket.gettime() * 1000)\nlocal n = 0\n'
        'request = function() n = n + 1; return wrk.format("GET", "/" .. n) end\n'
    )
    desk, out, _ = quick_desk()
    argv = ["-t1", "-c2", "-d1s", "-R", "50", "-L", "-s", str(script), served.url]
    assert run(argv, desk) == 0
    counted = served.ended()["requests"]
    assert f"  {counted} requests in " in out.getvalue()
    assert "Latency Distribution (HdrHistogram - Recorded Latency)" in out.getvalue()
    assert 40 <= counted <= 51


TIME = r" *\d+\.\d\d(?:us|ms|s|m)"
LINES = (
    r"  Thread Stats   Avg      Stdev     Max   \+/- Stdev",
    rf"    Latency {TIME}{TIME}{TIME} +\d+\.\d\d%",
    r"    Req/Sec(?: +\d+\.\d\d[kMG]?){3} +\d+\.\d\d%",
    r"  Latency Distribution \(HdrHistogram - Recorded Latency\)",
    *(rf" *{percent}%{TIME}" for percent in (r"50\.000", r"75\.000", r"90\.000", r"99\.000", r"99\.900",
                                              r"99\.990", r"99\.999", r"100\.000")),
    "",
    r"  Detailed Percentile spectrum:",
    r"       Value   Percentile   TotalCount 1/\(1-Percentile\)",
    "",
    r"(?: *\d+\.\d{3} +[01]\.\d{6} +\d+ +(?:\d+\.\d\d|inf)\n)+"
    r"#\[Mean    = +\d+\.\d{3}, StdDeviation   = +\d+\.\d{3}\]",
    r"#\[Max     = +\d+\.\d{3}, Total count    = +\d+\]",
    "-{58}",
    r"  \d+ requests in +\d+\.\d\ds, +\d+\.\d\d[KMG]?B read",
    r"Requests/sec: +\d+\.\d\d",
    r"Transfer/sec: +\d+\.\d\d[KMG]?B",
)  # fmt: skip
"""Of wrk2's report with --latency, behind its first two, as its readers look for them."""


def test_the_report_has_the_lines_that_readers_of_wrk2_look_for(serve: Callable[..., Served]) -> None:
    desk, out, _ = quick_desk()
    assert run(["-t1", "-c2", "-d1s", "-R", "100", "-L", serve().url], desk) == 0
    assert re.fullmatch("\n".join(LINES) + "\n", out.getvalue()), out.getvalue()


def rows(text: str) -> list[tuple[float, float, int]]:
    """Value, level and count of the lines of a percentile spectrum."""
    found = re.findall(r"^ *(\d+\.\d+) +([01]\.\d+) +(\d+)(?: |$)", text, re.MULTILINE)
    return [(float(value), float(level), int(count)) for value, level, count in found]


@pytest.mark.needs("hdrhistogram")
def test_the_spectrum_is_that_of_hdrhistograms_own_tool(serve: Callable[..., Served], tmp_path: Path) -> None:
    report = offered(translate(["-t1", "-c2", "-d1s", "-R", "500", "-L", serve("--delay", "1ms").url]))
    window = report.window
    assert window is not None
    assert window.latency is not None
    printed = rows(layout.recorded(figures(report, window).latency_us, "Recorded Latency"))
    log = tmp_path / "latency.hlog"
    log.write_text(
        "#[Histogram log format version 1.3]\n#[StartTime: 0.000 (seconds since epoch), then]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
        f"0.000,{window.duration_s:.3f},{(window.latency.max_ns or 0) / 1e6:.3f},{window.latency.v2}\n"
    )
    argv = [program("hdrhistogram"), "-i", str(log), "-o", str(tmp_path / "out")]
    subprocess.run(argv, check=True, timeout=120, capture_output=True)
    theirs = rows((tmp_path / "out.hgrm").read_text())
    assert [count for _, _, count in printed] == [count for _, _, count in theirs]
    assert [level for _, level, _ in printed] == pytest.approx([level for _, level, _ in theirs], abs=1e-6)
    assert [value for value, _, _ in printed] == pytest.approx(
        [value for value, _, _ in theirs], rel=0.002, abs=0.001
    )


def test_latency_counts_from_when_a_request_was_due(serve: Callable[..., Served]) -> None:
    """One connection and 100 ms per response carry 10/s; of 50/s each waits for 80 ms longer than the
    one before it, on whatever host.
    """
    desk, out, _ = quick_desk()
    argv = ["-t1", "-c1", "-d1s", "-R", "50", "-U", serve("--delay", "100ms").url]
    assert run(argv, desk) == 0
    recorded, uncorrected = re.findall(r"#\[Mean    = +(\d+\.\d+)", out.getvalue())
    (total,) = re.findall(r"  (\d+) requests in ", out.getvalue())
    assert float(uncorrected) >= 100
    assert float(recorded) >= float(uncorrected) + 80 * (int(total) - 1) / 2 - 1
    assert int(total) <= 11


def test_the_rate_is_what_is_sent_and_no_more(serve: Callable[..., Served]) -> None:
    for rate in (20, 80):
        server = serve()
        assert run(["-t1", "-c4", "-d1s", "-R", str(rate), server.url], quick_desk()[0]) == 0
        assert rate * 0.8 <= server.ended()["requests"] <= rate + 1
