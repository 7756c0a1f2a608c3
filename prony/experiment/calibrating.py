"""The engine's ceiling against the reference server, measured for each load of an experiment."""

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
"""Share of a kept ceiling up to which it clears the client; above it is measured anew."""
AGAIN = 2
"""Times as long a ceiling is measured that a trial exceeded."""


@dataclass(slots=True)
class Calibrations:
    """Measured once for each load, and again where a trial was faster."""

    host: str | None = None
    """Fingerprint under which ceilings are kept for later experiments; None: they are not."""
    _known: list[tuple[ReferenceLoad, Calibration]] = field(default_factory=list)

    def known(self, trial: TrialPlan, evidence: Evidence) -> Calibration | None:
        """One that was measured for the load of this trial, and that the trial did not exceed."""
        asked = reference_load(trial, evidence)
        if asked is None:
            return None
        found = next((one for load, one in reversed(self._known) if load.like(asked)), None)
        if found is None and (found := self._kept(asked, evidence)) is not None:
            self._known.append((asked, found))
        return None if found is None or (_over(found, evidence) and not found.exceeded) else found

    def measure(
        self, trial: TrialPlan, evidence: Evidence, progress: TrialObserver, around: Surroundings
    ) -> Calibration | None:
        """Measured now; None where the reference server cannot stand in for this load. One that the trial
        exceeded is measured a second time, and marked where that changes nothing. Raises EnvironmentFault.
        """
        asked = reference_load(trial, evidence)
        if asked is None:
            return None
        progress.phase("calibrate", reference.WARM_S + reference.MEASURED_S + START_S)
        found = _calibrate(asked, 1, around)
        if _over(found, evidence):
            progress.note("the trial was faster than the load generator's ceiling: measuring that again")
            found = _calibrate(asked, AGAIN, around)
            if _over(found, evidence):
                progress.note("faster again: the ceiling is none, and says nothing of the load generator")
                found = found.model_copy(update={"exceeded": True})
        self._known.append((asked, found))
        self._keep(asked, found)
        return found

    def _kept(self, asked: ReferenceLoad, evidence: Evidence) -> Calibration | None:
        """One of this build, driver and host that is not old, and has room above what was measured now."""
        file = self._file(asked)
        try:
            if file is None or time.time() - file.stat().st_mtime > KEPT_S:
                return None
            found = Calibration.model_validate_json(file.read_bytes())
        except (OSError, ValueError):
            return None
        near = asked.like(asked.model_copy(update={"body_bytes": found.body_bytes}))
        return found if near and _over(found, evidence, ROOM) is False else None

    def _keep(self, asked: ReferenceLoad, found: Calibration) -> None:
        file = self._file(asked)
        if file is not None and not found.exceeded:
            with suppress(OSError):
                file.write_text(found.model_dump_json(), encoding="utf-8")

    def _file(self, asked: ReferenceLoad) -> Path | None:
        """Its name tells what decides the ceiling, but for the length of responses."""
        if self.host is None:
            return None
        build = find_engine().stat()
        said = (
            self.host, build.st_size, build.st_mtime_ns, reference.WARM_S, reference.MEASURED_S,
            asked.model_dump_json(exclude={"body_bytes"}),
        )  # fmt: skip
        return cache_dir("calibrations") / f"{hashlib.sha256(repr(said).encode()).hexdigest()[:32]}.json"


def reference_load(trial: TrialPlan, evidence: Evidence) -> ReferenceLoad | None:
    """The trial's load as the reference server gets it; None where it cannot stand in."""
    body_bytes, cpus = _usual_bytes(evidence), _server_cpus(evidence)
    sides = evidence.partition
    if body_bytes is None or cpus is None or sides is None:
        return None
    if trial.script is not None or evidence.load.transport == "unix":
        return None
    version = "2" if evidence.load.http_version == "2" else None  # where the server's variant says so
    return ReferenceLoad(
        workload=trial.workload,
        users=min(trial.load.at_once, MOST_CONNECTIONS),
        connections=trial.spoken(version).connections,
        body_bytes=body_bytes,
        tls=evidence.load.tls,
        driver=trial.driver,
        client_cpus=sides.client if trial.threads is None else sides.client[: trial.threads],
        server_cpus=cpus,
        closes_after=evidence.load.server_closes_after,
    )


def _server_cpus(evidence: Evidence) -> tuple[int, ...] | None:
    """Those that the server had; empty where it may also run on the client's, None where not known."""
    sides, window = evidence.partition, evidence.server_window
    if sides is None:
        return None
    theirs = sides.server
    if not evidence.server.owned:
        theirs = () if window is None else window.cpus
        if not theirs:
            return None
    return () if not sides.apart and set(theirs) & set(sides.client) else theirs


def _over(found: Calibration, evidence: Evidence, share: float = 1.0) -> bool:
    window = evidence.engine.window if evidence.engine is not None else None
    ceiling = found.client_ceiling_per_s
    if window is None or ceiling is None or window.duration_s <= 0:
        return False
    return window.completed / window.duration_s > share * ceiling


def _calibrate(asked: ReferenceLoad, times: int, around: Surroundings) -> Calibration:
    measure = partial(calibrate, asked, start=around.engine, server=around.reference_server)
    if not asked.tls:
        return measure(None, times)
    with tempfile.TemporaryDirectory(prefix="prony-calibration-") as folder:
        made = certificates.make(Path(folder) / "tls", around.server_address)
        return measure(Certificate(made.ca, made.cert, made.key), times)


def _usual_bytes(evidence: Evidence) -> int | None:
    """The length of a usual response: of the last one of the preflight, else of the most frequent one."""
    if evidence.probes:
        return evidence.probes[-1].body_bytes
    responses = evidence.engine.totals.answers if evidence.engine is not None else ()
    return responses[0].body_bytes if responses else None
