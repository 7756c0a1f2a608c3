"""What is never stored is given again to go on, and no record tells what its plan sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prony.errors import UsageError
from prony.evidence.server import Probe
from prony.experiment.stored import lacks_credentials, like, sends_credentials, with_credentials
from prony.experiment.trials import credentials_of, public
from prony.judge.limits import CheckLimits
from prony.plan.plan import Plan
from prony.plan.planfile_read import read
from prony.plan.script import Script
from prony.plan.target import Launch
from prony.redaction import plain
from tests.store.store_samples import make_trial

PLAN = """
title: x
servers: {{url: "http://127.0.0.1:1"}}
workloads:
  steps:
    - {{path: "/a?token={secret}", headers: {{Authorization: "Bearer {secret}", Accept: "*/*"}}}}
    - {{path: /b, auth: {{basic: {{user: me, password: "{secret}"}}}}}}
loads: {loads}
measured: {{duration_s: 1}}
trials: 3
"""


def plan(folder: Path, secret: str = "s3cret-value", loads: str = "{users: [1, 2]}") -> Plan:
    (folder / "mine.yaml").write_text(PLAN.format(secret=secret, loads=loads))
    return read(folder / "mine.yaml", limits=CheckLimits, seed=1)


def stored(one: Plan) -> Plan:
    return Plan.model_validate(plain(one.as_stored()))


def test_a_plan_goes_on_with_the_values_that_are_given_again(tmp_path: Path) -> None:
    begun = plan(tmp_path)
    kept = stored(begun)
    assert "s3cret-value" not in kept.model_dump_json()
    assert (sends_credentials(begun), lacks_credentials(kept), lacks_credentials(begun)) == (
        True,
        True,
        False,
    )
    assert with_credentials(kept, begun) == begun
    shorter = plan(tmp_path, loads="{users: 1}")
    assert with_credentials(kept, shorter).cells == begun.cells, "a load that a search has added has none"


def test_other_values_will_do_as_tokens_change(tmp_path: Path) -> None:
    kept = stored(plan(tmp_path))
    renewed = plan(tmp_path, "another-value")
    assert with_credentials(kept, renewed).cells == renewed.cells


@pytest.mark.parametrize("change", [None, "workload", "url"])
def test_without_them_it_is_refused_in_one_sentence(tmp_path: Path, change: str | None) -> None:
    begun = plan(tmp_path)
    kept = stored(begun)
    given = begun if change is not None else None
    if change == "workload":
        text = (tmp_path / "mine.yaml").read_text().replace("/a?", "/other?").replace("/b,", "/c,")
        (tmp_path / "mine.yaml").write_text(text.replace("Authorization", "X-Key"))
        given = read(tmp_path / "mine.yaml", limits=CheckLimits, seed=1)
    if change == "url":
        text = (tmp_path / "mine.yaml").read_text().replace("127.0.0.1:1", "127.0.0.1:2")
        (tmp_path / "mine.yaml").write_text(text)
        given = read(tmp_path / "mine.yaml", limits=CheckLimits, seed=1)
    with pytest.raises(UsageError, match=r"Authorization.*--resume") as refused:
        with_credentials(kept, given)
    assert "Authorization" in str(refused.value)
    assert "s3cret-value" not in str(refused.value)


def test_a_plan_that_sends_none_goes_on_as_it_is(tmp_path: Path) -> None:
    begun = plan(tmp_path, "${uuid}")
    assert (sends_credentials(begun), lacks_credentials(stored(begun))) == (False, False)
    assert with_credentials(stored(begun), None) == begun


def test_a_record_does_not_tell_what_was_sent(tmp_path: Path) -> None:
    (cell, _) = plan(tmp_path).cells
    script = tmp_path / "s.lua"
    script.write_text('wrk.headers["Cookie"] = "sid=from-the-script"')
    update: dict[str, Any] = {"script": Script(file=str(script))}
    cell = cell.model_copy(update={"trial": cell.trial.model_copy(update=update)})
    secrets = credentials_of(cell)
    assert {"s3cret-value", "from-the-script"} <= secrets
    made = make_trial("261127-0000", rows=1)
    said = "you sent s3cret-value and from-the-script"
    probe = Probe(step="a", status=401, body_bytes=1, meets_expectation=False, why_not=said)
    record = made.model_copy(
        update={"evidence": made.evidence.model_copy(update={"probes": (probe,)}), "failure": said}
    )
    found = public(record, secrets)
    assert found.failure == found.evidence.probes[0].why_not == "you sent REDACTED and REDACTED"
    assert found.evidence.engine == record.evidence.engine
    assert public(made, secrets) is made


def test_a_stored_base_of_a_gate_is_the_same_whatever_was_sent(tmp_path: Path) -> None:
    (cell, _) = plan(tmp_path).cells
    owned = cell.model_copy(update={"target": Launch(address="jetty")})
    base = plan(tmp_path).model_copy(update={"cells": (owned,)})
    assert like(stored(base), owned) == list(stored(base).cells)
    longer = owned.trial.model_copy(update={"request_timeout_ms": 1})
    assert like(stored(base), owned.model_copy(update={"trial": longer})) == []
