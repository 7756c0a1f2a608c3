"""Which signals end a command, and which it leaves as whoever started it set them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from prony.cli.main import main

ENDING = (signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers(monkeypatch: pytest.MonkeyPatch, before: signal.Handlers) -> list[Any]:
    """Of SIGTERM and SIGHUP while a command runs that found them so."""
    for number in ENDING:
        signal.signal(number, before)
    monkeypatch.setattr(sys, "argv", ["prony", "--version"])
    main()
    return [signal.getsignal(number) for number in ENDING]


def test_both_end_a_measurement_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for handler in handlers(monkeypatch, signal.SIG_DFL):
        assert callable(handler)
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            handler(signal.SIGTERM, None)


def test_nohup_keeps_a_measurement_when_its_terminal_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    term, hangup = handlers(monkeypatch, signal.SIG_IGN)
    assert hangup is signal.SIG_IGN
    assert callable(term)
    assert term is not signal.SIG_IGN
