"""The verdict on a result as a sentence, and lists of names. Pure; must not know where it is printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC

from prony.judge.finding import Status
from prony.report.labels import rounded
from prony.report.result import HEADLINE, SEVERITY, ResultView, TrialView
from prony.report.wording import counted


def join(words: Sequence[str]) -> str:
    """a, b and c."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else ""


def label_lines(view: ResultView) -> list[str]:
    """What people say of it, a line each: its tags, and every note with its time and author."""
    tags = [f"tags: {', '.join(view.tags)}"] if view.tags else []
    return tags + [
        f"note of {note.made.astimezone(UTC):%Y-%m-%d %H:%M} UTC by {note.by}: {note.text}"
        for note in view.notes
    ]


def verdict_words(view: ResultView) -> str:
    """The verdict as a sentence."""
    trials = [trial for trial in view.trials if trial.record.kind == "trial"]
    if not trials:
        return "Nothing was measured."
    if view.planned == 1 and view.parts[0].part.shape == "single":
        return _single(trials[0])
    missing = next((f" {part.failure}" for part in view.parts if part.failure), "")
    if any(part.part.shape == "matrix" for part in view.parts):
        return _cells(view, trials) + missing
    return _trials(view, trials) + missing


def _single(trial: TrialView) -> str:
    if trial.record.failure is not None:
        return f"No figure is printed: {trial.record.failure}"
    if trial.rejected_because is not None:
        first = trial.judgement.worst
        return f"No figure is printed: {first.check} is invalid." if first else "No figure is printed."
    rate = rounded(HEADLINE, trial.figure(HEADLINE))
    return f"{rate} requests/s, bound by: {trial.judgement.bound_by}"


def _cells(view: ResultView, trials: Sequence[TrialView]) -> str:
    tally = Counter(cell.status for cell in view.cells)
    parts = [f"{tally[status]} {status.value}" for status in reversed(tuple(SEVERITY)) if tally[status]]
    said = f"Of {counted(len(view.cells), 'cell')} {', '.join(parts)}"
    return f"{said}." if len(trials) >= view.planned else f"{said}; {len(trials)} of {view.planned} trials."


def _trials(view: ResultView, trials: Sequence[TrialView]) -> str:
    """Counts by verdict; which servers have no trial that counts."""
    out = sum(not trial.counts for trial in trials)
    if out == len(trials):
        none = "the trial is invalid" if out == 1 else f"none of the {out} trials counts"
        return f"No figure is printed: {none}."
    fixed = [
        cell for part in view.parts if part.part.shape not in ("sweep", "capacity") for cell in part.cells
    ]
    bare = list(dict.fromkeys(cell.label for cell in fixed if not cell.counting))
    if bare:
        whose = "its" if len(bare) == 1 else "their"
        return (
            f"No figure for {join(bare)}: none of {whose} trials counts. "
            f"{len(trials) - out} of {counted(len(trials), 'trial')} count."
        )
    tally = Counter(trial.judgement.verdict for trial in trials if trial.counts)
    alone = next((status for status in SEVERITY if tally[status] == len(trials)), None)
    if alone is not None:
        word = "valid" if alone is Status.VALID else "suspect"
        all_of = "The trial is" if len(trials) == 1 else f"All {len(trials)} trials are"
        with_unknown = "The trial has" if len(trials) == 1 else f"All {len(trials)} trials have"
        return f"{with_unknown} an unknown check." if alone is Status.UNKNOWN else f"{all_of} {word}."
    named = (
        (tally[Status.VALID], "valid"),
        (tally[Status.SUSPECT], "suspect"),
        (tally[Status.UNKNOWN], "with an unknown check"),
        (out, "rejected"),
    )
    tail = f"; figures come from the {len(trials) - out} that count" if out else ""
    return f"Of {counted(len(trials), 'trial')}, {join([f'{n} {word}' for n, word in named if n])}{tail}."
