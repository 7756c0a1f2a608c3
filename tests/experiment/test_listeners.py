"""Several listeners hear the same, and one that fails harms nobody."""

from __future__ import annotations

from prony.experiment.listeners import Listeners
from prony.judge.finding import Status
from prony.report.progress_state import SilentProgress


class Heard(SilentProgress):
    """Writes down what it hears; fails at the word `fail`."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def stored_as(self, identifier: str, title: str) -> None:
        self.said.append(f"{identifier} {title}")

    def note(self, text: str) -> None:
        if text == "fail":
            raise OSError("the screen is gone")
        self.said.append(text)

    def trial_ended(
        self, verdict: Status, requests_per_s: float | None, seconds: float, why: str = ""
    ) -> None:
        self.said.append(f"{verdict.value} {requests_per_s} {seconds} {why}")


class Deaf(Heard):
    def note(self, text: str) -> None:
        raise ValueError(text)


def test_all_hear_all_and_a_fault_of_one_is_its_own() -> None:
    first, deaf, last = Heard(), Deaf(), Heard()
    told = Listeners(first, deaf, last)
    told.stored_as("261122-aaaa", "A title")
    told.note("fail")
    told.note("on")
    told.trial_ended(Status.VALID, 10.0, 2.0)
    assert first.said == last.said == ["261122-aaaa A title", "on", "valid 10.0 2.0 "]
    assert deaf.said == ["261122-aaaa A title", "valid 10.0 2.0 "]


def test_every_event_of_progress_is_handed_on() -> None:
    from prony.experiment.testbed import Progress

    events = {name for name in vars(Progress) if not name.startswith("_")}
    assert events == {name for name in vars(Listeners) if not name.startswith("_")}
    assert events <= {name for name in dir(SilentProgress) if not name.startswith("_")}
