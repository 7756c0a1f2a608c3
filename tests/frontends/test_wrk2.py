"""`prony wrk2`: its command line, the open load that it becomes, and its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from prony.frontends._wrk import layout
from prony.frontends._wrk.arguments import WrongUsage
from prony.frontends.base import Refused
from prony.frontends.counted import CountedValues
from prony.frontends.wrk2 import FRONT_END
from prony.plan.load import OpenLoad
from tests.frontends.conftest import Served, explained, quick_desk

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
