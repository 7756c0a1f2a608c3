"""What a server does after its load is watched until it is idle."""

from __future__ import annotations

from typing import Any, cast

import pytest

from prony.evidence.server import JvmSnapshot, ProcessSample
from prony.trial import load_run
from prony.trial.load_run import LoadRun
from tests.judge.factory import snapshot


def reading(t_s: float, cpu_s: float, disk: int | None = 0) -> ProcessSample:
    return ProcessSample(
        t_monotonic_s=t_s, cpu_user_s=cpu_s, cpu_system_s=0.0, rss_bytes=0, threads=1, disk_bytes=disk
    )


class Server:
    """Gives these readings, one after the other."""

    def __init__(
        self, *readings: ProcessSample | None, compiled_s: tuple[float, float] | None = None
    ) -> None:
        self._readings, self._compiled_s = list(readings), list(compiled_s or ())

    def sample(self) -> ProcessSample | None:
        return self._readings.pop(0)

    def jvm(self) -> JvmSnapshot | None:
        if not self._compiled_s:
            return None
        return snapshot(1, 0).model_copy(update={"compilers_cpu_s": self._compiled_s.pop(0)})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_run, "REST_S", 0.0)


def watched(
    *readings: ProcessSample | None,
    ended: ProcessSample | None = None,
    before: tuple[ProcessSample | None, ProcessSample | None] = (None, None),
    compiled_s: tuple[float, float] | None = None,
) -> Any:
    """(wall_s, cpu_s, disk_bytes, idle), or None."""
    run = LoadRun(cast(Any, None), cast(Any, Server(*readings, compiled_s=compiled_s)), cast(Any, None))
    found = run.after_load(ended, *before)
    if found is None:
        return None
    return found.wall_s, pytest.approx(found.cpu_s), found.disk_bytes, found.idle


def test_it_ends_at_the_first_idle_look() -> None:
    assert watched(reading(10, 5), reading(10.25, 5.001)) == (0.25, 0.001, 0, True)


def test_work_is_added_up_until_it_is_done() -> None:
    looks = reading(10, 5), reading(10.25, 5.25), reading(10.5, 5.4, 7), reading(10.75, 5.4, 7)
    assert watched(*looks) == (0.75, 0.4, 7, True)


def test_it_counts_from_a_reading_at_the_end_of_the_load() -> None:
    assert watched(reading(10.1, 5.1), reading(10.35, 5.1), ended=reading(10, 5)) == (
        pytest.approx(0.35),
        0.1,
        0,
        True,
    )


def test_a_server_that_is_busy_for_long_is_not_waited_for() -> None:
    busy = [reading(10 + n / 2, 5 + n / 2) for n in range(20)]
    assert watched(*busy) == (3, 3, 0, False)


def test_a_server_that_never_idles_put_nothing_off() -> None:
    busy = [reading(10 + n / 2, 5 + n / 2) for n in range(20)]
    assert watched(*busy, before=(reading(1, 1), reading(2, 1.9))) is None
    assert watched(*busy, before=(reading(1, 1), reading(2, 1.1))) is not None


def test_jit_compilation_is_not_put_off() -> None:
    looks = reading(10, 5), reading(10.25, 5.2), reading(10.5, 5.2)
    assert watched(*looks, compiled_s=(1.0, 1.15)) == (0.5, 0.05, 0, True)


def test_a_server_that_cannot_be_read_is_not_watched() -> None:
    assert watched(None) is None
    assert watched(reading(10, 5), None) is None
