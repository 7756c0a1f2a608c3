"""`prony sweep`: throughput and times over numbers of users."""

from __future__ import annotations

from collections.abc import Sequence

from typer import Option

from prony.cli import options
from prony.cli import targets as t
from prony.cli.command import measures
from prony.cli.common import Common
from prony.errors import UsageError

USERS = "1,2,4,8,16,32,64,128,256"
MOST_POINTS = 100
FEWEST_POINTS = 4
"""With fewer numbers of users no law is fitted (prony.compare.scaling)."""
REPEATS = 3


@measures(without=("until_clear", "max_trials"))
def command(
    users: str | None = Option(
        None, "--users", "-c", help=f"Numbers of users; 16…2048 doubles between two [default: {USERS}]."
    ),
    trials: int | None = Option(
        None,
        "--trials",
        help="Number of trials per number of users [default: 3; quick, or fewer than 4 numbers: 1].",
    ),
    *,
    typed: t.TargetOptions,
    common: Common,
) -> int:
    """Measure scaling over numbers of users, fit the Universal Scalability Law, and find peak throughput."""
    from prony.cli import measure
    from prony.plan.load import ClosedLoad
    from prony.plan.plan import one_part

    numbers = user_list(users or USERS)
    times = options.trials(trials if trials is not None else usual_trials(numbers, quick=typed.quick))
    chosen = t.chosen(typed)
    plan = one_part(
        "sweep",
        f"sweep of {chosen.title}",
        [chosen.cell(ClosedLoad(users=number), times) for number in numbers],
        seed=options.seed(common.seed),
        quick=typed.quick,
        shape="sweep",
    )
    return measure.run(plan, common)


def usual_trials(numbers: Sequence[int], *, quick: bool) -> int:
    """Trials per number of users: a law that is fitted gets intervals that cover."""
    return 1 if quick or len(numbers) < FEWEST_POINTS else REPEATS


def user_list(text: str) -> tuple[int, ...]:
    """`1,8,16…2048`: numbers of users, ascending; … or ... doubles from the left number to the right."""
    numbers: list[int] = []
    for part in text.replace("...", "…").split(","):
        ends = [end.strip() for end in part.split("…")]
        if len(ends) > 2 or not all(end.isdecimal() for end in ends):
            raise UsageError(f"--users has '{part}'; expected numbers such as 1,8,16…2048")
        first, last = options.users(int(ends[0])), options.users(int(ends[-1]))
        if last < first:
            raise UsageError(f"--users has '{part}'; expected the smaller number first")
        while first < last:
            numbers.append(first)
            first *= 2
        numbers.append(last)
    if len(set(numbers)) > MOST_POINTS:
        raise UsageError(f"--users has {len(set(numbers))} numbers; expected at most {MOST_POINTS}")
    return tuple(sorted(set(numbers)))
