"""How servers are tried that are compared, or one that is held against itself: options of `compare`, `aa`,
`gate` and `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prony.cli.targets import Server
    from prony.plan.trial import TrialPlan
    from prony.plan.workload import Workload

    Form = Callable[[Workload, int, float | None], TrialPlan]
    """From workload, users and the window's length, where one is given."""


@dataclass(frozen=True, slots=True)
class AskedTrial:
    """One trial of each server."""

    workload: Annotated[
        str | None,
        typer.Option("--workload", "-w", help="Workload [default: the first that every server offers]."),
    ] = None
    users: Annotated[
        int | None,
        typer.Option("--users", "-c", help="Closed loop: number of users, one connection each."),
    ] = None
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set a workload setting, such as delay_ms=50; repeatable."),
    ] = None
    band: Annotated[
        str,
        typer.Option(
            "--band", help="Equivalence band: servers that differ by less are equivalent, such as 1% or 0.01."
        ),
    ] = "2%"
    at_least: Annotated[
        str, typer.Option("--at-least", help="Smallest difference worth a claim, such as 10%.")
    ] = "1%"
    window: Annotated[
        str | None,
        typer.Option(
            "--window", help="Measured part of a trial, such as 30s [default: 30s; quick and gate: 10s]."
        ),
    ] = None
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A first look: few trials, short windows; every figure is marked quick."
        ),
    ] = False
    warm_up: Annotated[
        str,
        typer.Option(
            "--warm-up",
            help="all-cpus: faster, same plateau; pinned: on the server's CPUs from the start.",
        ),
    ] = "all-cpus"
    warm_up_cap: Annotated[
        str | None,
        typer.Option(
            "--warm-up-cap",
            help="Longest warm-up, such as 60s; residual drift then widens the plateau.",
        ),
    ] = None

    def trial(self, servers: Sequence[Server], form: Form | None = None) -> TrialPlan:
        """The trial of these servers, as the options describe it; `form`: its usual lengths, by default those
        of the full or the quick form. Raises UsageError for a value out of range.
        """
        from prony.cli.targets import request
        from prony.plan.trial import capped, full_trial, pinned, quick_trial

        chosen = request(servers, self.workload).with_settings(options.settings(self.setting or []))
        number = options.users(chosen.users if self.users is None else self.users)
        window_s = None if self.window is None else options.seconds(self.window, "--window", at_least_s=1.0)
        trial = (form or (quick_trial if self.quick else full_trial))(chosen, number, window_s)
        running = any(one.spec is None for one in servers)
        if running:
            trial = trial.model_copy(update={"published_requests": None})
        if options.one_of(self.warm_up, "--warm-up", ("all-cpus", "pinned")) == "pinned":
            if running:
                raise UsageError(
                    "--warm-up pinned moves servers that Prony starts; pin a running one with taskset"
                )
            trial = trial.model_copy(update={"warm_up": pinned(trial.warm_up)})
        if self.warm_up_cap is None:
            return trial
        cap_s = options.seconds(self.warm_up_cap, "--warm-up-cap", at_least_s=1.0)
        return trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})
