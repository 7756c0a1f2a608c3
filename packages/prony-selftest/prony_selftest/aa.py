"""`prony aa`: one server against itself, on this host."""

from __future__ import annotations

from typer import Argument, Option

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.targets import KINDS, LAUNCHED, TrialOptions
from prony.errors import UsageError

TRIALS, QUICK_TRIALS = 20, 12
EACH = 5  # as `prony compare`
EXPERIMENTS = 1000
MOST_EXPERIMENTS = 100_000


@measures(without=("until_clear", "max_trials", "hosts", "share_process", "explain", "attach", "at_least"))
def command(
    server: str | None = Argument(None, help=f"A server that Prony starts: {KINDS}."),
    trials: int | None = Option(
        None, "--trials", help=f"Fresh processes [default: {TRIALS}, quick: {QUICK_TRIALS}]."
    ),
    each: int = Option(EACH, "--each", help="Number of trials per name in one experiment."),
    experiments: int = Option(
        EXPERIMENTS, "--experiments", help="Number of experiments drawn from the trials."
    ),
    *,
    typed: TrialOptions,
    common: Common,
) -> int:
    """How often is a server called different from itself on this host? Fresh processes of one server,
    compared under two names in many drawn experiments; prony compare prints the last result that fits.
    """
    from prony.cli import measure, targets
    from prony.plan.part import AATest
    from prony.plan.plan import one_part

    if server is None:
        raise UsageError(f"name {LAUNCHED}; or --resume ID")
    named = targets.server(server, instead=f"prony aa compares fresh processes: name {LAUNCHED}")
    runs = options.trials(trials if trials is not None else (QUICK_TRIALS if typed.quick else TRIALS))
    if not 3 <= each <= runs // 2:
        raise UsageError(f"--each {each}, --trials {runs}; expected --each from 3 to half of the trials")
    if not 1 <= experiments <= MOST_EXPERIMENTS:
        raise UsageError(f"--experiments is {experiments}; expected 1 to {MOST_EXPERIMENTS:,}")
    trial = typed.trial([named])
    plan = one_part(
        "aa",
        f"{named.name} against itself: {trial.workload.title or trial.workload.name}",
        [named.cell(trial, runs)],
        seed=options.seed(common.seed),
        quick=typed.quick,
        shape="aa",
        aa=AATest(experiments=experiments, each=each),
        band=options.share(typed.band, "--band"),
    )
    return measure.run(plan, common)
