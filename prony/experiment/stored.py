"""The plan of a stored experiment, whichever version and command wrote it. Must not measure or show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from prony import redaction
from prony.errors import StoreError, UsageError
from prony.evidence.trial import LoadFacts, ServerCount, ToolRun, TrialRecord
from prony.experiment.conclude import conclude
from prony.judge.limits import CheckLimits
from prony.plan import workload as workloads
from prony.plan.cell import Cell, PublishedFigures, cell_of
from prony.plan.load import ClosedLoad, Load, OpenLoad, SteadyWindow
from prony.plan.part import Part, Search
from prony.plan.plan import MAIN, Plan
from prony.plan.planfile import CpuKeys
from prony.plan.target import Launch, Target, TlsOptions, parse_url
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload, from_url
from prony.store import ExperimentRow, Store, StoredTrial

Spec = dict[str, Any]


def plan_of(row: ExperimentRow, trials: Sequence[StoredTrial] = ()) -> Plan:
    """The plan of a stored experiment. `trials` are its own: an old sweep or search recorded its loads
    nowhere else. Raises StoreError when it was written by a Prony that this one does not understand.
    """
    try:
        if row.spec.get("schema") == 2:
            return Plan.model_validate(_without_old_tools(row.spec))
        return _READERS.get(row.spec.get("kind"), _comparison_or_load)(row, trials)
    except (ValidationError, LookupError, TypeError, ValueError, AttributeError, UsageError) as fault:
        raise StoreError(
            f"the plan of {row.id} was stored by Prony {row.prony_version} and is not understood by this "
            "one; use that version",
            details=str(fault),
        ) from fault


_OLD_CROSS_CHECK = frozenset(
    {"connections", "seconds", "rate_per_s", "per_request", "tls", "url", "counts", "runs", "own_counts"}
)
"""Of a part's `cross_check`, from when the tools' runs were kept in the plan and not in the trials."""


def _parts(spec: Spec) -> Sequence[Spec]:
    """The parts of a stored plan; of schema 1 there are none, and `parts` was a flag of a load."""
    parts = spec.get("parts") if spec.get("schema") == 2 else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _cross_check(part: Spec) -> Spec:
    found = part.get("cross_check")
    return found if isinstance(found, dict) else {}


def trials_of(row: ExperimentRow, trials: Sequence[StoredTrial]) -> list[StoredTrial]:
    """The trials of an experiment as this Prony sees them: with the runs of other tools that an old
    cross-check kept in its plan, and judged again where the stored judgement is stale.
    """
    for part in _parts(row.spec):
        old = _cross_check(part)
        if old.keys() & _OLD_CROSS_CHECK:
            trials = [_with_old_tools(one, old) for one in trials]
    return [_judged_now(one) if one.judgements[-1].stale else one for one in trials]


def _judged_now(one: StoredTrial) -> StoredTrial:
    """With the judgement that follows from its evidence, under the limits that it was judged by."""
    newest = one.judgements[-1]
    ended = conclude(one.record, CheckLimits.among(newest.judgement.limits))
    made = replace(newest, judgement=ended.judgement, figures=ended.figures, stale=False)
    return replace(one, judgements=(*one.judgements[:-1], made))


def _with_old_tools(one: StoredTrial, old: Spec) -> StoredTrial:
    """A round of theirs is a block of now, counted from 1."""
    number, evidence = one.record.block + 1, one.record.evidence
    runs = [run for run in old.get("runs", ()) if run["round"] == number]
    counted = old.get("own_counts", {}).get(str(number))
    added = {
        "beside": tuple(
            ToolRun.model_validate({k: v for k, v in run.items() if k != "round"}) for run in runs
        )
    }
    count = evidence.server_count if counted is None else ServerCount(requests=counted)
    evidence = evidence.model_copy(update={**added, "server_count": count})
    return replace(one, record=one.record.model_copy(update={"evidence": evidence}))


def _without_old_tools(spec: Spec) -> Spec:
    parts = [
        {**part, "cross_check": {k: v for k, v in old.items() if k not in _OLD_CROSS_CHECK}}
        if (old := _cross_check(part))
        else part
        for part in spec.get("parts", ())
    ]
    return {**spec, "parts": parts}


def resumable(store: Store, which: str) -> tuple[ExperimentRow, Plan]:
    """An experiment that can be continued, and its plan. Raises UsageError saying why not."""
    row = store.experiment(which)
    if row.status == "running":
        raise UsageError(f"{row.id} is still running; wait for it, or end it first")
    if row.spec.get("schema") != 2 and (row.spec.get("kind") in ("sweep", "capacity") or "url" in row.spec):
        raise UsageError(
            f"{row.id} was stored by Prony {row.prony_version}, which did not record the workload of "
            "a sweep, a search or a load; run it again"
        )
    if any(_cross_check(part).keys() & _OLD_CROSS_CHECK for part in _parts(row.spec)):
        raise UsageError(
            f"{row.id} was stored by Prony {row.prony_version}, whose trials did not say which other tools "
            "run; run it again"
        )
    return row, plan_of(row, store.trials(row.id))


def with_credentials(plan: Plan, given: Plan | None) -> Plan:
    """A stored plan with what is never stored: the credentials of the plan as it is given again. Raises
    UsageError where any are missing.
    """
    cells = tuple(_with_credentials(cell, given) for cell in plan.cells)
    missing = dict.fromkeys(name for cell in cells for name in _credentials_missing(cell))
    if missing:
        again = "" if given is None else " as it was, with the values that it was begun with"
        raise UsageError(
            f"the plan sends credentials, which are never stored ({', '.join(missing)}): repeat the whole "
            f"command line{again} beside --resume, or start it anew"
        )
    return plan.model_copy(update={"cells": cells})


def lacks_credentials(plan: Plan) -> bool:
    """Whether a stored plan cannot be run without what is given again."""
    return any(_credentials_missing(cell) for cell in plan.cells)


def sends_credentials(plan: Plan) -> bool:
    """Whether what is stored of a plan is less than the plan."""
    return any(redaction.plain(one) != one for one in map(_offered, plan.cells))


def _credentials_missing(cell: Cell) -> tuple[str, ...]:
    return redaction.redacted_in(_offered(cell))


def _offered(cell: Cell) -> Spec:
    return cell.model_dump(mode="json", by_alias=True, include={"target", "trial"})


def _with_credentials(cell: Cell, given: Plan | None) -> Cell:
    """Of a cell that a search has added, those of another one of its server and workload."""
    stored = _offered(cell)
    if given is None or not redaction.redacted_in(stored):
        return cell
    own = (cell.part, cell.server, cell.trial.workload.name)
    for one in given.cells:
        same = (one.part, one.server, one.trial.workload.name) == own
        if same and redaction.redacted_in(stored):
            stored = redaction.filled(stored, _offered(one))
    known = cell.model_dump(mode="json", by_alias=True) | stored
    return Cell.model_validate(known)


def cell_of_record(plan: Plan, record: TrialRecord) -> str:
    """The cell that this is a trial of; a trial of an old experiment does not name it."""
    if record.cell:
        return record.cell
    return next(
        (
            cell.id
            for cell in plan.cells
            if cell.server == record.server and cell.trial.load_name == record.load_name
        ),
        plan.cells[0].id,
    )


def history_of(workload: Workload, server: str) -> tuple[PublishedFigures, ...]:
    """What the workload's file says was printed for this server by others."""
    known = workload.published
    if known is None:
        return ()
    figures = {name: values[server] for name, values in known.figures.items() if server in values}
    if not figures:
        return ()
    return (PublishedFigures(label="published", source=known.source, figures=figures, note=known.note),)


def _comparison_or_load(row: ExperimentRow, _trials: Sequence[StoredTrial]) -> Plan:
    return _load(row) if "url" in row.spec else _comparison(row)


def _comparison(row: ExperimentRow) -> Plan:
    """What `prony compare` stored: one trial for all servers, some with a load of their own."""
    spec = row.spec
    trial = TrialPlan.model_validate(spec["trial"])
    own = spec.get("own_loads", {})
    cells = []
    for address in spec["servers"]:
        mine = TrialPlan.model_validate(spec["trial"] | {"load": own[address]}) if address in own else trial
        cells.append(
            cell_of(
                MAIN,
                address,
                Launch(address=address),
                mine,
                spec["trials"],
                controls=spec.get("controls", 0),
                published=history_of(trial.workload, address),
            )
        )
    part = Part(
        name=MAIN,
        title=spec["title"],
        shape="comparison",
        until_clear=spec.get("until_clear"),
        **({"band": spec["band"]} if "band" in spec else {}),
    )
    return _plan(row, "compare", [part], cells)


def _plan_file(row: ExperimentRow, _trials: Sequence[StoredTrial]) -> Plan:
    """What `prony run` stored; only targets had no kind, and parts no shape."""
    spec = row.spec
    return Plan(
        name=spec["name"],
        command="run",
        title=spec["title"],
        note=spec.get("note", ""),
        parts=tuple(Part.model_validate(part) for part in spec["parts"]),
        cells=tuple(_cell(cell) for cell in spec["cells"]),
        skipped=spec.get("skipped", ()),
        changes=spec.get("changes", ()),
        cpus=CpuKeys.model_validate(spec.get("cpus", {})),
        seed=spec.get("seed", 0),
        goes_on=True,
        quick=spec.get("quick", False),
        orders="independent",
    )


def _cell(stored: Spec) -> Cell:
    rest = {key: value for key, value in stored.items() if key != "launch"}
    return Cell.model_validate({**rest, "target": {"kind": "launch", **stored["launch"]}})


def _load(row: ExperimentRow) -> Plan:
    """What `prony load` and the front ends stored."""
    spec = row.spec
    target, _path = parse_url(spec["url"])
    target = target.model_copy(update={"tls": TlsOptions.model_validate(spec.get("tls") or {})})
    trial = TrialPlan.model_validate(
        {
            **spec["trial"],
            "warm_up": fixed(spec.get("warm_up_s", 0.0)),
            "driver": spec.get("driver", "auto"),
            "script": spec.get("script"),
            "request_parts": spec.get("parts", False),
        }
    )
    part = Part(name=MAIN, title=row.name, shape="single")
    return _plan(row, "load", [part], [cell_of(MAIN, target.url, target, trial)])


def _sweep(row: ExperimentRow, trials: Sequence[StoredTrial]) -> Plan:
    spec = row.spec
    trial = _series_trial(spec, trials)
    loads = [ClosedLoad(users=users) for users in spec["users"]]
    cells = [
        cell_of(MAIN, server, target, trial.model_copy(update={"load": load}), spec["repeats"])
        for server, target in (_series_target(spec["target"]),)
        for load in loads
    ]
    return _plan(row, "sweep", [Part(name=MAIN, title=row.name, shape="sweep")], cells)


def _capacity(row: ExperimentRow, trials: Sequence[StoredTrial]) -> Plan:
    spec = row.spec
    trial = _series_trial(spec, trials)
    server, target = _series_target(spec["target"])
    loads: dict[str, tuple[Load, int]] = {}
    for one in trials:
        load = load_of(one.record.evidence.load)
        loads[load.name] = (load, loads[load.name][1] + 1 if load.name in loads else 1)
    cells = [
        cell_of(MAIN, server, target, trial.model_copy(update={"load": load}), times)
        for load, times in loads.values()
    ] or [cell_of(MAIN, server, target, trial)]
    search = Search(
        objectives=spec["objectives"],
        highest_per_s=spec["highest_per_s"],
        resolution=spec["resolution"],
        most_trials=spec["most_trials"],
    )
    return _plan(row, "capacity", [Part(name=MAIN, title=row.name, shape="capacity", search=search)], cells)


def load_of(facts: LoadFacts) -> Load:
    """The load that these facts describe, as far as a sweep or a search offers it."""
    if facts.model == "closed":
        return ClosedLoad(users=facts.users or 1)
    return OpenLoad(rate_per_s=facts.offered_per_s or 1.0, arrivals=facts.arrivals or "constant")


def _series_target(named: str) -> tuple[str, Target]:
    if "://" not in named:
        return named, Launch(address=named)
    target, _path = parse_url(named)
    return target.url, target


def _series_trial(spec: Spec, trials: Sequence[StoredTrial]) -> TrialPlan:
    """All but the load. Of the workload only the name was stored, with its trials."""
    path = parse_url(spec["target"])[1] if "://" in spec["target"] else "/"
    name = trials[0].record.workload if trials else "url"
    return TrialPlan(
        workload=_workload(name, path),
        load=ClosedLoad(users=1),
        measured=SteadyWindow(window_s=spec["window_s"]),
    )


def _workload(name: str, path: str) -> Workload:
    if name != "url":
        try:
            return workloads.load(name)
        except UsageError:  # of another catalogue; its name is what the result says
            return from_url(path).model_copy(update={"name": name})
    return from_url(path)


def _plan(row: ExperimentRow, command: str, parts: Sequence[Part], cells: Sequence[Cell]) -> Plan:
    return Plan(
        name=command,
        command=command,
        title=row.name,
        parts=tuple(parts),
        cells=tuple(cells),
        seed=row.seed,
        quick=row.quick,
        orders="independent",
    )


_READERS: dict[object, Callable[[ExperimentRow, Sequence[StoredTrial]], Plan]] = {
    "plan": _plan_file,
    "sweep": _sweep,
    "capacity": _capacity,
}
