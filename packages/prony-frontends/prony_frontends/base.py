"""Shared by all front ends: the translated load, its run, the two lines of judgement and the exit code."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, cast

from prony import redaction
from prony.errors import ExitCode, StoreError, UsageError
from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import Evidence, StageReport
from prony.experiment.testbed import Progress
from prony.judge.estimate import estimates
from prony.judge.finding import Finding, Judgement
from prony.plan.cell import cell_of
from prony.plan.plan import MAIN, Plan, one_part
from prony.plan.target import Url, parse_url
from prony.plan.trial import TrialPlan
from prony.report.wording import bends, good_to
from prony.store import StoredTrial
from prony_frontends import planfile_write

Reason = Literal[
    "unsupported", "conflict", "endless", "limit", "nested", "no_file", "no_request", "outside", "part",
    "shared", "undefined", "used_before", "varies",
]  # fmt: skip
"""Codes of refusals: no equivalent; excluded by another setting; without an end; above a maximum; within
itself; no such file; nothing to send; outside of its scope; part of a captured value; state shared by or
split between threads, groups or phases; an unknown name; read before it is set; not constant.
"""


class Refused(UsageError):
    """Part of a command line or script is not supported; nothing has been sent yet."""

    def __init__(
        self,
        element: str,
        file: str,
        line: int | None,
        found: str,
        instead: str,
        code: Reason = "unsupported",
    ) -> None:
        """`element`: the tool's name for it; `file`: the script, or the tool's name for its command line;
        `found`: its value; `instead`: the remedy.
        """
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {element} is not supported: {found}; {instead}")
        self.element, self.file, self.line, self.found, self.instead = element, file, line, found, instead
        self.code: Reason = code


class Addressed:
    """Arguments of a tool that loads one URL."""

    __slots__ = ()
    url: str

    @property
    def target(self) -> Url:
        """Target of the requests."""
        return parse_url(self.url).target

    @property
    def path(self) -> str:
        """Path of the requests."""
        return parse_url(self.url).path


@dataclass(frozen=True, slots=True)
class Note:
    """A difference from the tool; `code` is stable, unlike the sentence."""

    code: str
    text: str
    element: str = ""
    """The tool's name for its subject, or FILE:LINE; empty for the whole load."""

    def __str__(self) -> str:
        return f"{self.element}: {self.text}" if self.element else self.text


@dataclass(frozen=True, slots=True)
class Translated:
    """A script or command line as a Prony load."""

    tool: str
    target: Url
    trial: TrialPlan
    """Without preflight or warm-up: the server sees only the tool's own requests."""
    title: str
    notes: tuple[Note, ...] = ()
    """Printed before the load and kept in the plan."""

    def logged(self, file: Path) -> Translated:
        """The same trial with a row per request."""
        return replace(self, trial=self.trial.model_copy(update={"log": str(file), "log_as_sent": True}))

    def plan(self) -> Plan:
        """The plan of this one trial."""
        cell = cell_of(MAIN, self.target.url, self.target, self.trial)
        return one_part(self.tool, self.title, [cell], seed=0, shape="single")


@dataclass(frozen=True, slots=True)
class Ran:
    """A stored run, for a front end to print in its tool's format."""

    identifier: str
    trial: StoredTrial
    interrupted: bool
    """The user interrupted it; the results up to then are stored."""
    write_page: Callable[[Path], None]
    """Writes the report's page into this file. Raises PronyError."""

    @property
    def evidence(self) -> Evidence:
        """All evidence of the trial."""
        return self.trial.record.evidence

    @property
    def report(self) -> EngineReport:
        """The engine's report. Raises StoreError when there is none."""
        report = self.evidence.engine
        if report is None:
            raise StoreError(f"{self.identifier} has no engine report; run it again")
        return report

    @property
    def window(self) -> Window:
        """The measured window, from the first request to the last."""
        window = self.report.window
        if window is None:
            raise StoreError(f"{self.identifier} has no measured window; run it again")
        return window

    @property
    def stages(self) -> tuple[StageReport, ...]:
        """Stages before and after the load."""
        return self.evidence.stages

    @property
    def judgement(self) -> Judgement:
        """Whether the run conforms, and the uncertainty of its figures."""
        return self.trial.judgement


def print_judgement(ran: Ran, stderr: IO[str]) -> None:
    """Prints two lines: whether the run conforms with the uncertainty of its figures; then the reason for
    nonconformance, or the largest source of uncertainty and the conditions.
    """
    judgement = ran.judgement
    if not judgement.conforms:
        why = " ".join(_reason(finding) for finding in judgement.not_conforming[:1])
        lines = (f"does not conform: the figures above must not be used ({ran.identifier})", why)
    else:
        estimated = estimates(ran.evidence, judgement, ran.trial.figures)
        good = [
            f"{label} good to {good_to(*estimated[name].uncertainty.worst)}"
            for name, label in PRINTED_FIGURES.items()
            if name in estimated
        ]
        lines = (f"conforms: {', '.join(good) or 'no figure'} ({ran.identifier})", _rests_on(judgement))
    for line in lines:
        print(f"prony: {line}".replace("\n", " "), file=stderr)


PRINTED_FIGURES = {"requests_per_s": "requests/s", "p99_ms": "p99"}
"""Figures whose uncertainty is printed."""
INCOMPARABLE = math.log(1.05)
"""Bias by other processes, on the log scale, from which figures are not comparable: typical effects."""
OTHERS = frozenset({"other_processes", "steal", "siblings"})
"""Codes of an isolation finding whose largest part is others' work; where all of it is, it is `outside`."""


def _reason(one: Finding) -> str:
    return f"{one.check}: {one.reason}" + (f"; {one.advice}" if one.advice else "")


def _rests_on(judgement: Judgement) -> str:
    """The largest entry of each uncertainty budget, and the conditions."""
    sentences = []
    lines = [(line, name) for name in PRINTED_FIGURES for line in judgement.budget(name) if line.bias.counts]
    if lines:
        (finding, bias), name = max(lines, key=lambda entry: entry[0].bias.size)
        effect = f"{bends(bias.low, bias.high)} of {PRINTED_FIGURES[name]}"
        if (finding.outside or finding.code in OTHERS) and bias.size >= INCOMPARABLE:
            sentences.append(f"{finding.reason}: do not compare these figures ({effect}); {finding.advice}")
        else:
            sentences.append(f"largest source: {effect} by {_reason(finding)}")
    if judgement.provided:
        phrases = dict.fromkeys(condition.provided for condition in judgement.provided)
        sentences.append(f"Provided that {'; '.join(phrases)}")
    return ". ".join(sentences) or f"all {len(judgement.findings)} checks passed"


def exit_code(ran: Ran, exit_like_original: bool, original: int) -> int:
    """The tool's own exit code, or 3 for a run that does not conform without `exit_like_original`."""
    return original if exit_like_original or ran.judgement.conforms else ExitCode.NO_FIGURE


def explain(translated: Translated) -> str:
    """The Prony plan as a file for `prony run`."""
    return planfile_write.text(translated.plan(), [str(note) for note in translated.notes])


def openssl_name(suite: str) -> str:
    """The cipher suite's OpenSSL name, as tools print it. TLS 1.3 names are the same."""
    if suite.startswith("TLS13_"):
        return suite.replace("TLS13_", "TLS_", 1)
    keys, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    short = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{keys}_{short}".replace("_", "-")


@dataclass(frozen=True, slots=True)
class FrontEndOptions:
    """Prony's own options of a front end."""

    explain: bool = False
    exit_like_original: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """The environment of a front end: the user's options, the measurement, and the two streams."""

    options: FrontEndOptions
    offer: Callable[[Plan, Progress], Ran]
    """Preflights, measures, judges and stores, as for every command. Raises PronyError."""
    stdout: IO[str]
    stderr: IO[str]

    def explained(self, translated: Translated) -> int:
        """Prints the plan instead of running it."""
        self.stdout.write(explain(translated))
        return ExitCode.OK

    def measure(self, translated: Translated, progress: Progress) -> Ran:
        """Prints the notes, then measures."""
        for note in translated.notes:
            print(f"prony: note: {note}", file=self.stderr)
        return self.offer(translated.plan(), progress)

    def end(self, ran: Ran, original: int = 0) -> int:
        """Prints the two lines after the tool's output, and returns the exit code."""
        self.stdout.flush()
        print_judgement(ran, self.stderr)
        return exit_code(ran, self.options.exit_like_original, original)


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A tool on the command line."""

    name: str
    """Of its package."""
    usage: str
    """The text of `prony NAME -h`."""
    translate: Callable[[Sequence[str]], Translated]
    """Translates the tool's arguments into a load. Raises UsageError (Refused for unsupported parts)."""
    run: Callable[[Sequence[str], Context], int]
    """Runs the tool's arguments, from the first line of output to the exit code."""
    script_endings: tuple[str, ...] = ()
    """File endings by which `prony import` recognises this tool's scripts; empty without scripts."""
    before_script: tuple[str, ...] = ()
    """The words of the tool's command line before the script's name."""


class _ClosedPipeTolerant(io.FileIO):
    """Standard output that survives a closed pipe (`prony ab … | head -3`): the run continues."""

    def write(self, data: Any, /) -> int:
        """Writes everything, or discards it."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return len(data)


class _WithoutCredentials(io.TextIOBase):
    """Standard error that masks credentials in quoted URLs and headers."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Writes the text with credentials masked."""
        self._stream.write(redaction.text(text))
        return len(text)

    def flush(self) -> None:
        """As the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """As the stream."""
        return self._stream.isatty()


def own_context(options: FrontEndOptions, offer: Callable[[Plan, Progress], Ran]) -> Context:
    """The context with this process's own streams."""
    stdout: IO[str] = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        stdout.flush()
        stdout = io.TextIOWrapper(
            io.BufferedWriter(_ClosedPipeTolerant(stdout.fileno(), "wb", closefd=False)),
            encoding=stdout.encoding,
            errors=stdout.errors,
            line_buffering=stdout.line_buffering,
        )
    return Context(options, offer, stdout, cast(IO[str], _WithoutCredentials(sys.stderr)))
