"""A gate as files for a build server: JUnit's XML, and Markdown with a small drawing. Text in, text out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from prony.compare.noninferiority import Change, FigureChange
from prony.judge.figures import FIGURE
from prony.numbers import percent
from prony.report.aa import record_words
from prony.report.gate import change_numbers, harmful, intervals, undecided_because
from prony.report.html.plot import GAP, Axis, Plot, text_width
from prony.report.html.scale import Scale
from prony.report.html.theme import BUDGET, FINE, MUTED, NOT_CONFORMING
from prony.report.labels import label_of
from prony.report.result import GateView, ResultView
from prony.report.shapes import not_conforming
from prony.report.wording import escaped, signed

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 cannot hold."""
SUITE = "prony gate"
WIDTH, ROW = 640, 30
"""Of the drawing and of a figure in it, in px."""


def gate_of(view: ResultView) -> GateView | None:
    """The gate of a result; None where it has none."""
    return next((part.gate for part in view.parts if part.gate is not None), None)


def junit(view: ResultView) -> str:
    """A test case per figure: worse is a failure; undecided or not measurable is an error."""
    gate = gate_of(view)
    cases = [] if gate is None else [_case(gate, figure) for figure in gate.figures]
    seconds = sum((t.record.ended_at - t.record.started_at).total_seconds() for t in view.trials)
    again = f"prony results show {view.id}"
    log = "no gate" if gate is None else "\n".join((gate.sentence, *gate.advice, again))
    return _suite(cases, log, seconds)


def junit_fault(sentence: str) -> str:
    case = ElementTree.Element("testcase", classname=SUITE, name="measure", time="0")
    ElementTree.SubElement(case, "error", message=_clean(sentence), type="fault").text = _clean(sentence)
    return _suite([case], sentence, 0.0)


def _case(gate: GateView, change: FigureChange) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=SUITE, name=change.figure, time="0")
    text = f"{label_of(change.figure)} {change_numbers(change)}, margin {signed(change.limit)}"
    why = change.why or undecided_because(change)
    text += f": {why}" if why else ""
    if change.change is Change.WORSE:
        ElementTree.SubElement(case, "failure", message=_clean(text), type="worse").text = _clean(text)
    elif change.change is not Change.NO_WORSE and gate.change is not Change.WORSE:
        kind = change.change.value.replace(" ", "-")
        ElementTree.SubElement(case, "error", message=_clean(text), type=kind).text = _clean(text)
    elif change.change is not Change.NO_WORSE:
        ElementTree.SubElement(case, "skipped", message=_clean(text))
    ElementTree.SubElement(case, "system-out").text = _clean(text)
    return case


def _suite(cases: Sequence[ElementTree.Element], log: str, seconds: float) -> str:
    def count(kind: str) -> str:
        return str(sum(case.find(kind) is not None for case in cases))

    suite = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(cases)),
        failures=count("failure"),
        errors=count("error"),
        skipped=count("skipped"),
        time=f"{seconds:.1f}",
    )
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = _clean(log)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def markdown(view: ResultView, drawing: str) -> str:
    """A summary for a pull request; `drawing` is where the SVG lies, relative to it."""
    gate = gate_of(view)
    if gate is None:
        return "No gate.\n"
    mark = {Change.NO_WORSE: "✅", Change.WORSE: "❌"}.get(gate.change, "⚠️")
    outcome = "interrupted" if view.state == "interrupted" and mark == "⚠️" else gate.change.value
    rows = [
        f"| {_plain(label_of(figure.figure))} | {'–' if figure.ratio is None else signed(figure.ratio)} | "
        f"{' | '.join(_plain(interval or '–') for interval in intervals(figure))} | "
        f"{signed(figure.limit)} | {figure.change.value}{_doubt(figure)} |"
        for figure in gate.figures
    ]
    lines = [
        f"### {mark} Prony gate: {outcome}",
        "",
        _plain(gate.sentence) + ".",
        "",
        "| figure | change | 95 % interval | at worst | margin | outcome |",
        "|---|---|---|---|---|---|",
        *rows,
        "",
        *(
            (f"![changes and margin]({drawing})", "")
            if any(figure.ratio is not None for figure in gate.figures)
            else ()
        ),
        *(f"> {_plain(line)}\n" for line in (*gate.advice, *_on_record(view))),
    ]
    out = [line for part in view.parts for finding in not_conforming(part) for line in finding.lines]
    if out:
        lines += ["<details><summary>Trials without a figure</summary>", ""]
        lines += [*(f"- {_plain(line)}" for line in out), "", "</details>", ""]
    host = view.fingerprint
    where = "" if host is None else f" on {_plain(host.cpu_model)}, fingerprint `{host.key}`"
    lines.append(f"<sub>`prony results show {view.id}`{where}; margin {percent(gate.margin)}.</sub>")
    return "\n".join(lines).rstrip() + "\n"


def _on_record(view: ResultView) -> list[str]:
    return [record_words(part.aa_on_record) for part in view.parts if part.aa_on_record is not None]


def markdown_fault(sentence: str) -> str:
    return f"### ⚠️ Prony gate: not measured\n\n{_plain(sentence)}\n"


def _plain(text: str) -> str:
    """In a comment: names of people and numbers of issues would be links there."""
    return escaped(text, "[]#@!")


def _doubt(change: FigureChange) -> str:
    why = undecided_because(change)
    return f": {_plain(why)}" if why else ""


def svg(gate: GateView) -> str:
    """Intervals against the margin, worse to the right: the trials' thick, at worst thin."""
    drawn = [figure for figure in gate.figures if figure.ratio is not None]
    losses = [
        _loss(figure, end)
        for figure in drawn
        for end in (figure.ratio, figure.low, figure.high, figure.worst_low, figure.worst_high)
        if end is not None
    ]
    scale = Scale(min([-gate.margin, *losses]) * 1.15, max([gate.margin, *losses]) * 1.15)
    ticks = [(0.0, "0 %"), (gate.margin, f"margin {percent(gate.margin)}")]
    axis = Axis(scale, ticks, "worse →", even=False)
    names = [_clean(f"{label_of(figure.figure)} {signed(figure.ratio or 1.0)}") for figure in drawn]
    left = max(map(text_width, names), default=0) * 13 / 12 + 2 * GAP
    plot = Plot(axis, None, width=WIDTH, height=ROW * len(drawn), left=left)
    plot.upright(0, MUTED)
    plot.upright(gate.margin, NOT_CONFORMING, dash="4 3")
    for at, (figure, name) in enumerate(zip(drawn, names, strict=True)):
        y, ratio = ROW * (at + 0.5), figure.ratio or 1.0
        colour = {Change.NO_WORSE: FINE, Change.WORSE: NOT_CONFORMING}.get(figure.change, BUDGET)
        plot.text(4, y, name, tip=_clean(f"{change_numbers(figure)}, {harmful(figure)}"))
        if figure.low is not None and figure.high is not None:
            edges = (
                (scale.high, scale.low) if FIGURE[figure.figure].higher_is_better else (scale.low, scale.high)
            )
            worst = zip((figure.worst_low, figure.worst_high), edges, strict=True)
            plot.line([(edge if end is None else _loss(figure, end), y) for end, edge in worst], colour, 1.5)
            plot.line([(_loss(figure, end), y) for end in (figure.low, figure.high)], colour, 4)
        plot.mark(_loss(figure, ratio), y, "circle", colour, size=1.1)
    return plot.file(title=_clean(gate.sentence))


def _loss(change: FigureChange, ratio: float) -> float:
    """Above 0 the candidate is worse, whichever way the figure counts."""
    return (1 / ratio if FIGURE[change.figure].higher_is_better else ratio) - 1
