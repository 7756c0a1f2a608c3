"""The short part of the conformance suite, once for every server and workload of an experiment, before their
first trial. Must not judge what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from prony.conformance.result import CheckResult, Conformance, Status
from prony.conformance.suite import check
from prony.evidence.trial import ConformanceFacts, Nonconformity
from prony.plan.workload import Workload
from prony.server.build import Built

SHORT = ("answers", "keep-alive", "concurrent", "delay")
"""What a figure rests on; the rest is about clients that take no part in a measurement."""
EXPECTED_S = 6.0
"""About what it takes: mostly the start and the end of a process."""


@dataclass(slots=True)
class Conforming:
    """Asks each server once under each workload and remembers the answer."""

    cpus: Sequence[int]
    """Where the server runs in a trial."""
    note: Callable[[str], None]
    """Told about everything that is not as expected."""
    _known: dict[tuple[object, ...], ConformanceFacts | None] = field(default_factory=dict)

    def of(self, built: Built, workload: Workload, start_timeout_s: float) -> ConformanceFacts | None:
        """What was found before the first trial. None when the server could not be asked: its trial will say
        why.
        """
        key = (built.spec.name, workload.name, *workload.settings.items())
        if key not in self._known:
            found = check(built, workload, only=SHORT, cpus=self.cpus, start_timeout_s=start_timeout_s)
            self._known[key] = _facts(found) if found.started else None
            for result in found.failed if found.started else ():
                self.note(f"{result.server} does not conform: {result.check}: {result.found}")
        return self._known[key]


def _facts(found: Conformance) -> ConformanceFacts:
    counted = found.counted
    failed = found.failed
    return ConformanceFacts(
        passed=len(counted) - len(failed),
        checks=len(counted),
        failed=tuple(map(_nonconformity, failed)),
        declared=tuple(
            _nonconformity(result) for result in found.results if result.status is Status.DECLARED
        ),
    )


def _nonconformity(result: CheckResult) -> Nonconformity:
    return Nonconformity(check=result.check, found=result.found, expected=result.expected)
