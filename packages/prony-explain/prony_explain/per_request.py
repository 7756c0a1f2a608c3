"""Counters of an explained trial per request: the kernel's and the runtime's of the server, the engine's of
what went over the wire. Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from prony.evidence.profile import Counters, Profile
from prony.evidence.trial import Evidence
from prony_explain.difference import WITNESSES


def per_request(profile: Profile | None, rate: float | None) -> dict[str, float]:
    """What was counted beside the profiler, by the names of `WITNESSES`. `rate`: requests per second of the
    window. Without what could not be read.
    """
    counters = profile.counters if profile is not None else None
    if profile is None or counters is None or not rate or counters.seconds <= 0:
        return {}
    requests = counters.seconds * rate
    # What one of several processes did is of so many requests as its share of the work.
    profiled_rate = rate * (1.0 if profile.cpu_share is None else profile.cpu_share)
    faults = None if counters.faults_minor is None else counters.faults_minor + (counters.faults_major or 0)
    calls = None if counters.system_calls is None else sum(counters.system_calls.values())
    logged = _logged_s(profile, counters) * profiled_rate
    return _known(
        {
            "switches_voluntary": _per(counters.switches_voluntary, requests),
            "switches_involuntary": _per(counters.switches_involuntary, requests),
            "system_calls": _per(calls, (counters.system_calls_s or 0.0) * rate),
            "lock_waits_us": _lock_waits_us(profile, profiled_rate),
            "cpu_waits_us": _per(_us(counters.run_queue_wait_s), requests),
            "allocated_bytes": _per(counters.allocated_bytes, _allocated_s(counters) * profiled_rate),
            "collections_per_1000": _per(counters.collections, logged / 1000),
            "collection_pauses_us": _per(_us(counters.collection_pause_s), logged),
            "faults": _per(faults, requests),
            "tcp_segments": _per(counters.tcp_segments, requests),
            "tcp_opened": _per(counters.tcp_opened, requests),
        }
    )


def of_trial(evidence: Evidence) -> dict[str, float]:
    """What engine and control group say of the same window, by the names of `WITNESSES`."""
    window = evidence.engine.window if evidence.engine is not None else None
    if window is None:
        return {}
    throttle = evidence.server_window.throttle if evidence.server_window is not None else None
    # Without a quota no period is counted: there is nothing that could throttle.
    throttled_us = throttle.throttled_s * 1e6 if throttle is not None and throttle.periods else None
    return _known(
        {
            "request_bytes": _per(window.bytes_sent, window.completed),
            "response_bytes": _per(window.bytes_received, window.completed),
            "throttled_us": _per(throttled_us, window.completed),
        }
    )


def _known(found: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name in WITNESSES if (value := found.get(name)) is not None}


def _per(count: float | None, requests: float) -> float | None:
    return None if count is None or requests <= 0 else count / requests


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _logged_s(profile: Profile, counters: Counters) -> float:
    """How long the runtime was asked for its collections; evidence of an earlier version does not say."""
    if profile.timeline_from_s is None:
        return counters.seconds
    return profile.timeline_to_s - profile.timeline_from_s


def _allocated_s(counters: Counters) -> float:
    """Evidence of an earlier version has no time of its own for it."""
    return counters.allocated_s if counters.allocated_s is not None else counters.seconds


def _lock_waits_us(profile: Profile, rate: float) -> float | None:
    """Of all threads together: more of them may wait at a time."""
    if profile.locks is None:
        return None
    seconds = sum(one.end_s - one.start_s for one in profile.locks.slices)
    return _per(profile.locks.total / 1000, seconds * rate)
