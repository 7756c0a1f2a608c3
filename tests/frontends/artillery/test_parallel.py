"""Steps of `parallel` with a pool of connections: side by side, held against Artillery itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from prony.plan.blocks import MOST_AT_ONCE
from prony.plan.step import Block
from prony_frontends.artillery import run
from tests.frontends.artillery.test_config import text
from tests.frontends.artillery.test_translate import script
from tests.frontends.codes import noted
from tests.frontends.conftest import Front
from tests.frontends.site import Response, Site, site
from tests.programs import program

STEPS = """\
      - get: {url: /begin}
      - parallel:
          - get: {url: /a, capture: {json: $.id, as: a}}
          - get: {url: /b, capture: {json: $.id, as: b}}
          - loop: [{get: {url: /c}}]
            count: 2
          - think: 0.1
          - get: {url: /d}
"""
SCRIPT = """\
config:
  target: "http://127.0.0.1:{port}"
  http: {{pool: {pool}}}
  phases: [{{duration: 1, arrivalCount: 1}}]
scenarios:
  - flow:
{steps}      - get: {{url: "/end/{{{{ a }}}}/{{{{ b }}}}"}}
"""
SLOW = {f"/{name}": Response(f'{{"id": "{name}1"}}', "application/json", delay_s=0.3) for name in "abcd"}
ASKED = sorted(["/begin", "/a", "/b", "/c", "/c", "/d", "/end/a1/b1"])


def seen(served: Site) -> tuple[list[str], int, int]:
    found = sorted(served.paths), served.most_at_once, len(served.connections)
    served.paths.clear()
    served.connections.clear()
    served.most_at_once = 0
    return found


@pytest.mark.needs("artillery")
@pytest.mark.parametrize(("pool", "at_once"), [(1, 1), (3, 3), (9, 4)])
def test_as_many_go_out_at_once_as_with_artillery(
    front: Front, tmp_path: Path, pool: int, at_once: int
) -> None:
    with site({"/begin": Response(), "/end/a1/b1": Response(), **SLOW}) as served:
        file = tmp_path / "script.yml"
        file.write_text(SCRIPT.format(port=served.port, pool=pool, steps=STEPS))
        quiet = {**os.environ, "ARTILLERY_DISABLE_TELEMETRY": "true"}
        argv = [program("artillery"), "run", str(file)]
        subprocess.run(argv, check=True, timeout=120, capture_output=True, env=quiet)
        real = seen(served)
        assert run(["run", str(file)], front.context(exit_like_original=True)) == 0, front.err.getvalue()
        assert seen(served) == real
        assert real[:2] == (ASKED, at_once)


def test_branches_are_one_entry_each(tmp_path: Path) -> None:
    made = script(
        tmp_path, text("http://h:80", STEPS.lstrip().replace("\n      ", "\n"), "  http: {pool: 3}\n")
    )
    workload = made.trial.workload
    assert workload.requests_at_once == 3
    (walk,) = workload.walks
    block = walk.steps[1]
    assert isinstance(block, Block)
    assert len(block.steps) == 5
    assert block.parallel is not None
    assert block.parallel.at_once == 3
    fewer = STEPS.replace("      - parallel:", "      - limit: 2\n        parallel:")
    made = script(
        tmp_path, text("http://h:80", fewer.lstrip().replace("\n      ", "\n"), "  http: {pool: 3}\n")
    )
    assert made.trial.workload.requests_at_once == 2
    assert not noted(made.notes, "sequential")


def test_within_another_they_go_out_one_after_the_other(tmp_path: Path) -> None:
    inner = "- parallel: [{parallel: [{get: {url: /a}}, {get: {url: /b}}]}, {get: {url: /c}}]"
    made = script(tmp_path, text("http://h:80", inner, "  http: {pool: 3}\n"))
    assert made.trial.workload.requests_at_once == 2
    assert noted(made.notes, "sequential", "in a parallel step")


def test_more_than_the_engine_has_at_once_are_as_many_as_it_has(tmp_path: Path) -> None:
    branches = "".join(f"\n    - get: {{url: /{place}}}" for place in range(300))
    steps = f"- limit: 300\n  parallel:{branches}"
    made = script(tmp_path, text("http://h:80", steps, "  http: {pool: 300}\n"))
    assert made.trial.workload.requests_at_once == MOST_AT_ONCE
    assert noted(made.notes, "at_once", "s.yml:7", "256 of the 300")
