"""From a plan to its result, for every command that measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from prony import seams
from prony.cli import options
from prony.cli.quiet import attended
from prony.cli.showing import exported, progress_for, show, show_dry_run, so_far
from prony.errors import EnvironmentFault, ExitCode, PronyError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from prony.cli.common import Common
    from prony.experiment.experiment import Experiment
    from prony.experiment.testbed import Progress, Targets, Testbed
    from prony.plan.plan import Plan, Skipped
    from prony.report.result import ResultView
    from prony.store import ExperimentRow, Store


Also = Callable[["ResultView"], None]
Where = Callable[[str, str], str]
"""(part, server) -> location in the plan file."""


@dataclass(frozen=True, slots=True)
class Measured:
    """An experiment that has ended, in its store."""

    store: Store
    identifier: str
    interrupted: bool
    """Ended by the user; ended trials are stored."""


def run(
    plan: Plan,
    common: Common,
    *,
    skip_unmeetable: bool | None = None,
    dry_run: bool = False,
    where: Where | None = None,
    also: Also | None = None,
    against: Path | None = None,
) -> int:
    """Check, measure, store, show; the exit code. `skip_unmeetable`: None for commands without the option.
    `also`: further output. `against`: an export to compare with. Raises PronyError.
    """
    if common.resume is not None:  # credentials come from the command line
        return resume(common, {}, given=plan, dry_run=dry_run, also=also, against=against)
    theirs = None if against is None else exported(against, plan, as_json=common.json)
    if dry_run:
        return _dry_run(plan, common, where)
    with progress_for(common.json) as progress:
        done = measured(plan, common, progress, skip_unmeetable=skip_unmeetable, where=where)
    code = show(done.store, done.identifier, common, also, theirs, typed=sys.argv[1:])
    return ExitCode.INTERRUPTED if done.interrupted else code


def measured(
    plan: Plan,
    common: Common,
    progress: Progress,
    *,
    skip_unmeetable: bool | None = None,
    where: Where | None = None,
    warned: Callable[[str], None] | None = None,
) -> Measured:
    """Check, measure and store; prints nothing. `warned` gets each warning. Raises PronyError."""
    from prony.experiment import requirements
    from prony.experiment.experiment import Experiment
    from prony.store import Store

    if common.report is not None:
        options.writable(common.report)
    with attached_hosts(common, progress.note) as hosts:
        plan, lacking, targets, testbed = _checked(plan, common, where, hosts)
        if lacking and not skip_unmeetable:
            remedy = f". {requirements.REMEDY}" if skip_unmeetable is not None else ""
            raise EnvironmentFault(f"{requirements.refusal(lacking)}{remedy}")
        if lacking:
            plan = requirements.without(plan, lacking)
        may_attach(plan, common, several_hosts=hosts is not None)
        if warned is not None:
            for sentence in requirements.roaming(plan, targets, testbed):
                warned(sentence)
        store = Store.open(common.db)
        with listening(common, progress, store) as events:
            asked = bool(skip_unmeetable), attended(), partial(so_far, store)
            experiment = Experiment(plan, targets, store, testbed, events, *asked)
            interrupted = _interrupted(experiment, experiment.run)
        return Measured(store, experiment.identifier, interrupted)


def _checked(
    plan: Plan, common: Common, where: Where | None, hosts: Testbed | None
) -> tuple[Plan, list[Skipped], Targets, Testbed]:
    """The plan with the options applied, cells that this host cannot run, servers, and host."""
    from prony.experiment import requirements
    from prony.experiment.duets import refuse_duets
    from prony.experiment.testbed import Targets

    plan = common.applied(plan if hosts is None else hosts.placed(plan))
    targets = Targets(hosted=None if hosts is None else hosts.target)
    requirements.find_targets(plan, targets, where)
    refuse_duets(plan, targets)
    testbed = testbed_for(plan, targets, common, hosts)
    plan, lacking = requirements.without_optional(plan, requirements.unmet(plan, targets, testbed))
    return plan, lacking, targets, testbed


def _dry_run(plan: Plan, common: Common, where: Where | None) -> int:
    from prony.experiment import requirements

    with attached_hosts(common) as hosts:
        plan, lacking, targets, testbed = _checked(plan, common, where, hosts)
        warnings = requirements.warnings(plan, targets, testbed)
        return show_dry_run(plan, plan.order(), lacking, warnings, targets, testbed, common.json)


def needs_credentials(common: Common) -> bool:
    """Whether the stored plan lacks credentials, which the command line must repeat."""
    from prony.experiment.stored import lacks_credentials, plan_of
    from prony.store import Store

    assert common.resume is not None
    try:
        store = Store.open(common.db)
        row = store.experiment(common.resume)
        return lacks_credentials(plan_of(row))
    except PronyError:
        return False  # `resume` reports it


def resume(
    common: Common,
    others: Mapping[str, object],
    *,
    plan: str | None = None,
    given: Plan | None = None,
    dry_run: bool = False,
    also: Also | None = None,
    against: Path | None = None,
) -> int:
    """Continue a stored experiment of any command. `others`: further options, which are refused;
    `plan`: a plan file next to --resume; `given`: the plan of the whole command line, for its credentials.
    """
    from prony.experiment.experiment import remaining
    from prony.experiment.stored import resumable, with_credentials
    from prony.store import Store

    if given is None:
        common.check_resume(others)
    if common.report is not None:
        options.writable(common.report)
    assert common.resume is not None
    store = Store.open(common.db)
    row, stored = resumable(store, common.resume)
    if plan is not None:
        _same_plan(plan, stored, row.id)
    left = row.status != "finished" or remaining(stored, store.trials(row.id))
    if left and not dry_run:
        stored = with_credentials(stored, given)
    if common.repeat_disturbed:
        stored = stored.model_copy(update={"repeat_disturbed": common.repeat_disturbed})
    theirs = None if against is None else exported(against, stored, as_json=common.json)
    with attached_hosts(common.continuing(stored)) as hosts:
        return resumed(row, stored, store, common, hosts, dry_run, also, theirs)


def resumed(
    row: ExperimentRow,
    stored: Plan,
    store: Store,
    common: Common,
    hosts: Testbed | None,
    dry_run: bool,
    also: Also | None,
    theirs: ResultView | None,
) -> int:
    from prony.experiment import requirements
    from prony.experiment.duets import refuse_duets
    from prony.experiment.experiment import Experiment, remaining
    from prony.experiment.testbed import Targets

    targets = Targets(hosted=None if hosts is None else hosts.target)
    requirements.find_targets(stored, targets)
    refuse_duets(stored, targets)
    testbed = testbed_for(stored, targets, common, hosts)
    if row.fingerprint.key != testbed.fingerprint.key:
        raise UsageError(
            f"{row.id} is of another host or other software "
            f"({row.fingerprint.hostname}, fingerprint {row.fingerprint.key}; here "
            f"{testbed.fingerprint.key}); trials of two hosts are never mixed: run the plan anew here "
            "and compare both with prony compare-results"
        )
    if dry_run:
        left = remaining(stored, store.trials(row.id))
        warnings = requirements.warnings(stored, targets, testbed)
        return show_dry_run(stored, left, [], warnings, targets, testbed, common.json)
    may_attach(stored, common, several_hosts=hosts is not None)
    with progress_for(common.json) as progress, listening(common, progress, store) as events:
        asked = False, attended(), partial(so_far, store)
        experiment = Experiment(stored, targets, store, testbed, events, *asked)
        interrupted = _interrupted(experiment, lambda: experiment.resume(row.id))
    code = show(store, row.id, common, also, theirs)
    return ExitCode.INTERRUPTED if interrupted else code


@contextmanager
def attached_hosts(
    common: Common, say: Callable[[str], None] = lambda _line: None
) -> Iterator[Testbed | None]:
    """The hosts of --hosts during the command; None without it. Raises PronyError."""
    if common.hosts is None:
        yield None
        return
    if common.server_cpus is not None or common.client_cpus is not None:
        raise UsageError(
            "--server-cpus and --client-cpus apply to a single host; with --hosts set cpus: in its file"
        )
    with seams.need(seams.HOOKS, "hosts", "--hosts").attached(common.hosts, say) as hosts:
        yield hosts


def testbed_for(plan: Plan, targets: Targets, common: Common, hosts: Testbed | None) -> Testbed:
    """These hosts; without them this host, with the CPUs of the options or the plan."""
    if hosts is not None:
        return hosts
    from prony.experiment.requirements import servers_of
    from prony.experiment.testbed import prepare

    servers = servers_of(plan, targets)
    return prepare(
        common.server_cpus or plan.cpus.server,
        common.client_cpus or plan.cpus.client,
        services=any(server.has_services for server in servers),
        theirs=frozenset[int]().union(*(server.placement().all_cpus for server in servers)),
    )


def may_attach(plan: Plan, common: Common, *, several_hosts: bool) -> None:
    """Raises UsageError where attaching is not allowed, EnvironmentFault without the package."""
    if common.attach or any(cell.explain for cell in plan.cells):
        seams.need(seams.HOOKS, "attaching", "--explain")(plan, common, several_hosts=several_hosts)


@contextmanager
def listening(common: Common, progress: Progress, store: Store) -> Iterator[Progress]:
    """Progress display, metrics and push as a single listener. Raises PronyError before any trial."""
    from prony.experiment.testbed import Listeners

    more = seams.found(seams.HOOKS, "listeners")
    if more is None:
        for option, given in (("--metrics", common.metrics), ("--push", common.push)):
            if given is not None:
                seams.need(seams.HOOKS, "listeners", option)
        yield Listeners(progress)
        return
    with more(common, progress, store) as others:
        yield Listeners(progress, *others)


def _interrupted(experiment: Experiment, measure: Callable[[], object]) -> bool:
    """Whether the user ended it, after the resume command. Raises KeyboardInterrupt before any trial."""
    from prony.experiment.stored import sends_credentials

    try:
        measure()
        return False
    except KeyboardInterrupt:
        command = experiment.plan.resume_command
        if experiment.identifier and command is not None and len(experiment.plan.order()) > 1:
            sends = sends_credentials(experiment.plan)
            again = " and the rest of this command line, as credentials are never stored" if sends else ""
            experiment.progress.note(
                f"interrupted; continue with: prony {command} --resume {experiment.identifier}{again}"
            )
        if not experiment.identifier or not experiment.store.trials(experiment.identifier):
            raise
        return True


def _same_plan(named: str, stored: Plan, identifier: str) -> None:
    """Raises UsageError for a plan file other than the stored plan's."""
    from prony.plan.planfile_read import find

    if find(named).stem != stored.name:
        raise UsageError(
            f"{identifier} is a run of the plan '{stored.name}', not of '{named}'; omit the plan: "
            "--resume uses the stored plan"
        )
