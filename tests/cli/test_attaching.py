"""Who is asked for consent is told to which processes a profiler may be attached."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator

import pytest

from prony.errors import UsageError
from prony.plan.target import Url
from prony_explain import attaching
from tests.processes import started

AT = Url(url="http://127.0.0.1:9")


@pytest.fixture
def workers() -> Iterator[tuple[int, ...]]:
    """Three processes of two programs."""
    commands = (["sleep", "600"], ["tail", "-f", "/dev/null"], ["sleep", "600"])
    running = [started(*command) for command in commands]
    yield tuple(one.pid for one in running)
    for one in running:
        one.kill()
        one.wait()


def found(monkeypatch: pytest.MonkeyPatch, pids: tuple[int, ...]) -> None:
    class Running:
        def __init__(self, at: Url) -> None:
            assert at == AT

        def pids(self) -> tuple[int, ...]:
            return pids

    monkeypatch.setattr("prony.targets.external.RunningExternal", Running)
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # no terminal to ask at


def test_every_process_that_may_be_attached_to_is_named(
    monkeypatch: pytest.MonkeyPatch, workers: tuple[int, ...]
) -> None:
    me = attaching._user(os.geteuid())
    first, other, second = workers
    found(monkeypatch, workers)
    with pytest.raises(UsageError) as raised:
        attaching._ask(AT)
    assert f"{first}, {second} (sleep) of {me}; {other} (tail) of {me}," in str(raised.value)


def test_a_single_process_is_named_as_it_is(
    monkeypatch: pytest.MonkeyPatch, workers: tuple[int, ...]
) -> None:
    found(monkeypatch, workers[:1])
    with pytest.raises(UsageError, match=rf" {workers[0]} \(sleep\) of "):
        attaching._ask(AT)
