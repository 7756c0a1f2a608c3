"""Explained trials, as a user asks for them: beside the figures, and never in them."""

from __future__ import annotations

import json
from typing import Any

from prony.store import Store
from prony_explain.slow import requests_of
from tests.e2e.conftest import SHORTEST, Here, Lab
from tests.load.test_load_models import server


def kinds(lab: Lab) -> list[str]:
    store = Store.open(lab.db)
    return [one.record.kind for one in store.trials(store.experiment("latest").id)]


def figures(shown: dict[str, Any]) -> list[Any]:
    return [
        (trial["id"], trial["figures"], trial["conforms"])
        for part in shown["parts"]
        for cell in part["cells"]
        for trial in cell["trials"]
    ]


def test_a_stored_load_is_explained_later_and_its_figures_stay(lab: Lab, here: Here) -> None:
    with server("--delay", "fixed:5ms") as url:
        words = ("-c", "4", "--warmup", "1s", "-d", "2s", "--seed", "1", *lab.lenient)
        before = lab.json("load", url + "/", *words)
        refused = here("explain", "latest")
        assert refused.returncode == 2
        assert "which Prony did not start; allow it: --attach" in " ".join(refused.stderr.split())
        assert kinds(lab) == ["trial"]
        after = lab.json("explain", "latest", "--attach")
    assert kinds(lab) == ["trial", "explained"]
    assert figures(after) == figures(before)
    shown = " ".join(here("results", "show", "latest").stdout.split())
    assert "Explanation" in shown
    if "CPU time per request by part" not in shown:
        assert "perf" in shown  # a host that does not let perf sample: the result stands, and says so
    store = Store.open(lab.db)
    measured, explained = (one.record.evidence for one in store.trials(before["id"]))
    profile = explained.profile
    assert profile is not None
    assert profile.runtime == "native"
    assert profile.counters is not None
    assert profile.counters.cpu_s is not None
    assert measured.engine is not None
    assert measured.engine.window is not None
    assert measured.engine.window.slowest is None
    slowest = requests_of(explained.engine, profile)
    assert slowest is not None
    assert slowest.lengths_s
    assert min(slowest.lengths_s) >= 0.005
    assert all(-60 < at < profile.ended_s + 60 for at in slowest.starts_s)  # one clock
    assert profile.stalls is not None
    assert profile.stalls.ends_s


def test_a_server_is_measured_and_explained(lab: Lab) -> None:
    lab.server("plain", "--delay", "fixed:5ms")
    done = lab.run("explain", "plain", *SHORTEST, *lab.lenient, "--json")
    assert kinds(lab) == ["trial", "explained"]
    (part,) = json.loads(done.stdout)["parts"]
    assert [len(cell["trials"]) for cell in part["cells"]] == [1]


def test_what_cannot_be_explained_is_refused_before_anything_starts(here: Here) -> None:
    def said(*words: str) -> str:
        done = here(*words)
        assert done.returncode == 2, done.stderr
        return " ".join(done.stderr.split())

    assert "expected a server" in said("explain")
    assert "unknown-server" in said("explain", "unknown-server")
    assert "--attach needs --explain" in said("load", "http://127.0.0.1:9/", "--attach")
    nobody = said("load", "http://127.0.0.1:9/", "--explain")
    assert "needs a readable process of this host that listens at http://127.0.0.1:9" in nobody
