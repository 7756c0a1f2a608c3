"""How a stored sweep or search for a capacity is shown: table or JSON, page, exit code. Must not measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ExitCode

if TYPE_CHECKING:
    from prony.experiment.capacity import Capacity
    from prony.experiment.sweep import Sweep
    from prony.store import Store


def show_series(store: Store, which: str, *, as_json: bool, report: Path | None) -> int | None:
    """Print it and return the exit code; None when it is an experiment of another kind."""
    from prony.experiment.series import stored_series
    from prony.experiment.sweep import Sweep
    from prony.report.scaling import show_capacity, show_sweep

    row = store.experiment(which)
    made = stored_series(store, row)
    if made is None:
        return None
    if isinstance(made, Sweep):
        show_sweep(made, row.id, as_json=as_json, report=report)
    else:
        show_capacity(made, row.id, as_json=as_json, report=report)
    return exit_code(made)


def exit_code(made: Sweep | Capacity) -> int:
    """INVALID when no trial of a sweep counts, or no rate held."""
    from prony.experiment.sweep import Sweep

    if isinstance(made, Sweep):
        good = any(trial.counts for trial in made.trials)
    else:
        good = made.found.held_per_s is not None
    return ExitCode.OK if good else ExitCode.INVALID


def write_series_page(store: Store, which: str, output: Path) -> bool:
    """Write its page; False when it is an experiment of another kind."""
    from prony.experiment.series import stored_series
    from prony.report.html import write_text
    from prony.report.scaling import page_of

    row = store.experiment(which)
    made = stored_series(store, row)
    if made is not None:
        write_text(page_of(made, row.id), output)
    return made is not None
