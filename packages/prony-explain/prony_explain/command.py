"""`prony explain`: breaks down a server's CPU time per request."""

from __future__ import annotations

import typer

from prony.cli import options
from prony.cli.command import measures
from prony.cli.common import Common
from prony.cli.targets import KINDS, TrialOptions
from prony.errors import UsageError

TRIALS, QUICK_TRIALS = 3, 1


@measures(without=("until_clear", "max_trials", "share_process", "budget", "hosts", "explain", "at_least"))
def command(
    what: str | None = typer.Argument(
        None,
        metavar="SERVER|ID",
        help=f"A server that Prony starts: {KINDS}; or a stored experiment (an id or 'latest').",
    ),
    trials: int | None = typer.Option(
        None, "--trials", help="Number of measured trials before the explained one [default: 3, quick: 1]."
    ),
    *,
    trial_options: TrialOptions,
    common: Common,
) -> int:
    """Explain a server: measured trials, then one with a profiler. For a stored experiment, one trial with a
    profiler per server under the load of its trials.
    """
    from prony.cli import measure, targets
    from prony.plan.plan import one_part
    from prony.store import Store

    if what is None:
        raise UsageError(f"expected {targets.LAUNCHED}, or an experiment (prony results list)")
    if what == "latest" or Store.open(common.db).has(what):
        if trials is not None or trial_options != TrialOptions():
            raise UsageError(
                f"{what} is a stored experiment with its own load and trials; omit those options"
            )
        return _stored(what, common)
    server = targets.server(
        what, instead=f"prony explain starts its server; for a running one use prony load {what} --explain"
    )
    trial = trial_options.trial([server])
    count = options.trials(
        trials if trials is not None else (QUICK_TRIALS if trial_options.quick else TRIALS)
    )
    plan = one_part(
        "explain",
        f"{server.name}: {trial.workload.title or trial.workload.name}",
        [server.cell(trial, count, explain=True)],
        seed=options.seed(common.seed),
        quick=trial_options.quick,
    )
    return measure.run(plan, common)


def _stored(which: str, common: Common) -> int:
    """Add an explained trial to each cell of a stored experiment, and run the missing trials."""
    from prony.cli import measure
    from prony.experiment.stored import resumable, with_credentials
    from prony.store import Store
    from prony_explain.explaining import explained

    store = Store.open(common.db)
    row, stored = resumable(store, which)
    plan = explained(with_credentials(stored, None), store.trials(row.id))
    with measure.attached_hosts(common.continuing(stored)) as hosts:
        measure.may_attach(plan, common, several_hosts=hosts is not None)
        store.update_plan(row.id, plan.as_stored())
        return measure.resumed(row, plan, store, common, hosts, dry_run=False, also=None, theirs=None)
