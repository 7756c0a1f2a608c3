"""The engine's ceiling with the reference server, measured once per load of an experiment."""

from __future__ import annotations

import hashlib
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from prony.evidence.trial import Calibration, Evidence
from prony.load import reference
from prony.load.engine import find_engine
from prony.load.reference import MOST_CONNECTIONS, Certificate, ReferenceLoad, calibrate
from prony.plan.trial import TrialPlan
from prony.server import certificates
from prony.server.cache import cache_dir
from prony.trial.surroundings import Surroundings, TrialObserver

START_S = 0.5
KEPT_S = 24 * 3600.0
ROOM = 0.8
"""Throughput ÷ a kept ceiling up to which it is reused; above, it is measured again."""
AGAIN = 2
"""Factor on the duration of a repeated calibration."""


@dataclass(slots=True)
class Calibrations:
    """Ceilings by load; measured again where a trial was faster."""

    host: str | None = None
    """Fingerprint under which ceilings are kept for later experiments; None: not kept."""
    _known: list[tuple[ReferenceLoad, Calibration]] = field(default_factory=list)

    def known(self, trial: TrialPlan, evidence: Evidence) -> Calibration | None:
        """The ceiling of this trial's load, if measured and not exceeded by the trial."""
        load = reference_load(trial, evidence)
        if load is None:
            return None
        calibration = next(
            (ceiling for known_load, ceiling in reversed(self._known) if known_load.like(load)), None
        )
        if calibration is None and (calibration := self._kept(load, evidence)) is not None:
            self._known.append((load, calibration))
        return (
            None
            if calibration is None or (_over(calibration, evidence) and not calibration.exceeded)
            else calibration
        )

    def measure(
        self, trial: TrialPlan, evidence: Evidence, progress: TrialObserver, around: Surroundings
    ) -> Calibration | None:
        """Measure it; None where the reference server cannot serve this load. Measured again if the trial
        exceeded it, and marked if exceeded again. Raises EnvironmentFault.
        """
        load = reference_load(trial, evidence)
        if load is None:
            return None
        progress.phase("calibrate", reference.WARM_S + reference.MEASURED_S + START_S)
        calibration = _calibrate(load, 1, around)
        if _over(calibration, evidence):
            progress.note("the trial exceeded the load generator's ceiling: calibrating again")
            calibration = _calibrate(load, AGAIN, around)
            if _over(calibration, evidence):
                progress.note("the trial exceeded it again: no valid ceiling of the load generator")
                calibration = calibration.model_copy(update={"exceeded": True})
        self._known.append((load, calibration))
        self._keep(load, calibration)
        return calibration

    def _kept(self, load: ReferenceLoad, evidence: Evidence) -> Calibration | None:
        """A recent ceiling of this build, driver and host with room above this trial's throughput."""
        file = self._file(load)
        try:
            if file is None or time.time() - file.stat().st_mtime > KEPT_S:
                return None
            calibration = Calibration.model_validate_json(file.read_bytes())
        except (OSError, ValueError):
            return None
        near = load.like(load.model_copy(update={"body_bytes": calibration.body_bytes}))
        return calibration if near and _over(calibration, evidence, ROOM) is False else None

    def _keep(self, load: ReferenceLoad, calibration: Calibration) -> None:
        file = self._file(load)
        if file is not None and not calibration.exceeded:
            with suppress(OSError):
                file.write_text(calibration.model_dump_json(), encoding="utf-8")

    def _file(self, load: ReferenceLoad) -> Path | None:
        """Its name is a hash of what decides the ceiling, except response length."""
        if self.host is None:
            return None
        build = find_engine().stat()
        key = (
            self.host, build.st_size, build.st_mtime_ns, reference.WARM_S, reference.MEASURED_S,
            load.model_dump_json(exclude={"body_bytes"}),
        )  # fmt: skip
        return cache_dir("calibrations") / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"


def reference_load(trial: TrialPlan, evidence: Evidence) -> ReferenceLoad | None:
    """The trial's load for the reference server; None where it cannot serve it."""
    body_bytes, cpus = _usual_bytes(evidence), _server_cpus(evidence)
    sides = evidence.partition
    if body_bytes is None or cpus is None or sides is None:
        return None
    if trial.script is not None or evidence.load.transport == "unix":
        return None
    version = "2" if evidence.load.http_version == "2" else None  # by the server's variant
    return ReferenceLoad(
        workload=trial.workload,
        users=min(trial.load.at_once, MOST_CONNECTIONS),
        connections=trial.in_http_version(version).connections,
        body_bytes=body_bytes,
        tls=evidence.load.tls,
        driver=trial.driver,
        client_cpus=sides.client if trial.threads is None else sides.client[: trial.threads],
        server_cpus=cpus,
        closes_after=evidence.load.server_closes_after,
    )


def _server_cpus(evidence: Evidence) -> tuple[int, ...] | None:
    """CPUs of the server; empty where it shares the client's, None if unknown."""
    sides, window = evidence.partition, evidence.server_window
    if sides is None:
        return None
    theirs = sides.server
    if not evidence.server.owned:
        theirs = () if window is None else window.cpus
        if not theirs:
            return None
    return () if not sides.apart and set(theirs) & set(sides.client) else theirs


def _over(calibration: Calibration, evidence: Evidence, share: float = 1.0) -> bool:
    window = evidence.engine.window if evidence.engine is not None else None
    ceiling = calibration.client_ceiling_per_s
    if window is None or ceiling is None or window.duration_s <= 0:
        return False
    return window.completed / window.duration_s > share * ceiling


def _calibrate(load: ReferenceLoad, times: int, around: Surroundings) -> Calibration:
    measure = partial(calibrate, load, start=around.engine, server=around.reference_server)
    if not load.tls:
        return measure(None, times)
    with tempfile.TemporaryDirectory(prefix="prony-calibration-") as folder:
        made = certificates.make(Path(folder) / "tls", around.server_address)
        return measure(Certificate(made.ca, made.cert, made.key), times)


def _usual_bytes(evidence: Evidence) -> int | None:
    """Body length of the last preflight response, else of the most frequent response."""
    if evidence.probes:
        return evidence.probes[-1].body_bytes
    responses = evidence.engine.totals.answers if evidence.engine is not None else ()
    return responses[0].body_bytes if responses else None
