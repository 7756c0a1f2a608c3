"""What settles more is a line that can be pasted."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from prony.cli.next_step import next_step
from prony.compare.claim import Claim, Settles
from prony.report.result import ResultView
from tests.report import factory

TYPED = ["compare", "PORT={port} ./a", "b", "--trials", "5", "--quick"]


def with_pair(claim: Claim, settles: Settles | None) -> ResultView:
    view = factory.full()
    part = replace(view.parts[0])
    first, *rest = part.pairs
    wanted = replace(first, figure=part.asked_figure, claim=claim, settles=settles)
    shown = [replace(pair, claim=Claim.SHOWN) for pair in rest]
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
        (Claim.OPEN, Settles("blocks", 600.0, 7), []),
        (Claim.OPEN, Settles("blocks", 600.0, 7), ["compare", "--resume", "latest"]),
        (Claim.OPEN, Settles("blocks", 600.0, 7), ["compare", "http://me:secret@host/", "b"]),
    ],
)
def test_where_no_number_of_trials_settles_it_there_is_no_line(
    claim: Claim, settles: Settles | None, typed: list[str]
) -> None:
    assert next_step(with_pair(claim, settles), typed) == ""
