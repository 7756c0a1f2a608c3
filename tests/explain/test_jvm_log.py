"""The JVM's own log: pauses of every collector, and that it is off again in whichever order things fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony_explain import attach
from prony_explain.attach import NotAttached
from prony_explain.profilers import jvm_log
from prony_explain.profilers.jvm_log import Heap, JvmLog

ZGC = """\
[100500000000ns][gc,phases      ] GC(0) Pause Mark Start 0.012ms
[100600000000ns][gc,phases      ] GC(0) Concurrent Mark 95.000ms
[100610000000ns][gc,phases      ] GC(0) Pause Mark End 0.020ms
[100620000000ns][gc,phases      ] GC(0) Pause Relocate Start 0.008ms
[100700000000ns][gc             ] GC(0) Garbage Collection (Warmup) 106M(3%)->88M(2%)
"""
GENERATIONAL = """\
[100500000000ns][gc,phases      ] GC(3) Y: Pause Mark Start (Major) 0.030ms
[100600000000ns][gc,phases      ] GC(3) O: Pause Mark End 0.010ms
[100650000000ns][gc,phases      ] GC(4) y: Pause Relocate Start 0.005ms
"""
SHENANDOAH = """\
[100500000000ns][gc             ] GC(1) Concurrent reset 30M->31M(256M) 0.300ms
[100510000000ns][gc             ] GC(1) Pause Init Mark (unload classes) 0.200ms
[100600000000ns][gc             ] GC(1) Pause Final Mark (unload classes) 0.800ms
[100700000000ns][gc             ] GC(1) Pause Init Update Refs 0.010ms
[100800000000ns][gc             ] GC(2) Pause Degenerated GC (Mark) 60M->20M(256M) 5.000ms
"""


@pytest.mark.parametrize(
    ("log", "pauses", "whole_ms"),
    [(ZGC, 3, 0.040), (GENERATIONAL, 3, 0.045), (SHENANDOAH, 4, 6.010)],
    ids=["ZGC", "generational ZGC", "Shenandoah"],
)
def test_pauses_without_sizes_are_pauses(log: str, pauses: int, whole_ms: float) -> None:
    told = jvm_log.read(log.splitlines(), 100.0, Heap(100.0, 1 << 20), Heap(101.0, 1 << 21))
    assert told.collections == pauses
    assert told.collection_pause_s == pytest.approx(whole_ms / 1000)
    assert [one.kind for one in told.events] == ["collection"] * pauses
    assert all(one.text.startswith("Pause ") and "ms" not in one.text for one in told.events)
    assert (told.allocated_bytes, told.allocated_s) == (None, None)
    assert told.missing == (jvm_log.UNCOUNTED,)


class Jvm:
    """Logs from one command to the next; what it answers may be lost."""

    def __init__(self) -> None:
        self.logging = False
        self.asked: list[str] = []
        self.lost: set[str] = set()

    def jcmd(self, _pid: int, command: str) -> str:
        word = "off" if "what=all=off" in command else command.partition(" ")[0]
        self.asked.append(word)
        if word in ("VM.log", "off"):
            self.logging = word == "VM.log"
        if word in self.lost:
            raise NotAttached("the JVM 7 does not answer on its attach socket: timed out")
        return ""


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jvm:
    made = Jvm()
    monkeypatch.setattr(attach, "jcmd", made.jcmd)
    monkeypatch.setattr(attach, "root_of", lambda _pid: tmp_path)
    return made


@pytest.mark.parametrize("lost", [set(), {"VM.log"}, {"GC.heap_info"}])
def test_a_log_that_may_be_on_is_turned_off(jvm: Jvm, lost: set[str]) -> None:
    jvm.lost = lost
    log = JvmLog(7, Path("/jvm.log"))
    log.open()
    assert jvm.logging
    log.stop()
    log.stop()
    assert not jvm.logging
    assert jvm.asked.count("off") == 1


def test_a_log_that_was_stopped_is_not_opened(jvm: Jvm) -> None:
    log = JvmLog(7, Path("/jvm.log"))
    log.stop()
    log.open()
    assert jvm.asked == []
    assert log.close(0.0).from_s is None


def test_a_log_that_was_stopped_in_vain_is_stopped_again(jvm: Jvm) -> None:
    log = JvmLog(7, Path("/jvm.log"))
    log.open()
    jvm.lost = {"off"}
    log.stop()
    jvm.lost = set()
    log.stop()
    assert jvm.asked.count("off") == 2


@pytest.mark.usefixtures("jvm")
def test_a_log_of_which_the_first_may_be_overwritten_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "jvm.log").write_text(ZGC)
    for rotated in (False, True):
        log = JvmLog(7, Path("/jvm.log"))
        log.open()
        told = log.close(99.0)
        assert (told.from_s is None, told.collections) == ((True, None) if rotated else (False, 3))
        assert (jvm_log.ROTATED in told.missing) == rotated
        (tmp_path / "jvm.log.0").touch()
