"""little: were all users simulated, and do two counters agree (Little's law, in two forms). Must not know why
users are missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, NotNegative, Share, always, check
from prony.judge.finding import Finding, Status, no_window, worst
from prony.judge.histogram import HistogramError, decode
from prony.judge.window import measured
from prony.numbers import number, percent

CHECK = "little"
SOURCE = "Little 1961; Faban's check is one-sided, on unclipped cycles"
EDGE_SIGMAS = 4.0
"""Standard deviations of the edge effect that are allowed: 1 clean window in 16,000 exceeds it."""
CAME_AND_WENT = " (mean: users came or went within the window)"
"""Printed where the reference is the engine's own count of users over time."""
UNSEEN = 1e5
"""The outermost bound extrapolates the tail to this many requests."""


class LittleLimits(DeclaredLimits):
    little_deviation: Share = 0.01
    """Two-sided. Faban allows 2.5 % on one side of unclipped cycles; clipped cycles need no such slack."""
    little_turnaround_us: NotNegative = 10.0
    """Client turn-around per request, with all users alive: up to this suspect, above it invalid. A send
    takes the engine about 1 µs outside the request's own time, a Lua script a few more.
    """


@dataclass(frozen=True, slots=True)
class FormResult:
    """One of the two forms: its status, relative deviation (None when unknown) and text."""

    status: Status
    deviation: float | None
    text: str


@check(LittleLimits, order=90, essential=always)
def little(evidence: Evidence, limits: LittleLimits) -> Finding:
    """Form 1 (closed loops and sessions): users simulated against users expected. Form 2: mean in flight
    against throughput × service time.
    """
    limit = (
        f"within ±{percent(limits.little_deviation)}, "
        "plus what requests that span the window's edge can explain"
    )
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    parts = [in_flight_part(window, evidence, limits)]
    if evidence.load.model == "closed" or evidence.load.sessions_per_s is not None:
        parts.insert(0, users_part(window, evidence.engine, evidence, limits))
    status = worst(*(part.status for part in parts))
    deviations = [part.deviation for part in parts if part.deviation is not None]
    return Finding(
        check=CHECK,
        status=status,
        value=max(deviations, key=abs) if deviations else None,
        limit=limit,
        reason="; ".join(part.text for part in parts),
        advice=_advice(parts) if status in {Status.INVALID, Status.SUSPECT} else "",
        source=SOURCE,
    )


def users_part(window: Window, report: EngineReport, evidence: Evidence, limits: LittleLimits) -> FormResult:
    """Σ(residence + think time, clipped to the window) ÷ window against the number of users expected."""
    asked, note = expected_users(window, report, evidence)
    if window.clipped_cycle_s is None or asked is None:
        return FormResult(Status.UNKNOWN, None, "user cycles could not be read")
    if asked <= 0:
        return FormResult(Status.UNKNOWN, None, "no users expected")
    simulated = window.clipped_cycle_s / window.duration_s
    deviation = simulated / asked - 1
    lacking = limits.little_deviation + _tail_allowance(window, report)
    beyond = limits.little_deviation + _last_responses(window, evidence) / asked
    broken = deviation > beyond or deviation < -lacking
    text = f"{number(simulated)} of {number(asked)} users simulated{note}"
    if (
        broken
        and window.users is not None
        and evidence.load.users is not None
        and window.users < evidence.load.users
    ):
        text += f", {number(window.users)} alive at the end"
    turnaround_us = _turnaround_us(window, asked, counted=note == CAME_AND_WENT)
    if broken and turnaround_us is not None and turnaround_us <= limits.little_turnaround_us:
        text += f"; the rest is the client's turn-around, {number(turnaround_us)} µs per request"
        return FormResult(Status.SUSPECT, deviation, text)
    return FormResult(Status.INVALID if broken else Status.VALID, deviation, text)


def _turnaround_us(window: Window, asked: float, *, counted: bool) -> float | None:
    """User time outside any cycle, per request in µs, where it can be the client's own turn-around: no
    request failed, and all users were alive at the end or are `counted` only while they were. None where it
    cannot.
    """
    missing_s = asked * window.duration_s - (window.clipped_cycle_s or 0.0)
    if missing_s <= 0 or window.completed <= 0 or window.failed > 0:
        return None
    if not counted and (window.users is None or window.users < asked):
        return None
    return missing_s / window.completed * 1e6


def expected_users(window: Window, report: EngineReport, evidence: Evidence) -> tuple[float | None, str]:
    """Expected users: the plan's number, or the mean where the plan itself lets the number vary;
    and a note.
    """
    load = evidence.load
    planned = planned_users(window, load)
    if planned is not None:
        return planned, " (mean: groups of users start and end by the plan)"
    ramp_in_window = load.ramp_up_s * 1000 > window.opened_ms
    comes_and_goes = load.model == "open" or load.ramp_down_s > 0 or report.reason == "iterations"
    comes_and_goes = comes_and_goes or _sent_home(window, report, load)
    comes_and_goes = comes_and_goes or any(one.iterations_per_user is not None for one in load.populations)
    if not ramp_in_window and not comes_and_goes:
        return (None if load.users is None else float(load.users)), ""
    if window.users_integral_s is not None:
        return window.users_integral_s / window.duration_s, CAME_AND_WENT
    end_ms = window.opened_ms + window.duration_s * 1000
    user_ms = total_ms = 0.0
    before: int | None = None
    for row in report.rows:
        if row.users is None:
            return None, ""
        overlap_ms = min(row.t_ms, end_ms) - max(row.t_ms - row.duration_ms, window.opened_ms)
        if overlap_ms > 0:
            user_ms += overlap_ms * (row.users + (row.users if before is None else before)) / 2
            total_ms += overlap_ms
        before = row.users
    return (user_ms / total_ms if total_ms > 0 else None), CAME_AND_WENT


def _sent_home(window: Window, report: EngineReport, load: LoadFacts) -> bool:
    """Whether a script ended users by `thread:stop()`; a script that failed does not count."""
    if report.script is None or report.script.error is not None:
        return False
    return window.users is not None and load.users is not None and window.users < load.users


def planned_users(window: Window, load: LoadFacts) -> float | None:
    """Mean number of users over the window by the plan of their groups: Σ (group's end − user's start) ÷
    window. None without groups, and where a group ends by its iterations.
    """
    if not load.populations or any(one.iterations_per_user is not None for one in load.populations):
        return None
    from_s = window.opened_ms / 1000
    to_s = from_s + window.duration_s
    user_s = 0.0
    for one in load.populations:
        places = np.arange(one.users, dtype=np.float64)
        steps = one.ramp_up_steps
        shares = places / one.users if steps is None else np.floor(places * steps / one.users) / steps
        starts = np.maximum(one.start_s + one.ramp_up_s * shares, from_s)
        end_s = to_s if one.end_s is None else min(to_s, one.end_s)
        user_s += float(np.maximum(end_s - starts, 0.0).sum())
    return user_s / window.duration_s


def _last_responses(window: Window, evidence: Evidence) -> float:
    """By how much the mean number of users may be higher: a user whose group ends waits for its last
    response.
    """
    ended = [one.users for one in evidence.load.populations if one.end_s is not None]
    if not ended or window.service_time is None or window.service_time.max_ns is None:
        return 0.0
    return sum(ended) * window.service_time.max_ns * 1e-9 / window.duration_s


def _tail_allowance(window: Window, report: EngineReport) -> float:
    """With an exact total of requests the last user may still be busy while the others have none left."""
    if report.reason != "total_requests" or window.service_time is None or window.service_time.max_ns is None:
        return 0.0
    return window.service_time.max_ns * 1e-9 / window.duration_s


def in_flight_part(window: Window, evidence: Evidence, limits: LittleLimits) -> FormResult:
    """∫ in-flight dt against Σ service time (= throughput × mean service time × window).

    The integral stops at the window's edges, service times do not: a request in flight at the opening
    contributes its time before the window, one in flight at the close contributes nothing. In expectation
    both cancel. The ages of the requests in flight at one moment sum to a variable of variance at most
    λE[S³]/3 (equality for Poisson arrivals; fixed users have less), so the two edges differ by at most
    EDGE_SIGMAS × sqrt(2λE[S³]/3) request-seconds, unless completions are correlated; nothing can exceed users
    × longest service time.
    """
    measured_s, service_s = window.in_flight_integral_s, window.service_time_sum_s
    if measured_s is None or service_s is None:
        return FormResult(Status.UNKNOWN, None, "the in-flight integral could not be read")
    if service_s <= 0 or measured_s <= 0:
        same = service_s == measured_s
        text = (
            "nothing was in flight"
            if same
            else "one counter saw load and the other none (in flight, service time)"
        )
        return FormResult(Status.UNKNOWN if same else Status.INVALID, None, text)
    deviation = measured_s / service_s - 1
    text = (
        f"mean in flight {number(measured_s / window.duration_s)}, "
        f"throughput × service time {number(service_s / window.duration_s)}"
    )
    allowed_s, most_s = _edges_s(window, evidence)
    beyond_s = abs(measured_s - service_s) - limits.little_deviation * service_s
    if beyond_s <= allowed_s:
        return FormResult(Status.VALID, deviation, text)
    if beyond_s <= most_s:
        return FormResult(Status.SUSPECT, deviation, text + ": may be requests that span the window's edge")
    if measured_s > service_s and window.failed > 0:
        spent_s = (measured_s - service_s) / window.failed
        return FormResult(
            Status.SUSPECT, deviation, text + f": may be {number(spent_s)} s in each failed request"
        )
    return FormResult(Status.INVALID, deviation, text)


def _edges_s(window: Window, evidence: Evidence) -> tuple[float, float]:
    """(likely bound of the edge effect, its absolute bound), in request-seconds."""
    histogram = window.service_time
    if histogram is None or window.completed <= 0:
        return 0.0, 0.0
    longest_s = (histogram.max_ns or 0) * 1e-9
    try:
        decoded = decode(histogram)
    except HistogramError:
        return 0.0, 0.0
    if decoded.count <= 0:
        return 0.0, 0.0
    # A request in flight at an edge is longer than average and may be longer than any seen: the longest is
    # counted once more, and the absolute bound extrapolates an exponential tail to 1 in UNSEEN.
    third_moment = (decoded.moment(3) * decoded.count + longest_s**3) / (decoded.count + 1)
    likely_s = EDGE_SIGMAS * math.sqrt(2 * window.completed / window.duration_s * third_moment / 3)
    unseen_s = longest_s + decoded.moment(1) * max(0.0, math.log(UNSEEN / decoded.count))
    at_once = evidence.load.users
    if at_once is None:
        at_once = (
            max((row.in_flight or 0 for row in evidence.engine.rows), default=0) if evidence.engine else 0
        )
    return likely_s, at_once * unseen_s


def _advice(parts: list[FormResult]) -> str:
    users = parts[0] if len(parts) > 1 else None
    if users is not None and users.status is Status.INVALID:
        if users.deviation is not None and users.deviation < 0:
            return "users stopped, waited for the client or were connecting: see errors, client, connections"
        return "more user time than users: a defect in the engine, please report it with the evidence"
    if any(part.status is Status.INVALID for part in parts):
        return (
            "two counters of the engine disagree: do not use the figure; please report it with the evidence"
        )
    if users is not None and users.status is Status.SUSPECT:
        return "the server responds so fast that the client's turn-around shows: use more users"
    return "measure a longer window, so that its edges matter less"
