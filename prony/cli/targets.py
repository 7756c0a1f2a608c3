"""URL or SERVER: what `prony sweep` and `prony capacity` put under load. Must not measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from prony.cli import options
from prony.errors import UsageError

if TYPE_CHECKING:
    from prony.plan import target as targets
    from prony.plan.cell import Cell
    from prony.plan.load import Load
    from prony.plan.trial import TrialPlan

URL_WARM_UP_S = 3.0

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="URL|SERVER",
        help="A URL (http://…) of a running server, or a server of the catalogue (prony servers).",
    ),
]


@dataclass(frozen=True, slots=True)
class AskedTarget:
    """What is put under load, and how long: of the commands that try several loads on it."""

    target: Target = None
    workload: Annotated[str | None, typer.Option("--workload", "-w", help="Which requests.")] = None
    window: Annotated[
        str | None,
        typer.Option(
            "--window", help="Measured part of a trial [default: 10s, of a server of the catalogue 30s]."
        ),
    ] = None
    warmup: Annotated[
        str | None,
        typer.Option("--warmup", help="Of a URL: load before the window, such as 5s [default: 3s]."),
    ] = None
    warm_up_cap: Annotated[
        str | None,
        typer.Option(
            "--warm-up-cap",
            help="Of a server of the catalogue: longest warm-up, such as 60s; a server that is not steady "
            "then is suspect.",
        ),
    ] = None
    quick: Annotated[bool, typer.Option("--quick", help="Shorter windows, a first look.")] = False


@dataclass(frozen=True, slots=True)
class Chosen:
    """A target, and a trial of it under any load."""

    title: str
    server: str
    target: targets.Target
    trial: TrialPlan

    def cell(self, load: Load, trials: int = 1) -> Cell:
        """The cell of this load."""
        from prony.plan.cell import cell_of
        from prony.plan.plan import MAIN

        trial = self.trial.model_copy(update={"load": load})
        return cell_of(MAIN, self.server, self.target, trial, trials)


def chosen(asked: AskedTarget) -> Chosen:
    """What the options say. A URL names its scheme; everything else is a server of the catalogue. Raises
    UsageError.
    """
    named = asked.target
    if named is None:
        raise UsageError("name a URL or a server of the catalogue (prony servers lists them)")
    if "://" in named:
        if asked.warm_up_cap is not None:
            raise UsageError("--warm-up-cap applies to a server of the catalogue; of a URL give --warmup")
        return _url(named, asked)
    if asked.warmup is not None:
        raise UsageError(
            "--warmup applies to a URL; a server of the catalogue is warmed up until it is steady, for no "
            "longer than --warm-up-cap"
        )
    return _server(named, asked)


def _url(named: str, asked: AskedTarget) -> Chosen:
    from prony.cli.load import request
    from prony.plan import workload as workloads
    from prony.plan.load import ClosedLoad, SteadyWindow
    from prony.plan.target import parse_url
    from prony.plan.trial import TrialPlan, fixed

    target, path = parse_url(named)
    if asked.workload is not None and path != "/":
        raise UsageError("--workload brings its own paths; give the URL without a path")
    sends = request(path, None, [], None, None) if asked.workload is None else workloads.load(asked.workload)
    window_s = options.seconds(asked.window or ("5s" if asked.quick else "10s"), "--window", at_least_s=1.0)
    warm_up_s = URL_WARM_UP_S if asked.warmup is None else options.seconds(asked.warmup, "--warmup")
    trial = TrialPlan(
        workload=sends,
        load=ClosedLoad(users=1),
        measured=SteadyWindow(window_s=window_s),
        warm_up=fixed(warm_up_s),
    )
    return Chosen(named, target.url, target, trial)


def _server(named: str, asked: AskedTarget) -> Chosen:
    from prony.experiment.targets import Targets
    from prony.plan import workload as workloads
    from prony.plan.target import named as server_named
    from prony.plan.trial import capped, full_trial, quick_trial

    server = Targets().at(server_named(named))
    name = asked.workload or next(iter(server.workloads), None)
    if name is None:
        raise UsageError(f"{server.name} does not say which workload it offers; name one with --workload")
    window_s = None if asked.window is None else options.seconds(asked.window, "--window", at_least_s=1.0)
    trial = (quick_trial if asked.quick else full_trial)(workloads.load(name), 1, window_s)
    trial = trial.model_copy(update={"published_requests": None})
    if asked.warm_up_cap is not None:
        cap_s = options.seconds(asked.warm_up_cap, "--warm-up-cap", at_least_s=1.0)
        trial = trial.model_copy(update={"warm_up": capped(trial.warm_up, cap_s)})
    return Chosen(server.name, server.name, server_named(server.name), trial)
