"""Are more trials needed? The stated rule for adding blocks until every pair is clear. Pure.

Must not run trials; docs/method.md has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from prony.compare import BAND, Looks, Sample, Verdict, compare
from prony.evidence.trial import TrialRecord
from prony.experiment.conclude import Conclusion
from prony.judge.finding import Status

CLOSED_FIGURE = "requests_per_s"
OPEN_FIGURE = "p99_ms"
"""What the question is about where the rate is given."""


@dataclass(slots=True)
class UntilClear:
    """Collects what ended and says, before each block, whether the experiment is over."""

    servers: Sequence[str]
    looks: Looks
    figure: str = CLOSED_FIGURE
    band: float = BAND
    samples: list[Sample] = field(default_factory=list)

    def add(self, record: TrialRecord, ended: Conclusion) -> None:
        """Take a trial into account; controls take no part, invalid ones are known and do not count."""
        if record.kind != "trial":
            return
        counts = record.failure is None and ended.judgement.verdict is not Status.INVALID
        self.samples.append(
            Sample(record.server, record.block, ended.figures.get(self.figure), counts, "judged invalid")
        )

    def over(self) -> bool:
        """Whether every pair is clear."""
        found = compare(
            self.samples, self.figure, servers=self.servers, looks=self.looks, band=self.band
        ).pairs
        return bool(found) and all(pair.verdict is not Verdict.INCONCLUSIVE for pair in found)
