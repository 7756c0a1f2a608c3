"""Results of the suite, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from prony.evidence.base import Record


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    DECLARED = "declared"
    """Not as expected, and the server.yaml says so and why."""
    NOTED = "noted"
    """Reported, not judged."""
    LEFT_OUT = "left out"
    """Nothing to check here; `found` says why."""


class CheckOutcome(Record):
    """The result of one check: what it found and what it expected."""

    status: CheckStatus
    found: str
    expected: str

    @classmethod
    def of(cls, right: bool, found: str, expected: str) -> Self:
        """Passed or failed."""
        return cls(status=CheckStatus.PASSED if right else CheckStatus.FAILED, found=found, expected=expected)


class CheckResult(Record):
    """One check of one server under one workload."""

    server: str
    workload: str
    check: str
    status: CheckStatus
    found: str
    expected: str


class Conformance(Record):
    """All checks of one server under one workload."""

    server: str
    workload: str
    results: tuple[CheckResult, ...]

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Results that are not as expected and not declared."""
        return tuple(result for result in self.results if result.status is CheckStatus.FAILED)

    @property
    def counted(self) -> tuple[CheckResult, ...]:
        """Results that passed or failed; without those noted or left out."""
        return tuple(result for result in self.results if result.status in _COUNTED)

    @property
    def started(self) -> bool:
        """Whether the server started."""
        return not any(result.check == START for result in self.failed)

    @property
    def summary(self) -> str:
        """`passed 12 of 13`, and how many deviations are declared; left-out checks do not count."""
        counted = self.counted
        passed = len(counted) - len(self.failed)
        declared = sum(result.status is CheckStatus.DECLARED for result in counted)
        more = f" ({declared} as declared in its server.yaml)" if declared else ""
        return f"passed {passed} of {len(counted)}{more}"


START = "start"
"""The check that all others need: the server starts and gets ready."""
_COUNTED = (CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.DECLARED)
