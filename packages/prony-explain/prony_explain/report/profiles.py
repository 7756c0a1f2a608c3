"""The profiles of explained trials, as formats for other programs need them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prony.errors import UsageError
from prony.evidence.profile import Profile, Sampling, Stack
from prony.evidence.trial import TrialRecord
from prony.plan.catalogue_roots import roots
from prony.report.result import ResultView
from prony_explain.kernel import cpu_samples
from prony_explain.rules import rules_for


@dataclass(frozen=True, slots=True)
class Recorded:
    """One explained trial with CPU samples."""

    label: str
    """Of the server."""
    profile: Profile
    begun_unix_s: float
    """When its window opened."""


def recorded(view: ResultView) -> list[Recorded]:
    """All of a result, in the order of the plan. Raises UsageError for none."""
    found = list(_found(view))
    if not found:
        raise UsageError(
            f"{view.id} has no CPU profile: measure with --explain, or explain it now: "
            f"prony explain {view.id}"
        )
    return found


def cpu_profiles(view: ResultView) -> list[tuple[str, Sampling]]:
    """Label of the server and its samples. Raises UsageError for none."""
    return [(one.label, one.profile.cpu) for one in recorded(view) if one.profile.cpu is not None]


def _found(view: ResultView) -> Iterator[Recorded]:
    for part in view.parts:
        for cell in part.cells:
            for trial in cell.explained:
                profile = trial.record.evidence.profile
                if profile is not None and profile.cpu is not None:
                    whole = _with_kernel(profile, cell.cell.server)
                    yield Recorded(cell.label or cell.cell.server, whole, _begun_unix_s(trial.record))


def _with_kernel(profile: Profile, server: str) -> Profile:
    """With the kernel's frames in its stacks where perf took them beside, as the flame graphs have it."""
    if profile.kernel is None:
        return profile
    rules = rules_for(profile.runtime, server, roots("servers"))
    return profile.model_copy(update={"cpu": cpu_samples(profile, rules)})


def _begun_unix_s(record: TrialRecord) -> float:
    """When the window opened; where nobody noted it, when the trial began."""
    engine = record.evidence.engine
    if engine is None or engine.window is None:
        return record.started_at.timestamp()
    return engine.ready.started_unix_ns / 1e9 + engine.window.opened_ms / 1000


def rooted(found: list[tuple[str, Sampling]]) -> Iterator[tuple[Stack, int]]:
    """All stacks with their samples; of several servers with the server as the outermost frame."""
    several = len(found) > 1
    for label, sampling in found:
        above = (label.replace(";", ","),) if several else ()
        for stack, weight in sampling.all_stacks().items():
            yield (*above, *stack), weight
