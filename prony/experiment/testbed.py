"""The host of an experiment, as it is before the first trial, and the listeners to its progress."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import prony
from prony import redaction, seams
from prony.errors import UsageError
from prony.evidence.conformance import Conformance
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Fingerprint, Limits
from prony.evidence.trial import TrialRecord
from prony.host.fingerprint import fingerprint
from prony.host.hardware import changed, read_sysctls
from prony.host.partition import beside, partition
from prony.host.proc import parse_cpus
from prony.host.readings import io_uring_works
from prony.host.resource_limits import limits_to_own_servers, raise_descriptors
from prony.judge.finding import Judgement
from prony.load.engine import engine_version
from prony.plan.cell import Cell
from prony.plan.plan import Plan
from prony.plan.target import Target
from prony.plan.workload import Workload
from prony.server.catalogue import Catalogue
from prony.server.spec import HttpVersion
from prony.targets import Placement, RunningTarget, ServerUnderTest, under_test
from prony.trial.surroundings import Surroundings, TrialObserver


class Progress(TrialObserver, Protocol):
    """Listener to an experiment (prony.report.progress has those of the terminal)."""

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        """Trials and estimated seconds ahead; `ended`: trials of earlier runs."""

    def stored_as(self, identifier: str, title: str) -> None:
        """The experiment is in the store under this id; its trials follow."""

    def build(self, server: str, line: str) -> None:
        """A line from the build of a server."""

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        """Trial number `index` (from 1) begins; estimate `planned_s`."""

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """The trial and its calibration are in the store; `trial_ended` follows."""

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        """The trial is over; without figures where it does not conform."""


@dataclass(frozen=True)  # with slots no subclass could set its own
class Testbed:
    """What is fixed about the host before the first trial. `prony_hosts` has that of several hosts."""

    partition: CpuPartition
    limits: Limits
    fingerprint: Fingerprint
    named: bool = False
    """The user or the plan chose the CPUs of server and client."""
    theirs: frozenset[int] = frozenset()
    """CPUs of the plan's servers at URLs that run on this host."""

    @property
    def here(self) -> bool:
        """Whether everything runs on this host."""
        return True

    def placed(self, plan: Plan) -> Plan:
        """The plan for this host. Raises UsageError where it cannot run here."""
        return plan

    def target(self, declared: Target, here: ServerUnderTest) -> ServerUnderTest:  # noqa: ARG002
        """The server on the host that launches or runs it; `here`: on this host."""
        return here

    def surroundings(self, target: ServerUnderTest) -> Surroundings:
        """Of one trial of this target."""
        return Surroundings(self.sides(target), target.limits(self.limits))

    def sides(self, target: ServerUnderTest, placed: Placement | None = None) -> CpuPartition:
        """The client avoids the CPUs of a running server. `placed`: its known placement."""
        if self.named or target.owned:
            return self.partition
        return beside((placed or target.placement()).all_cpus, self.theirs)

    def conformance(
        self, server: RunningTarget, workload: Workload, only: tuple[str, ...], http_version: HttpVersion
    ) -> Conformance | None:
        """Conformance of a launched process in this version of HTTP; None without the package."""
        check = seams.found(seams.HOOKS, "conformance")
        conformance: Conformance | None = check and check(
            server, workload, only=only, http_version=http_version
        )
        return conformance

    def settings_changed(self) -> tuple[str, ...]:
        """Kernel settings that changed since the experiment began."""
        return changed(self.fingerprint.sysctls, read_sysctls())

    def lost(self) -> Mapping[str, str]:
        """A sentence for each lost host, after which no trial can run."""
        return {}


def prepare(
    server_cpus: str | None,
    client_cpus: str | None,
    *,
    services: bool = False,
    theirs: frozenset[int] = frozenset(),
) -> Testbed:
    """Choose CPUs, raise the descriptor limit, read the host. `services` get a CPU. Raises UsageError."""
    server, client = _cpus(server_cpus, "--server-cpus"), _cpus(client_cpus, "--client-cpus")
    chosen = partition(server=server, client=client, services=services)
    raise_descriptors()
    software = {
        "prony": prony.__version__,
        "prony-engine": engine_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    limits = limits_to_own_servers().model_copy(update={"io_uring": io_uring_works()})
    named = server_cpus is not None or client_cpus is not None
    return Testbed(chosen, limits, fingerprint(software), named, theirs)


def _cpus(text: str | None, option: str) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        cpus = parse_cpus(text)
    except UsageError as fault:
        raise UsageError(f"{option}: {fault}") from fault
    if not cpus:
        raise UsageError(f"{option} names no CPU; expected CPUs such as 0, 0-3 or 0,2,4-6")
    return cpus


log = logging.getLogger("prony.experiment.testbed")


class Listeners:
    """Notifies each listener, without credentials. A listener's fault goes to the log and ends nothing."""

    def __init__(self, *listeners: Progress) -> None:
        self._listeners = listeners

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        self._each(lambda listener: listener.experiment_started(total_trials, estimate_s, ended))

    def stored_as(self, identifier: str, title: str) -> None:
        self._each(lambda listener: listener.stored_as(identifier, title))

    def build(self, server: str, line: str) -> None:
        public_line = redaction.text(line)
        self._each(lambda listener: listener.build(server, public_line))

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        self._each(lambda listener: listener.trial_started(index, server, block, planned_s))

    def phase(self, name: str, expected_s: float | None) -> None:
        self._each(lambda listener: listener.phase(name, expected_s))

    def row(self, row: IntervalRow) -> None:
        self._each(lambda listener: listener.row(row))

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        self._each(lambda listener: listener.trial_stored(record, judgement, figures))

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, Any], seconds: float) -> None:
        self._each(lambda listener: listener.trial_ended(judgement, figures, seconds))

    def note(self, text: str) -> None:
        public = redaction.text(text)
        self._each(lambda listener: listener.note(public))

    def _each(self, notify: Callable[[Progress], None]) -> None:
        for listener in self._listeners:
            try:
                notify(listener)
            except Exception:
                log.info("a listener failed: %s", type(listener).__name__, exc_info=True)


@dataclass(slots=True)
class Targets:
    """Cell -> its server under test."""

    catalogue: Catalogue = field(default_factory=Catalogue.load)
    hosted: Callable[[Target, ServerUnderTest], ServerUnderTest] | None = None
    """Puts a server on the host that launches or runs it."""
    _known: dict[str, ServerUnderTest] = field(default_factory=dict)

    def of(self, cell: Cell) -> ServerUnderTest:
        """Raises UsageError for a server that the catalogue lacks, or a setting that it does not have."""
        target = cell.target
        key = target.model_dump_json()
        if key not in self._known:
            server = under_test(target, self.catalogue)
            if self.hosted is not None:
                server = self.hosted(target, server)
            self._known[key] = server
        return self._known[key]
