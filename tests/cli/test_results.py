"""`prony results` as a person types it: found, tagged, noted; what cannot be is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prony.cli import options
from prony.errors import UsageError
from prony.judge.finding import Judgement
from prony.store import Store
from tests.cli.conftest import Run
from tests.store.store_samples import FINGERPRINT, make_trial

Results = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ids(tmp_path: Path) -> list[str]:
    """Two experiments: one with a trial of tomcat:async that conforms, one of jetty that does not."""
    store = Store.open(tmp_path / "results.db")
    made = []
    for server, conforms in (("tomcat:async", True), ("jetty", False)):
        identifier = store.create_experiment(
            name=f"{server} [bold]alone",
            spec={"command": "load"},
            fingerprint=FINGERPRINT,
            seed=1,
            quick=False,
        )
        judged = Judgement(conforms=conforms, findings=())
        store.add_trial(make_trial(identifier, server=server), judged, {"requests_per_s": 1.0})
        store.finish_experiment(identifier)
        made.append(identifier)
    store.close()
    return made


@pytest.fixture
def results(prony: Run, tmp_path: Path) -> Results:
    def run(*words: str) -> tuple[int, str, str]:
        done = prony(tmp_path, "results", *words, "--db", str(tmp_path / "results.db"))
        return done.returncode, done.stdout, done.stderr

    return run


def test_results_are_found_tagged_and_noted(results: Results, ids: list[str]) -> None:
    tomcat, jetty = ids
    stored = json.loads(results("list", "--server", "tomcat*", "--since", "30d", "--conforming", "--json")[1])
    assert (stored["total"], [e["id"] for e in stored["experiments"]]) == (1, [tomcat])
    assert stored["experiments"][0]["conforming_trials"] == 1
    other = json.loads(results("list", "--not-conforming", "--json")[1])
    assert [e["id"] for e in other["experiments"]] == [jetty]
    assert results("tag", tomcat, "main") == (0, f"tagged {tomcat}: main\n", "")
    assert results("note", "main", "kernel <b>updated</b>")[1] == f"noted on {tomcat}\n"
    listed = results("list", "--tag", "main")[1]
    assert "tomcat:async [bold]alone [main]" in listed
    assert "kernel <b>updated</b>" in listed
    assert jetty not in listed
    assert "1 to 1 of 2" in results("list", "--limit", "1")[1]
    assert "0 of 1" in results("list", "--server", "jetty")[1]
    assert results("tag", "main", "main", "--remove")[1] == f"{tomcat} is no longer tagged main\n"
    assert results("list", "--tag", "main")[1] == "No stored experiment matches.\n"


def test_what_somebody_wrote_gives_no_orders_to_the_terminal(results: Results, ids: list[str]) -> None:
    assert results("note", ids[0], "clear \x1b[2J and \x1b]0;renamed\x07")[0] == 0
    listed = results("list")[1]
    assert "clear" in listed
    assert "\x1b" not in listed
    assert "\x07" not in listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("list", "--since", "yesterday"), "--since is 'yesterday'; expected how long ago"),
        (("list", "--since", "3y"), "--since is '3y'; expected hours, days or weeks"),
        (("list", "--since", "1d", "--until", "2d"), "--since 1d is not before --until 2d"),
        (("tag", "latest", "latest"), "'latest' cannot be a tag"),
        (("tag", "latest", "a b"), "'a b' is not a valid tag"),
        (("tag", "latest", "a", "--remove"), "has no tag 'a'"),
        (("tag", "latest", "a", "--remove", "--only"), "--remove"),
        (("tag", "nowhere", "a"), "No experiment 'nowhere'"),
        (("note", "latest", " "), "the note is empty"),
        (("prune", "--keep", "0"), "--keep 0 keeps nothing"),
    ],
)
@pytest.mark.usefixtures("ids")
def test_what_cannot_be_is_one_sentence(results: Results, words: tuple[str, ...], said: str) -> None:
    code, out, fault = results(*words)
    assert (code, out) == (2, "")
    assert said in fault
    assert len(fault.strip().splitlines()) == 1


def test_times_as_they_are_typed() -> None:
    now = datetime.now(UTC)
    assert abs(options.moment("30d", "--since") - (now - timedelta(days=30))) < timedelta(minutes=5)
    assert abs(options.moment("2w", "--since") - (now - timedelta(days=14))) < timedelta(minutes=5)
    assert options.moment("2026-11-22T14:30+02:00", "--since") == datetime(2026, 11, 22, 12, 30, tzinfo=UTC)
    assert options.moment("2026-11-22", "--since") == datetime(2026, 11, 22).astimezone()
    for odd in ("", "d", "99999999d", "2026-13-01", "0000-01-01"):
        with pytest.raises(UsageError, match="--since"):
            options.moment(odd, "--since")
