"""The laboratory and workers on loopback with TLS: calls, who is lost, leases, versions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from prony.errors import EnvironmentFault
from prony.load.base import HostLost
from prony_hosts import attach
from prony_hosts.actor import HostActor, Lease
from prony_hosts.check import HostProbe, check, clock_of
from prony_hosts.facts import Facts, differs, facts, refusal
from prony_hosts.laboratory import Laboratory, Remote
from prony_hosts.liveness import Liveness
from tests.hosts.loopback import Loopback

pytestmark = pytest.mark.rarely

PATIENCE_S = 60.0


def until(happened: Callable[[], object]) -> None:
    """Waits for it, up to a minute."""
    end_s = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < end_s, "it did not happen within a minute"
        time.sleep(0.05)


@pytest.fixture
def extra() -> None:
    pytest.importorskip("distributed", reason="the extra hosts is not installed")


@pytest.mark.usefixtures("extra")
def test_a_worker_that_is_killed_is_lost_and_calls_end(tmp_path: Path) -> None:
    with Loopback(tmp_path, 2) as hosts, attach.attached(hosts.file) as lab:
        first, second = (lab.start(HostProbe, name) for name in hosts.names)
        assert clock_of(first, 20).uncertainty_ns < 1e9
        assert lab.lost() == {}
        hosts.workers["load-2"].kill()
        hosts.workers["load-2"].wait(PATIENCE_S)
        with pytest.raises(HostLost, match="load-2"):
            second.call("now_ns")
        assert list(lab.lost()) == ["load-2"]
        assert first.call("now_ns") > 0


@pytest.mark.usefixtures("extra")
def test_a_scheduler_that_is_killed_ends_workers_and_calls(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        hosts.start_scheduler()
        assert hosts.scheduler is not None
        with attach.attached(hosts.file) as lab:
            probe = lab.start(HostProbe, "load-1")
            hosts.scheduler.kill()
            until(lab.lost)
            with pytest.raises(HostLost, match=r"load-1.*scheduler"):
                probe.call("now_ns")
        assert hosts.workers["load-1"].wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("extra")
def test_what_a_method_raises_arrives(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts, attach.attached(hosts.file) as lab:
        probe = lab.start(HostProbe, "load-1")
        with pytest.raises(TypeError, match="missing 3 required"):
            probe.call("link")
        assert probe.call("link", "no-such-host.invalid", 1, None) is None
        loopback = probe.call("link", "localhost", 1, None)
        assert loopback.interface == "lo"
        with pytest.raises(Exception, match="_lease"):
            probe.call("_lease")
        with pytest.raises(EnvironmentFault, match=r"'doctor'.*0\.01 s"):
            probe.call("doctor", timeout_s=0.01)


@pytest.mark.usefixtures("extra")
def test_a_host_that_falls_silent_during_the_check_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Laboratory.start

    def start(self: Laboratory, actor: type[HostActor], name: str, *args: object) -> Remote:
        if name == "load-2":
            raise EnvironmentFault("load-2: no reply to 'start HostProbe' within 30 s")
        return begin(self, actor, name, *args)

    monkeypatch.setattr(Laboratory, "start", start)
    monkeypatch.setattr("prony_hosts.check.PROBE_TIMEOUT_S", 0.01)
    with Loopback(tmp_path, 2) as hosts:
        found = {(one.host, one.check.name): one.check for one in check(hosts.file, say=lambda _: None)}
    assert found["load-2", "actor"].status == "bad"
    assert "'start HostProbe'" in found["load-2", "actor"].what_to_do
    assert found["load-1", "clock"].status in ("ok", "warn")
    assert "'doctor'" in found["load-1", "doctor"].what_to_do


@pytest.mark.usefixtures("extra")
def test_who_does_not_come_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "REGISTERED_S", 0.5)
    hosts = Loopback(tmp_path)
    with pytest.raises(EnvironmentFault) as fault, attach.attached(hosts.file):
        pass
    assert f"prony hosts worker {hosts.file.lab.scheduler} --name load-1 --role load" in str(fault.value)


@pytest.mark.usefixtures("extra")
def test_a_host_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = facts().model_copy(update={"engine_sha256": "0" * 64})
    monkeypatch.setattr(attach, "facts", lambda: other)
    with (
        Loopback(tmp_path) as hosts,
        pytest.raises(EnvironmentFault, match="load-1") as fault,
        attach.attached(hosts.file),
    ):
        pass
    assert facts().version in str(fault.value)
    assert other.version in str(fault.value)
    assert "pip install --force-reinstall" in str(fault.value)


def test_engines_of_two_architectures_are_compared_by_version() -> None:
    here = facts()
    there = here.model_copy(update={"architecture": "other", "engine_sha256": "0" * 64})
    assert not differs(here, there)
    assert differs(here, there.model_copy(update={"engine": "0.0.0"}))
    assert differs(here, here.model_copy(update={"package_sha256": "0" * 64}))
    assert "ssh perf@a" in refusal("a", "perf@a", here, there)
    assert Facts.model_validate(here.model_dump()) == here


@pytest.mark.usefixtures("extra")
def test_a_worker_waits_for_the_next_laboratory(tmp_path: Path) -> None:
    with Loopback(tmp_path, lives="ever") as hosts:
        for _ in range(2):
            with attach.attached(hosts.file) as lab:
                assert lab.start(HostProbe, "load-1").call("now_ns") > 0
        assert hosts.workers["load-1"].poll() is None
        hosts.workers["load-1"].terminate()
        assert hosts.workers["load-1"].wait(PATIENCE_S) == 0


@pytest.mark.usefixtures("extra")
def test_two_laboratories_do_not_share_hosts(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        hosts.start_scheduler()
        with attach.attached(hosts.file) as lab:
            with (
                pytest.raises(EnvironmentFault, match=hosts.file.lab.scheduler),
                attach.attached(hosts.file),
            ):
                pass
            assert lab.start(HostProbe, "load-1").call("now_ns") > 0
        with attach.attached(hosts.file) as lab:
            assert lab.alone()


@pytest.mark.usefixtures("extra")
def test_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        hosts.start_scheduler()
        hosts.address("load-1")
        first = hosts.workers["load-1"]
        second = hosts.start_worker("load-1")
        assert second.stdout is not None
        assert "'load-1'" in second.stdout.readline()
        assert second.wait(PATIENCE_S) == 4
        hosts.workers["load-1"] = first


@pytest.mark.usefixtures("extra")
def test_what_lives_by_standard_input_ends_with_it(tmp_path: Path) -> None:
    with Loopback(tmp_path) as hosts:
        hosts.start_scheduler()
        hosts.address("load-1")
        for process in (hosts.workers["load-1"], hosts.scheduler):
            assert process is not None
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
            assert process.wait(PATIENCE_S) == 0


class JustThen(Future[str]):
    """Its result comes between the end of the wait for it and the question whether it has come."""

    def result(self, timeout: float | None = None) -> str:
        if not self.done():
            self.set_result("a reply")
            raise TimeoutError
        return super().result(timeout)


def test_a_reply_that_comes_as_the_wait_for_it_ends_is_a_reply() -> None:
    loop = asyncio.new_event_loop()
    laboratory = Laboratory(SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)))
    assert laboratory.wait(JustThen(), "a", "events") == "a reply"
    loop.close()


def test_nothing_is_under_way_on_the_event_loop_when_the_laboratory_ends() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        laboratory = Laboratory(SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)))
        asked = threading.Event()

        async def silent() -> None:
            asked.set()
            await asyncio.sleep(3600)

        call = laboratory.run(silent())
        assert asked.wait(PATIENCE_S)
        asked.clear()
        laboratory.liveness.watch("a host", silent)
        assert asked.wait(PATIENCE_S)
        laboratory.close()
        assert call.cancelled()
        until(lambda: not asyncio.all_tasks(loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def test_a_lease_that_is_not_renewed_stops_everything() -> None:
    stopped = threading.Event()
    renewed = Lease(stopped.set, lasts_s=3600)
    assert not stopped.is_set()
    renewed.end()
    Lease(stopped.set, lasts_s=0.05)
    assert stopped.wait(PATIENCE_S)


def test_an_actor_stops_when_the_laboratory_is_silent() -> None:
    stopped = threading.Event()

    class Serves(HostActor):
        def stop_everything(self) -> None:
            stopped.set()

    Serves(lease_s=0.05)
    assert stopped.wait(PATIENCE_S)


def test_silence_and_refusal_are_told_apart() -> None:
    async def hear_nothing() -> None:
        await asyncio.sleep(3600)

    async def refuse() -> None:
        raise ConnectionRefusedError

    async def answer() -> None:
        return None

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        liveness = Liveness(loop, every_s=0.02, lost_after_s=0.2)
        for name, alive in (("silent", hear_nothing), ("ended", refuse), ("there", answer)):
            liveness.watch(name, alive)
        until(lambda: len(liveness.lost()) == 2)
        lost = liveness.lost()
        assert "silent" in lost
        assert "ended" in lost
        assert "there" not in lost
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
