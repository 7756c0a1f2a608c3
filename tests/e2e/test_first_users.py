"""A few users first: of a real JVM by themselves, of a server without a JIT compiler not."""

from __future__ import annotations

from contextlib import closing

import pytest

from prony.store import Store
from tests.e2e.conftest import Lab

pytestmark = pytest.mark.e2e

PLAN = """
title: A few users first
parts:
  - name: here
    servers: [tomcat, reference]
    workloads: hello
    loads: {users: 12}
    trials: 1
    published_requests: 500
    warm_up: {min_s: 2, cap_s: 4, settle_min_s: 1, settle_cap_s: 2, settle_until: level}
    measured: {window_s: 1}
"""


def test_a_jvm_is_loaded_by_a_few_users_first(lab: Lab) -> None:
    file = lab.folder / "plan.yaml"
    file.write_text(PLAN, encoding="utf-8")
    done = lab.run("run", str(file), timeout_s=300)
    with closing(Store.open(lab.db)) as store:
        trials = store.trials(store.experiment("latest").id)
    found = {trial.record.server: trial.record.evidence for trial in trials}
    assert set(found) == {"tomcat", "reference"}, done.stderr
    first = {
        name: (one.warm_up.closed_users, one.warm_up.closed_s) for name, one in found.items() if one.warm_up
    }
    assert first == {"tomcat": (4, 1.0), "reference": (None, 0.0)}
    for evidence in found.values():
        assert evidence.published is not None
        assert evidence.published.requests == 500, "of a process that had no load before"
        assert evidence.engine is not None
        assert evidence.engine.marks == ()
    warmed = found["tomcat"].warm_up
    assert warmed is not None
    assert warmed.time_to_steady_s is None or warmed.time_to_steady_s >= 1.0, "those users are in it"
