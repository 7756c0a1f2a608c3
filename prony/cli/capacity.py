"""`prony capacity`: the highest rate that still meets an objective."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from typer import Option

from prony.cli import options
from prony.cli import targets as t
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

MOST_TRIALS = 24
RESOLUTION_PER_CENT = 5.0
USERS = 64
BUDGET_S = 600


@measures(without=("until_clear", "max_trials", "budget", "explain", "attach"))
def command(
    slo: str | None = Option(
        None, "--slo", help="Objective, such as 'p99<50ms' or 'p99<50ms,p99.9<1s' (quote it)."
    ),
    start: float | None = Option(
        None, "--start", help="First rate, requests/s [default: half the throughput of a closed loop]."
    ),
    highest: float | None = Option(None, "--highest", help="Highest rate to try, requests/s."),
    resolution: float | None = Option(
        None, "--resolution", help="Stop when the bracket is narrower than this, per cent [default: 5]."
    ),
    search_trials: int | None = Option(
        None, "--search-trials", help=f"End the search after this many trials [default: {MOST_TRIALS}]."
    ),
    users: int | None = Option(
        None, "--users", "-c", help=f"Users of the closed loop that sets the first rate [default: {USERS}]."
    ),
    arrivals: str | None = Option(
        None, "--arrivals", help="Arrivals: constant or poisson [default: constant]."
    ),
    budget: str | None = Option(
        None,
        "--budget",
        help="Time limit of all trials, such as 30m [default: 10m, of a server that Prony starts 20m; "
        "quick: half].",
    ),
    *,
    typed: t.TargetOptions,
    common: Common,
) -> int:
    """Find the highest rate that meets the objective: judged open-loop trials, within client capacity."""
    from prony.cli import measure
    from prony.experiment.growth import at_rate
    from prony.plan.load import ClosedLoad
    from prony.plan.objective import searchable
    from prony.plan.part import Search
    from prony.plan.plan import one_part

    if slo is None:
        raise UsageError("name what must hold with --slo, such as 'p99<50ms' (quote it)")
    searchable(slo)
    for rate in (start, highest):
        if rate is not None:
            options.rate(rate)
    if start is not None and highest is not None and start > highest:
        raise UsageError(f"--start is {start:g} and --highest {highest:g}; expected the start below it")
    narrow = RESOLUTION_PER_CENT if resolution is None else resolution
    if not 0.1 <= narrow <= 100:
        raise UsageError(f"--resolution is {narrow:g}; expected 0.1 to 100 per cent")
    spacing: Any = options.one_of(arrivals or "constant", "--arrivals", ("constant", "poisson"))
    search = Search(
        objectives=slo,
        highest_per_s=options.MAX_RATE_PER_S if highest is None else highest,
        resolution=narrow / 100,
        most_trials=options.trials(MOST_TRIALS if search_trials is None else search_trials),
        arrivals=spacing,
    )
    chosen = t.chosen(typed)
    first = chosen.cell(ClosedLoad(users=options.users(USERS if users is None else users)))
    plan = one_part(
        "capacity",
        f"capacity of {chosen.title} with {slo}",
        [first if start is None else at_rate(first, start, search)],
        seed=options.seed(common.seed),
        quick=typed.quick,
        shape="capacity",
        search=search,
    )
    if budget is None:
        budget = f"{BUDGET_S / (2 if typed.quick else 1) * (1 if chosen.server.spec is None else 2):g}s"
    return measure.run(plan, replace(common, budget=budget))
