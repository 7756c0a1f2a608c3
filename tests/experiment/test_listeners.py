"""Several listeners hear the same, and one that fails harms nobody."""

from __future__ import annotations

from collections.abc import Mapping

from prony.experiment.testbed import Listeners
from prony.judge.finding import Judgement
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

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        self.said.append(f"{judgement.conforms} {dict(figures)} {seconds}")


class Deaf(Heard):
    def note(self, text: str) -> None:
        raise ValueError(text)


def test_all_hear_all_and_a_fault_of_one_is_its_own() -> None:
    first, deaf, last = Heard(), Deaf(), Heard()
    told = Listeners(first, deaf, last)
    told.stored_as("261122-aaaa", "A title")
    told.note("fail")
    told.note("on")
    told.trial_ended(Judgement(conforms=True, findings=()), {}, 2.0)
    assert first.said == last.said == ["261122-aaaa A title", "on", "True {} 2.0"]
    assert deaf.said == ["261122-aaaa A title", "True {} 2.0"]


def test_every_event_of_progress_is_handed_on() -> None:
    from prony.experiment.testbed import Progress

    events = {name for name in dir(Progress) if not name.startswith("_")}
    assert events == {name for name in vars(Listeners) if not name.startswith("_")}
    assert events <= {name for name in dir(SilentProgress) if not name.startswith("_")}
