"""The parts of one trial on several hosts: engines and samplers on the load hosts, the reference server on
the server's host. The counterpart of `prony.trial.surroundings.Surroundings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from prony.errors import EnvironmentFault
from prony.evidence.host import CpuPartition, Limits
from prony.evidence.hosts import HostEvidence
from prony.host.proc import read_text
from prony.load.base import Engine, HostLost
from prony.load.contract import EngineLoad
from prony.load.reference import Certificate
from prony.trial.surroundings import Surroundings
from prony_hosts import files
from prony_hosts.actors import BOOT_ID
from prony_hosts.load.clock import ClockEstimate
from prony_hosts.load.shares import shared
from prony_hosts.load.together import EnginesTogether
from prony_hosts.reach import Reached
from prony_hosts.sampling import Gathered, HostedSampler, cpus_of

EVENTS_GRACE_S = 30.0
"""Grace beyond the host's own wait for events."""


class RemoteEngine:
    """An engine on a load host (`prony_hosts.load.handle.EngineHandle`)."""

    def __init__(self, host: Reached, number: int) -> None:
        self.host, self._number = host, number

    @property
    def name(self) -> str:
        return self.host.name

    def send(self, command: dict[str, Any]) -> None:
        """Sends the command and waits for its receipt, which keeps commands in order."""
        self.host.call("send", self._number, command)

    def events(self, timeout_s: float) -> Sequence[dict[str, Any]] | None:
        events: list[dict[str, Any]] | None = self.host.call(
            "events", self._number, timeout_s, timeout_s=timeout_s + EVENTS_GRACE_S
        )
        return events

    def clock(self) -> ClockEstimate:
        return self.host.clock()

    def close(self) -> None:
        with suppress(HostLost):
            self.host.call("close", self._number, timeout_s=EVENTS_GRACE_S)


def apart(server: Reached | None, loads: Sequence[Reached]) -> bool:
    """Whether load and server run on different machines; network namespaces and containers share one. A
    server at a URL is read on the laboratory's host only.
    """
    boot = read_text(BOOT_ID) if server is None else server.facts.boot_id
    return boot is not None and all(host.facts.boot_id != boot for host in loads)


class HostedPlaces(Surroundings):
    """The parts of one trial. `server`: the host of a launched server; None for a server at a URL."""

    def __init__(
        self,
        partition: CpuPartition,
        limits: Limits,
        server: Reached | None,
        loads: Sequence[Reached],
        lost: Callable[[], Mapping[str, str]],
    ) -> None:
        super().__init__(partition, limits)
        self.server, self.loads, self._lost = server, tuple(loads), lost
        self.measured: EnginesTogether | None = None
        """Engines of the measured load."""
        self._latest: EnginesTogether | None = None
        self._sampler: HostedSampler | None = None
        self._begun = {host.name: host.clock() for host in self.hosts}

    @property
    def hosts(self) -> tuple[Reached, ...]:
        """Hosts of this trial."""
        return self.loads if self.server is None else (self.server, *self.loads)

    @property
    def apart(self) -> bool:
        return apart(self.server, self.loads)

    @property
    def server_address(self) -> str:
        """Address at which load hosts reach a server on the server's host."""
        return "127.0.0.1" if self.server is None else self.server.attached.reached_at

    def engine(self, load: EngineLoad) -> Engine:
        return self._start(load, self.loads)

    def single(self, load: EngineLoad) -> Engine:
        return self._start(load, self.loads[:1])

    def _start(self, load: EngineLoad, hosts: Sequence[Reached]) -> EnginesTogether:
        contents = files.of_load(load)
        shares = shared(load, [host.host.weight for host in hosts])
        begun = []
        for host, share in zip(hosts, shares, strict=True):
            if share is not None:
                own = share.model_copy(update={"cpus": cpus_of(host) if load.cpus else ()})
                begun.append((host, host.begin("start_engine", own, contents)))
        handles: list[RemoteEngine] = []
        faults: list[EnvironmentFault] = []
        for host, future in begun:  # collect all: a failure must not leave an engine running
            try:
                handles.append(RemoteEngine(host, host.end(future, "start_engine")))
            except EnvironmentFault as fault:
                faults.append(fault)
        if faults:
            for handle in handles:
                with suppress(EnvironmentFault):
                    handle.close()
            raise faults[0]
        self._latest = EnginesTogether(load, handles)
        return self._latest

    def sampler(
        self,
        server_cpus: Collection[int],
        client_cpus: Collection[int],
        own_pids: Callable[[], set[int]],
        url: str = "",
    ) -> HostedSampler:
        """Each host samples its own CPUs and processes."""
        del server_cpus, client_cpus, own_pids
        self._sampler = HostedSampler(self.server, self.loads, url, self.now_measured)
        return self._sampler

    def now_measured(self) -> None:
        """Called before the window opens: the current engines are the trial's."""
        self.measured = self._latest

    def reference_server(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> AbstractContextManager[str]:
        return self._reference(options, cpus, certificate)

    @contextmanager
    def _reference(
        self, options: Sequence[str], cpus: tuple[int, ...], certificate: Certificate | None
    ) -> Iterator[str]:
        if self.server is None:
            raise EnvironmentFault("hosts.yaml names no server's host, so no reference server can run")
        pem = None
        if certificate is not None:
            pem = tuple(path.read_bytes() for path in (certificate.ca, certificate.cert, certificate.key))
        url = self.server.call("start_reference", list(options), cpus, pem)
        try:
            yield url
        finally:
            with suppress(HostLost):
                self.server.call("stop_reference", url)

    def failed(self) -> str | None:
        lost = self._lost()
        return next((lost[host.name] for host in self.hosts if host.name in lost), None)

    def evidence(self) -> tuple[HostEvidence, ...]:
        sampler, engines = self._sampler, self.measured or self._latest
        reported = {} if engines is None else engines.evidence_fields()
        lost = {**({} if engines is None else engines.lost), **self._lost()}
        cut_by = {} if engines is None else engines.cut_by
        evidence = []
        for host in self.hosts:
            if (
                host in self.loads
                and engines is not None
                and host.name not in reported
                and host.name not in lost
            ):
                continue  # Fewer users than hosts: no part in the load.
            own = sampler.of(host.name) if sampler is not None else Gathered()
            between = None if sampler is None else sampler.window_ns
            evidence.append(
                HostEvidence(
                    name=host.name,
                    role=host.host.role,
                    weight=host.host.weight,
                    fingerprint=host.facts.fingerprint,
                    host_window=None if own.sampled is None else own.sampled.window,
                    host_rows=own.rows,
                    # Rows of a load host were cut by earlier estimates; the server's host is read now.
                    clock=host.clock().evidence(
                        *cut_by.get(host.name, ()),
                        between_ns=between,
                        known=(self._begun[host.name],),
                        seen=host.round_trips(),
                    ),
                    link=own.link,
                    network=None if own.sampled is None else own.sampled.network,
                    lost=lost.get(host.name),
                    **reported.get(host.name, {}),
                )
            )
        return tuple(evidence)
