"""Valid trials, reported wrongly: percentiles averaged (25), two hosts compared (27). Trials are real."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prony.compare import Sample, compare
from prony.compare.sentence import sentence
from prony.errors import EnvironmentFault
from prony.evidence.host import Fingerprint
from prony.evidence.trial import TrialRecord
from prony.experiment.conclude import conclude
from prony.host.fingerprint import fingerprint, key_of
from prony.judge.finding import Judgement
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, WholeRun
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.store import Store
from prony_selftest.faults.clean_run import BUSY
from prony_selftest.faults.model import Setup, SetupResult, hello
from prony_selftest.faults.single_trial import EntryResult
from prony_selftest.faults.trial import run_setup

P99 = "p99_ms"
CROWD = ClosedLoad(users=40)
"""Enough responses for a p99 in 1.5 s, also after a slow start."""
FEW = ClosedLoad(users=8)
WINDOW = WholeRun(duration_s=1.5)
ENOUGH = WholeRun(duration_s=3.0)
"""Enough for a p99 of slow starts: 2,400 requests; 1,522 are needed."""
NEAR = 0.005
"""Relative difference below which numbers are printed alike."""
SLOW, QUICK = (("--delay", f"fixed:{ms}ms") for ms in (50, 5))


class StoredResults:
    """A temporary store, and the CLI's output for it."""

    def __init__(self, folder: Path) -> None:
        self._file, self._page = folder / "results.db", folder / "page.html"
        self.store = Store.open(self._file)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on this store."""
        called = [sys.executable, "-m", "prony.cli.main", *words, "--db", str(self._file)]
        return subprocess.run(called, capture_output=True, text=True, timeout=120, check=False)

    def json(self, *words: str) -> Any:
        """The JSON printed by a command. Raises EnvironmentFault without any."""
        done = self.command(*words, "--json")
        if not done.stdout.strip():
            raise EnvironmentFault(f"prony {' '.join(words)} printed no JSON: {done.stderr[-300:]}")
        return json.loads(done.stdout)

    def page(self, identifier: str) -> str:
        """The report's text, a table row per line."""
        self.command("report", identifier, "-o", str(self._page))
        page = re.sub(r"\s*\n\s*", " ", self._page.read_text(encoding="utf-8")).replace("</tr>", "\n")
        return re.sub(r"<[^>]*>", " ", page)


@contextmanager
def shown() -> Iterator[StoredResults]:
    """A store that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="prony-selftest-") as folder:
        commands = StoredResults(Path(folder))
        try:
            yield commands
        finally:
            commands.store.close()


def keep(store: Store, trials: Sequence[tuple[str, SetupResult]], host: Fingerprint, load: ClosedLoad) -> str:
    """Stores (server, trial) pairs, in block order, as one experiment of this host; returns its id."""
    servers = tuple(dict.fromkeys(server for server, _ in trials))
    title = "of the catalogue"
    trial = TrialPlan(workload=hello(), load=load, measured=WINDOW)
    times = len(trials) // len(servers)
    cells = {server: cell_of(MAIN, server, Launch(address=server), trial, times) for server in servers}
    plan = Plan(
        name="compare",
        command="compare",
        title=title,
        parts=(Part(name=MAIN, title=title, shape="comparison"),),
        cells=tuple(cells.values()),
        seed=1,
    )
    experiment = store.create_experiment(
        name=title, spec=plan.as_stored(), fingerprint=host, seed=plan.seed, quick=False
    )
    now = datetime.now(UTC)
    for number, (server, outcome) in enumerate(trials):
        record = TrialRecord(
            id=f"{experiment}-{number + 1:03d}",
            experiment_id=experiment,
            server=server,
            workload="hello",
            load_name=load.name,
            cell=cells[server].id,
            block=number // len(servers),
            position=number % len(servers),
            seed=number + 1,
            started_at=now,
            ended_at=now,
            evidence=outcome.evidence,
            fingerprint_key=host.key,
        )
        ended = conclude(record)
        store.add_trial(record, without_disturbances(ended.judgement), ended.figures)
    store.finish_experiment(experiment)
    return experiment


def without_disturbances(judgement: Judgement) -> Judgement:
    """Without findings that another process can cause: such trials are not tabulated."""
    findings = tuple(f for f in judgement.findings if f.check not in BUSY)
    conforms = all(finding.conforms for finding in findings)
    return judgement.model_copy(update={"conforms": conforms, "findings": findings})


def averaged_percentiles(_tools: bool) -> EntryResult:
    """25: percentiles averaged over trials."""
    trials = [
        ("a", run_setup(Setup(serve=SLOW if number == 1 else QUICK, load=CROWD, measured=ENOUGH), number + 1))
        for number in range(3)
    ]
    own = [value for _, outcome in trials if (value := outcome.figures.get(P99)) is not None]
    mean = sum(own) / max(1, len(own))
    with shown() as commands:
        identifier = keep(commands.store, trials, fingerprint({}), CROWD)
        (cell,) = commands.json("results", "show", identifier)["parts"][0]["cells"]
        texts = {
            "table": commands.command("results", "show", identifier, "--details").stdout,
            "page": commands.page(identifier),
        }
    summary = cell["figures"].get(P99)
    failures = [] if summary is None else _not_their_own(summary, own)
    for name, text in texts.items():
        line = _row(text)
        if line is None or summary is None:
            failures.append(f"p99 is missing in the {name} or in the JSON")
        elif _close(line, mean, own):
            failures.append(f"the {name} shows an average of percentiles: {line}")
    return EntryResult(
        25,
        "percentiles averaged",
        f"one start in three is slow: the p99 of three runs, {_listed(own)} ms, is reported as {mean:.3g} ms",
        other_tools="wrk and ab report each run's own p99; the average is made in the spreadsheet",
        reported=""
        if summary is None
        else f"median {summary['median']:.3g} ms, from {summary['low']:.3g} to {summary['high']:.3g} ms over "
        f"{summary['n']} trials; equal in the table, the page and the JSON",
        failures=tuple(failures),
    )


def _not_their_own(summary: dict[str, float], own: list[float]) -> list[str]:
    """Median, lowest and highest must be p99 of trials."""
    wrong = [
        f"{name} {summary[name]:g} is the p99 of no trial"
        for name in ("median", "low", "high")
        if summary[name] not in own
    ]
    return (
        wrong if summary["n"] == len(own) else [f"{len(own)} trials have a p99, {summary['n']} are counted"]
    )


def _row(text: str) -> str | None:
    return next((line for line in text.splitlines() if re.match(r"\s*p99\b(?!\.)", line)), None)


def _close(line: str, mean: float, own: list[float]) -> bool:
    """Whether a number of the line is the mean to three digits, and no trial's own."""
    numbers = [float(word) for word in re.findall(r"\d+(?:\.\d+)?", line.replace(",", ""))]
    return any(
        abs(number / mean - 1) < NEAR and all(abs(number / value - 1) >= NEAR for value in own)
        for number in numbers
    )


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def two_hosts(_tools: bool) -> EntryResult:
    """27: results of two hosts compared."""
    trials = [
        (name, run_setup(Setup(serve=("--work", f"{work}us"), load=FEW, measured=WINDOW)))
        for name, work in (("a", 200), ("b", 600))
    ]
    here = fingerprint({})
    other = here.model_copy(update={"hostname": "another-host", "cpus": 2 * here.cpus})
    there = other.model_copy(update={"key": key_of(other)})
    with shown() as commands:
        whole = [keep(commands.store, trials, host, FEW) for host in (here, there)]
        apart = [
            keep(commands.store, [trial], host, FEW)
            for trial, host in zip(trials, (here, there), strict=True)
        ]
        result = commands.json("compare-results", *whole)
        table = commands.command("compare-results", *whole).stdout
        one_each = commands.command("compare-results", *apart)
    rates = [outcome.figures["requests_per_s"] for _, outcome in trials]
    pair = compare(
        Sample(name, block, rate, host=host.key)
        for (name, _), rate, host in zip(trials, rates, (here, there), strict=True)
        for block in range(6)
    ).pairs[0]
    failures = []
    if not result["confounded"] or "CONFOUNDED" not in table:
        failures.append("two results of different fingerprints are not reported as confounded")
    if result["ratios"]:
        failures.append(f"a ratio of two results with a trial each: {result['ratios']}")
    if one_each.returncode == 0 and f"{rates[0] / rates[1]:.2f}" in one_each.stdout:
        failures.append("a ratio of servers on different hosts is printed")
    if pair.differs or pair.low is not None:
        failures.append(f"a claim across hosts: {pair.claim.value}")
    return EntryResult(
        27,
        "two hosts compared",
        "the servers ran on different hosts, and the ratio is attributed to the servers",
        reported=f"{sentence(pair)}; of two whole results: {result['words']}",
        failures=tuple(failures),
    )
