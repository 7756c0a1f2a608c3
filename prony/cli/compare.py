"""`prony compare`: servers against each other, from fresh processes, with intervals on the ratios."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Literal

from typer import Argument, Option

from prony import seams
from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common, Duet, with_duet
from prony.cli.targets import KINDS, Server, TrialOptions
from prony.cli.targets import servers as servers_named
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan.cell import Cell
    from prony.plan.part import Part
    from prony.plan.plan import Plan
    from prony.plan.trial import TrialPlan

SHARE = 0.7
"""Share of the capacity: busy, yet the queue still drains after a stall."""
MOST_PAIRS_QUICK = 3
"""With more, Holm's first level is too strict for three trials: 11.8 standard deviations for 21 pairs."""


@measures(without=("share_process",))
def command(
    servers: list[str] = Argument(
        None,
        help=f"Two or more that Prony starts: {KINDS}; or URLs of running servers.",
    ),
    image: list[str] | None = Option(
        None, "--image", metavar="NAME", help="A container image, by podman or docker; repeatable."
    ),
    trials: int | None = Option(
        None,
        "--trials",
        help="Number of trials per server, each in a fresh process [default: 5, quick: 3 up to 3 pairs].",
    ),
    two_pass: bool = Option(
        False,
        "--two-pass",
        help="Then measure latency in an open loop, at 70 % of each server's capacity and at a common rate "
        "(three times the duration).",
    ),
    duet: Duet = None,
    reference: str | None = Option(
        None,
        "--reference",
        metavar="NAME",
        help="Compare each server with this server only [default: all pairs].",
    ),
    *,
    typed: TrialOptions,
    common: Common,
) -> int:
    """Compare servers at capacity: fresh processes, steady state, intervals on ratios, what bounds each."""
    from prony.cli import measure
    from prony.plan.target import IMAGE

    words = [*(servers or []), *(f"{IMAGE}{word}" for word in image or [])]
    named = servers_named(words)
    hosts = None if common.hosts is None else seams.need(seams.HOOKS, "hosts", "--hosts")
    machines = 1 if hosts is None else hosts.machines(common.hosts)
    _check_servers(words, named, machines=machines)
    trial = typed.trial(named)
    pairs = _pairs([server.name for server in named], reference)
    few = typed.quick and len(pairs) <= MOST_PAIRS_QUICK
    first = options.trials(trials if trials is not None else (3 if few else 5))
    plan = _plan(named, trial, first, typed, seed=options.seed(common.seed))
    if reference is not None:
        plan = plan.model_copy(update={"parts": (plan.parts[0].model_copy(update={"comparisons": pairs}),)})
    if two_pass:
        plan = plan.model_copy(update={"parts": (*plan.parts, *_latency_parts(plan.parts[0]))})
    return measure.run(with_duet(plan, common.in_turns(plan, duet)), common)


def _pairs(servers: list[str], reference: str | None) -> tuple[tuple[str, str], ...]:
    """All pairs, or those with the reference. Raises UsageError for an unknown name."""
    if reference is not None:
        options.one_of(reference, "--reference", tuple(servers))
    return tuple(pair for pair in combinations(servers, 2) if reference is None or reference in pair)


def _plan(servers: list[Server], trial: TrialPlan, trials: int, typed: TrialOptions, *, seed: int) -> Plan:
    from prony.experiment.stored import history_of
    from prony.plan.plan import one_part

    def cell(server: Server) -> Cell:
        moved = server.spec is not None and server.spec.image is None and trial.warm_up.method != "pinned"
        controls = 1 if moved and not typed.quick else 0
        known = history_of(trial.workload, server.name) if server.catalogued else ()
        return server.cell(trial, trials, controls=controls, published=known)

    return one_part(
        "compare",
        f"{' vs '.join(server.name for server in servers)}: {trial.workload.title or trial.workload.name}",
        [cell(server) for server in servers],
        seed=seed,
        quick=typed.quick,
        shape="comparison",
        band=options.share(typed.band, "--band"),
        at_least=options.share(typed.at_least, "--at-least"),
    )


def _latency_parts(capacity: Part) -> list[Part]:
    from prony.plan.part import Follow

    share = f"{SHARE * 100:.0f} %"
    titles: dict[Literal["own", "common"], str] = {
        "own": f"Latency at {share} of each server's own capacity",
        "common": f"Latency at one rate for all, {share} of the lowest capacity",
    }
    return [
        capacity.model_copy(
            update={
                "name": f"latency-{rate}",
                "title": title,
                "follows": Follow(part=capacity.name, share=SHARE, rate=rate),
            }
        )
        for rate, title in titles.items()
    ]


def _check_servers(words: list[str], named: list[Server], *, machines: int) -> None:
    if not words:
        raise UsageError(
            "name two or more servers of the catalogue (prony servers lists them), folders with a "
            "server.yaml, command lines with {port}, or URLs; or --resume ID"
        )
    if len(words) < 2 and machines < 2:
        raise UsageError(
            f"a single server given ({words[0]}); compare needs at least two (prony servers lists them)"
        )
    if len({server.name for server in named}) < len(named):
        raise UsageError(f"a server was named twice ({', '.join(words)}); name each server once")
    running = [word for word, server in zip(words, named, strict=True) if server.spec is None]
    if 0 < len(running) < len(words):
        raise UsageError(
            f"{running[0]} is already running, and Prony starts the others; name only URLs, or only servers "
            "that Prony starts (a plan file takes both: docs/plans.md)"
        )
