"""From the store to the view that every output reads: judged trials, comparisons, history.

Must not print anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prony.compare import BAND, Looks
from prony.experiment.plan_text import plan_yaml
from prony.plan.workload import Published
from prony.report.model import ExperimentView, PairView, PublishedFigures, ServerView, TrialView, view
from prony.report.pairs import figure_pairs, has
from prony.steady.detector import change_points_ms

if TYPE_CHECKING:
    from prony.store import ExperimentRow, Store, StoredTrial

COMPARED = ("requests_per_s", "server_cpu_us_per_request", "peak_rss_mib", "time_to_ready_s")
"""The figures that are compared pair by pair; the first makes the headline sentences."""


def experiment_view(store: Store, which: str) -> ExperimentView:
    """Everything about one stored experiment. Raises StoreError when there is none of this id."""
    experiment = store.experiment(which)
    trials = [trial_view(one) for one in store.trials(experiment.id)]
    plan = experiment.spec
    servers = [_server(address, trials) for address in plan.get("servers", [])]
    history = published(plan)
    return view(
        id=experiment.id,
        title=experiment.name,
        created=experiment.created,
        quick=experiment.quick,
        plan=plan,
        plan_text=plan_yaml(plan),
        servers=servers,
        trials=trials,
        pairs=pairs(trials, [server.address for server in servers], looks_of(plan), band_of(plan)),
        band=band_of(plan),
        fingerprint=experiment.fingerprint,
        partition=next((t.record.evidence.partition for t in trials if t.record.evidence.partition), None),
        published=history,
        warnings=_warnings(experiment, trials),
    )


def looks_of(plan: Mapping[str, Any]) -> Looks | None:
    """The looks of a plan that adds trials until it is clear."""
    most = plan.get("until_clear")
    return None if most is None else Looks(int(plan["trials"]), int(most))


def band_of(plan: Mapping[str, Any]) -> float:
    """The practical band of a plan; the usual one where it says none (plans of before it could)."""
    return float(plan.get("band", BAND))


def pairs(
    trials: Sequence[TrialView], servers: Sequence[str], looks: Looks | None = None, band: float = BAND
) -> list[PairView]:
    """Every pair of servers in every compared figure, as far as there is something to compare."""
    if len(servers) < 2:
        return []
    found: list[PairView] = []
    for figure in COMPARED:
        if has(trials, figure):
            found += figure_pairs(trials, figure, servers, looks, band)
    return found


def published(plan: Mapping[str, Any]) -> PublishedFigures | None:
    """The history that the workload carries, for the servers of this plan."""
    history = plan.get("trial", {}).get("workload", {}).get("published")
    if history is None:
        return None
    known = Published.model_validate(history)
    servers = set(plan.get("servers", []))
    figures = {
        figure: {server: value for server, value in values.items() if server in servers}
        for figure, values in known.figures.items()
    }
    figures = {figure: values for figure, values in figures.items() if values}
    return PublishedFigures(source=known.source, note=known.note, figures=figures) if figures else None


def trial_view(stored: StoredTrial) -> TrialView:
    """A stored trial as reports read it."""
    engine = stored.record.evidence.engine
    return TrialView(
        record=stored.record,
        judgement=stored.judgement,
        figures=stored.figures,
        change_points_ms=change_points_ms(engine.rows) if engine is not None else (),
    )


def _server(address: str, trials: Sequence[TrialView]) -> ServerView:
    identity = next((t.record.evidence.server for t in trials if t.record.server == address), None)
    if identity is None:
        return ServerView(address=address, title=address)
    versions = {name: version for name, version in identity.versions.items() if name != "jdk"}
    return ServerView(
        address=address, title=identity.title, versions=versions, jdk=identity.versions.get("jdk", "")
    )


def _warnings(experiment: ExperimentRow, trials: Sequence[TrialView]) -> list[str]:
    found: list[str] = []
    plan = experiment.spec
    if experiment.status == "interrupted":
        planned = len(plan.get("servers", [])) * int(plan.get("until_clear") or plan.get("trials", 1))
        found.append(f"The experiment was interrupted: {len(trials)} of {planned} trials ended.")
    partition = next((t.record.evidence.partition for t in trials if t.record.evidence.partition), None)
    if partition is not None and partition.shared:
        found.append(f"Server and client shared CPUs: {partition.note}")
    controls = [trial for trial in trials if trial.record.kind == "control"]
    found += [sentence for trial in controls if (sentence := _agreement(trial, trials)) is not None]
    return found


def _agreement(control: TrialView, trials: Sequence[TrialView]) -> str | None:
    """Do both ways of warming up agree? The control is one trial, so this is a look and not a test."""
    mine = control.figures.get("requests_per_s")
    others = sorted(
        value
        for trial in trials
        if trial.record.server == control.record.server and trial.counts
        if (value := trial.figures.get("requests_per_s")) is not None
    )
    if mine is None or not others or control.rejected_because is not None:
        return None
    inside = others[0] * 0.98 <= mine <= others[-1] * 1.02
    verdict = "within their range (± 2 %)" if inside else "outside their range: doubt the faster warm-up"
    return (
        f"Control of {control.record.server}, on its own CPUs from the start: {mine:,.0f} requests/s against "
        f"{others[0]:,.0f} to {others[-1]:,.0f} of the trials that were warmed up on all CPUs: {verdict}."
    )
