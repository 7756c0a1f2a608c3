"""The CPU profiles of explained trials, as formats for other programs need them. Must not know a format."""

from __future__ import annotations

from collections.abc import Iterator

from prony.errors import UsageError
from prony.evidence.profile import Sampling, Stack
from prony.report.result import ResultView


def cpu_profiles(view: ResultView) -> list[tuple[str, Sampling]]:
    """Label of the server and its samples, in the order of the plan. Raises UsageError for none."""
    found = list(_found(view))
    if not found:
        raise UsageError(
            f"{view.id} has no CPU profile: measure with --explain, or explain it now: "
            f"prony explain {view.id}"
        )
    return found


def _found(view: ResultView) -> Iterator[tuple[str, Sampling]]:
    for part in view.parts:
        for cell in part.cells:
            for trial in cell.explained:
                profile = trial.record.evidence.profile
                if profile is not None and profile.cpu is not None:
                    yield cell.label or cell.cell.server, profile.cpu


def rooted(found: list[tuple[str, Sampling]]) -> Iterator[tuple[Stack, int]]:
    """All stacks with their samples; of several servers with the server as the outermost frame."""
    several = len(found) > 1
    for label, sampling in found:
        above = (label.replace(";", ","),) if several else ()
        for stack, weight in sampling.all_stacks().items():
            yield (*above, *stack), weight
