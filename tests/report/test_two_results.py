"""Two hosts beside each other: ratios within each, never across; the word confounded where it applies."""

from __future__ import annotations

from dataclasses import replace

from prony.evidence.host import Fingerprint
from prony.plan.cell import cell_of
from prony.plan.load import ClosedLoad
from prony.plan.part import Part
from prony.plan.plan import Plan
from prony.plan.target import Launch
from prony.report.delivery import as_plain
from prony.report.reading import build
from prony.report.result import ResultView
from prony.report.two_results import TwoResults, compared, to_json
from tests.report import factory

ARM = factory.FINGERPRINT.model_copy(update={"key": "arm", "architecture": "aarch64", "hostname": "other"})


def result(
    id: str, fingerprint: Fingerprint, rates: dict[str, list[float]], parts: tuple[str, ...] = ("main",)
) -> ResultView:
    cells = [
        cell_of(part, server, Launch(address=server), factory.trial_plan(ClosedLoad(users=10)), 5)
        for part in parts
        for server in rates
    ]
    trials = []
    for cell in cells:
        for block, value in enumerate(rates[cell.server]):
            changes = {
                "id": f"{id}-{cell.id}-{block}",
                "cell": cell.id,
                "fingerprint_key": fingerprint.key,
            }
            made = factory.trial(factory.record(cell.server, block).model_copy(update=changes))
            trials.append(replace(made, figures={"requests_per_s": value}))
    plan = Plan(
        name="compare",
        command="compare",
        title="title",
        parts=tuple(Part(name=name, title=name, shape="comparison") for name in parts),
        cells=tuple(cells),
    )
    return build(replace(factory.row("title"), id=id, fingerprint=fingerprint), plan, trials)


FAST: dict[str, list[float]] = {"a": [2000, 2010, 1990, 2005, 1995], "b": [1000, 1004, 996, 1002, 999]}
SLOW: dict[str, list[float]] = {"a": [1000, 1004, 996, 1002, 999], "b": [500, 502, 498, 501, 499]}


def two(second: Fingerprint = ARM) -> TwoResults:
    return compared(result("one", factory.FINGERPRINT, FAST), result("two", second, SLOW))


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
    """The hosts differ by a factor of two in every server; no number that is given says so."""
    two_results = two()
    given = [side.ratio for ratio in two_results.ratios for side in ratio.sides if side is not None]
    assert len(given) == 2
    assert two_results.confounded
    assert "confounded" in two_results.words
    assert "p-value" in two_results.words


def test_the_same_fingerprint_is_not_confounded_and_still_not_mixed() -> None:
    two_results = two(factory.FINGERPRINT)
    assert not two_results.confounded
    assert two_results.differing == ()
    assert "confounded" not in two_results.words


def test_the_change_between_two_days_of_one_host_is_given_for_the_same_protocol_alone() -> None:
    again = two(factory.FINGERPRINT)
    assert [round(figure.change or 0, 2) for figure in again.figures] == [-0.5, -0.5]
    assert [figure.change for figure in two().figures] == [None, None]
    second = result("two", factory.FINGERPRINT, SLOW)
    longer = tuple(
        replace(cell, cell=cell.cell.model_copy(update={"trial": factory.trial_plan(ClosedLoad(users=20))}))
        for cell in second.parts[0].cells
    )
    other = replace(second, parts=(replace(second.parts[0], cells=longer),))
    two_results = compared(result("one", factory.FINGERPRINT, FAST), other)
    assert two_results.figures
    assert all(figure.change is None for figure in two_results.figures)


def test_what_differs_is_listed_field_by_field() -> None:
    differing = {what: (left, right) for what, left, right in two().differing}
    assert differing["architecture"] == (factory.FINGERPRINT.architecture, "aarch64")
    assert "cpus" not in differing


def test_another_order_is_reported() -> None:
    turned = {"a": SLOW["b"], "b": SLOW["a"]}
    two_results = compared(result("one", factory.FINGERPRINT, FAST), result("two", ARM, turned))
    assert two_results.ratios[0].words == "another order"


def test_parts_of_a_plan_are_kept_apart_and_what_only_one_has_is_reported() -> None:
    two_results = compared(
        result("one", factory.FINGERPRINT, FAST, ("x", "z")),
        result("two", ARM, {"a": SLOW["a"]}, ("y", "z")),
    )
    where = {figure.where for figure in two_results.figures}
    assert where == {f"{part}, hello, closed-10" for part in "xyz"}
    assert {ratio.words for ratio in two_results.ratios} == {"only on one host"}


def test_the_json_names_low_and_high_and_never_a_ratio_across() -> None:
    made = as_plain(to_json(two()))
    assert (made["schema"], made["kind"], made["confounded"]) == (3, "compare-results", True)
    assert {"ratio", "low", "high", "worst_low", "worst_high", "claim"} <= set(made["ratios"][0]["sides"][0])
    assert made["figures"][0]["sides"][0]["n"] == 5
