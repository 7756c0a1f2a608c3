"""isolation: what the hypervisor, other processes, foreign packets, a quota and the client took of the
server's CPU.
"""

from __future__ import annotations

import math

import pytest

from prony.evidence.engine import ReadyThread
from prony.evidence.host import CpuUse
from prony.evidence.server import CgroupThrottle, ServiceUse
from prony.evidence.trial import Evidence
from prony.judge.checks.isolation import THEIRS, IsolationLimits, isolation
from prony.judge.finding import Finding, Kind
from tests.judge import factory as f

USED = 0.96
"""Of its CPU, by the factory's server."""


def judged(evidence: Evidence) -> Finding:
    return isolation(evidence, IsolationLimits())


def quiet() -> Evidence:
    return f.part(f.healthy(), "host_window", others_on_server_cpus=0.0)


def stolen(steal: float) -> Evidence:
    return f.part(quiet(), "host_window", cpus=(CpuUse(cpu=0, busy=0.9, steal=steal),))


def up(finding: Finding) -> float | None:
    return finding.of("requests_per_s").high


class TestTaken:
    def test_quiet(self) -> None:
        found = judged(quiet())
        assert (found.kind, found.code, found.value, found.outside) == (Kind.FINE, "ok", 0.0, False)

    def test_steal(self) -> None:
        """2 % of its only CPU: with it back 0.02 ÷ 0.96 more, and no more than a server that stood still."""
        found = judged(stolen(0.02))
        assert (found.kind, found.code, found.outside) == (Kind.BUDGET, "steal", True)
        assert up(found) == pytest.approx(1 / 0.98 - 1)
        assert found.of("mean_ms").low == pytest.approx(-0.02)
        assert found.of("server_cpu_us_per_request").low == pytest.approx(-0.02 / USED)

    @pytest.mark.parametrize(("busy", "share"), [(0.0, 0.0), (0.4, 0.2), (1.0, USED / 2)])
    def test_a_busy_sibling_takes_up_to_half_of_a_core(self, busy: float, share: float) -> None:
        found = judged(f.part(quiet(), "host_window", siblings=(CpuUse(cpu=2, busy=busy, steal=0.0),)))
        assert found.code == ("siblings" if busy else "ok")
        assert found.value == pytest.approx(share)
        assert (up(found) or 0.0) == pytest.approx(min(share / USED, share / (1 - share)))
        assert (found.of("server_cpu_us_per_request").low or 0.0) == pytest.approx(-share / USED)

    def test_a_server_that_pinned_itself_elsewhere_was_not_measured_as_planned(self) -> None:
        found = judged(f.part(quiet(), "server_window", cpus=(0,), outside_cpus=(1,)))
        assert (found.kind, found.code, found.outside) == (Kind.NOT_CONFORMING, "repinned", False)
        assert found.value == "1"

    def test_of_several_cpus_the_mean_counts(self) -> None:
        """4 % of one of two CPUs, of which 0.96 CPUs served: 0.04 ÷ 0.96."""
        two = f.part(f.part(quiet(), "partition", server=(0, 2)), "server_window", granted_cpus=2)
        cpus = (CpuUse(cpu=0, busy=1, steal=0.04), CpuUse(cpu=2, busy=1, steal=0.0))
        found = judged(f.part(two, "host_window", cpus=cpus))
        assert found.value == pytest.approx(0.02)
        assert up(found) == pytest.approx(0.04 / 0.96, rel=0.01)

    def test_steal_elsewhere_is_nobodys_business(self) -> None:
        """Of the client's CPU what it costs is in the age of the responses (`client`)."""
        cpus = (CpuUse(cpu=0, busy=0.9, steal=0), CpuUse(cpu=1, busy=1, steal=0.5))
        assert judged(f.part(quiet(), "host_window", cpus=cpus)).kind is Kind.FINE

    def test_other_processes(self) -> None:
        named = f.part(quiet(), "host_window", others_on_server_cpus=0.3, busiest_other="yes (4711)")
        found = judged(named)
        assert (found.code, found.outside) == ("other_processes", True)
        assert up(found) == pytest.approx(0.3 / 0.96)
        assert "yes (4711)" in found.advice

    @pytest.mark.parametrize(("waited_s", "share"), [(1.0, 0.1), (5.0, 0.3), (None, 0.3)])
    def test_others_cost_no_more_than_the_server_waited_for_a_cpu(
        self, waited_s: float | None, share: float
    ) -> None:
        """Of a window of 10 s others ran for 3."""
        busy = f.part(quiet(), "host_window", others_on_server_cpus=0.3)
        waited = f.part(busy, "server_window", run_delay_s=waited_s)
        assert judged(waited).value == pytest.approx(share)
        assert up(judged(waited)) == pytest.approx(min(share / USED, share / (1 - share)))
        foreign = judged(f.part(waited, "server", owned=False))
        assert foreign.value == pytest.approx(share)
        assert foreign.provided == THEIRS
        served = waited.model_copy(update={"services": (ServiceUse(name="db"),)})
        assert judged(served).value == pytest.approx(0.3), "the service may have waited"

    def test_client_and_others_cost_together_what_the_server_waited(self) -> None:
        """Both on the one CPU of the server: their shares are far more than its threads waited."""
        shared = f.part(quiet(), "partition", server=(0, 1), client=(0, 1), shared=True)
        busy = f.part(shared, "host_window", others_on_server_cpus=0.3)
        waited = f.part(busy, "server_window", run_delay_s=1.0)
        before = judged(busy).value
        assert isinstance(before, float)
        assert before > 0.3
        assert judged(waited).value == pytest.approx(1.0 / 10 / 2, rel=0.02)

    @pytest.mark.parametrize("what", ["others_on_server_cpus", "cpus"])
    def test_unread_is_a_condition(self, what: str) -> None:
        value = None if what == "others_on_server_cpus" else ()
        found = judged(f.part(quiet(), "host_window", **{what: value}))
        assert (found.kind, found.code) == (Kind.PROVIDED, "unread")
        assert found.provided

    def test_a_quota_of_its_own_is_no_outside(self) -> None:
        """Held for half of the window, and for a period that the kernel had yet to add: 51 %."""
        held = CgroupThrottle(periods=100, throttled_periods=96, throttled_s=5.0)
        half = f.part(quiet(), "server_window", throttle=held, cpu_user_s=4.8, cpu_system_s=0.0)
        found = judged(half)
        assert (found.code, found.outside) == ("throttled", False)
        assert up(found) == pytest.approx(1 / 0.49 - 1)
        both = judged(f.part(half, "host_window", others_on_server_cpus=0.01))
        assert (both.code, both.outside) == ("throttled", False)
        assert judged(f.part(quiet(), "server_window", throttle=None)).code == "unread"

    def test_a_server_whose_cpu_was_not_read(self) -> None:
        """Of one CPU a loss of 2 % is bounded all the same."""
        found = judged(f.part(stolen(0.02), "server_window", cpu_user_s=None))
        assert up(found) == pytest.approx(1 / 0.98 - 1)

    def test_what_belongs_to_a_foreign_server_cannot_be_distinguished(self) -> None:
        crowded = f.part(quiet(), "host_window", others_on_server_cpus=0.6)
        found = judged(f.part(crowded, "server", owned=False))
        assert (found.kind, found.code) == (Kind.BUDGET, "other_processes")
        assert found.provided
        unknown = judged(f.by_url())
        assert (unknown.kind, unknown.code) == (Kind.PROVIDED, "unread")


class TestTheLoadGeneratorOnTheServersCpus:
    """It used 0.41 of a CPU."""

    def pinned(self, thread: ReadyThread) -> Finding:
        base = quiet()
        assert base.engine is not None
        ready = base.engine.ready.model_copy(update={"threads": (thread,)})
        return judged(f.engine(base, ready=ready))

    @pytest.mark.parametrize("thread", [ReadyThread(cpu=1, pinned=False), ReadyThread(cpu=0, pinned=True)])
    def test_a_thread_that_may_run_there(self, thread: ReadyThread) -> None:
        found = self.pinned(thread)
        assert (found.code, found.outside) == ("shared_cpus", False)
        assert up(found) == pytest.approx(0.41 / 0.96)

    def test_pinning_that_was_not_told(self) -> None:
        assert self.pinned(ReadyThread(cpu=1)).code == "unread"

    def test_one_cpu_for_both(self) -> None:
        shared = f.part(quiet(), "partition", server=(0, 1), client=(0, 1), shared=True)
        found = judged(shared)
        assert found.code == "shared_cpus"
        assert found.value == pytest.approx(0.41 / 2, abs=0.001)

    def test_cpus_of_different_hosts_are_not_the_same(self) -> None:
        apart = f.on_hosts(3)
        assert apart.partition is not None
        alike = apart.partition.model_copy(update={"client": apart.partition.server})
        assert judged(apart.model_copy(update={"partition": alike})).code == "other_processes"

    def test_cpu_sets_that_are_not_known(self) -> None:
        """Steal is then the most that any CPU lost."""
        found = judged(quiet().model_copy(update={"partition": None}))
        assert (found.code, found.value, bool(found.provided)) == ("steal", 0.001, True)


class TestSoftInterrupts:
    """Packets beyond what the load can have sent are somebody else's."""

    def judged(self, irq: float, packets: int | None, *, services: bool = False) -> Finding:
        base = f.window(quiet(), bytes_sent=8_000_000, bytes_received=14_000_000, completed=80_000)
        own = CpuUse(cpu=0, busy=0.97, steal=0.0, irq=irq, packets=packets)
        base = f.part(base, "host_window", cpus=(own, CpuUse(cpu=1, busy=0.4, steal=0.0)))
        return judged(base.model_copy(update={"services": (ServiceUse(name="db"),)}) if services else base)

    def test_the_load_s_own_packets_are_nobody_else_s(self) -> None:
        assert self.judged(0.3, 400_000).kind is Kind.FINE

    def test_more_packets_than_the_load_can_have_sent(self) -> None:
        """22 MB in segments of 1,400 bytes and 6 for each request are 495,714 of 5 million packets."""
        found = self.judged(0.2, 5_000_000)
        foreign = 0.2 * (1 - 495_714 / 5_000_000)
        assert (found.code, found.outside) == ("soft_interrupts", True)
        assert up(found) == pytest.approx(math.expm1(min(math.log1p(foreign / 0.96), -math.log1p(-foreign))))

    def test_many_that_cannot_be_read_are_a_condition_and_few_do_not_matter(self) -> None:
        assert self.judged(0.2, None).code == "unread"
        assert self.judged(0.02, None).code == "ok"

    def test_packets_of_a_backing_service_cannot_be_distinguished(self) -> None:
        assert self.judged(0.2, 5_000_000, services=True).kind is Kind.FINE


def test_of_several_hosts_only_the_servers_counts() -> None:
    three = f.on_hosts(3)
    assert three.host_window is not None
    busy = f.host(three, "load2", host_window={"others_on_client_cpus": 0.5})
    assert judged(busy).bias == judged(three).bias


def test_of_a_server_at_a_url_nothing_of_its_host_is_known() -> None:
    three = f.on_hosts(3)
    theirs = three.server.model_copy(update={"owned": False})
    loads = tuple(one for one in three.hosts if one.role == "load")
    at_url = {"server": theirs, "server_window": None, "partition": None, "hosts": loads}
    found = judged(three.model_copy(update=at_url))
    assert (found.kind, found.code, found.bias) == (Kind.PROVIDED, "unread", {})
