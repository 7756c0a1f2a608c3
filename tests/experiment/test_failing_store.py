"""A store that fails while an experiment ends hides nothing of what happened before."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from prony.cli import main
from prony.errors import EnvironmentFault, StoreError, TrialNotStored
from prony.experiment.experiment import until_ended
from prony.store import Store

SAVED = "The disk is full. Trial 261127-abcd-001 was saved as /tmp/x.json."


class Full:
    """A store on a full disk."""

    def finish_experiment(self, *_: object) -> NoReturn:
        raise StoreError("full again")

    drop_empty = finish_experiment


@pytest.mark.parametrize("fault", [TrialNotStored(SAVED), EnvironmentFault("first"), KeyboardInterrupt()])
def test_the_first_fault_is_the_one_that_is_raised(fault: BaseException) -> None:
    with pytest.raises(type(fault)) as raised, until_ended(cast(Store, Full()), "x"):
        raise fault
    assert raised.value is fault


def test_without_one_its_own_is() -> None:
    with pytest.raises(StoreError, match="full again"), until_ended(cast(Store, Full()), "x"):
        pass


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("later", "code"),
    [
        (StoreError("full again"), 5),
        (EnvironmentFault("the server did not stop"), 4),
        (OSError(28, "No space left on device"), 4),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("a defect"), 1),
    ],
)
def test_the_rescued_file_is_named_whatever_fails_afterwards(
    later: BaseException,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(**_: Any) -> NoReturn:
        try:
            raise TrialNotStored(SAVED)
        finally:
            raise later

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(main, "app", run)
    monkeypatch.setattr(main, "is_front_end", lambda _: False)
    monkeypatch.setattr("sys.argv", ["prony", "load"])
    monkeypatch.setattr(main, "silence", lambda: None)
    assert main.main() == code
    assert capsys.readouterr().err.splitlines()[0] == f"prony: {SAVED}"


@pytest.mark.usefixtures("signals")
def test_a_name_that_is_too_long_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["prony", "report", "latest", "-o", "x" * 5000])
    assert main.main() == 2
    assert len(capsys.readouterr().err) < 200


@pytest.mark.usefixtures("signals")
def test_a_defect_without_room_for_its_details_prints_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    def run(**_: Any) -> NoReturn:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    monkeypatch.setattr(main, "app", run)
    monkeypatch.setattr(main, "is_front_end", lambda _: False)
    monkeypatch.setattr("sys.argv", ["prony", "load"])
    assert main.main() == 1
    assert "ZeroDivisionError: a defect" in capsys.readouterr().err
