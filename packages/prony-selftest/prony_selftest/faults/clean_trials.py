"""Short clean trials: how many conform, and how wide their bounds are.

Clean set-ups of many kinds, among them servers so fast that the load generator's own time shows: the
reference server without work, pinned and not, for 1 to 1,000 users, with every kind of connection. With
keep-alive at a URL they equal `prony load URL -c N -d 9s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
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
from prony.report.labels import label_of
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.targets import LaunchedServer
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings
from prony_selftest.faults.clean_run import disturbed, problems
from prony_selftest.faults.model import Setup, SetupResult
from prony_selftest.faults.other_process import SHARED
from prony_selftest.faults.trial import SilentListener, run_setup
from prony_selftest.proportion import CONFIDENCE, upper_bound
from prony_selftest.tables import plus_minus, table

AT_URL = SteadyWindow(window_s=9.0)
"""A user's measurement: capacity is claimed, from a steady window."""
SETUPS: dict[str, Setup] = {
    "busy server": Setup(),
    "busy server, 9 s window": Setup(measured=SteadyWindow(window_s=9.0)),
    "waiting server, thinking users": Setup(serve=("--delay", "exp:5ms"),
        load=ClosedLoad(users=50, think=Think(kind="exponential", mean_ms=100))),
    "open loop": Setup(serve=("--delay", "lognormal:5ms,0.5"), load=OpenLoad(rate_per_s=200)),
    "open loop, Poisson": Setup(serve=("--delay", "fixed:20ms"),
        load=OpenLoad(rate_per_s=200, arrivals="poisson")),
    "HTTPS": Setup(tls=True),
    "asyncio server at a URL, 1 user": Setup(command=(*SHARED, "{host}", "{port}"), load=ClosedLoad(users=1),
        measured=AT_URL, foreign=True, calibrated=True),
}  # fmt: skip
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
"""Aim for the share of clean trials that do not conform."""
FIGURES = ("requests_per_s", "p99_ms")
"""Figures whose bounds are in the table."""
AIMS = {
    "quiet": ", aim ± 5 %",
    "with other processes": ", aim ± 15 %",
    "client on the server's CPUs": "",
}
"""Rows of the table, and the aim for the median half width of bounds."""
WARM_UP = WarmUpPlan(min_s=6.0, cap_s=20.0, settle_min_s=3.0, settle_cap_s=6.0)
"""Warm-up of a catalogue server."""


def fast_setups() -> dict[str, Setup]:
    """The reference server without work: launched on its own CPU, or at a URL on any CPU."""
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
    """A user's window for keep-alive at a URL; for HTTPS a steady window, without the first handshakes."""
    if connections == KEPT:
        return AT_URL if foreign else WholeRun(duration_s=FAST_S)
    return SteadyWindow(window_s=FAST_S) if connections == "HTTPS" else WholeRun(duration_s=FAST_S)


def every_setup() -> dict[str, Setup]:
    """All set-ups, slow and fast mixed, so that a short run covers every kind."""
    fast, others = list(fast_setups().items()), list(SETUPS.items())
    # A stride coprime to the number of set-ups visits all of them.
    mixed = [fast[(7 * at) % len(fast)] for at in range(len(fast))]
    every = max(1, len(mixed) // len(others))
    for at, other in enumerate(others):
        mixed.insert(at * (every + 1), other)
    return dict(mixed)


@dataclass(frozen=True, slots=True)
class CleanTrial:
    """Findings of one clean trial."""

    setup: str
    problems: dict[str, str]
    """Check -> reason, of the findings that keep it from conforming."""
    bounds: dict[str, dict[str, Bias]]
    """Figure -> check -> its line of the budget."""
    conditions: tuple[str, ...] = ()
    """Checks whose finding is a condition."""
    host: str = "quiet"
    """A row of `AIMS`: by the host's own readings, and by where client and server ran."""

    @property
    def conforms(self) -> bool:
        """Whether nothing keeps it from conforming."""
        return not self.problems

    def half(self, figure: str) -> float | None:
        """Half width of the figure's bound, as a share; infinite if a side is open. None if the trial does
        not conform.
        """
        if not self.conforms:
            return None
        return added(self.bounds.get(figure, {}).values()).half


def clean_trials(count: int, server: str | None, say: Callable[[str], None]) -> Iterator[CleanTrial]:
    """`count` trials, round-robin over the set-ups; a catalogue `server` is a further set-up."""
    setups = every_setup()
    kinds = [*([server] if server else []), *setups]
    built = _built(server) if server else None
    for number in range(count):
        kind = kinds[number % len(kinds)]
        try:
            if built is not None and kind == server:
                evidence = _real(built, number + 1)
                outcome = SetupResult(evidence, judge(evidence), {})
            else:
                outcome = run_setup(setups[kind], seed=number + 1)
            trial = clean_trial(kind, outcome)
        except EnvironmentFault as fault:
            trial = CleanTrial(kind, {"not measured": str(fault)}, {})
        reasons = "; ".join(f"{check}: {why}" for check, why in trial.problems.items())
        say(f"{number + 1}/{count} {kind}: {reasons or 'conforms'}, {_half(trial.half(FIGURES[0]))}")
        yield trial


def clean_trial(kind: str, outcome: SetupResult) -> CleanTrial:
    """A judged trial as a clean trial."""
    judged, sides = outcome.judgement, outcome.evidence.partition
    busy = "with other processes" if disturbed(outcome) else "quiet"
    return CleanTrial(
        kind,
        problems(outcome),
        {name: {line.finding.check: line.bias for line in judged.budget(name)} for name in FIGURES},
        tuple(finding.check for finding in judged.provided),
        "client on the server's CPUs" if sides is not None and not sides.separate else busy,
    )


def conforming(trials: Sequence[CleanTrial]) -> str:
    """How many do not conform, with the exact upper bound."""
    wrong = sum(not trial.conforms for trial in trials)
    return (
        f"Do not conform: {wrong} of {len(trials)}, which is at most "
        f"{100 * upper_bound(wrong, len(trials)):.1f} % with {CONFIDENCE:.0%} confidence; aim {AIM:.0%}."
    )


def clean_trials_table(trials: Sequence[CleanTrial]) -> str:
    """Conforming trials, widths of bounds on a quiet and a busy host, bounds and failures per check."""
    lines = [conforming(trials), ""]
    head = ("host", "trials", *(f"{label_of(name)}: median, 9 of 10, open" for name in FIGURES))
    rows: list[tuple[object, ...]] = []
    for name, aim in AIMS.items():
        of = [trial for trial in trials if trial.host == name]
        rows.append((f"{name}{aim}", len(of), *(_widths(of, figure) for figure in FIGURES)))
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
    names = (
        "check", f"bounds {label_of(FIGURES[0])}", "median", "condition", "does not conform", "set-ups",
        "why",
    )  # fmt: skip
    return "\n".join([*lines, table(names, per_check)])


def _checks(trial: CleanTrial) -> set[str]:
    """Checks with a finding in this trial."""
    return {*trial.problems, *trial.conditions, *(check for of in trial.bounds.values() for check in of)}


def _widths(trials: Sequence[CleanTrial], figure: str) -> str:
    halves = sorted(half for trial in trials if (half := trial.half(figure)) is not None)
    if not halves:
        return ""
    tenth = halves[min(len(halves) - 1, math.ceil(0.9 * len(halves)) - 1)]
    return f"{_half(median(halves))}, {_half(tenth)}, {sum(map(math.isinf, halves))}"


def _half(half: float | None) -> str:
    return "" if half is None else plus_minus(half)


def _setups(names: set[str]) -> str:
    """Names; fast servers as their number and an example."""
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
    outcome = run_trial(plan, LaunchedServer(built.spec, built), surroundings, SilentListener(), seed=seed)
    if outcome.failure is not None:
        raise EnvironmentFault(outcome.failure)
    return outcome.evidence
