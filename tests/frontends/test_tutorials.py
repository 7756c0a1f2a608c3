"""Scripts as the tools' own tutorials teach them, on a shop that is asked what the tutorial says: each runs,
or is refused with the sentence that stands here. docs/frontends.md has the list.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_frontends import front_end
from tests.frontends.conftest import offered, quick_desk
from tests.frontends.real_jmeter import needs_jmeter, run_jmeter
from tests.frontends.shop import Visits, shop

TUTORIALS = Path(__file__).parent / "tutorials"
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "frontends.md").read_text(encoding="utf-8")

JMETER: dict[str, dict[str, int]] = {
    "web-test-plan.jmx": {"GET /": 10, "GET /changes": 10},
    "login.jmx": {"POST /login": 3, "GET /account": 3},
    "csv.jmx": {"POST /login": 6, "GET /account": 6},
    "rest-json.jmx": {"POST /api/items": 4, "GET /api/items/#": 4, "DELETE /api/items/#": 4},
    "correlation.jmx": {"GET /form": 2, "POST /form": 2},
    "controllers.jmx": {
        "POST /login": 1, "GET /": 6, "GET /changes": 2, "GET /about": 1, "GET /slow": 1, "GET /search": 1,
        "GET /api/items": 2,
    },
    "while.jmx": {"GET /api/items": 1, "GET /search": 1},
    "throughput.jmx": {"GET /": 10},
    "setup.jmx": {"POST /api/items": 1, "GET /api/items/#": 6, "DELETE /api/items/#": 1},
    "functions.jmx": {"GET /search": 4},
}  # fmt: skip
"""What JMeter 5.6.3 asks for."""
ENDLESS = {"ramp.jmx": "GET /"}
"""Until their time is over; the one page that they ask for."""
ARTILLERY: dict[str, dict[str, int]] = {
    "getting-started.yml": {"GET /": 6, "POST /api/items": 6},
    "phases.yml": {"GET /": 8},
    "captures.yml": {"POST /token": 3, "GET /private": 3, "POST /api/items": 3, "GET /api/items/#": 3},
    "payload.yml": {"POST /login": 4, "GET /account": 4},
    "expect.yml": {"GET /api/items": 3, "GET /search": 6},
}
WRK = {
    "post.lua": {"POST /api/items"}, "counter.lua": {"GET /search"},
    "pipeline.lua": {"GET /", "GET /changes", "GET /about"}, "auth.lua": {"POST /token", "GET /private"},
    "delay.lua": {"GET /"}, "paths.lua": {"GET /", "GET /changes", "GET /about"},
}  # fmt: skip
"""Everything that they ask for, as often as they come to it."""
REFUSED = {
    "signature.jmx": r"JSR223PreProcessor 'Sign the request'.*Mac.getInstance",
    "database.jmx": r"JDBCSampler 'Find users'",
}


def on(visits: Visits, name: str) -> list[str]:
    """The arguments of JMeter."""
    return ["-n", "-t", str(TUTORIALS / name), f"-Jport={visits.port}"]


def taken(visits: Visits) -> Counter[str]:
    """What was asked for, all of it as the tutorial says."""
    assert visits.refused == []
    return visits.asked


def run(tool: str, argv: list[str]) -> int:
    return front_end(tool).run(argv, quick_desk()[0])


@pytest.mark.parametrize("name", JMETER)
def test_plans_of_jmeter(name: str) -> None:
    with shop() as visits:
        assert run("jmeter", on(visits, name)) == 0
        assert taken(visits) == JMETER[name]


@pytest.mark.parametrize("name", ENDLESS)
def test_plans_that_end_by_the_clock(name: str) -> None:
    with shop() as visits:
        assert run("jmeter", on(visits, name)) == 0
        assert set(taken(visits)) == {ENDLESS[name]}


BESIDE = ("rest-json.jmx", "controllers.jmx", "setup.jmx")
"""Each run of JMeter takes seconds; all of them have asked for the same as these."""


@needs_jmeter
@pytest.mark.parametrize("name", BESIDE)
def test_jmeter_itself_asks_for_that(name: str, tmp_path: Path) -> None:
    with shop() as visits:
        run_jmeter(on(visits, name), tmp_path, cwd=tmp_path)
        assert taken(visits) == JMETER[name]


@pytest.mark.parametrize("name", ARTILLERY)
def test_scripts_of_artillery(name: str) -> None:
    with shop() as visits:
        argv = ["run", "-t", f"http://127.0.0.1:{visits.port}", str(TUTORIALS / name)]
        assert run("artillery", argv) == 0
        asked = taken(visits)
        if name == "phases.yml":  # a ramp from 2 to 6 a second has about four users
            assert 6 <= asked.pop("GET /") <= 10
            assert not asked
        else:
            assert asked == ARTILLERY[name]


@pytest.mark.parametrize("name", WRK)
@pytest.mark.parametrize("tool", ["wrk", "wrk2"])
def test_scripts_of_wrk(tool: str, name: str) -> None:
    rate = ["-R", "200"] if tool == "wrk2" else []
    path = {"post.lua": "/api/items"}.get(name, "/")
    with shop() as visits:
        url = f"http://127.0.0.1:{visits.port}{path}"
        argv = [*rate, "-t1", "-c2", "-d1s", "-s", str(TUTORIALS / name), url]
        if name == "paths.lua":
            argv += ["--", str(TUTORIALS / "paths.txt")]
        report = offered(front_end(tool).translate(argv))
        assert report.script is not None
        assert report.script.error is None
        assert set(taken(visits)) == WRK[name]
        if name == "paths.lua":
            assert report.script.printed_done.splitlines() == ["thread 1 has asked", "times are known"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[name]):
        front_end("jmeter").translate(["-n", "-t", str(TUTORIALS / name)])


def test_the_page_lists_every_script() -> None:
    listed = set(re.findall(r"`([\w-]+\.(?:jmx|yml|lua))`", PAGE.split("## Tutorials")[1].split("\n## ")[0]))
    there = {file.name for file in TUTORIALS.iterdir() if file.suffix in (".jmx", ".yml", ".lua")}
    assert listed == there == {*JMETER, *ENDLESS, *ARTILLERY, *WRK, *REFUSED}
