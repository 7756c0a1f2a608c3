"""Short clean trials in a row: how often does each check raise a false alarm? Must not excuse any.

Clean set-ups of many kinds, among them servers so fast that the load generator's own time shows: the
reference server without work, pinned and not, for 1 to 1,000 users, with every kind of connection. Over kept
connections at a URL they are what `prony load URL -c N -d 9s` runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prony.errors import EnvironmentFault
from prony.evidence.trial import Evidence
from prony.host.partition import partition
from prony.host.resource_limits import limits_to_own_servers
from prony.judge.finding import Status
from prony.judge.verdict import judge
from prony.judge.window import measured
from prony.plan import workload as workloads
from prony.plan.load import ClosedLoad, Connections, Measured, OpenLoad, SteadyWindow, WholeRun
from prony.plan.think import Think
from prony.plan.trial import TrialPlan, WarmUpPlan
from prony.selftest.faults.clean_run import disturbed
from prony.selftest.faults.model import Setup, SetupResult
from prony.selftest.faults.other_process import SHARED
from prony.selftest.faults.trial import Silent, run_setup
from prony.selftest.proportion import CONFIDENCE, upper_bound
from prony.server.build import Built, build
from prony.server.catalogue import Catalogue
from prony.targets import LaunchedServer
from prony.trial.run import run_trial
from prony.trial.surroundings import Surroundings

SHORT = WholeRun(duration_s=3.0)
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
FIRED = frozenset({Status.SUSPECT, Status.INVALID})
WORST_FIRST = (Status.INVALID, Status.SUSPECT, Status.UNKNOWN)
HEAD_LINES = 6
AIM = 0.01
"""Of clean trials, this many may be accused without a witness: another process, the hypervisor, or, for what
is said of the load generator, its own threads.
"""
THREAD_FULL, THREAD_WAITED = 0.95, 0.02
"""On a CPU or waiting for one ÷ wall time: a thread with nothing to spare. Waiting alone ÷ wall time: as much
as the check `client` lets pass.
"""
OF_THE_CLIENT = frozenset({"client", "stall", "bound_by"})
"""Checks that say something of the load generator, which its own threads can witness: `bound_by` where it
names the load generator. Nothing else is excused by them: no connection, no count, no level.
"""
CLIENT_BOUND = "client: "
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
    """The verdict and findings of one clean trial."""

    setup: str
    verdict: Status
    problems: dict[str, tuple[Status, str]]
    """Check -> its status and reason, of the findings that keep the trial from being valid."""
    others: bool = False
    """Whether the host's own readings show another process on its CPUs."""
    client_busy: bool = False
    """Whether the kernel's count of the load generator's threads shows one without CPU time to spare."""

    @property
    def fired(self) -> bool:
        """Suspect or invalid."""
        return self.verdict in FIRED

    @property
    def by_client(self) -> bool:
        """Fired, and only of the load generator, whose own threads had no CPU time to spare."""
        fired = {check: why for check, (status, why) in self.problems.items() if status in FIRED}
        of_client = fired.get("bound_by", CLIENT_BOUND).startswith(CLIENT_BOUND)
        return self.fired and self.client_busy and of_client and fired.keys() <= OF_THE_CLIENT

    @property
    def accused(self) -> bool:
        """Suspect or invalid, and nothing that the host read explains it."""
        return self.fired and not self.others and not self.by_client


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
        judged = outcome.judgement
        problems: dict[str, tuple[Status, str]] = {
            f.check: (f.status, f.reason)
            for f in judged.findings
            if f.status in FIRED or (f.status is Status.UNKNOWN and f.essential)
        }
        busy = client_busy(outcome.evidence)
        found.append(CleanTrial(kind, judged.verdict, problems, disturbed(outcome), busy))
        said = "; ".join(f"{check}: {why}" for check, (how, why) in problems.items() if how in FIRED)
        say(f"{number + 1}/{count} {kind}: {judged.verdict.value}{' - ' + said if said else ''}")
    return found


def client_busy(evidence: Evidence) -> bool:
    """Whether a thread of the load generator had no CPU time to spare, by the kernel's own count of it."""
    window = measured(evidence)
    for thread in window.threads if window is not None else ():
        if not thread.wall_s:
            continue
        waited = (thread.run_delay_s or 0.0) / thread.wall_s
        if waited >= THREAD_WAITED or waited + (thread.cpu_s or 0.0) / thread.wall_s >= THREAD_FULL:
            return True
    return False


def accusation(trials: Sequence[CleanTrial]) -> str:
    """How many were suspect or invalid, which of them have a witness, and how many have none; the first and
    the last with the exact binomial bound.
    """
    fired = _bounded(sum(trial.fired for trial in trials), len(trials))
    others = sum(trial.fired and trial.others for trial in trials)
    client = sum(trial.by_client and not trial.others for trial in trials)
    alone = _bounded(sum(trial.accused for trial in trials), len(trials))
    return (
        f"Suspect or invalid: {fired}. Witness another process or the hypervisor: {others}; the load "
        f"generator's own threads: {client}. Without a witness: {alone}; aim {AIM:.0%}."
    )


def _bounded(hits: int, count: int) -> str:
    share = 100 * hits / count if count else 0.0
    return (
        f"{hits} of {count} ({share:.1f} %), which is at most {100 * upper_bound(hits, count):.1f} % with "
        f"{CONFIDENCE:.0%} confidence"
    )


def clean_trials_table(trials: Sequence[CleanTrial]) -> str:
    """Markdown: the share of trials in which each check was suspect, invalid or unknown, how many of those
    were disturbed by another process, and the worst finding.
    """
    verdicts = Counter(trial.verdict.value for trial in trials)
    beside = sum(trial.others for trial in trials)
    lines = [
        f"{len(trials)} clean trials: "
        + ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
        + f"; {beside} disturbed by another process, by the host's own readings",
        "",
        accusation(trials),
        "",
        "| check | unknown | suspect | invalid | fired (disturbed) | set-ups | for example |",
        "|---|---|---|---|---|---|---|",
    ]
    for check in sorted({check for trial in trials for check in trial.problems}):
        hits = [(trial, *trial.problems[check]) for trial in trials if check in trial.problems]
        counted = Counter(status for _, status, _ in hits)
        shares = [f"{100 * counted[status] / len(trials):.0f} %" for status in reversed(WORST_FIRST)]
        fired = [trial for trial, status, _ in hits if status in FIRED]
        near = f"{len(fired)} ({sum(trial.others for trial in fired)})" if fired else ""
        setups = _setups({trial.setup for trial, _, _ in hits})
        worst = min(hits, key=lambda hit: WORST_FIRST.index(hit[1]))[2].replace("|", "/")
        lines.append(f"| {check} | {' | '.join(shares)} | {near} | {setups} | {worst} |")
    return "\n".join(lines if len(lines) > HEAD_LINES else lines[:1])


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
