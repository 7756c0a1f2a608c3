"""Flame graphs and bars: well-formed, bounded, complete, and safe with whatever a frame is called."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from prony.evidence.profile import Stack, TimelineEvent
from prony_explain.bars import MOST_MARKS, budget_bars, timeline
from prony_explain.budget import budget, shares
from prony_explain.flame import (
    MOST_BOXES,
    MOST_DEPTH,
    Node,
    absent,
    boxes,
    compared,
    difference_svg,
    fit,
    flame_svg,
    readable,
    tree,
)
from prony_explain.rules import Part, rules_for
from prony_explain.sampling import sampling

from .profiles import STAGED, recorded

SVG = "{http://www.w3.org/2000/svg}"
JVM = rules_for("jvm")
A, B = ("main", "f_[j]", "g_[j]"), ("main", "f_[j]", "h_[j]")
STAGED_COUNTS = {stack: 10 * (at + 1) for at, stack in enumerate(STAGED.values())}


def simple(**weights: int) -> dict[tuple[str, ...], int]:
    return {("main", f"{name}_[j]"): weight for name, weight in weights.items()}


def test_a_tree_adds_up_and_is_scaled_to_the_cost() -> None:
    root = tree(sampling("samples", [(0, 1, {A: 30, B: 10}), (1, 2, {A: 20, ("main",): 40})]), total=50)
    main = root.below["main"]
    assert root.weight == main.weight == pytest.approx(50)
    assert main.below["f"].weight == pytest.approx(30)
    assert main.below["f"].below["g"].weight == pytest.approx(25)


@pytest.mark.parametrize("seen", [1.0, 0.7])
def test_a_flame_graph_and_its_budget_say_the_same_of_every_part(seen: float) -> None:
    """Without what the profiler did itself, and with what it did not see."""
    own = ("[Attach Listener tid=3]", "libasyncProfiler.so`dump")
    stacks = {**STAGED_COUNTS, own: 25}
    samples = sampling("samples", [(at, at + 1.0, stacks) for at in range(5)])
    made = budget([50.0, 52.0, 54.0], shares(samples, JVM, seen_share=seen))
    found: dict[Part, float] = {}
    waiting = [tree(samples, JVM, total=made.cpu_us, seen=seen)]
    assert waiting[0].weight == pytest.approx(52)
    while waiting:
        node = waiting.pop()
        alone = node.weight - sum(one.weight for one in node.below.values())
        if alone > 1e-9:
            assert node.place is not None
            found[node.place.part] = found.get(node.place.part, 0.0) + alone
        waiting.extend(node.below.values())
    assert found == pytest.approx({part.part: part.us for part in made.parts})


def test_boxes_stand_within_their_caller() -> None:
    drawn, _ = boxes(tree(recorded(1), JVM))
    by_id = {id(box.node): box for box in drawn}
    for box in drawn:
        inner = [by_id[id(one)] for one in box.node.below.values() if id(one) in by_id]
        assert sum(one.width for one in inner) <= box.width + 1e-9
        for one in inner:
            assert one.depth == box.depth + 1
            assert box.x - 1e-9 <= one.x <= one.x + one.width <= box.x + box.width + 1e-9
        for left, right in itertools.pairwise(sorted(inner, key=lambda one: one.x)):
            assert left.x + left.width <= right.x + 1e-9


def test_a_large_profile_is_bounded_and_what_is_left_out_is_said() -> None:
    svg = flame_svg(tree(recorded(1), JVM, total=100), title="CPU time", unit="µs", standalone=True)
    made = ElementTree.fromstring(svg)
    count = len(made.findall(f"{SVG}g"))
    assert 100 < count <= MOST_BOXES
    assert len(svg) < 600_000
    assert "are not drawn" in made.findtext(f"{SVG}title", "")
    assert made.find(f"{SVG}script") is not None
    assert "<script" not in flame_svg(tree(recorded(1), JVM), title="CPU time", unit="µs")


def test_many_boxes_of_one_size_are_bounded_too() -> None:
    stacks = simple(**{f"f{at}": 1 for at in range(MOST_BOXES + 200)})
    drawn, _ = boxes(tree(sampling("samples", [(0, 1, stacks)])))
    assert len(drawn) <= MOST_BOXES


def test_a_deep_recursion_is_cut() -> None:
    deep = ("main", *(["f_[j]"] * 5000))
    drawn, _ = boxes(tree(sampling("samples", [(0, 1, {deep: 5})])))
    assert max(box.depth for box in drawn) <= MOST_DEPTH


def test_each_box_says_what_it_is_without_the_script() -> None:
    svg = flame_svg(
        tree(sampling("samples", [(0, 1, {A: 3, B: 1})]), JVM, total=40), title="t", unit="µs per request"
    )
    titles = [one.findtext(f"{SVG}title", "") for one in ElementTree.fromstring(svg).findall(f"{SVG}g")]
    assert "g: 30 µs per request, 75.00%, application" in titles
    assert "all: 40 µs per request, 100.00%" in titles


def test_names_are_only_ever_text() -> None:
    evil = ("main", "<script>alert(1)</script>\"'&_[j]", "]]>_[j]")
    svg = flame_svg(
        tree(sampling("samples", [(0, 1, {evil: 1})]), JVM), title='a"<b>', unit="µs", standalone=True
    )
    made = ElementTree.fromstring(svg)
    assert len(made.findall(f".//{SVG}script")) == 1
    assert any("<script>alert(1)" in (one.text or "") for one in made.iter(f"{SVG}title"))


def test_a_difference_is_red_where_there_is_more_and_blue_where_less() -> None:
    more = tree(sampling("samples", [(0, 1, simple(up=60, down=10, same=30))]), total=100)
    less = tree(sampling("samples", [(0, 1, simple(up=20, down=50, same=30))]), total=100)
    svg = difference_svg(compared(more, less), title="t", unit="µs")
    fill = {}
    for group in ElementTree.fromstring(svg).findall(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        colour = rect.attrib["fill"]
        name = group.findtext(f"{SVG}title", "").split(":")[0]
        fill[name] = tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    assert fill["up"][0] > fill["up"][2]
    assert fill["down"][2] > fill["down"][0]
    assert max(fill["same"]) - min(fill["same"]) < 10
    assert "up: 60 against 20 µs (+40)" in svg
    assert "down: 10 against 50 µs (−40)" in svg


def test_what_only_the_second_profile_has_is_told_with_all_that_it_calls() -> None:
    more = tree(sampling("samples", [(0, 1, {A: 60, ("main", "f_[j]"): 40})]), total=100)
    own = ("main", "k_[j]", "l_[j]")
    less = tree(sampling("samples", [(0, 1, {A: 20, B: 30, own: 50})]), total=100)
    assert absent(more, less) == pytest.approx({"k": 50, "h": 30})
    assert list(absent(more, less)) == ["k", "h"]
    assert absent(less, more) == {}


def test_the_names_of_threads_do_not_keep_the_same_work_apart() -> None:
    def of(pool: str, *, threads: bool) -> Node:
        stacks: dict[Stack, int] = {(f"[{pool}-1 tid=7]", *A): 6, (f"[{pool}-2 tid=8]", *A): 4}
        return tree(sampling("samples", [(0, 1, stacks)]), threads=threads)

    assert absent(of("exec", threads=True), of("qtp", threads=True)) == {"[qtp-*]": 10}
    more, less = (of(pool, threads=False) for pool in ("exec", "qtp"))
    assert absent(more, less) == {}
    main = compared(more, less).below["main"]
    assert (main.weight, main.other) == (10, 10)


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ("org/a/B$C.run_[j]", "org.a.B$C.run"),
        ("tcp_sendmsg_[k]", "tcp_sendmsg (kernel)"),
        ("[http-nio-8080-exec-12 tid=345]", "[http-nio-*-exec-*]"),
        ("libc.so.6`write", "write (libc.so.6)"),
        ("sanic/app.py`handle_[s]", "handle (app.py)"),
        ("plain", "plain"),
    ],
)
def test_frames_are_readable(frame: str, shown: str) -> None:
    assert readable(frame) == shown


def test_a_text_fits_or_is_left_out() -> None:
    assert fit("org.apache.catalina.Valve.invoke", 400) == "org.apache.catalina.Valve.invoke"
    assert fit("org.apache.catalina.Valve.invoke", 120) == "Valve.invoke"
    assert fit("org.apache.catalina.Valve.invoke", 50).endswith("…")
    assert fit("abc", 10) == ""


def test_bars_have_one_scale() -> None:
    found = shares(recorded(), JVM)
    svg = budget_bars([("a<b", budget([100.0], found)), ("b", budget([50.0], found))], title="t")
    rects = list(ElementTree.fromstring(svg).iter(f"{SVG}rect"))
    widths = [float(one.attrib["width"]) for one in rects]
    half = len(widths) // 2
    assert sum(widths[:half]) == pytest.approx(2 * sum(widths[half:]), rel=0.02)


def test_a_time_line_has_a_lane_per_kind_and_bounded_marks() -> None:
    events = [TimelineEvent(kind="compilation", start_s=at / 1000, duration_s=0) for at in range(5000)]
    events.append(TimelineEvent(kind="collection", start_s=2.5, duration_s=0.5))
    made = ElementTree.fromstring(timeline(events, 5, silences_s=[(1.0, 0.1)], title="t"))
    rects = list(made.iter(f"{SVG}rect"))
    assert len(rects) <= MOST_MARKS + 2
    texts = [one.text for one in made.findall(f"{SVG}text")]
    assert texts[:3] == ["collections 1", "compilations 5,000", "nothing completed 1"]
    collection = next(one for one in rects if one.findtext(f"{SVG}title", "").startswith("collections"))
    assert float(collection.attrib["width"]) == pytest.approx((760 - 150) / 10, abs=0.2)


def test_nothing_to_draw_is_still_a_drawing() -> None:
    assert (
        ElementTree.fromstring(flame_svg(tree(sampling("samples", [])), title="t", unit="µs")).tag
        == f"{SVG}svg"
    )
    assert ElementTree.fromstring(timeline([], 0, title="t")).tag == f"{SVG}svg"
    assert ElementTree.fromstring(budget_bars([], title="t")).tag == f"{SVG}svg"
