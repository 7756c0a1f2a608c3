"""isolation: neighbours, steal, quotas and foreign soft interrupts on the CPUs of a trial."""

from __future__ import annotations

from typing import Any

import pytest

from prony.evidence.engine import ReadyThread
from prony.evidence.host import CpuUse
from prony.evidence.server import ServiceUse
from prony.judge.checks.isolation import isolation
from prony.judge.finding import Finding, Status
from prony.judge.limits import CheckLimits
from tests.judge import factory as f

LIMITS = CheckLimits()


class TestIsolation:
    def status(self, part: str, **changes: Any) -> Status:
        return isolation(f.part(f.healthy(), part, **changes), LIMITS).status

    def test_quiet(self) -> None:
        assert isolation(f.healthy(), LIMITS).status is Status.VALID

    def test_one_cpu_is_suspect(self) -> None:
        assert self.status("partition", server=(0,), client=(0,), shared=True) is Status.SUSPECT

    def test_overlap_that_could_have_been_avoided_is_invalid(self) -> None:
        assert self.status("partition", server=(0, 1), client=(1,)) is Status.INVALID

    @pytest.mark.parametrize(("steal", "status"), [(0.02, Status.SUSPECT), (0.2, Status.INVALID)])
    def test_steal(self, steal: float, status: Status) -> None:
        assert self.status("host_window", cpus=(CpuUse(cpu=0, busy=0.9, steal=steal),)) is status

    def test_a_foreign_server_is_read_and_not_blamed_for_where_it_runs(self) -> None:
        foreign = f.part(f.healthy(), "server", owned=False)
        assert isolation(foreign, LIMITS).status is Status.VALID
        anywhere = f.part(foreign, "partition", server=(0, 1), client=(1,))
        finding = isolation(anywhere, LIMITS)
        assert finding.status is Status.UNKNOWN
        assert "the server roams: it may run on the client's CPU 1" in finding.reason
        assert finding.advice == f"pin the server: taskset -apc 0 {anywhere.server.pid}"
        there = f.part(foreign, "partition", server=(1,), client=(1,))
        assert "the server may run on the client's CPU 1" in isolation(there, LIMITS).reason
        crowded = f.part(foreign, "host_window", others_on_server_cpus=0.6)
        assert isolation(crowded, LIMITS).status is Status.SUSPECT
        assert "unless they belong to the server" in isolation(crowded, LIMITS).reason
        assert isolation(f.by_url(), LIMITS).status is Status.UNKNOWN

    def test_steal_on_a_cpu_that_is_not_ours_is_nobodys_business(self) -> None:
        cpus = (
            CpuUse(cpu=0, busy=0.9, steal=0),
            CpuUse(cpu=1, busy=0.5, steal=0),
            CpuUse(cpu=7, busy=1, steal=0.5),
        )
        assert self.status("host_window", cpus=cpus) is Status.VALID

    @pytest.mark.parametrize("side", ["others_on_server_cpus", "others_on_client_cpus"])
    def test_a_neighbour(self, side: str) -> None:
        assert self.status("host_window", **{side: 0.12}) is Status.SUSPECT
        assert self.status("host_window", **{side: 0.5}) is Status.INVALID
        assert self.status("host_window", **{side: None}) is Status.UNKNOWN

    def test_the_neighbour_is_named(self) -> None:
        busy = f.part(f.healthy(), "host_window", others_on_server_cpus=0.3, busiest_other="yes (4711)")
        assert "yes (4711)" in isolation(busy, LIMITS).advice

    def test_a_client_thread_that_is_not_pinned(self) -> None:
        evidence = f.healthy()
        assert evidence.engine is not None
        for thread, status in (
            (ReadyThread(cpu=1, pinned=False), Status.SUSPECT),
            (ReadyThread(cpu=0, pinned=True), Status.INVALID),
            (ReadyThread(cpu=1), Status.UNKNOWN),
        ):
            ready = evidence.engine.ready.model_copy(update={"threads": (thread,)})
            assert isolation(f.engine(evidence, ready=ready), LIMITS).status is status

    def test_a_foreign_server_is_unknown(self) -> None:
        assert isolation(f.by_url(), LIMITS).status is Status.UNKNOWN


class TestSoftInterrupts:
    """Packets beyond what the load can have sent are somebody else's."""

    def judged(
        self, *, irq: float, packets: int | None, services: bool = False, owned: bool = True
    ) -> Finding:
        base = f.window(f.healthy(), bytes_sent=8_000_000, bytes_received=14_000_000, completed=80_000)
        own = CpuUse(cpu=0, busy=0.97, steal=0.0, irq=irq, packets=packets)
        base = f.part(base, "host_window", cpus=(own, CpuUse(cpu=1, busy=0.4, steal=0.0)))
        base = f.part(base, "server", owned=owned)
        if services:
            base = base.model_copy(update={"services": (ServiceUse(name="db"),)})
        found = isolation(base, LIMITS)
        assert found is not None
        return found

    def test_the_load_s_own_packets_are_nobody_else_s(self) -> None:
        assert self.judged(irq=0.3, packets=400_000).status is Status.VALID

    def test_more_packets_than_the_load_can_have_sent(self) -> None:
        found = self.judged(irq=0.2, packets=5_000_000)
        assert found.status is Status.SUSPECT
        assert "soft interrupts for other traffic (network) took 18" in found.reason

    def test_of_a_foreign_server_they_may_be_its_own(self) -> None:
        found = self.judged(irq=0.4, packets=5_000_000)
        assert found.status is Status.INVALID
        found = self.judged(irq=0.4, packets=5_000_000, owned=False)
        assert found.status is Status.SUSPECT
        assert "unless they belong to the server" in found.reason

    def test_many_soft_interrupts_that_cannot_be_read_are_unknown_and_few_do_not_matter(self) -> None:
        assert self.judged(irq=0.2, packets=None).status is Status.UNKNOWN
        assert self.judged(irq=0.02, packets=None).status is Status.VALID

    def test_packets_of_a_backing_service_cannot_be_told_apart(self) -> None:
        assert self.judged(irq=0.2, packets=5_000_000, services=True).status is Status.VALID


def test_a_quota_that_cannot_be_read_is_no_pass() -> None:
    found = isolation(f.part(f.healthy(), "server_window", throttle=None), LIMITS)
    assert found is not None
    assert found.status is Status.UNKNOWN
