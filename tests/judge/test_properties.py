"""Whatever is missing, the judge does not raise, and what was not read makes no claim stronger."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from prony.evidence.trial import Evidence
from prony.judge.checks import CHECKS
from prony.judge.figures import figures
from prony.judge.finding import BUDGETED, CAPACITY, Judgement
from prony.judge.judging import judge
from tests.judge import factory as f
from tests.judge.test_every_check import QUIET, SAYS_NOTHING

BASES: tuple[Evidence, ...] = (f.healthy(), f.open_model("constant"), f.open_model("poisson"), f.by_url())
BASES += tuple(quiet for quiet in QUIET.values() if quiet not in BASES)


def optional(record: BaseModel, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all fields below `record` that may be None and are not."""
    found: list[tuple[str, ...]] = []
    for name, field in type(record).model_fields.items():
        value = getattr(record, name)
        if value is not None and not field.is_required() and field.default is None:
            found.append((*path, name))
        if isinstance(value, BaseModel):
            found += optional(value, (*path, name))
    return found


def without(record: Any, path: tuple[str, ...]) -> Any:
    """The same record with the field at `path` set to None."""
    if record is None:
        return None
    head, *rest = path
    value = without(getattr(record, head), tuple(rest)) if rest else None
    return record.model_copy(update={head: value})


PATHS = [optional(base) for base in BASES]


@st.composite
def holed(draw: st.DrawFn) -> tuple[Evidence, Evidence]:
    """(a healthy evidence, the same with some fields unknown)."""
    which = draw(st.integers(0, len(BASES) - 1))
    whole = BASES[which]
    broken = whole
    for path in draw(st.lists(st.sampled_from(PATHS[which]), min_size=1, max_size=8, unique=True)):
        broken = without(broken, path)
    return whole, broken


@settings(max_examples=300, deadline=None, derandomize=True)
@given(holed())
def test_the_judge_never_raises_and_finds_no_trouble_in_what_is_missing(
    pair: tuple[Evidence, Evidence],
) -> None:
    """A missing counter is no evidence of trouble: a trial without it conforms, unless its window is gone."""
    whole, broken = pair
    judgement = judge(broken)
    for finding in judgement.not_conforming:
        assert finding.code == "no_window", finding
    numbers = figures(broken).numbers()
    complete = figures(whole).numbers()
    assert all(abs(numbers[name] - complete[name]) <= 2e-3 * abs(complete[name]) for name in numbers), numbers


@settings(max_examples=300, deadline=None, derandomize=True)
@given(holed())
def test_what_was_not_read_makes_no_claim_stronger(pair: tuple[Evidence, Evidence]) -> None:
    """A bound is at least as wide without it, or the claim rests on a condition that it did not rest on."""
    before, after = judge(pair[0]), judge(pair[1])
    if resting(after) - resting(before) or not after.conforms or without_mean(pair[1]):
        return
    for figure in (*BUDGETED, *CAPACITY):
        was, now = before.bias(figure), after.bias(figure)
        assert now.down >= was.down - 1e-9, figure
        assert now.up >= was.up - 1e-9, figure


def without_mean(evidence: Evidence) -> bool:
    """What no engine leaves: it writes the mean of every histogram that has samples."""
    window = evidence.engine.window if evidence.engine is not None else None
    times = None if window is None else window.service_time
    return times is not None and times.mean_ns is None


def resting(judgement: Judgement) -> set[tuple[str, str]]:
    return {(finding.check, finding.provided) for finding in judgement.provided}


ODD_HISTOGRAMS = (f.of_values([1]), f.of_values([1], 0), f.histogram().model_copy(update={"v2": "HISTF"}))

counts = st.integers(0, 10**9)
shares = st.floats(0, 1)
times = st.floats(0, 1e6)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    window=st.fixed_dictionaries(
        {},
        optional={
            "completed": counts,
            "failed": counts,
            "sent": counts,
            "errors": st.dictionaries(
                st.sampled_from(["timeout", "expect_body", "descriptors", "new_kind"]), counts
            ),
            "status": st.dictionaries(st.sampled_from(["200", "503", "odd", ""]), counts),
            "answers": st.just(()),
            "answers_other": counts,
            "duration_s": st.floats(0, 1e5),
            "opened_ms": times,
            "service_time_sum_s": times,
            "in_flight_integral_s": times,
            "clipped_cycle_s": times,
            "users": counts,
            "service_time": st.sampled_from(ODD_HISTOGRAMS),
            "think_count": counts,
            "think_drawn_sum_s": times,
            "think_actual_sum_s": times,
        },
    ),
    totals=st.fixed_dictionaries(
        {},
        optional={
            "connections_opened": counts,
            "connections_closed_by_server": counts,
            "connections_closed_by_client": counts,
            "sent": counts,
            "completed": counts,
            "eaddrnotavail": counts,
        },
    ),
    load=st.fixed_dictionaries(
        {},
        optional={
            "users": st.none() | counts,
            "keep_alive": st.booleans(),
            "think_kind": st.sampled_from(["none", "constant"]),
            "claim": st.sampled_from(["capacity", "latency", "protocol"]),
            "content_declared": st.booleans(),
            "ramp_up_s": times,
            "max_requests_per_connection": st.none() | st.integers(0, 1000),
        },
    ),
    elapsed_ms=times,
    wall_s=st.floats(0, 1e5),
    granted=st.floats(0, 128),
    which=st.integers(0, 2),
)
def test_absurd_numbers_end_in_a_judgement(
    window: dict[str, Any],
    totals: dict[str, Any],
    load: dict[str, Any],
    elapsed_ms: float,
    wall_s: float,
    granted: float,
    which: int,
) -> None:
    evidence = f.part(BASES[which], "load", **load)
    evidence = f.totals(f.window(evidence, **window), **totals)
    evidence = f.engine(evidence, elapsed_ms=elapsed_ms)
    evidence = f.part(evidence, "server_window", wall_s=wall_s, granted_cpus=granted)
    judgement = judge(evidence)
    assert len({finding.check for finding in judgement.findings}) == len(judgement.findings)
    for finding in judgement.findings:
        assert finding.reason
    for figure in (*BUDGETED, *CAPACITY):
        assert judgement.bias(figure).size >= 0
    figures(evidence)


def test_every_check_is_covered_by_the_bases() -> None:
    said = {finding.check for base in BASES for finding in judge(base).findings}
    assert said == {check.name for check in CHECKS} - SAYS_NOTHING
