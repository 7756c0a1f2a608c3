"""Each ready plan in miniature, a cell of it on its real server: structure and verdicts, never speed."""

from __future__ import annotations

import json

import jsonschema
import pytest

from prony.report.schema import json_schema
from tests.e2e.conftest import Lab
from tests.exit_codes import demanded_code

pytestmark = pytest.mark.e2e

CELLS = {
    "crud": ("throughput/crud:memory/person-[gp][eu]t/*", 2),
    "jaxrs": ("connection-per-request/*", 1),
    "embedded-containers": ("as-published/spring-undertow/*", 1),
    "sync-vs-async": ("sessions/tomcat/*", 1),
    "container-scalability": ("servlet/tomcat:published/*", 2),
    "http2": ("large/tomcat:h2c/*", 1),
}
"""Plan -> cells that need neither memcached nor more than a few seconds, and how many are left of them."""
ALWAYS = {"completed", "time_to_ready_s"}
"""Figures that every trial has which may be printed, however busy the host is."""


@pytest.mark.parametrize("plan", CELLS)
def test_a_ready_plan_runs_in_miniature(lab: Lab, plan: str) -> None:
    only, cells = CELLS[plan]
    page = lab.folder / "report.html"
    done = lab.run("run", plan, "--miniature", "--only", only, "--json", "--report", str(page), timeout_s=600)
    assert done.returncode == demanded_code(lab.db), done.stderr
    shown = json.loads(done.stdout)
    jsonschema.Draft202012Validator(json_schema()["result"]).validate(shown)
    assert shown["status"] == "finished"
    assert shown["ended_trials"] == shown["planned_trials"] == cells
    (part,) = (part for part in shown["parts"] if part["cells"])
    assert len(part["cells"]) == cells
    for cell in part["cells"]:
        (trial,) = cell["trials"]
        broken = {one["check"] for one in trial["findings"] if not one["conforms"]}
        assert bool(cell["not_conforming"]) is not cell["conforms"], "what does not conform says why"
        assert {why.partition(":")[0].partition(".")[0] for why in cell["not_conforming"]} <= broken
        if cell["counting_trials"]:  # on a busy host a trial may rightly not conform
            found = trial["process"] is not None and trial["process"]["place"] > 0
            assert set(cell["figures"]) >= (ALWAYS - {"time_to_ready_s"} if found else ALWAYS)
            assert cell["figures"]["completed"]["median"] > 0
    broken = {one["check"] for one in part["findings"] if one["kind"] == "not_conforming"}
    assert not broken & {"conformance", "content", "identity"}, "whatever the noise, the server is right"
    assert part["title"] in page.read_text()
