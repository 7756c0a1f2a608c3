"""What settles more is a line that can be pasted."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from prony.cli.next_step import next_step
from prony.compare.capacity import End, SearchResult
from prony.compare.claim import Claim, Settles
from prony.compare.noninferiority import Change
from prony.judge.estimate import Uncertainty
from prony.plan.part import Search
from prony.report.cell_view import CellView
from prony.report.result import ResultView, SearchView
from tests.report import factory
from tests.report.trial_evidence import WINDOW_S

TYPED = ["compare", "PORT={port} ./a", "b", "--trials", "5", "--quick"]


def with_pair(claim: Claim, settles: Settles | None) -> ResultView:
    view = factory.full()
    part = replace(view.parts[0])
    first, *rest = part.pairs
    wanted = replace(first, figure=part.headline_figure, claim=claim, settles=settles)
    shown = [replace(pair, claim=Claim.SHOWN, settles=None) for pair in rest]
    return factory.with_pairs(view, [wanted, *shown])


def test_an_open_pair_gets_the_trials_that_settle_it() -> None:
    view = with_pair(Claim.OPEN, Settles("blocks", 600.0, 7))
    (part,) = view.parts
    trials = max(cell.cell.trials for cell in part.cells) + 7
    again = shlex.split(next_step(view, TYPED))
    assert again == ["prony", "compare", "PORT={port} ./a", "b", "--quick", "--trials", str(trials)]


@pytest.mark.parametrize(
    ("claim", "settles", "typed"),
    [
        (Claim.SHOWN, None, TYPED),
        (Claim.OPEN, Settles("isolation", None), TYPED),
        (Claim.OPEN, Settles("blocks", 1e6, 4000), TYPED),
        (Claim.SHOWN_FOR_WINDOW, Settles("load", 3000.0), TYPED),
        (Claim.SHOWN_FOR_WINDOW, Settles("load", None), TYPED),
        (Claim.OPEN, Settles("blocks", 600.0, 7), []),
        (Claim.OPEN, Settles("blocks", 600.0, 7), ["compare", "--resume", "latest"]),
        (Claim.OPEN, Settles("blocks", 600.0, 7), ["compare", "http://me:secret@host/", "b"]),
    ],
)
def test_where_no_number_of_trials_settles_it_there_is_no_line(
    claim: Claim, settles: Settles | None, typed: list[str]
) -> None:
    assert next_step(with_pair(claim, settles), typed) == ""


def test_a_difference_of_this_window_gets_the_window_that_shows_it_beyond() -> None:
    view = with_pair(Claim.SHOWN_FOR_WINDOW, Settles("load", 63.2))
    again = shlex.split(next_step(view, [*TYPED, "--window", "30s"]))
    assert again == ["prony", *TYPED, "--window", f"{WINDOW_S + 64:g}s"]


@pytest.mark.parametrize(
    ("end", "option", "value"),
    [
        (End.TRIALS, "--search-trials", "48"),
        (End.UNDECIDED, "--window", f"{2 * WINDOW_S:g}s"),
        (End.FOUND, None, None),
        (End.CLIENT, None, None),
        (None, None, None),
    ],
)
def test_a_search_without_an_answer_gets_more_trials_or_a_longer_window(
    end: End | None, option: str | None, value: str | None
) -> None:
    view = factory.full()
    (part,) = view.parts
    search = SearchView((), SearchResult(None, None, None, end, 24), ())
    planned = part.part.model_copy(
        update={"search": Search(objectives="p99<1s", highest_per_s=1e6, resolution=0.05, most_trials=24)}
    )
    again = replace(view, parts=(replace(part, part=planned, search=search),))
    typed = ["capacity", "http://127.0.0.1/", "--slo", "p99<1s"]
    expected = "" if option is None else shlex.join(["prony", *typed, option, str(value)])
    assert next_step(again, typed) == expected


@pytest.mark.parametrize(
    ("state", "held", "more"),
    [
        ("finished", 1500.0, "--start 1500 --budget 20m"),
        ("finished", None, "--budget 20m"),
        ("interrupted", 1e3, ""),
    ],
)
def test_a_search_that_its_budget_ended_gets_twice_the_time(
    state: str, held: float | None, more: str
) -> None:
    view = factory.full()
    (part,) = view.parts
    search = SearchView((), SearchResult(held, None, None, None, 5), ())
    timed = part.part.model_copy(update={"budget_s": 600.0})
    cut = replace(view, state=state, parts=(replace(part, part=timed, search=search),))
    typed = ["capacity", "http://127.0.0.1/", "--slo", "p99<1s"]
    assert next_step(cut, typed) == (f"{shlex.join(['prony', *typed])} {more}" if more else "")


def test_a_load_is_measured_longer_where_chance_is_its_largest_uncertainty() -> None:
    view = factory.full()
    (part,) = view.parts
    cell = part.cells[0]
    single = replace(view, parts=(replace(part, cells=(cell,)),))

    def after(off: Uncertainty | None) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(CellView, "uncertainty", lambda *_: off)
            patch.setattr(ResultView, "planned", 1)
            return next_step(single, ["load", "http://127.0.0.1/", "-d", "5s"])

    longer = f"{4 * cell.cell.trial.measured_s:g}s"
    assert after(Uncertainty(-0.1, 0.1, -0.01, 0.02)) == f"prony load http://127.0.0.1/ --duration {longer}"
    assert after(Uncertainty(-0.1, 0.1, -0.01, 0.9)) == "", "more of the same noise"
    assert after(Uncertainty(-0.1, 0.1, -0.01, None)) == ""
    assert after(Uncertainty(-0.01, 0.01, 0.0, 0.0)) == ""
    assert after(None) == ""


@pytest.mark.parametrize(
    ("blocks", "seen", "takes"), [(2, None, 5), (6, 0.06, 24), (6, 0.02, None), (6, 9.0, None)]
)
def test_a_gate_that_cannot_tell_gets_the_budget_that_does(
    blocks: int, seen: float | None, takes: int | None
) -> None:
    view = replace(factory.full(), state="finished")
    (part,) = view.parts
    records = [trial.record for trial in part.trials]
    took_s = (max(r.ended_at for r in records) - min(r.started_at for r in records)).total_seconds()
    figure = SimpleNamespace(smallest_margin=seen)
    gate: Any = SimpleNamespace(
        change=Change.CANNOT_TELL, blocks=blocks, most_blocks=6, margin=0.03, figures=(figure,)
    )
    cells = tuple(replace(cell, cell=cell.cell.model_copy(update={"trials": 5})) for cell in part.cells)
    early = replace(view, parts=(replace(part, cells=cells, gate=gate),))
    typed = ["gate", "a", "b", "--budget=1m", "--margin", "3%"]
    needed_m = 0 if takes is None else math.ceil(takes * took_s / blocks / 60)
    expected = "" if takes is None else f"prony gate a b --margin 3% --budget {needed_m}m"
    assert next_step(early, typed) == expected
    assert next_step(view, typed) == "", "no gate"
