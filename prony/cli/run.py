"""`prony run`: a plan, from its file to its report; goes on where an interrupted one stopped.

Must not measure by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from prony.cli import options
from prony.errors import EnvironmentFault, ExitCode, UsageError

if TYPE_CHECKING:
    from prony.experiment.bench import Bench
    from prony.experiment.cells import PlanRun
    from prony.experiment.running import RunningLoad
    from prony.plan.cells import RunPlan
    from prony.server.spec import ServerSpec
    from prony.store import Store


def command(
    plan: str | None = typer.Argument(
        None, metavar="[PLAN|FILE]", help="A plan of the catalogue (crud, jaxrs …) or a plan file."
    ),
    quick: bool = typer.Option(
        False, "--quick", help="Cut to about five minutes; every figure is marked quick."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Print what would run, in which order, and about how long it takes."
    ),
    resume: str | None = typer.Option(
        None, "--resume", metavar="ID", help="Go on with a run that was interrupted (an id or 'latest')."
    ),
    skip_unmeetable: bool = typer.Option(
        False, "--skip-unmeetable", help="Leave out what this machine cannot do and run the rest."
    ),
    only: str | None = typer.Option(
        None,
        "--only",
        metavar="GLOB",
        help="Only this part, or the cells whose id matches.",
    ),
    soak: str | None = typer.Option(None, "--duration", help="Run the plan's soak so long, such as 8h."),
    seed: int | None = typer.Option(
        None, "--seed", help="Order of trials and all draws [default: the plan's, else drawn and recorded]."
    ),
    server_cpus: str | None = typer.Option(
        None, "--server-cpus", help="CPUs for the server, such as 0-3 [default: the plan's, else chosen]."
    ),
    client_cpus: str | None = typer.Option(
        None, "--client-cpus", help="CPUs for the engine and the sampler [default: the plan's, else chosen]."
    ),
    db: str | None = typer.Option(None, "--db", help="Where results are kept, a file or an SQLAlchemy URL."),
    json: bool = typer.Option(False, "--json", help="Print JSON instead of tables."),
    report: Path | None = typer.Option(
        None, "--report", help="Write a self-contained HTML report to this file."
    ),
    small: bool = typer.Option(False, "--miniature", hidden=True),
) -> int:
    """Run a plan: every cell (server x workload x load), trials interleaved in a recorded order, each judged
    and stored when it ends.
    """
    from prony.cli.bench import prepare
    from prony.cli.dry_run import show_dry_run
    from prony.experiment import meeting
    from prony.plan.planfile_read import find, place_of
    from prony.server.catalogue import Catalogue
    from prony.store import Store

    if report is not None:
        options.writable(report)
    if resume is not None:
        given = [name for name, value in (("--quick", quick), ("--only", only), ("--duration", soak),
                 ("--seed", seed), ("--miniature", small)) if value]  # fmt: skip
        if given:
            raise UsageError(f"--resume goes on with the plan as it was stored: leave out {', '.join(given)}")
        return _resume(resume, plan, db, server_cpus, client_cpus, dry_run, json, report)
    if plan is None:
        raise UsageError(f"name a plan or a plan file, or --resume ID; known plans: {_known()}")
    url = _url_plan(plan, seed)
    if url is not None:
        given = [name for name, value in (("--quick", quick), ("--only", only), ("--duration", soak),
                 ("--skip-unmeetable", skip_unmeetable), ("--server-cpus", server_cpus), ("--report", report),
                 ("--miniature", small)) if value]  # fmt: skip
        if given:
            raise UsageError(
                f"this plan is one load on a server that is already running: leave out {', '.join(given)}"
            )
        return _run_url(url, client_cpus, db, json, dry_run)
    wanted = _read(plan, seed)
    wanted = _cut(wanted, quick, small, only, soak)
    specs = meeting.specs(wanted, Catalogue.load(), partial(place_of, find(plan)))
    bench = prepare(server_cpus or wanted.cpus.server, client_cpus or wanted.cpus.client, specs.values())
    wanted, lacking = meeting.without_optional(wanted, meeting.unmet(wanted, specs, bench))
    if dry_run:
        return show_dry_run(
            wanted, wanted.order(), lacking, meeting.warnings(wanted, specs, bench), bench, json
        )
    if lacking and not skip_unmeetable:
        raise EnvironmentFault(f"{meeting.refusal(lacking)}. {meeting.REMEDY}")
    if lacking:
        wanted = meeting.without(wanted, lacking)
    return _measure(Store.open(db), wanted, specs, bench, skip_unmeetable, as_json=json, report=report)


def _url_plan(name: str, seed: int | None) -> RunningLoad | None:
    """The load of a plan file whose server is a URL; None for any other plan."""
    from prony.experiment.url_plan import as_load
    from prony.plan import urlplan
    from prony.plan.planfile_read import find

    found = urlplan.read(find(name))
    if found is None:
        return None
    if seed is not None:
        found = found.model_copy(update={"seed": options.seed(seed)})
    return as_load(found, options.seed(None))


def _run_url(load: RunningLoad, client_cpus: str | None, db: str | None, as_json: bool, dry_run: bool) -> int:
    from prony.cli.bench import prepare
    from prony.cli.load import measured_load
    from prony.store import Store

    if dry_run:
        print(f"1 trial: {load.workload.name} on {load.target.base}, {load.plan.load_name}, at most "
              f"{load.plan.deadline_s:.0f} s")  # fmt: skip
        return ExitCode.OK
    return measured_load(load, prepare(None, client_cpus), Store.open(db), as_json)


def _known() -> str:
    from prony.plan.planfile_read import known

    return ", ".join(sorted(known())) or "none"


def _read(name: str, seed: int | None) -> RunPlan:
    from prony.judge.limits import CheckLimits
    from prony.plan.planfile_read import find, read

    found = read(find(name), limits=CheckLimits, seed=options.seed(seed))
    return found if seed is None else found.model_copy(update={"seed": seed})


def _cut(plan: RunPlan, quick: bool, small: bool, only: str | None, soak: str | None) -> RunPlan:
    """The part of the plan that was asked for, as short as it was asked for."""
    from prony.plan.planfile_quick import miniature, quicken, with_soak

    plan = with_soak(plan, None if soak is None else options.seconds(soak, "--duration", at_least_s=1.0))
    if only is not None:
        found = plan.only(only)
        if found is None:
            parts = ", ".join(dict.fromkeys(cell.part for cell in plan.cells))
            raise UsageError(
                f"--only {only} matches no cell of '{plan.name}'; its parts: {parts}; a cell is "
                f"part/server/workload/load, such as {plan.cells[0].id}"
            )
        plan = found
    if small:
        return miniature(plan)
    return quicken(plan) if quick else plan


def _measure(
    store: Store,
    plan: RunPlan,
    specs: dict[str, ServerSpec],
    bench: Bench,
    skip: bool,
    *,
    as_json: bool,
    report: Path | None,
) -> int:
    from prony.cli.showing import progress_for, show
    from prony.experiment.cells import PlanRun

    with progress_for(as_json) as progress:
        run = PlanRun(plan, specs, store, bench, progress, skip_unmeetable=skip)
        with _saying_how_it_goes_on(run):
            identifier = run.run()
    return show(store, identifier, as_json=as_json, report=report)


def _resume(
    which: str,
    named: str | None,
    db: str | None,
    server_cpus: str | None,
    client_cpus: str | None,
    dry_run: bool,
    as_json: bool,
    report: Path | None,
) -> int:
    from prony.cli.bench import prepare
    from prony.cli.dry_run import show_dry_run
    from prony.cli.showing import progress_for, show
    from prony.experiment import meeting
    from prony.experiment.cells import PlanRun, begun_on, remaining, resumable
    from prony.server.catalogue import Catalogue
    from prony.store import Store

    store = Store.open(db)
    identifier, plan = resumable(store, which)
    if named is not None:
        _same_plan(named, plan, identifier)
    specs = meeting.specs(plan, Catalogue.load())
    bench = prepare(server_cpus or plan.cpus.server, client_cpus or plan.cpus.client, specs.values())
    begun_on(store.experiment(identifier), bench)
    if dry_run:
        left = remaining(store, identifier, plan)
        return show_dry_run(plan, left, [], meeting.warnings(plan, specs, bench), bench, as_json)
    with progress_for(as_json) as progress:
        run = PlanRun(plan, specs, store, bench, progress)
        with _saying_how_it_goes_on(run):
            run.resume(identifier)
    return show(store, identifier, as_json=as_json, report=report)


@contextmanager
def _saying_how_it_goes_on(run: PlanRun) -> Iterator[None]:
    """Who interrupts hours of trials is told at once with which words they are not lost."""
    try:
        yield
    except KeyboardInterrupt:
        if run.identifier is not None:
            run.progress.note(f"interrupted; go on with: prony run --resume {run.identifier}")
        raise


def _same_plan(named: str, stored: RunPlan, identifier: str) -> None:
    """A plan file beside --resume may only be the one that the run was started from."""
    from prony.plan.planfile_read import find

    if find(named).stem != stored.name:
        raise UsageError(
            f"{identifier} is a run of the plan '{stored.name}', not of '{named}'; leave the plan out: "
            "what is resumed is the plan as it was stored"
        )
