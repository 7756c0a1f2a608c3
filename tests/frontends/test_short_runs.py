"""Small honest runs of every front end: they conform, and end as with the tool."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from prony.store import Search, Store
from prony_frontends import names
from tests import command
from tests.exit_codes import demanded_code
from tests.frontends.conftest import Served
from tests.frontends.jmx_text import document, prop, repeated, sampler

DISTURBED = frozenset({"think", "schedule", "arrivals"})
"""Checks that another process can make fail, by keeping the load generator from its CPU."""
SCRIPT = """
config: {target: 'URL', phases: [{duration: 1, arrivalCount: 1}]}
scenarios: [{flow: [{loop: [{get: {url: /}}], count: 19}]}]
"""
LINES: dict[str, tuple[str, ...]] = {
    "ab": ("-n 1 URL/", "-n 10 -c 5 URL/", "-k -n 19 URL/"),
    "artillery": ("run short.yml",),
    "fhb": ("-c 1 -W 100 -r 0/1/0 URL/",),
    "h2load": ("-n 10 --h1 URL/",),
    "jmeter": ("-n -t short.jmx",),
    "wrk": ("-c 1 -t 1 -d 1s URL/",),
    "wrk2": ("-c 1 -t 1 -d 1s -R 10 URL/",),
}


def test_each_has_a_short_run() -> None:
    assert set(names()) <= set(LINES)


@pytest.mark.parametrize(("tool", "line"), [(tool, line) for tool in names() for line in LINES.get(tool, ())])
def test_few_requests_are_not_wrong(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, line: str
) -> None:
    server = serve("--delay", "fixed:2ms")
    monkeypatch.chdir(tmp_path)
    Path("short.yml").write_text(SCRIPT.replace("URL", server.url))
    group = repeated(19) + prop("ThreadGroup.num_threads", 1) + prop("ThreadGroup.ramp_time", 0)
    Path("short.jmx").write_bytes(document(sampler("/", prop("HTTPSampler.port", server.port)), group=group))
    database = tmp_path / "r.db"
    words = line.replace("URL", server.url).split()
    done = command.run([tool, *words, "--db", database], cwd=tmp_path)
    assert database.exists(), done.stderr
    with closing(Store.open(database)) as store:
        (trial,) = store.trials(store.experiment("latest").id)
        (listed,) = store.search(Search()).experiments
    wrong = {
        finding.check: finding.reason
        for finding in trial.judgement.not_conforming
        if finding.check not in DISTURBED
    }
    assert wrong == {}
    assert done.returncode == demanded_code(database), done.stderr
    assert done.stdout.strip(), "the tool's own figures"
    assert listed.answer
