"""What the report of a plan shows, as one pure value: part by part, cell by cell, published figures beside.

Must not know how it is drawn or stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from prony.evidence.host import CpuPartition, Fingerprint
from prony.judge.cell_figures import cell_figures
from prony.judge.finding import Finding, Status
from prony.plan.cells import Cell, PlanPart, RunPlan, Skipped
from prony.plan.load import ClosedLoad
from prony.report.labels import label
from prony.report.model import SEVERITY, PairView, Spread, TrialView, spread
from prony.report.wording import counted

COLUMNS = (
    "requests_per_s",
    "per_user_per_s",
    "users_simulated",
    "mean_ms",
    "p50_ms",
    "p90_ms",
    "p99_ms",
    "max_ms",
    "think_actual_share",
    "connections_per_request",
    "handshakes_per_request",
    "sessions_begun",
    "sessions_completed",
    "session_p50_ms",
    "session_p95_ms",
    "session_p99_ms",
    "session_max_ms",
    "offered_requests",
    "completed",
    "blocked",
    "due_unsent",
    "failed_share",
    "published_requests_per_s",
    "published_mean_ms",
    "jvm_memory_used_mb",
    "jvm_classes_loaded",
    "jvm_threads_live",
    "time_to_ready_s",
    "server_cpu_share",
    "client_cpu_share",
)
"""The columns of a part's table, in this order; one that says nothing in a part is left out."""
ONLY_WHEN_SWEPT = frozenset({"per_user_per_s"})
ONLY_WHEN_OPEN = frozenset({"offered_requests", "completed", "blocked", "due_unsent"})
ONLY_WHEN_NOT_ZERO = frozenset({"blocked", "due_unsent", "failed_share"})


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell: its trials and what they come to."""

    cell: Cell
    trials: tuple[TrialView, ...]

    @property
    def counting(self) -> tuple[TrialView, ...]:
        """The trials whose figures may be printed."""
        return tuple(trial for trial in self.trials if trial.counts)

    @property
    def status(self) -> Status | None:
        """Invalid when no trial may be printed, else the worst of those that may; None before any ended."""
        if not self.trials:
            return None
        statuses = [trial.judgement.verdict for trial in self.counting]
        if not statuses:
            return Status.INVALID
        if len(statuses) < len(self.trials):
            statuses.append(Status.SUSPECT)
        return min(statuses, key=lambda status: SEVERITY[status])

    def figure(self, name: str) -> Spread | None:
        """Median and range over the trials that count."""
        return spread(value for trial in self.counting if (value := trial.figures.get(name)) is not None)

    @property
    def middle(self) -> TrialView | None:
        """The trial with the median throughput (the lower one of two), of those that count."""
        ranked = sorted(self.counting, key=lambda trial: trial.figures.get("requests_per_s", 0.0))
        return ranked[(len(ranked) - 1) // 2] if ranked else None

    @property
    def bound_by(self) -> str:
        """What bound the throughput, in every trial that has a word for it."""
        words = dict.fromkeys(trial.judgement.bound_by for trial in self.trials)
        return ", ".join(words)

    @property
    def why(self) -> tuple[str, ...]:
        """Why the cell is not valid: each check that decided, once."""
        found: dict[str, str] = {}
        for trial in self.trials:
            if trial.rejected_because is not None:
                found.setdefault(trial.rejected_because.partition(":")[0], trial.rejected_because)
                continue
            worst = trial.judgement.worst
            if worst is not None:
                found.setdefault(worst.check, f"{worst.check}: {worst.reason}")
        return tuple(found.values())

    @property
    def published(self) -> tuple[tuple[str, str], ...]:
        """(figure, text) of what others printed for this cell, with the source's label."""
        return tuple(
            (name, f"{_printed(name, value)} ({history.label})")
            for history in self.cell.published
            for name, value in history.figures.items()
        )


def _printed(figure: str, value: float) -> str:
    """A published value with the digits that it was printed with, as far as they can be known."""
    scaled = value * label(figure).scale
    return f"{scaled:,.0f}" if abs(scaled) >= 1000 else f"{scaled:.4g}"


MOST_CELLS_TOLD = 3


@dataclass(frozen=True, slots=True)
class Concern:
    """A check that did not end with valid, in some cells of a part."""

    finding: Finding
    """Of the first cell."""
    cells: tuple[str, ...]
    reasons: tuple[str, ...]
    """What was found, for each of the cells."""

    @property
    def told(self) -> tuple[str, ...]:
        """What was found: one sentence where it holds for every cell, else each cell with its own."""
        if len(set(self.reasons)) == 1:
            return self.reasons[:1]
        pairs = zip(self.cells[:MOST_CELLS_TOLD], self.reasons[:MOST_CELLS_TOLD], strict=True)
        return tuple(f"{cell}: {reason}" for cell, reason in pairs)

    @property
    def where(self) -> str:
        """The cells by name, unless `told` names them."""
        if len(set(self.reasons)) > 1:
            return f"in {len(self.cells)} cells"
        more = len(self.cells) - MOST_CELLS_TOLD
        named = "; ".join(self.cells[:MOST_CELLS_TOLD])
        return f"{named} and {counted(more, 'more cell')}" if more > 0 else named

    @property
    def more(self) -> int:
        """Of so many further cells `told` says nothing."""
        return max(0, len(self.cells) - MOST_CELLS_TOLD) if len(set(self.reasons)) > 1 else 0


@dataclass(frozen=True, slots=True)
class PartView:
    """One part of a plan."""

    part: PlanPart
    cells: tuple[CellView, ...]
    skipped: tuple[Skipped, ...] = ()
    pairs: tuple[tuple[str, PairView], ...] = ()
    """(workload and load, comparison)."""

    @property
    def servers(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(dict.fromkeys(view.cell.server for view in self.cells))

    @property
    def workloads(self) -> tuple[str, ...]:
        """In the order of the plan."""
        return tuple(dict.fromkeys(view.cell.trial.workload.name for view in self.cells))

    @property
    def swept(self) -> bool:
        """Whether the number of users is what changes between loads."""
        return len({view.cell.users for view in self.cells if view.cell.users is not None}) > 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The figures worth a column here."""
        return tuple(name for name in COLUMNS if self._says_something(name))

    def _says_something(self, name: str) -> bool:
        values = [found.median for view in self.cells if (found := view.figure(name)) is not None]
        if not values or (name in ONLY_WHEN_SWEPT and not self.swept):
            return False
        if name in ONLY_WHEN_OPEN and all(view.cell.users is not None for view in self.cells):
            return False
        if name in ONLY_WHEN_NOT_ZERO and not any(values):
            return False
        if name == "connections_per_request":
            return any(value > 0.001 for value in values)
        return True

    @property
    def concerns(self) -> tuple[Concern, ...]:
        """What the checks found, worst first, the same check of several cells together."""
        found: dict[tuple[str, Status], tuple[Finding, dict[str, str]]] = {}
        for view in self.cells:
            for trial in view.trials:
                for finding in trial.judgement.findings:
                    dull = finding.status is Status.UNKNOWN and not finding.essential
                    if finding.status is Status.VALID or dull:
                        continue
                    key = (finding.check, finding.status)
                    where = found.setdefault(key, (finding, {}))[1]
                    where.setdefault(short(view.cell), finding.reason)
        made = [Concern(finding, tuple(where), tuple(where.values())) for finding, where in found.values()]
        return tuple(sorted(made, key=lambda one: SEVERITY[one.finding.status]))


@dataclass(frozen=True, slots=True)
class PlanView:
    """All that the report of a plan needs."""

    id: str
    title: str
    note: str
    created: datetime
    quick: bool
    status_word: str
    """finished, interrupted, running."""
    plan: RunPlan
    plan_text: str
    parts: tuple[PartView, ...]
    planned: int
    ended: int
    fingerprint: Fingerprint | None = None
    partition: CpuPartition | None = None
    warnings: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[CellView, ...]:
        """Of all parts."""
        return tuple(view for part in self.parts for view in part.cells)

    @property
    def status(self) -> Status:
        """The worst of all cells; invalid when nothing was measured."""
        statuses = [status for view in self.cells if (status := view.status) is not None]
        return min(statuses, key=lambda status: SEVERITY[status], default=Status.INVALID)

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        counts: dict[Status, int] = {}
        for view in self.cells:
            if view.status is not None:
                counts[view.status] = counts.get(view.status, 0) + 1
        total = len(self.cells)
        parts = [
            f"{counts[status]} {status.value}" for status in reversed(tuple(SEVERITY)) if status in counts
        ]
        some = f"of {counted(total, 'cell')}"
        words = f"{some.capitalize()} {', '.join(parts)}" if parts else f"None {some} was measured"
        return (
            f"{words}." if self.ended == self.planned else f"{words}; {self.ended} of {self.planned} trials."
        )


def short(cell: Cell) -> str:
    """The cell without its part."""
    return f"{cell.server}, {cell.trial.workload.name}, {cell.trial.load_name}"


def with_cell_figures(trial: TrialView) -> TrialView:
    """The trial with the figures that only tables of a plan show."""
    return TrialView(
        record=trial.record,
        judgement=trial.judgement,
        figures={**cell_figures(trial.record.evidence), **trial.figures},
        change_points_ms=trial.change_points_ms,
    )


def sweep(views: Sequence[CellView], figure: str) -> list[tuple[int, float]]:
    """(users, median) of the cells of one server that have the figure, ascending."""
    points: list[tuple[int, float]] = []
    for view in views:
        found = view.figure(figure)
        if isinstance(view.cell.trial.load, ClosedLoad) and found is not None:
            points.append((view.cell.trial.load.users, found.median))
    return sorted(points)


def heading(figure: str) -> str:
    """A column's heading with its unit."""
    known = label(figure)
    return f"{known.text}, {known.unit}" if known.unit else known.text
