"""Whole scripts with what configs hold, run by `prony artillery` and by the real Artillery: the same
requests, byte for byte, the same counters, and the same exit code.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony_frontends.artillery import run
from tests.frontends.artillery.test_run import counted, unordered
from tests.frontends.conftest import Front, Served
from tests.programs import program

Serve = Callable[..., Served]

CONFIG = """\
config:
  phases: [{{duration: 1, arrivalCount: {users}}}]
  plugins: {{expect: {{}}, ensure: {{}}, metrics-by-endpoint: {{}}}}
  variables: {{from: "{{{{ $processEnvironment.PRONY_TEST_WORD }}}}"}}
{config}scenarios:
  - name: buys
    flow:
{flow}"""
"""Without a target, which comes with -t."""
ROWS = """\
  payload:
    - {path: people.csv, fields: [who, age], order: sequence, skipHeader: true}
    - {path: goods.csv, fields: [thing], delimiter: ";"}
"""
FLOW = """\
      - get: {{url: "/{{{{ who }}}}/{{{{ age }}}}/{{{{ thing }}}}"}}
      - post:
          url: "/echo"
          headers: {{X-Word: "{{{{ $processEnvironment.PRONY_TEST_WORD }}}}/{{{{ from }}}}"}}
          json: {{who: "{{{{ who }}}}", age: "{{{{ age }}}}", n: "{{{{ $env.PRONY_TEST_WORD }}}}"}}
          capture: {{json: $.age, as: age_again}}
          expect: [{{statusCode: {status}}}, {{equals: ["{{{{ age_again }}}}", "{{{{ age }}}}"]}}]
      - get: {{url: "/again/{{{{ age_again }}}}"}}
"""
PEOPLE = "name,years\nAnn,30\nBob,41\nÉve,7\n"
GOODS = "book;1\nbook;2\n"
"""The column that is used is one value, as rows are drawn from this file."""
NOT_THERE = "  ensure: {thresholds: [http.response_time.p99: 0]}\n"


def both(
    serve: Serve, front: Front, folder: Path, text: str, argv: tuple[str, ...] = ()
) -> tuple[Served, Served, dict[str, int], dict[str, int], tuple[int, int]]:
    """Their server and ours, their counters and ours, and the exit codes."""
    (folder / "people.csv").write_text(PEOPLE, encoding="utf-8")
    (folder / "goods.csv").write_text(GOODS, encoding="utf-8")
    script = folder / "script.yml"
    script.write_text(text, encoding="utf-8")
    theirs, ours = serve(), serve()
    report = folder / "r.json"
    environment = os.environ | {
        "ARTILLERY_DISABLE_TELEMETRY": "1", "CI": "1", "PRONY_TEST_WORD": "a word",
    }  # fmt: skip
    words = ["run", "-q", "-o", str(report), *argv]
    done = subprocess.run(
        [program("artillery"), *words, "-t", theirs.url, str(script)],
        capture_output=True, text=True, timeout=240, env=environment, check=False,
    )  # fmt: skip
    its = counted(report)["counters"]
    code = run([*words, "-t", ours.url, str(script)], front.context(exit_like_original=True))
    return theirs, ours, its, counted(report)["counters"], (done.returncode, code)


CASES = {
    "passes": (ROWS, 200, 0),
    "ensure fails": pytest.param(ROWS + NOT_THERE, 200, 1, marks=pytest.mark.everyday),
    "expect fails": (ROWS, 418, 21),
    "both fail": (ROWS + NOT_THERE, 418, 1),
}


@pytest.mark.needs("artillery")
@pytest.mark.parametrize(("config", "status", "code"), CASES.values(), ids=CASES)
def test_the_same_requests_counters_and_exit_code(
    serve: Serve, front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, status: int,
    code: int,
) -> None:  # fmt: skip
    monkeypatch.setenv("PRONY_TEST_WORD", "a word")
    text = CONFIG.format(users=3, config=config, flow=FLOW.format(status=status))
    theirs, ours, its, mine, codes = both(serve, front, tmp_path, text)
    assert codes == (code, code)
    assert ours.ended()["requests"] == theirs.ended()["requests"] == 9
    assert unordered(ours) == unordered(theirs)
    assert {name: mine.get(name) for name in its} == its


HEADS = {
    "skipHeader: true": ["/Ann", "/Bob", "/%C3%89ve"],
    "skipHeader: false": ["/name", "/Ann", "/Bob", "/%C3%89ve"],
    "skipEmptyLines: true": ["/name", "/Ann", "/Bob", "/%C3%89ve"],
}
"""What becomes of a file's first line."""


@pytest.mark.needs("artillery")
@pytest.mark.parametrize(("key", "paths"), HEADS.items(), ids=HEADS)
def test_rows_in_their_order_and_the_line_of_names(
    serve: Serve, front: Front, tmp_path: Path, key: str, paths: list[str]
) -> None:
    """Users who come one after the other, one more than there are rows: the first row comes again."""
    payload = f"  payload: {{path: people.csv, fields: [who], order: sequence, {key}}}\n"
    users = len(paths) + 1
    text = CONFIG.format(users=users, config=payload, flow='      - get: {url: "/{{ who }}"}\n')
    theirs, ours, _, _, codes = both(serve, front, tmp_path, text)
    assert codes == (0, 0)
    for server in (theirs, ours):
        server.ended()
        asked = [line.split()[1] for line in server.recorded().decode().splitlines() if " HTTP/1.1" in line]
        assert asked == [*paths, paths[0]]
