"""Profiles of explained trials for the export formats."""

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
    """An explained trial with CPU samples."""

    label: str
    """Label of the server."""
    profile: Profile
    begun_unix_s: float
    """Opening of the window."""


def recorded(view: ResultView) -> list[Recorded]:
    """All profiles of a result, in the plan's order. Raises UsageError without any."""
    profiles = list(_found(view))
    if not profiles:
        raise UsageError(f"{view.id} has no CPU profile; run with --explain, or: prony explain {view.id}")
    return profiles


def cpu_profiles(view: ResultView) -> list[tuple[str, Sampling]]:
    """(server's label, samples) of each profile. Raises UsageError without any."""
    return [(trial.label, trial.profile.cpu) for trial in recorded(view) if trial.profile.cpu is not None]


def _found(view: ResultView) -> Iterator[Recorded]:
    for part in view.parts:
        for cell in part.cells:
            for trial in cell.explained:
                profile = trial.record.evidence.profile
                if profile is not None and profile.cpu is not None:
                    whole = _with_kernel(profile, cell.cell.server)
                    yield Recorded(cell.label or cell.cell.server, whole, _begun_unix_s(trial.record))


def _with_kernel(profile: Profile, server: str) -> Profile:
    """With perf's kernel frames in its stacks, if taken, as in the flame graphs."""
    if profile.kernel is None:
        return profile
    rules = rules_for(profile.runtime, server, roots("servers"))
    return profile.model_copy(update={"cpu": cpu_samples(profile, rules)})


def _begun_unix_s(record: TrialRecord) -> float:
    """Opening of the window, else the start of the trial."""
    engine = record.evidence.engine
    if engine is None or engine.window is None:
        return record.started_at.timestamp()
    return engine.ready.started_unix_ns / 1e9 + engine.window.opened_ms / 1000


def rooted(profiles: list[tuple[str, Sampling]]) -> Iterator[tuple[Stack, int]]:
    """All stacks with their samples; with several servers their labels are the outermost frames."""
    several = len(profiles) > 1
    for label, sampling in profiles:
        above = (label.replace(";", ","),) if several else ()
        for stack, weight in sampling.all_stacks().items():
            yield (*above, *stack), weight
