"""The report on a terminal: verdict first, then the table, the sentences, the history, the findings.

Must not know where the view came from. Everything goes through a rich console, which knows whether colour is
wanted (NO_COLOR, a pipe) and how wide a line may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from prony.evidence.engine import ScriptReport, Window
from prony.judge.finding import Finding, Status
from prony.judge.histogram import HistogramError, decode
from prony.report.export import load_json, to_json
from prony.report.finding_groups import FindingGroup, finding_groups
from prony.report.grid import table
from prony.report.groups import group_lines
from prony.report.history import history
from prony.report.labels import label_of, named, rounded
from prony.report.latency_pass import LatencyPass
from prony.report.model import SEVERITY, ExperimentView, PairView, TrialView
from prony.report.parts import part_lines
from prony.report.steps import step_lines
from prony.report.style import STATUS_STYLE
from prony.report.summary import (
    HEADLINE,
    Cell,
    Row,
    Section,
    better_first,
    overall,
    rejected,
    sections,
    verdict_word,
    verdict_words,
)
from prony.report.wording import counted, duration, milliseconds, number, ratio

__all__ = ["load_json", "render", "render_load", "to_json"]

QUICK = "quick"
SPREAD_NOTE = "median (min–max) over trials"
MOST_WIDTH = 160
"""Lines longer than this are hard to read on any screen."""


def render(view: ExperimentView, console: Console) -> None:
    """Print the whole report of an experiment."""
    out = _Printer(console)
    out.line()
    out.text(_verdict_line(overall(view), verdict_words(view)))
    out.text(Text(f"{view.title} · {view.created:%Y-%m-%d %H:%M} · {view.id}", style="dim"))
    if view.quick:
        out.text(Text(_quick_words(view), style="yellow"))
    for line in next((group_lines(trial.record.evidence) for trial in view.trials), []):
        out.text(Text(line))
    for warning in view.warnings:
        out.text(Text(f"Note: {warning}", style="yellow"))
    out.line()
    mark = QUICK if view.quick else ""
    names = [server.address for server in view.servers]
    out.table(sections(view), names, mark, SPREAD_NOTE)
    for server in view.servers:
        _steps(view.of(server.address), f"Step by step, {server.address}", out)
    _sentences(view, out)
    for made in view.passes:
        _latency_pass(made, out)
    _history(view, out)
    _rejected(view, out)
    _findings(finding_groups(view), out)
    out.line()


class _Printer:
    """Prints text that wraps with a hanging indent, and tables that already fit."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.width = min(console.width, MOST_WIDTH)

    def line(self) -> None:
        self._console.print()

    def text(self, text: Text, indent: int = 0) -> None:
        for line in text.wrap(self._console, max(20, self.width - indent)):
            line.rstrip()
            shown = Text(" " * indent).append_text(line)
            self._console.print(shown, highlight=False, no_wrap=True, overflow="ignore", crop=False)

    def heading(self, title: str, note: str = "") -> None:
        self.line()
        self.text(Text.assemble((title, "bold"), (f"  {note}" if note else "", "dim")))

    def table(self, made: Sequence[Section], names: Sequence[str], mark: str, heading: str) -> None:
        for line in table(made, names, self.width, mark=mark, heading=heading):
            line.rstrip()
            self._console.print(line, highlight=False, no_wrap=True, overflow="ignore", crop=False)


def _steps(trials: Sequence[TrialView], title: str, out: _Printer) -> None:
    lines = step_lines(trials)
    if lines:
        out.heading(title, "median over trials" if len(trials) > 1 else "")
    for line in lines:
        out.text(Text(line), 2)


def _parts(trials: Sequence[TrialView], out: _Printer) -> None:
    lines = part_lines(trials)
    if lines:
        out.heading("Time parts", "send, wait and receive make up the service time")
    for line in lines:
        out.text(Text(line), 2)


def _verdict_line(status: Status, words: str) -> Text:
    return Text.assemble((status.value.upper(), f"bold {STATUS_STYLE[status]}"), "  ", (words, "bold"))


def _quick_words(view: ExperimentView) -> str:
    per_server = max((len(view.of(s.address)) for s in view.servers), default=0)
    trials = counted(per_server, "trial")
    return f"Quick run: {trials} per server, a first look. Every line that rests on it is marked {QUICK}."


def _sentences(view: ExperimentView, out: _Printer) -> None:
    """A sentence per pair about throughput, a line per pair about everything else that was compared."""
    headline = [pair for pair in view.pairs if pair.figure == HEADLINE]
    others = [pair for pair in view.pairs if pair.figure != HEADLINE and pair.ratio is not None]
    if headline:
        out.heading("Pair by pair")
    for pair in headline:
        marked = view.quick and QUICK not in pair.sentence
        out.text(Text.assemble(pair.sentence, (f" [{QUICK}]" if marked else "", "dim yellow")), 2)
    if others:
        out.heading("Other ratios", "first ÷ second, with the interval")
    for pair in map(better_first, others):
        out.text(_ratio_line(pair, view.quick), 2)


def _latency_pass(made: LatencyPass, out: _Printer) -> None:
    """A table of the second pass, columns as wide as their widest cell."""
    out.heading(made.title, "open loop: from when a request was due")
    lines = (made.head, *made.rows)
    widths = [max(len(line[place]) for line in lines) for place in range(len(made.head))]
    for line in lines:
        cells = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        out.text(Text("  ".join(cells)), 2)
    for sentence in made.sentences:
        out.text(Text(sentence), 2)


def _ratio_line(pair: PairView, quick: bool) -> Text:
    numbers, word = ratio(pair.ratio), "no interval"
    if pair.low is not None and pair.high is not None:
        numbers += f" [{ratio(pair.low)}, {ratio(pair.high)}]"
        word = verdict_word(pair)
    return Text.assemble(
        f"{label_of(pair.figure)}, {pair.a} ÷ {pair.b}: {numbers} ",
        (word, "bold" if word in ("higher", "lower", "equivalent") else "dim"),
        (f" {QUICK}" if quick else "", "dim yellow"),
    )


def _history(view: ExperimentView, out: _Printer) -> None:
    rows = history(view)
    if not rows or view.published is None:
        return
    out.heading("Published, as history", view.published.source)
    note = f"{view.published.note}; in brackets its share of the servers' mean"
    out.text(Text(note, style="dim"), 2)
    out.line()
    drawn = []
    for row in rows:
        for name, values, shape in (
            ("published", row.published, row.published_shape),
            ("measured", row.measured, row.measured_shape),
        ):
            cells = [
                Cell(rounded(row.figure, value), "" if part is None else f"{ratio(part)}×")
                for value, part in zip(values, shape, strict=True)
            ]
            ours = name == "measured"
            drawn.append(Row(f"{row.label}, {name}", "", tuple(cells), row.figure, measured=ours))
    names = [server.address for server in view.servers]
    out.table([Section("", tuple(drawn))], names, QUICK if view.quick else "", "")


def _rejected(view: ExperimentView, out: _Printer) -> None:
    trials = rejected(view)
    if not trials:
        return
    out.heading("Rejected trials", "kept on record, in no figure above")
    for trial in trials:
        where = f"{trial.record.server}, block {trial.record.block + 1}: "
        out.text(Text.assemble((where, "bold"), trial.rejected_because or ""), 2)


def _findings(groups: Iterable[FindingGroup], out: _Printer) -> None:
    shown = list(groups)
    if not shown:
        return
    out.heading("Findings that are not valid", "each with what to do")
    for group in shown:
        out.text(_finding_head(group.status, group.check, group.where), 2)
        for reason in group.reasons:
            out.text(Text(reason), 4)
        if group.more:
            out.text(Text(f"… and {group.more} more like it", style="dim"), 4)
        for advice in group.advice:
            out.text(Text.assemble(("→ ", "bold"), advice), 4)


def _finding_head(status: Status, check: str, where: str) -> Text:
    place = f"  {where}" if where else ""
    return Text.assemble((status.value, STATUS_STYLE[status]), (f" {check}", "bold"), (place, "dim"))


LOAD_FIGURES = (
    "requests_per_s",
    "mean_ms",
    "min_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "p999_ms",
    "max_ms",
)
LOAD_SESSIONS = (
    "sessions_begun",
    "sessions_completed",
    "sessions_per_s",
    "session_mean_ms",
    "session_min_ms",
    "session_p50_ms",
    "session_p95_ms",
    "session_p99_ms",
    "session_max_ms",
)
LOAD_TLS = ("handshakes_per_request", "resumed_share")
MOST_SCRIPT_LINES = 200
"""Of what a script printed; `prony wrk` prints all of it."""
LOAD_COST = ("server_cpu_us_per_request", "server_cpu_share", "client_cpu_us_per_request", "client_cpu_share")


def render_load(trial: TrialView, console: Console) -> None:
    """Print one run against a server that was already running: verdict, figures, findings."""
    out = _Printer(console)
    record, judgement = trial.record, trial.judgement
    status = Status.INVALID if trial.rejected_because else judgement.verdict
    out.line()
    out.text(_verdict_line(status, _load_words(trial)))
    out.text(
        Text(f"{record.server} · {record.started_at:%Y-%m-%d %H:%M} · {record.experiment_id}", style="dim")
    )
    engine = record.evidence.engine
    window = engine.window if engine else None
    if window is not None:
        lines = [
            f"{number(window.completed)} requests completed in {duration(window.duration_s)}, "
            f"{number(window.failed)} failed",
            *(f"{number(n)} × {kind}" for kind, n in sorted(window.errors.items(), key=lambda e: -e[1])),
            "status " + ", ".join(f"{code}: {number(n)}" for code, n in sorted(window.status.items())),
        ]
        for line in [*lines, *group_lines(record.evidence)]:
            out.text(Text(line), 0)
    if trial.counts:
        groups = (
            ("Load", LOAD_FIGURES),
            ("Sessions", LOAD_SESSIONS),
            ("TLS", LOAD_TLS),
            ("Cost", LOAD_COST),
        )
        for title, figures in groups:
            known = [f for f in figures if f in trial.figures]
            if known:
                out.heading(title)
            widest = max((len(named(f)) for f in known), default=0)
            for figure in known:
                value = rounded(figure, trial.figures[figure])
                out.text(Text(f"{named(figure).ljust(widest)}  {value:>10}"), 2)
            if figures is LOAD_FIGURES and window is not None and (both := _both_times(window)):
                out.text(Text(both, style="dim"), 2)
    _steps([trial], "Step by step", out)
    _parts([trial], out)
    if engine is not None and engine.script is not None:
        _script(engine.script, out)
    bad = sorted(
        (f for f in judgement.findings if f.status is not Status.VALID), key=lambda f: SEVERITY[f.status]
    )
    if bad:
        out.heading("Findings that are not valid", "each with what to do")
    for finding in bad:
        _one_finding(finding, out)
    out.line()


def _script(script: ScriptReport, out: _Printer) -> None:
    """What a script in Lua printed, in the order in which its functions ran."""
    lines = f"{script.printed_setup}{script.printed_run}{script.printed_done}".splitlines()
    if not lines and script.error is None:
        return
    out.heading("The script", "what it printed")
    for line in lines[:MOST_SCRIPT_LINES]:
        out.text(Text(line), 2)
    if len(lines) > MOST_SCRIPT_LINES or script.printed_left_out:
        out.text(Text(f"… and {number(max(0, len(lines) - MOST_SCRIPT_LINES))} more lines", style="dim"), 2)
    if script.error is not None:
        out.text(Text(script.error), 2)


def _both_times(window: Window) -> str:
    """Of an open loop, in which the times above are latencies: what the service times were."""
    if window.latency is None or window.service_time is None:
        return ""
    try:
        decoded = decode(window.service_time)
    except HistogramError:
        return ""
    shown = [
        f"p{percentile} {milliseconds(found)}"
        for percentile in (50, 99)
        if (found := decoded.percentile_ns(percentile)) is not None
    ]
    said = f"times are from the moment a request was due; from its actual send {', '.join(shown)}"
    return said if shown else ""


def _one_finding(finding: Finding, out: _Printer) -> None:
    out.text(_finding_head(finding.status, finding.check, ""), 2)
    out.text(Text(finding.reason), 4)
    if finding.limit:
        out.text(Text(f"limit: {finding.limit}", style="dim"), 4)
    if finding.advice:
        out.text(Text.assemble(("→ ", "bold"), finding.advice), 4)


def _load_words(trial: TrialView) -> str:
    if trial.record.failure is not None:
        return f"No figure is printed: {trial.record.failure}"
    worst = trial.judgement.worst
    if trial.rejected_because is not None:
        return (
            f"No figure is printed because of the finding “{worst.check}”."
            if worst
            else "No figure is printed."
        )
    rate = trial.figures.get("requests_per_s")
    bound = trial.judgement.bound_by
    return f"{rounded('requests_per_s', rate)} requests/s, bound by: {bound}"
