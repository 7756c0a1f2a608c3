"""little: was each user active throughout, and do the engine's books balance (Little's law in two forms)."""

from __future__ import annotations

import numpy as np

from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import Evidence, LoadFacts
from prony.judge.check import DeclaredLimits, Share, check
from prony.judge.finding import Finding, no_window, unread
from prony.judge.parts import joined
from prony.judge.window import measured, request_times
from prony.numbers import milliseconds, number, percent

CHECK = "little"
SOURCE = "Little 1961; Faban's check is one-sided, on unclipped cycles"
CAME_AND_WENT = " (mean: users came or went within the window)"
"""Note where the reference is the engine's own count of users over time."""
LATE_START_S = 1.0
"""Tolerated late start of users on a busy host: 1 % of a window of 100 s."""
DISAGREE = "two counters of the engine disagree: discard the figure and report it with the evidence"


class LittleLimits(DeclaredLimits):
    little_deviation: Share = 0.01
    """Two-sided. Faban allows 2.5 % on one side of unclipped cycles; clipped cycles need no such slack."""


@check(LittleLimits, order=90)
def little(evidence: Evidence, limits: LittleLimits) -> Finding:
    """Form 1: users simulated ÷ expected. Form 2: ∫ in-flight dt ÷ sum of request times."""
    limit = f"within ±{percent(limits.little_deviation)}"
    window = measured(evidence)
    if window is None or evidence.engine is None:
        return no_window(CHECK, limit=limit, source=SOURCE)
    parts = [_in_flight(window, limits)]
    if evidence.load.model == "closed" or evidence.load.sessions_per_s is not None:
        parts.insert(0, _users(window, evidence.engine, evidence, limits))
    deviations = [part.value for part in parts if isinstance(part.value, float)]
    value = max(deviations, key=abs) if deviations else None
    return joined(parts).model_copy(update={"value": value, "limit": limit})


def _finding(text: str, deviation: float | None = None, code: str = "ok", advice: str = "") -> Finding:
    conforms = code == "ok"
    return Finding(
        check=CHECK, code=code, conforms=conforms, value=deviation, reason=text, advice=advice, source=SOURCE
    )


def _unread(text: str, deviation: float | None = None, *, provided: str, advice: str = "") -> Finding:
    finding = unread(CHECK, text, provided=provided, advice=advice, source=SOURCE)
    return finding.model_copy(update={"value": deviation})


def _users(window: Window, report: EngineReport, evidence: Evidence, limits: LittleLimits) -> Finding:
    expected, note = expected_users(window, report, evidence)
    there = "all users were active all the time"
    if window.user_time_s is None or expected is None:
        return _unread("user cycles could not be read", provided=there)
    if expected <= 0:
        return _unread("no users expected", provided=there)
    simulated = window.user_time_s / window.duration_s
    deviation = simulated / expected - 1
    text = f"{number(simulated)} of {number(expected)} users simulated{note}"
    if deviation > limits.little_deviation + _last_responses(window, evidence) / expected:
        advice = "more user time than users: a defect in the engine, report it with the evidence"
        return _finding(text, deviation, "too_many_users", advice)
    if deviation >= -(limits.little_deviation + _tail_allowance(window, report)):
        return _finding(text, deviation)
    if window.clipped_turnaround_s is None:
        return _unread(text + "; the client's turn-around was not counted", deviation, provided=there)
    if (late_s := _late_s(window, report, expected)) is not None:
        text += f": users started {milliseconds(late_s * 1000)} late in a run of "
        text += f"{milliseconds(window.duration_s * 1000)}, which is too short to judge"
        advice = "measure longer, so that the start matters less"
        late = _unread(text, deviation, provided=there, advice=advice)
        return late.model_copy(update={"code": "late_begin"})
    if window.clipped_back_off_s:
        text += f", {number(window.clipped_back_off_s / window.duration_s)} backed off"
    if window.users is not None and evidence.load.users is not None and window.users < evidence.load.users:
        text += f", {number(window.users)} alive at the end"
    advice = "users stopped, or backed off after failed attempts to connect: see errors"
    return _finding(text, deviation, "users_missing", advice)


def _late_s(window: Window, report: EngineReport, planned: float) -> float | None:
    """Mean late start of users (s), where it alone explains the missing user time."""
    lives_s = window.users_integral_s
    if window.opened_ms > 0 or lives_s is None or window.user_time_s is None:
        return None
    ends_with_requests = report.reason == "total_requests"
    stayed = ends_with_requests or window.users == planned
    stayed = stayed and all(row.users == planned for row in report.rows[:-1])
    late_s = window.duration_s - lives_s / planned
    most_s = LATE_START_S + (_longest_s(window) if ends_with_requests else 0.0)
    counted = abs(window.user_time_s - lives_s) <= 0.01 * lives_s
    return late_s if stayed and counted and late_s <= most_s else None


def expected_users(window: Window, report: EngineReport, evidence: Evidence) -> tuple[float | None, str]:
    """Expected users, and a note where the plan varies them."""
    load = evidence.load
    planned = planned_users(window, load)
    if planned is not None:
        return planned, " (mean: groups of users start and end by the plan)"
    ramp_in_window = load.ramp_up_s * 1000 > window.opened_ms
    comes_and_goes = load.model == "open" or load.ramp_down_s > 0 or report.reason == "iterations"
    comes_and_goes = comes_and_goes or _sent_home(window, report, load)
    comes_and_goes = comes_and_goes or any(
        group.iterations_per_user is not None for group in load.populations
    )
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
    if report.script is None or report.script.error is not None:
        return False
    return window.users is not None and load.users is not None and window.users < load.users


def planned_users(window: Window, load: LoadFacts) -> float | None:
    """Mean users: Σ (group's end − user's start) ÷ window; None without groups or with iterations."""
    if not load.populations or any(group.iterations_per_user is not None for group in load.populations):
        return None
    from_s = window.opened_ms / 1000
    to_s = from_s + window.duration_s
    user_s = 0.0
    for group in load.populations:
        places = np.arange(group.users, dtype=np.float64)
        steps = group.ramp_up_steps
        shares = places / group.users if steps is None else np.floor(places * steps / group.users) / steps
        starts = np.maximum(group.start_s + group.ramp_up_s * shares, from_s)
        end_s = to_s if group.end_s is None else min(to_s, group.end_s)
        user_s += float(np.maximum(end_s - starts, 0.0).sum())
    return user_s / window.duration_s


def _last_responses(window: Window, evidence: Evidence) -> float:
    ended = [group.users for group in evidence.load.populations if group.end_s is not None]
    return sum(ended) * _longest_s(window) / window.duration_s


def _tail_allowance(window: Window, report: EngineReport) -> float:
    return _longest_s(window) / window.duration_s if report.reason == "total_requests" else 0.0


def _longest_s(window: Window) -> float:
    times = request_times(window)
    return (times.max_ns or 0) * 1e-9 if times is not None else 0.0


def _in_flight(window: Window, limits: LittleLimits) -> Finding:
    """∫ in-flight dt compared with request times: Σ service time of requests answered in the window + Σ time
    of those lost in it + ages of requests in flight at the close − those at the opening.

    Both sides use the same time stamps, so this checks the engine's books (a request missed, counted twice,
    in the wrong segment), not the stamps. Up to the clock's resolution they are equal.
    """
    measured_s, counted_s = window.in_flight_integral_s, _counted_s(window)
    if measured_s is None or counted_s is None:
        return _unread("the in-flight integral could not be read", provided="the engine's books balance")
    if counted_s <= 0 or measured_s <= 0:
        if counted_s == measured_s:
            return _unread("nothing was in flight", provided="the engine's books balance")
        text = "only one of two counters saw load (in flight, service time)"
        return _finding(text, None, "counters_disagree", DISAGREE)
    deviation = measured_s / counted_s - 1
    text = (
        f"bookkeeping: mean in flight {number(measured_s / window.duration_s)}, "
        f"{number(counted_s / window.duration_s)} by the requests' times"
    )
    if abs(deviation) <= limits.little_deviation:
        return _finding(text, deviation)
    return _finding(text, deviation, "counters_disagree", DISAGREE)


def _counted_s(window: Window) -> float | None:
    parts = (window.service_time_sum_s, window.lost_time_sum_s, window.in_flight_age_close_s)
    opened_s = window.in_flight_age_open_s
    if opened_s is None or any(part is None for part in parts):
        return None
    return sum(part or 0.0 for part in parts) - opened_s
