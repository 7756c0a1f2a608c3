"""Counters of an explained trial per request: of the kernel, the runtime and the engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from prony.evidence.profile import Counters, Profile
from prony.evidence.trial import Evidence
from prony_explain.difference import WITNESSES


def per_request(profile: Profile | None, rate: float | None) -> dict[str, float]:
    """Counters by the keys of `WITNESSES`, without unread ones. `rate`: requests/s of the window."""
    counters = profile.counters if profile is not None else None
    if profile is None or counters is None or not rate or counters.seconds <= 0:
        return {}
    requests = counters.seconds * rate
    # One of several processes serves requests in proportion to its share of the CPU time.
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
    """Counters of engine and control group in the window, by the keys of `WITNESSES`."""
    window = evidence.engine.window if evidence.engine is not None else None
    if window is None:
        return {}
    throttle = evidence.server_window.throttle if evidence.server_window is not None else None
    # Without a quota no period is counted, and nothing can be throttled.
    throttled_us = throttle.throttled_s * 1e6 if throttle is not None and throttle.periods else None
    return _known(
        {
            "request_bytes": _per(window.bytes_sent, window.completed),
            "response_bytes": _per(window.bytes_received, window.completed),
            "throttled_us": _per(throttled_us, window.completed),
        }
    )


def _known(counters: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name in WITNESSES if (value := counters.get(name)) is not None}


def _per(count: float | None, requests: float) -> float | None:
    return None if count is None or requests <= 0 else count / requests


def _us(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _logged_s(profile: Profile, counters: Counters) -> float:
    """Seconds of the collection log; evidence of earlier versions lacks them."""
    if profile.timeline_from_s is None:
        return counters.seconds
    return profile.timeline_to_s - profile.timeline_from_s


def _allocated_s(counters: Counters) -> float:
    """Seconds of the allocation count; evidence of earlier versions lacks them."""
    return counters.allocated_s if counters.allocated_s is not None else counters.seconds


def _lock_waits_us(profile: Profile, rate: float) -> float | None:
    """Summed over all threads, which may wait at the same time."""
    if profile.locks is None:
        return None
    seconds = sum(piece.end_s - piece.start_s for piece in profile.locks.slices)
    return _per(profile.locks.total / 1000, seconds * rate)
