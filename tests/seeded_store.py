"""A store of 300 trials with a known history: 50 nights of two servers, three trials each, made up but judged
and stored like measured ones. `python -m tests.seeded_store FILE` writes it.

The first server becomes slower with one night and faster with another; the second never changes; then the
kernel of the host changes, and with it both. Some trials went wrong and have no figure.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from prony.evidence.host import Fingerprint
from prony.evidence.server import ServerIdentity
from prony.evidence.trial import Evidence, TrialRecord
from prony.experiment.conclude import conclude
from prony.host.fingerprint import key_of
from prony.plan import workload
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.part import Part
from prony.plan.plan import MAIN, Plan
from prony.plan.target import Launch
from prony.plan.trial import TrialPlan
from prony.store import Store
from prony.store.ids import experiment_id
from prony.store.keeping import judgement_values, trial_values
from prony.store.rows import RawExperiment
from tests.judge import factory
from tests.report.factory import FINGERPRINT

CHANGING, STEADY = "spring-tomcat", "spring-jetty"
SERVERS = (CHANGING, STEADY)
WORKLOAD = "hello"
LOAD = ClosedLoad(users=factory.USERS)
BLOCKS = 3
FIRST_NIGHT = datetime(2026, 9, 28, 1, 0, tzinfo=UTC)
STEPS = {17: -0.06, 34: 0.05}
"""Night -> how much the throughput of the first server changes with it, and stays."""
NEW_KERNEL = 44
NEW_KERNEL_STEP = -0.08
"""Of both servers; no fault of theirs."""
TRIAL_SPREAD, NIGHT_SPREAD = 0.008, 0.003
"""Standard deviations of the log throughput."""
WRONG = 23
"""One trial in so many does not conform ..."""
FAILED_SHARE = 0.05
"""... because so many of its requests failed, ..."""
WRONG_STEP = -0.2
"""... and its throughput was another."""
RELEASE = "release-1"


@dataclass(frozen=True, slots=True)
class Planted:
    """A change of the first server that is to be found."""

    experiment_id: str
    """The first one with it."""
    when: datetime
    change: float
    """Of the throughput: -0.06 is 6 % less."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """What a seeded store holds."""

    trials: int
    not_conforming: int
    planted: tuple[Planted, ...]
    break_at: datetime
    """From then on the fingerprint is another."""
    fingerprints: tuple[str, str]
    server: str = CHANGING
    unchanged: str = STEADY
    workload: str = WORKLOAD
    load_name: str = LOAD.name


def seed(store: Store, nights: int = 50) -> Seeded:
    """Fill a store with so many nights, six trials each. The same every time."""
    source = np.random.default_rng(14)
    planted: list[Planted] = []
    ids: list[str] = []
    trials = not_conforming = 0
    for number in range(nights):
        made = _night(number, source)
        identifier = str(made.experiment["id"])
        store.add_raw(made)
        ids.append(identifier)
        trials += len(made.trials)
        not_conforming += sum(not one["conforms"] for one in made.judgements)
        if number in STEPS:
            planted.append(Planted(identifier, _begin(number), STEPS[number]))
    if nights > max(STEPS):
        store.tag(ids[min(STEPS) - 1], RELEASE)
        store.note(ids[min(STEPS)], "Tomcat 10.1.43 <b>from today</b>: is it slower?")
    return Seeded(
        trials, not_conforming, tuple(planted), _begin(NEW_KERNEL), (_host(0).key, _host(NEW_KERNEL).key)
    )


def _begin(night: int) -> datetime:
    return FIRST_NIGHT + timedelta(days=night)


def _night(number: int, source: np.random.Generator) -> RawExperiment:
    begun, host, plan = _begin(number), _host(number), _plan(number)
    identifier = experiment_id(begun)
    rows = [_trial_rows(record) for record in _records(identifier, number, plan, host, source)]
    return RawExperiment(
        experiment={
            "id": identifier,
            "name": plan.title,
            "created": begun.isoformat(),
            "ended": rows[-1][0]["ended"],
            "status": "finished",
            "spec": _json(plan),
            "fingerprint_key": host.key,
            "fingerprint": host.model_dump_json(),
            "seed": str(plan.seed),
            "quick": False,
            "prony_version": "0.1.0",
        },
        trials=tuple(trial for trial, _ in rows),
        judgements=tuple(judged for _, judged in rows),
    )


def _json(plan: Plan) -> str:
    return plan.model_dump_json(by_alias=True, exclude_none=True)


def _plan(number: int) -> Plan:
    trial = TrialPlan(
        workload=workload.load(WORKLOAD), load=LOAD, measured=SteadyWindow(window_s=factory.WINDOW_S)
    )
    title = "Nightly: Spring Boot on Tomcat and Jetty"
    return Plan(
        name="compare",
        command="compare",
        title=title,
        parts=(Part(name=MAIN, title=title, shape="comparison"),),
        cells=tuple(cell_of(MAIN, server, Launch(address=server), trial, BLOCKS) for server in SERVERS),
        seed=number,
    )


def _host(number: int) -> Fingerprint:
    changed = FINGERPRINT.model_copy(update={"kernel": "6.12.57"}) if number >= NEW_KERNEL else FINGERPRINT
    return changed.model_copy(update={"key": key_of(changed)})


def _records(
    identifier: str, number: int, plan: Plan, host: Fingerprint, source: np.random.Generator
) -> Iterator[TrialRecord]:
    night = source.normal(0, NIGHT_SPREAD)
    for index, scheduled in enumerate(plan.order()):
        server = plan.cell(scheduled.cell).server
        wrong = (number * 6 + index) % WRONG == WRONG - 1
        level = _level(server, number) * np.exp(night + source.normal(0, TRIAL_SPREAD))
        begun = _begin(number) + timedelta(seconds=75 * index)
        yield TrialRecord(
            id=f"{identifier}-{scheduled.index:03d}",
            experiment_id=identifier,
            server=server,
            workload=WORKLOAD,
            load_name=LOAD.name,
            cell=scheduled.cell,
            block=scheduled.block,
            position=scheduled.position,
            seed=plan.seed_of(scheduled),
            started_at=begun,
            ended_at=begun + timedelta(seconds=70),
            evidence=_evidence(server, number, level * (1 + WRONG_STEP * wrong), wrong),
            fingerprint_key=host.key,
        )


def _level(server: str, number: int) -> float:
    """Requests per second of that night."""
    level = {CHANGING: 7600.0, STEADY: 8000.0}[server]
    for night, step in STEPS.items() if server == CHANGING else ():
        level *= 1 + step if number >= night else 1
    return level * (1 + NEW_KERNEL_STEP if number >= NEW_KERNEL else 1)


def _identity(server: str, number: int) -> ServerIdentity:
    """Another commit every third night; the versions change with the first planted change."""
    commit = hashlib.sha1(f"{server} {number // 3}".encode()).hexdigest()[:12]
    own = {CHANGING: "tomcat", STEADY: "jetty"}[server]
    version = {CHANGING: "10.1.42" if number < min(STEPS) else "10.1.43", STEADY: "12.0.22"}[server]
    return ServerIdentity(
        name=server,
        title=server.replace("spring-", "Spring Boot on ").title(),
        versions={"spring-boot": "3.5.16", own: version, "jdk": "21.0.5", "commit": commit},
        runtime="jvm",
        build_key=hashlib.sha1(f"{commit} {version}".encode()).hexdigest()[:12],
        pid=200,
        port=8080,
        owns_port=True,
        descriptor_limit_soft=20_000,
    )


def _evidence(server: str, number: int, rate: float, wrong: bool) -> Evidence:
    """A healthy trial at this rate, or one of whose requests some failed."""
    requests, total = round(rate * factory.WINDOW_S), round(rate * 52)
    made = factory.window(
        factory.healthy(),
        **factory.counters(requests),
        turnaround_count=requests,
        service_time=factory.histogram.__wrapped__(requests, factory.USERS / rate * 1000),
    )
    quiet = factory.noisy(rate, 52, 0.002, seed=requests)
    made = factory.engine(made, rows=factory.rows(quiet))
    made = factory.totals(made, **factory.counters(total))
    made = factory.part(made, "load", expected_requests_per_s=rate)
    if wrong:
        failed = round(requests * FAILED_SHARE)
        made = factory.window(made, failed=failed, errors={"read": failed})
    return made.model_copy(update={"server": _identity(server, number)})


def _trial_rows(record: TrialRecord) -> tuple[dict[str, object], dict[str, object]]:
    ended = conclude(record)
    judged = judgement_values(record.id, ended.judgement, ended.figures)
    return trial_values(record), judged | {"made": record.ended_at.isoformat()}


def main(words: list[str]) -> int:
    """Exit code 2 without the name of a new file."""
    if len(words) != 1 or Path(words[0]).exists():
        print("usage: python -m tests.seeded_store FILE, which is not there yet", file=sys.stderr)
        return 2
    store = Store.open(words[0])
    made = seed(store)
    store.close()
    print(f"{made.trials} trials, {made.not_conforming} of them without a figure, in {words[0]}")
    for one in made.planted:
        print(f"{made.server} {one.change * 100:+g} % from {one.experiment_id} ({one.when:%Y-%m-%d}) on")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
