"""Short clean trials in a row: how many conform, and how wide are their bounds?

Clean set-ups of many kinds, among them servers so fast that the load generator's own time shows: the
reference server without work, pinned and not, for 1 to 1,000 users, with every kind of connection. Over kept
connections at a URL they are what `prony load URL -c N -d 9s` runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from prony.errors import EnvironmentFault
from prony.evidence.trial import Evidence
from prony.host.partition import partition
from prony.host.resource_limits import limits_to_own_servers
from prony.judge.finding import Bias, added
from prony.judge.judging import judge
from prony.plan import workload as workloads
from prony.plan.load import ClosedLoad, Connections, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.think import Think
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.targets import LaunchedServer
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings
from prony_selftest.faults.clean_run import disturbed, problems
from prony_selftest.faults.model import Setup, SetupResult
from prony_selftest.faults.other_process import SHARED
from prony_selftest.faults.trial import Silent, run_setup
from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.tables import table

AT_URL = SteadyWindow(window_s=9.0)
"""As a user measures: a capacity is claimed, and a level window, of which a whole run claims neither."""
SETUPS: dict[str, Setup] = {
    "busy server": Setup(),
    "busy server, 9 s window": Setup(measured=SteadyWindow(window_s=9.0)),
    "waiting server, thinking users": Setup(
        serve=("--delay", "exp:5ms"), load=ClosedLoad(users=50, think=Think(kind="exponential", mean_ms=100))
    ),
    "open loop": Setup(serve=("--delay", "lognormal:5ms,0.5"), load=OpenLoad(rate_per_s=200)),
    "open loop, Poisson": Setup(
        serve=("--delay", "fixed:20ms"), load=OpenLoad(rate_per_s=200, arrivals="poisson")
    ),
    "HTTPS": Setup(tls=True),
    "asyncio server at a URL, 1 user": Setup(
        command=(*SHARED, "{host}", "{port}"),
        load=ClosedLoad(users=1),
        measured=AT_URL,
        foreign=True,
        calibrated=True,
    ),
}
FAST = "fast server, "
FAST_USERS = (1, 8, 16, 64, 256, 1000)
FAST_S = 2.0
KEPT = "keep-alive"
FAST_CONNECTIONS = {
    KEPT: (Connections(), False),
    "a connection per request": (Connections(keep_alive=False), False),
    "HTTPS": (Connections(), True),
}
AIM = 0.01
"""Of clean trials, this many may not conform."""
FIGURES = ("requests_per_s", "p99_ms")
"""Whose bounds the table has."""
QUIET_AIM, BUSY_AIM = 0.05, 0.15
"""Median of the half-width of a bound on a quiet host, and on one with other processes."""
WARM_UP = WarmUpPlan(min_s=6.0, cap_s=20.0, settle_min_s=3.0, settle_cap_s=6.0)
"""For a server of the catalogue, which has to warm up."""


def fast_setups() -> dict[str, Setup]:
    """The reference server without any work: launched on its own CPU, or at a URL and on any CPU."""
    return {
        f"{FAST}{'any CPU' if foreign else 'pinned'}, {users} users, {name}": Setup(
            serve=(),
            load=ClosedLoad(users=users),
            measured=_measured(foreign, name),
            connections=connections,
            tls=tls,
            foreign=foreign,
            calibrated=True,
        )
        for users in FAST_USERS
        for foreign in (False, True)
        for name, (connections, tls) in FAST_CONNECTIONS.items()
    }


def _measured(foreign: bool, connections: str) -> Measured:
    """Over kept connections at a URL what a user does; HTTPS without its handshakes, of which a whole run
    begins with as many as it has users.
    """
    if connections == KEPT:
        return AT_URL if foreign else WholeRun(duration_s=FAST_S)
    return SteadyWindow(window_s=FAST_S) if connections == "HTTPS" else WholeRun(duration_s=FAST_S)


def every_setup() -> dict[str, Setup]:
    """All set-ups in an order in which a short run meets every kind: slow ones among the fast."""
    fast, others = list(fast_setups().items()), list(SETUPS.items())
    # A stride without a common divisor with the number of set-ups goes through all of them.
    mixed = [fast[(7 * at) % len(fast)] for at in range(len(fast))]
    every = max(1, len(mixed) // len(others))
    for at, other in enumerate(others):
        mixed.insert(at * (every + 1), other)
    return dict(mixed)


@dataclass(frozen=True, slots=True)
class CleanTrial:
    """What was found in one clean trial."""

    setup: str
    problems: dict[str, str]
    """Check -> reason, of the findings that keep it from conforming."""
    bounds: dict[str, dict[str, Bias]]
    """Figure -> check -> its line of the budget."""
    conditions: tuple[str, ...] = ()
    """Checks whose finding is a condition."""
    others: bool = False
    """Whether the host's own readings show another process on its CPUs."""

    @property
    def conforms(self) -> bool:
        """Nothing keeps it from being what was asked for."""
        return not self.problems

    def half(self, figure: str) -> float | None:
        """Half of the width of the figure's bound, as a share; infinite where a side is open. None where it
        does not conform.
        """
        if not self.conforms:
            return None
        return added(self.bounds.get(figure, {}).values()).half


def clean_trials(count: int, server: str | None, say: Callable[[str], None]) -> list[CleanTrial]:
    """`count` trials, the set-ups in turn; a `server` of the catalogue is one more set-up."""
    setups = every_setup()
    kinds = [*([server] if server else []), *setups]
    built = _built(server) if server else None
    found: list[CleanTrial] = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        if built is not None and kind == server:
            evidence = _real(built, number + 1)
            outcome = SetupResult(evidence, judge(evidence), {})
        else:
            outcome = run_setup(setups[kind], seed=number + 1)
        found.append(clean_trial(kind, outcome))
        said = "; ".join(f"{check}: {why}" for check, why in found[-1].problems.items())
        say(f"{number + 1}/{count} {kind}: {said or 'conforms'}, {_half(found[-1].half(FIGURES[0]))}")
    return found


def clean_trial(kind: str, outcome: SetupResult) -> CleanTrial:
    """What was found in it."""
    judged = outcome.judgement
    return CleanTrial(
        kind,
        problems(outcome),
        {name: {line.finding.check: line.bias for line in judged.budget(name)} for name in FIGURES},
        tuple(one.check for one in judged.provided),
        disturbed(outcome),
    )


def conforming(trials: Sequence[CleanTrial]) -> str:
    """How many conform, with the exact bound of those that do not."""
    wrong = sum(not trial.conforms for trial in trials)
    return (
        f"Do not conform: {wrong} of {len(trials)}, which is at most "
        f"{100 * upper_bound(wrong, len(trials)):.1f} % with {CONFIDENCE:.0%} confidence; aim {AIM:.0%}."
    )


def clean_trials_table(trials: Sequence[CleanTrial]) -> str:
    """Markdown: how many conform, how wide the bounds of their figures are on a host without and with other
    processes, which checks make them, and why a trial does not conform.
    """
    lines = [conforming(trials), ""]
    head = ("host", "trials", *(f"{name}: median, 9 of 10, open" for name in FIGURES))
    rows: list[tuple[object, ...]] = []
    for name, aim, busy in (("quiet", QUIET_AIM, False), ("with other processes", BUSY_AIM, True)):
        of = [trial for trial in trials if trial.others is busy]
        rows.append((f"{name}, aim ± {aim:.0%}", len(of), *(_widths(of, figure) for figure in FIGURES)))
    lines += [table(head, rows), ""]
    per_check = []
    for check in sorted({check for trial in trials for check in _checks(trial)}):
        of = [trial for trial in trials if check in _checks(trial)]
        halves = [
            bias.half for trial in of if (bias := trial.bounds.get(FIGURES[0], {}).get(check)) is not None
        ]
        worst = next((trial.problems[check] for trial in of if check in trial.problems), "")
        per_check.append(
            (
                check,
                len(halves),
                _half(median(halves)) if halves else "",
                sum(check in trial.conditions for trial in of),
                sum(check in trial.problems for trial in of),
                _setups({trial.setup for trial in of}),
                worst.replace("|", "/"),
            )
        )
    names = ("check", f"bounds {FIGURES[0]}", "median", "condition", "does not conform", "set-ups", "why")
    return "\n".join([*lines, table(names, per_check)])


def _checks(trial: CleanTrial) -> set[str]:
    """That did something to this trial."""
    return {*trial.problems, *trial.conditions, *(check for of in trial.bounds.values() for check in of)}


def _widths(trials: Sequence[CleanTrial], figure: str) -> str:
    halves = sorted(half for trial in trials if (half := trial.half(figure)) is not None)
    if not halves:
        return ""
    tenth = halves[min(len(halves) - 1, math.ceil(0.9 * len(halves)) - 1)]
    return f"{_half(median(halves))}, {_half(tenth)}, {sum(map(math.isinf, halves))}"


def _half(half: float | None) -> str:
    return "" if half is None else "open" if math.isinf(half) else f"± {100 * half:.1f} %"


def _setups(names: set[str]) -> str:
    """By name; of many fast ones their number and one of them."""
    fast = sorted(name for name in names if name.startswith(FAST))
    others = sorted(names - set(fast))
    if len(fast) > 1:
        fast = [f"{len(fast)} fast servers ({fast[0].removeprefix(FAST)}, …)"]
    return "; ".join([*others, *fast])


def _built(address: str) -> Built:
    spec = Catalogue.load().resolve(address)
    return build([spec])[0]


def _real(built: Built, seed: int) -> Evidence:
    chosen = partition()
    offered = built.spec.workloads[0]
    plan = TrialPlan(
        workload=workloads.load(offered),
        load=ClosedLoad(users=10),
        measured=SteadyWindow(window_s=9.0),
        warm_up=WARM_UP,
    )
    surroundings = Surroundings(chosen, limits_to_own_servers())
    outcome = run_trial(plan, LaunchedServer(built.spec, built), surroundings, Silent(), seed=seed)
    if outcome.failure is not None:
        raise EnvironmentFault(outcome.failure)
    return outcome.evidence
