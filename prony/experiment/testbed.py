"""The host on which an experiment runs, as it is before the first trial, and whom it tells: `Progress`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from prony.conformance.result import Conformance
from prony.errors import EnvironmentFault
from prony.evidence.engine import IntervalRow
from prony.evidence.host import CpuPartition, Fingerprint, Limits
from prony.evidence.trial import TrialRecord
from prony.host.hardware import changed, read_sysctls
from prony.host.partition import beside
from prony.judge.finding import Judgement
from prony.plan.plan import Plan
from prony.plan.target import Target
from prony.plan.workload import Workload
from prony.server.spec import HttpVersion
from prony.targets import Placement, ServerUnderTest
from prony.trial.surroundings import Surroundings


class Progress(Protocol):
    """What an experiment tells while it works (prony.report.progress has the ones that people see)."""

    def experiment_started(self, total_trials: int, estimate_s: float, ended: int = 0) -> None:
        """This many trials are ahead, and about this many seconds; `ended`: those of earlier runs."""

    def stored_as(self, identifier: str, title: str) -> None:
        """The experiment is in the store under this id; its trials follow."""

    def build(self, server: str, line: str) -> None:
        """A line from the build of a server."""

    def trial_started(self, index: int, server: str, block: int, planned_s: float) -> None:
        """Trial number `index` (from 1) begins, and takes about `planned_s`."""

    def phase(self, name: str, expected_s: float | None) -> None:
        """The trial enters a phase."""

    def row(self, row: IntervalRow) -> None:
        """One second of load has passed."""

    def trial_stored(self, record: TrialRecord, judgement: Judgement, figures: Mapping[str, Any]) -> None:
        """The trial is in the store, with its calibration; `trial_ended` follows."""

    def trial_ended(self, judgement: Judgement, figures: Mapping[str, float], seconds: float) -> None:
        """The trial is over; it has no figure where it does not conform."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Hosts(Protocol):
    """Several hosts in place of this one."""

    @property
    def partition(self) -> CpuPartition:
        """Of the first server's host and the first load host, for what is said before a trial."""

    @property
    def limits(self) -> Limits:
        """Of the load hosts together."""

    @property
    def fingerprint(self) -> Fingerprint:
        """Of all hosts in their roles."""

    def placed(self, plan: Plan) -> Plan:
        """The plan as these hosts run it. Raises UsageError for what several hosts cannot do."""

    def target(self, asked: Target, here: ServerUnderTest) -> ServerUnderTest:
        """A server of the catalogue on the host that is to launch it, one at a URL on the host where it runs;
        `here` where that is none of these hosts.
        """

    def surroundings(self, target: ServerUnderTest) -> Surroundings:
        """Of one trial of this target: the CPUs of its host and of the load hosts, and its places."""

    def conformance(
        self,
        target: ServerUnderTest,
        workload: Workload,
        only: tuple[str, ...],
        http_version: HttpVersion,
        start_timeout_s: float,
    ) -> Conformance:
        """What a fresh process answers in this version of HTTP, on the host that launches it."""

    def settings_changed(self) -> tuple[str, ...]:
        """Kernel settings of any host that are no longer what they were when the experiment began."""

    def lost(self) -> Mapping[str, str]:
        """A sentence for each host that is gone."""


@dataclass(frozen=True, slots=True)
class Testbed:
    """Everything about the host that is fixed before the first trial."""

    partition: CpuPartition
    limits: Limits
    fingerprint: Fingerprint
    hosts: Hosts | None = None
    """None: everything runs on this host."""
    named: bool = False
    """The user, or the plan, says which CPUs are whose."""
    theirs: frozenset[int] = frozenset()
    """Where the plan's servers at URLs may run that somebody else placed on this host."""

    def surroundings(self, target: ServerUnderTest) -> Surroundings:
        """Of one trial of this target."""
        if self.hosts is not None:
            return self.hosts.surroundings(target)
        return Surroundings(self.sides(target), target.limits(self.limits))

    def sides(self, target: ServerUnderTest, placed: Placement | None = None) -> CpuPartition:
        """Who may run where in a trial of this target: the client keeps off the CPUs of a server that runs
        already, as far as it can. `placed`: where that was found, if it was looked for.
        """
        if self.hosts is not None or self.named or target.owned:
            return self.partition
        return beside((placed or target.placement()).all_cpus, self.theirs)

    def settings_changed(self) -> tuple[str, ...]:
        """Kernel settings that are no longer what they were when the experiment began."""
        if self.hosts is not None:
            return self.hosts.settings_changed()
        return changed(self.fingerprint.sysctls, read_sysctls())

    def check_hosts(self) -> None:
        """Raises EnvironmentFault when a host is gone: no further trial can be run."""
        lost = {} if self.hosts is None else self.hosts.lost()
        if lost:
            raise EnvironmentFault("; ".join(lost.values()))
