"""What all front ends share: the translated load, its run, the two lines of its judgement and the exit code.

A front end translates and prints; it offers no load and judges nothing.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from prony import redaction
from prony.errors import ExitCode, StoreError, UsageError
from prony.evidence.engine import EngineReport, Window
from prony.evidence.trial import Evidence, StageReport
from prony.experiment.testbed import Progress
from prony.judge.estimate import estimates
from prony.judge.finding import Finding, Judgement
from prony.plan import planfile_write
from prony.plan.cell import cell_of
from prony.plan.plan import MAIN, Plan, one_part
from prony.plan.target import Url, parse_url
from prony.plan.trial import TrialPlan
from prony.report.wording import bends, good_to
from prony.store import StoredTrial


class Refused(UsageError):
    """Something in a command line or script that Prony does not do; nothing has been sent yet."""

    def __init__(self, element: str, file: str, line: int | None, found: str, instead: str) -> None:
        """`element`: what the tool calls it; `file`: the script, or the tool's name for its command line;
        `found`: what it says there; `instead`: what could be used.
        """
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {element} is not supported: {found}; {instead}")
        self.element, self.file, self.line, self.found, self.instead = element, file, line, found, instead


class Addressed:
    """Arguments of a tool that requests one URL."""

    __slots__ = ()
    url: str

    @property
    def target(self) -> Url:
        """Where the requests go."""
        return parse_url(self.url).target

    @property
    def path(self) -> str:
        """What is requested there."""
        return parse_url(self.url).path


@dataclass(frozen=True, slots=True)
class Translated:
    """What a script became."""

    tool: str
    target: Url
    trial: TrialPlan
    """Without a preflight request or a warm-up, so that the server sees what the tool would have sent."""
    title: str
    notes: tuple[str, ...] = ()
    """What is done otherwise than by the tool, a sentence each; said before the load and in the plan."""

    def logged(self, file: Path) -> Translated:
        """The same with a row for each request."""
        return replace(self, trial=self.trial.model_copy(update={"log": str(file)}))

    def plan(self) -> Plan:
        """The plan of its one trial."""
        cell = cell_of(MAIN, self.target.url, self.target, self.trial)
        return one_part(self.tool, self.title, [cell], seed=0, shape="single")


@dataclass(frozen=True, slots=True)
class Ran:
    """A run as it was stored, for a front end to print in its tool's words."""

    identifier: str
    trial: StoredTrial
    interrupted: bool
    """The user ended it; what had been measured until then is here."""
    write_page: Callable[[Path], None]
    """Write the report's page into this file. Raises PronyError."""

    @property
    def evidence(self) -> Evidence:
        """Everything that was observed."""
        return self.trial.record.evidence

    @property
    def report(self) -> EngineReport:
        """What the engine said. Raises StoreError when it said nothing."""
        report = self.evidence.engine
        if report is None:
            raise StoreError(f"{self.identifier} holds no report of the engine; run it again")
        return report

    @property
    def window(self) -> Window:
        """The measured part: everything from the first request to the last."""
        window = self.report.window
        if window is None:
            raise StoreError(f"{self.identifier} holds no measured part; run it again")
        return window

    @property
    def stages(self) -> tuple[StageReport, ...]:
        """What came before the load, and after it."""
        return self.evidence.stages

    @property
    def judgement(self) -> Judgement:
        """Whether it conforms, and how good its figures are."""
        return self.trial.judgement


def say_judgement(ran: Ran, stderr: IO[str]) -> None:
    """Exactly two lines: whether the run conforms and how good its figures are; and why not, or what may bend
    them most and what they rest on.
    """
    judgement = ran.judgement
    if not judgement.conforms:
        why = " ".join(_reason(one) for one in judgement.not_conforming[:1])
        lines = (f"does not conform: the figures above must not be used ({ran.identifier})", why)
    else:
        known = estimates(ran.evidence, judgement, ran.trial.figures)
        good = [
            f"{said} good to {good_to(*known[name].uncertainty.worst)}"
            for name, said in TOLD.items()
            if name in known
        ]
        lines = (f"conforms: {', '.join(good) or 'no figure'} ({ran.identifier})", _rests_on(judgement))
    for line in lines:
        print(f"prony: {line}".replace("\n", " "), file=stderr)


TOLD = {"requests_per_s": "requests/s", "p99_ms": "p99"}
"""The figures whose uncertainty is told."""


def _reason(one: Finding) -> str:
    return f"{one.check}: {one.reason}" + (f"; {one.advice}" if one.advice else "")


def _rests_on(judgement: Judgement) -> str:
    """The largest line of the budget of both, and the conditions."""
    said = []
    lines = [(line, name) for name in TOLD for line in judgement.budget(name) if line.bias.counts]
    if lines:
        (finding, bias), name = max(lines, key=lambda one: one[0].bias.size)
        said.append(f"largest source: {bends(bias.low, bias.high)} of {TOLD[name]} by {_reason(finding)}")
    if judgement.provided:
        phrases = dict.fromkeys(one.provided for one in judgement.provided)
        said.append(f"Provided that {'; '.join(phrases)}")
    return ". ".join(said) or f"all {len(judgement.findings)} checks passed"


def exit_code(ran: Ran, exit_like_original: bool, original: int) -> int:
    """The tool's own code, or 3 for a run that does not conform unless the tool's was asked for."""
    return original if exit_like_original or ran.judgement.conforms else ExitCode.NO_FIGURE


def explain(translated: Translated) -> str:
    """The Prony plan that the script becomes, as a file that `prony run` can run."""
    return planfile_write.text(translated.plan(), translated.notes)


def openssl_name(suite: str) -> str:
    """A cipher suite by the name that tools on OpenSSL print: TLS 1.3's are called alike, earlier ones have
    OpenSSL's.
    """
    if suite.startswith("TLS13_"):
        return suite.replace("TLS13_", "TLS_", 1)
    keys, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    short = cipher.replace("AES_", "AES").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    return f"{keys}_{short}".replace("_", "-")


@dataclass(frozen=True, slots=True)
class Asked:
    """The user's options for a front end, beside the tool's own arguments."""

    explain: bool = False
    exit_like_original: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What a front end runs with: the user's options, the way to a measurement, and the two streams."""

    asked: Asked
    offer: Callable[[Plan, Progress], Ran]
    """Checks, measures, judges and stores, as for every command. Raises PronyError."""
    stdout: IO[str]
    stderr: IO[str]

    def explained(self, translated: Translated) -> int:
        """Print the plan in place of a run."""
        self.stdout.write(explain(translated))
        return ExitCode.OK

    def measure(self, translated: Translated, progress: Progress) -> Ran:
        """Say the notes, then measure."""
        for note in translated.notes:
            print(f"prony: note: {note}", file=self.stderr)
        return self.offer(translated.plan(), progress)

    def end(self, ran: Ran, original: int = 0) -> int:
        """After the tool's own output: the two lines, and the exit code."""
        self.stdout.flush()
        say_judgement(ran, self.stderr)
        return exit_code(ran, self.asked.exit_like_original, original)


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A tool, as the command line knows it."""

    name: str
    """Of its package."""
    usage: str
    """What `prony NAME -h` prints."""
    translate: Callable[[Sequence[str]], Translated]
    """The tool's arguments into a load. Raises UsageError (Refused for what is not supported)."""
    run: Callable[[Sequence[str], Context], int]
    """The tool's arguments, from the first line of output to the exit code."""
    script_endings: tuple[str, ...] = ()
    """Of file names by which `prony import` knows a script of this tool; empty where it has no scripts."""
    before_script: tuple[str, ...] = ()
    """What the tool's command line has before the script's name."""


class _ClosedPipeTolerant(io.FileIO):
    """Standard output whose reader may leave (`prony ab … | head -3`): the run goes on to its judgement."""

    def write(self, data: Any, /) -> int:
        """All of it, or into nothing."""
        try:
            return super().write(data) or 0
        except BrokenPipeError:
            return len(data)


class _WithoutCredentials(io.TextIOBase):
    """Standard error: what is said there may quote a URL or a header as it was given."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """In place of credentials their mark."""
        self._stream.write(redaction.text(text))
        return len(text)

    def flush(self) -> None:
        """As the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """As the stream."""
        return self._stream.isatty()


def own_context(asked: Asked, offer: Callable[[Plan, Progress], Ran]) -> Context:
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
    return Context(asked, offer, stdout, cast(IO[str], _WithoutCredentials(sys.stderr)))
