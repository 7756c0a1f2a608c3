"""Results of the suite, as values."""

from __future__ import annotations

from enum import StrEnum

from prony.evidence.base import Record


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    DECLARED = "declared"
    """A deviation that its server.yaml declares."""
    NOTED = "noted"
    """Not judged."""
    LEFT_OUT = "left out"
    """Not applicable; `found` says why."""


class CheckResult(Record):
    """Outcome of a check of a server under a workload."""

    server: str
    workload: str
    check: str
    status: CheckStatus
    found: str
    expected: str


class Conformance(Record):
    """All checks of a server under a workload."""

    server: str
    workload: str
    results: tuple[CheckResult, ...]

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Neither as expected nor declared."""
        return tuple(result for result in self.results if result.status is CheckStatus.FAILED)

    @property
    def counted(self) -> tuple[CheckResult, ...]:
        """Without those noted or left out."""
        return tuple(result for result in self.results if result.status in _COUNTED)


START, PREPARE, CLEAN_UP, STOP = "start", "prepare", "clean-up", "stop"
"""All others need the first."""
CHECKS = (
    "answers", "further", "unknown-path", "head", "keep-alive", "closes-after", "concurrent", "streams",
    "delay", "close", "http-1.0", "pipelined", "headers", "settings", "oversized-header",
)  # fmt: skip
_COUNTED = (CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.DECLARED)
