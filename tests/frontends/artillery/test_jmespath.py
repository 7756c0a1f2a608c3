"""Checks in JMESPath: what they become, and that they hold where the plugin of the real Artillery says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import UsageError
from prony.plan.response import Expectation
from prony_frontends.artillery import json_patterns, run
from prony_frontends.artillery.jmespath import checks
from prony_frontends.artillery.script import of
from prony_frontends.base import Refused
from tests.frontends.artillery.test_config import text
from tests.frontends.conftest import quick_desk
from tests.frontends.site import Response, site
from tests.programs import program

BODY = {
    "id": 7, "price": 9.5, "debt": -3, "name": "Ann && [x]", "kind": "a", "ok": True, "off": False,
    "gone": None, "none": [], "empty": {}, "blank": "", "zero": 0, "tags": ["a", "b c", "d\"e"],
    "sizes": [1, 20, 3], "items": [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "a"}],
    "a-b": {"c.d": 1},
}  # fmt: skip
HOLDS = (
    "id == `7`", "kind == 'a'", "kind == `a`", "kind == `\"a\"`", "ok == `true`", "items[1].kind == 'b'",
    "\"a-b\".\"c.d\" == `1`", "id > `6`", "id >= `7`", "id < `7.5`", "id <= `7`", "price > `9.49`",
    "price < `10`", "debt < `0`", "debt > `-3.5`", "zero >= `0`", "zero <= `0`", "id != null",
    "none != `null`", "blank != null", "length(items) > `0`", "length(items) >= `3`", "length(items) == `3`",
    "length(items) < `4`", "length(items) <= `3`", "length(tags) != `0`", "length(name) > `0`",
    "length(none) == `0`", "length(empty) == `0`", "length(blank) == `0`", "length(@) > `0`",
    "contains(name, 'n && [')", "contains(kind, 'a')", "contains(tags, 'b c')", "contains(tags, 'd\"e')",
    "contains(sizes, `20`)", "contains(tags, 'a') == `true`", "starts_with(name, 'Ann')",
    "ends_with(name, '[x]')", "ok", "name", "items", "id",
    "items[0].id && kind == 'a' && length(items) > `1`",
    "id == `7` && contains(name, 'n &&') == `true`", "@.id == `7`",
)  # fmt: skip
FAILS = (
    "id == `8`", "kind == 'b'", "nothing == 'a'", "id > `7`", "id >= `7.1`", "id < `7`", "id <= `6.9`",
    "price > `9.5`", "price >= `9.51`", "debt > `0`", "debt < `-3`", "zero > `0`", "zero < `0`", "name > `1`",
    "nothing > `1`", "gone != null", "nothing != null", "length(items) > `3`", "length(items) == `2`",
    "length(items) < `3`", "length(none) > `0`", "length(blank) > `0`", "length(empty) >= `1`",
    "length(name) == `0`", "contains(name, 'bob')", "contains(tags, 'b')", "contains(tags, 'c')",
    "contains(sizes, `2`)", "starts_with(name, 'nn')", "ends_with(name, 'Ann')", "off", "gone", "nothing",
    "blank", "zero", "ok && off",
)  # fmt: skip
REFUSED = (
    "length(items)", "items[*].id == `1`", "a || b", "id == null", "id == `null`", "name != 'x'", "id > 5",
    "kind > 'a'", "id > `1000000000000000000`", "id > `0.0000001`", "id > `0` && id < `9`", "[0] | a",
    "length(items) != `2`", "items[-1].id == `3`", "contains(tags, `{}`)", "starts_with(kind, `1`)", "",
)  # fmt: skip


def expectation(path: str) -> Expectation:
    asked = checks(of(path, "s.yml", 4))
    return Expectation(
        json={where: json.loads(wanted) for where, wanted in asked.filled.items()},  # type: ignore[call-arg]
        json_exists=tuple(asked.exists), json_absent=tuple(asked.absent), json_matches=asked.matches,
    )  # fmt: skip


def holds(path: str) -> bool:
    body = json.dumps(BODY).encode()
    return expectation(path).why_not(200, {}, body) is None


@pytest.mark.parametrize("path", HOLDS)
def test_what_holds(path: str) -> None:
    assert holds(path)


@pytest.mark.parametrize("path", FAILS)
def test_what_does_not(path: str) -> None:
    assert not holds(path)


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_refused(path: str) -> None:
    with pytest.raises(Refused, match=re.escape("s.yml:4: ")):
        checks(of(path, "s.yml", 4))


def test_a_literal_that_is_no_json() -> None:
    with pytest.raises(UsageError, match="expected JSON between"):
        checks(of("a == `{`", "s.yml", 4))


NUMBERS = st.integers(-2000, 2000) | st.decimals("-30", "30", places=2).map(float)


@given(NUMBERS, NUMBERS, st.sampled_from([">", ">=", "<", "<="]))
def test_numbers_are_compared_as_numbers(value: float, literal: float, op: str) -> None:
    wanted = {">": value > literal, ">=": value >= literal, "<": value < literal, "<=": value <= literal}[op]
    pattern = json_patterns.number(op, json.dumps(literal))
    assert (re.search(pattern, json.dumps(value)) is not None) is wanted, pattern


@pytest.mark.parametrize(
    ("value", "above"), [("1e16", True), ("1.5e300", True), ("1e-7", False), ("-1e16", False)]
)
def test_numbers_with_exponents(value: str, above: bool) -> None:
    assert (re.search(json_patterns.number(">", "0.5"), value) is not None) is above
    assert (re.search(json_patterns.number("<=", "0.5"), value) is not None) is not above


@given(st.sets(st.text("ab", max_size=3), min_size=1, max_size=4), st.text("abc\n", max_size=4))
def test_none_of_some_words(words: set[str], text: str) -> None:
    assert (re.search(json_patterns.none_of(words), text) is not None) is (text not in words)


FLOW = "- get: {{url: /body, name: '{number}', expect: [{{jmespath: {path}}}]}}\n"


def counted(counters: dict[str, Any]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if name.startswith("plugins.expect.")}


@pytest.mark.needs("artillery")
def test_the_plugin_of_the_real_artillery_says_the_same(tmp_path: Path) -> None:
    """One run for all that hold, one for all that do not."""
    for paths, state in ((HOLDS, "ok"), (FAILS, "failed")):
        with site({"/body": Response(json.dumps(BODY), "application/json")}) as served:
            steps = "".join(
                FLOW.format(number=number, path=json.dumps(path)) for number, path in enumerate(paths)
            )
            file, report = tmp_path / "s.yml", tmp_path / "r.json"
            file.write_text(text(f"http://127.0.0.1:{served.port}", steps, "  plugins: {expect: {}}\n"))
            done = subprocess.run(
                [program("artillery"), "run", "-q", "-o", str(report), str(file)],
                capture_output=True, text=True, timeout=240, check=False,
                env=os.environ | {"ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1"},
            )  # fmt: skip
            theirs = counted(json.loads(report.read_text())["aggregate"]["counters"])
            code = run(["run", "-q", "-o", str(report), str(file)], quick_desk()[0])
            ours = counted(json.loads(report.read_text())["aggregate"]["counters"])
            assert ours == theirs == {
                f"plugins.expect.{state}": 2 * len(paths), f"plugins.expect.{state}.jmespath": 2 * len(paths),
            }, done.stdout[-3000:]  # fmt: skip
            assert code == done.returncode == (0 if state == "ok" else 21)
