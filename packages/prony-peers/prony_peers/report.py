"""Other load generators compared with Prony, as tables and sentences. Pure."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field

from prony.plan.load import OpenLoad
from prony.plan.trial import TrialPlan
from prony.report.blocks import Block, Chapter, Column, Lines, Row, Section, Table, words
from prony.report.out import Out
from prony.report.result import PartView
from prony.report.shape import Shape
from prony.report.wording import ABSENT, counted, join, number, ranges, ratio
from prony_peers.opinions import AGREE, PRONY, Opinion, Run, opinions, own_run


class CrossCheckOut(Out):
    """Other load generators under the same load."""

    opinions: list[Opinion]
    left_out: dict[str, str] = Field(description="tool -> why it did not run")


class CrossCheck(Shape):
    """Load generators compared with Prony: a row per tool, sentences for differences and missing tools."""

    lists_failures = True

    def blocks(self, part: PartView) -> list[Block]:
        check = part.part.cross_check
        if check is None or not part.cells:
            return []
        tools, cpus = opinions_of(part), _cpus(part)
        rounds = max([run.round for opinion in tools for run in opinion.runs], default=0)
        trial = part.cells[0].cell.trial
        note = (
            f"{_load(trial)}, {trial.measured_s:g} s each, {counted(rounds, 'round')} shuffled, CPUs "
            f"{ranges(cpus)}"
        )
        columns = (
            Column("version", number=False, rank=5),
            Column("requests/s", rank=1),
            Column("÷ prony", rank=2),
            Column("client CPU", rank=3),
            Column("counted by", number=False, rank=6),
            Column("errors", rank=4),
        )
        table = Table(
            columns,
            (Section(tuple(_row(opinion, len(cpus) or 1) for opinion in tools)),),
            title="Load generators side by side",
            note=note,
            heading="tool",
        )
        return [table, Lines("Where they differ", tuple(_sentences(tools, check.left_out)), marked=False)]

    def chapters(self, part: PartView) -> list[Chapter | str]:
        return [Chapter("results", "Cross-check", tuple(self.everything(part))), "latency", "throughput"]

    def cross_check(self, part: PartView) -> dict[str, Any] | None:
        check = part.part.cross_check
        if check is None:
            return None
        made = CrossCheckOut(opinions=list(opinions_of(part)), left_out=check.left_out)
        return dict(json.loads(made.model_dump_json()))


def opinions_of(part: PartView) -> tuple[Opinion, ...]:
    """Each tool of a cross-check compared with Prony; empty for another kind of part."""
    check = part.part.cross_check
    if check is None:
        return ()
    own = [own_run(t.record, t.judgement, t.record.block + 1) for t in part.trials]
    others = [
        Run(round=trial.record.block + 1, **run.model_dump())
        for trial in part.trials
        for run in trial.record.evidence.beside
    ]
    return opinions(
        [*(run for run in own if run is not None), *others], check.versions, len(_cpus(part)) or 1
    )


def _cpus(part: PartView) -> tuple[int, ...]:
    engines = (trial.record.evidence.engine for trial in part.trials)
    threads = [thread for engine in engines if engine is not None for thread in engine.ready.threads]
    return tuple(sorted({thread.cpu for thread in threads if thread.cpu is not None}))


def _load(trial: TrialPlan) -> str:
    if isinstance(trial.load, OpenLoad):
        return f"{trial.load.highest_per_s:g} requests/s"
    over, users = trial.connections, trial.load.at_once
    if over.http_version != "2":
        return counted(users, "connection")
    shared = over.shared_by(users) or users
    return f"{counted(shared, 'connection')} x {counted(-(-users // shared), 'stream')} of HTTP/2"


def _row(opinion: Opinion, cpus: int) -> Row:
    busy = [share for run in opinion.runs if (share := run.busy(cpus)) is not None]
    by_server = bool(opinion.runs) and all(run.counted is not None for run in opinion.runs)
    cells = words(
        opinion.version[:18],
        number(opinion.per_s),
        ratio(opinion.ratio),
        f"{number(max(busy) * 100)} %" if busy else ABSENT,
        "the server" if by_server else "itself",
        number(sum(run.errors for run in opinion.runs)),
    )
    return Row(opinion.tool, cells)


def _sentences(tools: tuple[Opinion, ...], left_out: dict[str, str]) -> list[str]:
    said = []
    for opinion in tools:
        if opinion.tool != PRONY and opinion.agrees is False:
            explained = f"{opinion.check}: {opinion.why}" if opinion.check else opinion.why
            said.append(
                f"{opinion.tool}: {((opinion.ratio or 0) - 1) * 100:+.1f} % against prony. {explained}"
            )
        elif opinion.check is not None:
            said.append(f"{opinion.tool}: {opinion.check}: {opinion.why}")
    agreed = [opinion.tool for opinion in tools if opinion.tool != PRONY and opinion.agrees]
    if agreed:
        said.append(f"{join(agreed)}: within {AGREE * 100:g} % of prony")
    said += [f"{tool}: left out, {why}" for tool, why in left_out.items()]
    for run in (run for opinion in tools if opinion.tool == PRONY for run in opinion.runs):
        why = "" if run.finding is None else ": {}: {}".format(*run.finding)
        word = "conforms" if run.conforms else "does not conform"
        said.append(f"prony, round {run.round}: {word} ({run.identifier}){why}")
    return said
