"""`prony hosts check`: readiness of each host and of the network between hosts. Changes nothing on a host."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from prony.errors import EnvironmentFault
from prony.evidence.hosts import Link
from prony.host.check import HostCheck
from prony.host.doctor import examine
from prony_hosts.actor import HostActor
from prony_hosts.attach import connected, fault_of
from prony_hosts.facts import facts
from prony_hosts.file import Host, HostsFile
from prony_hosts.laboratory import Attached, Laboratory, Remote
from prony_hosts.load.clock import ClockEstimate, ClockEstimator, RoundTrip
from prony_hosts.network_path import link_to

ROUND_TRIPS = 50
CLOCK_LIMIT_S = 0.01
"""1 % of a row, which lasts a second."""
WALL_CLOCK_LIMIT_S = 1.0
SLOW_ROUND_TRIP_MS = 5.0
PROBE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class CheckOfHost:
    """One check of one host."""

    host: str
    check: HostCheck


class HostProbe(HostActor):
    """Reads a host once."""

    async def now_ns(self) -> int:
        """This host's monotonic clock."""
        return time.monotonic_ns()

    async def wall_clock_s(self) -> float:
        """This host's wall clock."""
        return time.time()

    def doctor(self) -> list[HostCheck]:
        """Runs the checks of `prony doctor`; takes a second."""
        return examine()

    def link(self, address: str, port: int, declared_bits_per_s: float | None) -> Link | None:
        """The interface towards an address, and the round trip to a port that listens there."""
        return link_to(address, port, declared_bits_per_s)


def check(file: HostsFile, *, say: Callable[[str], None]) -> list[CheckOfHost]:
    """Checks of all hosts, a row for unreachable ones too. Raises EnvironmentFault without a laboratory."""
    checks: list[CheckOfHost] = []

    def add(host: str, rows: list[HostCheck]) -> None:
        checks.extend(CheckOfHost(host, row) for row in rows)

    add("laboratory", [_ok("version", facts().version)])
    with connected(file, say=say) as laboratory:
        remotes: dict[str, Remote] = {}
        for host in file.hosts():
            rows, remote = _registered(host, file, laboratory)
            add(host.name, rows)
            if remote is not None:
                remotes[host.name] = remote
        doctors = {name: remote.submit("doctor") for name, remote in remotes.items()}
        for name, remote in remotes.items():
            add(name, _checks_or_fault("clock", remote, partial(_clocks, remote)))
            add(name, _checks_or_fault("link", remote, partial(_links, remote, laboratory)))
        for name, future in doctors.items():
            add(name, _checks_or_fault("doctor", remotes[name], partial(_doctor, remotes[name], future)))
        laboratory.end()
    order = ["laboratory", *(host.name for host in file.hosts())]
    return sorted(checks, key=lambda row: order.index(row.host))


def _checks_or_fault(name: str, remote: Remote, probe: Callable[[], list[HostCheck]]) -> list[HostCheck]:
    """The checks, or the fault as a row of this host: a silent host does not affect the rows of others."""
    try:
        return probe()
    except EnvironmentFault as fault:
        return [_bad(name, "not read", f"{fault}; see the log of the worker on {remote.name}.")]


def _registered(host: Host, file: HostsFile, laboratory: Laboratory) -> tuple[list[HostCheck], Remote | None]:
    """Whether the worker is registered and runs the laboratory's version; its actor if so."""
    fault = laboratory.faults.get(host.name)
    if fault is not None:
        return [_bad("worker", "did not start", str(fault))], None
    there = next((attached for attached in laboratory.hosts if attached.host == host), None)
    fault = fault_of(host, file, laboratory)
    if there is None:
        return [_bad("worker", "not registered", str(fault))], None
    rows = [_ok("worker", there.address)]
    if fault is not None:
        return [*rows, _bad("version", there.facts.version, str(fault))], None
    rows.append(_ok("version", there.facts.version))
    try:
        return rows, laboratory.start(HostProbe, host.name)
    except EnvironmentFault as fault:
        return [*rows, _bad("actor", "did not start", f"{fault}; see the log of the worker there.")], None


def clock_of(remote: Remote, times: int = ROUND_TRIPS) -> ClockEstimate:
    """The offset of the host's monotonic clock from this host's, from `times` round trips."""
    estimator = ClockEstimator()
    for _ in range(times):
        sent_ns = time.monotonic_ns()
        there_ns = remote.call("now_ns")
        estimator.add(RoundTrip(sent_ns, there_ns, time.monotonic_ns()))
    return estimator.estimate()


def _clocks(remote: Remote) -> list[HostCheck]:
    estimate = clock_of(remote)
    error_s = estimate.uncertainty_ns * 1e-9
    text = f"offset known to ±{error_s * 1e3:.2f} ms ({estimate.round_trips} round trips)"
    before_s = time.time()
    wall_s = remote.call("wall_clock_s") - (before_s + time.time()) / 2
    return [
        _ok("clock", text)
        if error_s < CLOCK_LIMIT_S
        else HostCheck(
            "clock", "warn", text, "Rows of all hosts share one clock; above 1 % of a second bounds widen.",
            "Use a shorter or less loaded network path to this host.",
        ),
        _ok("wall clock", f"{wall_s:+.1f} s")
        if abs(wall_s) < WALL_CLOCK_LIMIT_S
        else HostCheck(
            "wall clock", "warn", f"{wall_s:+.1f} s from the laboratory's",
            "Figures do not use it; certificates and logs do.", "Run chrony or ntpd on both.",
        ),
    ]  # fmt: skip


def _links(remote: Remote, laboratory: Laboratory) -> list[HostCheck]:
    """Links between load hosts and servers' hosts, in both directions."""
    own = remote.attached
    others = [
        other
        for other in laboratory.hosts
        if other.host.role != own.host.role and other.host.name != own.host.name
    ]
    checks = []
    for other in others:
        address, port = _where(other)
        link = remote.call("link", address, port, own.host.keys.link)
        checks.append(_link(link, other.host.name))
    return checks


def _where(other: Attached) -> tuple[str, int]:
    """Address and port of a listener on the other host; its worker's port stands for the server's."""
    _, _, place = other.address.partition("://")
    host, _, port = place.rpartition(":")
    return other.host.keys.address or host.strip("[]"), int(port)


def _link(link: Link | None, to: str) -> HostCheck:
    name = f"link to {to}"
    if link is None:
        return _bad(name, "unreachable", "Check the routes; servers and load hosts must reach each other.")
    trip = link.round_trip_idle_ms
    if trip is None:
        return _bad(
            name,
            f"{link.interface}: nothing answers",
            "Let load hosts reach the server's host through the firewall.",
        )
    speed = "speed unknown" if link.speed_bits_per_s is None else f"{link.speed_bits_per_s / 1e9:g} Gbit/s"
    text = (
        f"{link.interface}, {speed}{' (declared)' if link.speed_declared else ''}, round trip {trip:.2f} ms"
    )
    if trip > SLOW_ROUND_TRIP_MS:
        return HostCheck(
            name,
            "warn",
            text,
            "Response times include the round trip.",
            "Use load hosts nearer to the server.",
        )
    if link.speed_bits_per_s is None:
        return HostCheck(
            name, "unknown", text, "Without its speed the link cannot be ruled out as the limit.",
            "Give it in hosts.yaml, such as link: 10 Gbit/s for this host.",
        )  # fmt: skip
    return _ok(name, text)


def _doctor(remote: Remote, doctor: Future[list[HostCheck]]) -> list[HostCheck]:
    """One row that counts the doctor's passed checks, and the others."""
    checks = remote.wait(doctor, "doctor", PROBE_TIMEOUT_S)
    failed = [replace(check, name=f"doctor: {check.name}") for check in checks if check.status != "ok"]
    return [_ok("doctor", f"{len(checks) - len(failed)} of {len(checks)} checks are ok"), *failed]


def _ok(name: str, reading: str) -> HostCheck:
    return HostCheck(name, "ok", reading, "")


def _bad(name: str, reading: str, what_to_do: str) -> HostCheck:
    return HostCheck(name, "bad", reading, "", what_to_do)
