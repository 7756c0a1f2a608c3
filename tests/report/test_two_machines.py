"""Two machines beside each other: ratios within each, never across; the word confounded where it applies."""

from __future__ import annotations

from datetime import UTC, datetime

from prony.evidence.host import Fingerprint
from prony.judge.finding import Judgement, Status
from prony.report.model import TrialView
from prony.report.two_machines import Result, TwoResults, beside
from tests.judge import factory as judge_factory
from tests.report import factory

ARM = factory.FINGERPRINT.model_copy(update={"key": "arm", "architecture": "aarch64", "hostname": "other"})


def result(id: str, fingerprint: Fingerprint, rates: dict[str, list[float]], cell: str = "") -> Result:
    trials: list[TrialView] = []
    for server, values in rates.items():
        for block, value in enumerate(values):
            record = factory.record(server, block).model_copy(
                update={
                    "id": f"{id}-{server}-{block}",
                    "workload": "hello",
                    "load_name": "closed-10",
                    "cell": cell and f"{cell}/{server}/hello/closed-10",
                    "fingerprint_key": fingerprint.key,
                    "evidence": judge_factory.healthy(),
                }
            )
            judged = Judgement(verdict=Status.VALID, findings=())
            trials.append(TrialView(record, judged, {"requests_per_s": value}))
    return Result(id, "title", datetime(2026, 1, 1, tzinfo=UTC), fingerprint, tuple(trials))


FAST: dict[str, list[float]] = {"a": [2000, 2010, 1990, 2005, 1995], "b": [1000, 1004, 996, 1002, 999]}
SLOW: dict[str, list[float]] = {"a": [1000, 1004, 996, 1002, 999], "b": [500, 502, 498, 501, 499]}


def two(second: Fingerprint = ARM) -> TwoResults:
    return beside(result("one", factory.FINGERPRINT, FAST), result("two", second, SLOW))


def test_ratios_are_those_within_each_machine() -> None:
    (ratio,) = two().ratios
    left, right = ratio.sides
    assert left is not None
    assert right is not None
    assert left.ratio is not None
    assert right.ratio is not None
    assert abs(left.ratio - 2) < 0.02
    assert abs(right.ratio - 2) < 0.02
    assert ratio.words == "the same order"


def test_no_figure_of_one_machine_is_divided_by_one_of_the_other() -> None:
    """The machines differ by a factor of two in every server; no number that is given says so."""
    found = two()
    given = [side.ratio for ratio in found.ratios for side in ratio.sides if side is not None]
    assert len(given) == 2
    assert found.confounded
    assert "confounded" in found.words
    assert "no ratio and no p-value" in found.words.replace("no \nratio", "no ratio")


def test_the_same_fingerprint_is_not_confounded_and_still_not_mixed() -> None:
    found = two(factory.FINGERPRINT)
    assert not found.confounded
    assert found.differing == ()
    assert "confounded" not in found.words


def test_what_differs_is_listed_field_by_field() -> None:
    differing = {what: (left, right) for what, left, right in two().differing}
    assert differing["architecture"] == (factory.FINGERPRINT.architecture, "aarch64")
    assert "cpus" not in differing


def test_another_order_is_said() -> None:
    turned = {"a": SLOW["b"], "b": SLOW["a"]}
    found = beside(result("one", factory.FINGERPRINT, FAST), result("two", ARM, turned))
    assert found.ratios[0].words == "another order"


def test_parts_of_a_plan_are_kept_apart_and_what_only_one_has_is_said() -> None:
    found = beside(result("one", factory.FINGERPRINT, FAST, "x"), result("two", ARM, {"a": SLOW["a"]}, "y"))
    assert {figure.where for figure in found.figures} == {"x, hello, closed-10", "y, hello, closed-10"}
    assert {ratio.words for ratio in found.ratios} == {"only on one machine"}
