"""`prony fhb [flags] URL`: Faban's HTTP bench and its two checks. Must not offer load or judge."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.sax.saxutils import escape, quoteattr

from pydantic import ValidationError

from prony.errors import EnvironmentFault, UsageError
from prony.evidence.engine import Window
from prony.frontends.base import Context, FrontEnd, Ran, Refused, Translated
from prony.judge.histogram import decode
from prony.plan.load import ClosedLoad, SteadyWindow
from prony.plan.response import Expectation
from prony.plan.step import Step
from prony.plan.target import TlsOptions, parse_url
from prony.plan.think import NO_THINK, Think
from prony.plan.trial import TrialPlan, fixed
from prony.plan.workload import Workload
from prony.report.progress import SilentProgress

TOOL = "fhb"
ACCEPT = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"
"""What Java's HTTP client, on which Faban stands, asks for."""
FORM, BINARY = "application/x-www-form-urlencoded", "application/octet-stream"
START_EVERY_S = 0.02
"""Faban starts a client every 20 ms."""
SIMULATED_SHARE = 0.975
"""Of the users asked for; with fewer Faban warns that Little's law does not hold."""
THINK_DEVIATION = 0.01
LONGEST_S = 7 * 24 * 3600.0
USAGE = """\
usage: prony fhb [options] URL
    -c clients            Clients at once (default 1)
    -r up/steady/down     Seconds of each part of the run (default 300/300/120); steady is measured
    -W milliseconds       Pause between a response and the next request (default 0)
    -t seconds            Target for the 90th percentile (default 1.0)
    -p file               POST the data of this file
    -b                    ... as application/octet-stream
    -z types              The Accept header
    -s                    Save summary.xml in the output directory
    -D directory          The output directory (default: fhb in the system's folder for temporary files)
    -J option             An option of Java; nothing here runs on Java
    -k                    Connections are always kept alive
    -V                    The version
    -h                    This text
Refused, each with a sentence: -f, -K, -S, -n.
"""


@dataclass(slots=True)
class FhbArguments:
    """What was asked; the defaults are fhb's."""

    url: str = ""
    clients: int = 1
    ramp_up_s: float = 300.0
    steady_s: float = 300.0
    ramp_down_s: float = 120.0
    think: str = "0"
    """Milliseconds, as typed."""
    target_s: float = 1.0
    data: Path | None = None
    binary: bool = False
    accept: str | None = None
    save: bool = False
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "fhb")
    notes: list[str] = field(default_factory=list)
    version: bool = False
    help: bool = False

    @property
    def think_ms(self) -> float:
        """The pause as a number."""
        return float(self.think)


def parse(argv: Sequence[str]) -> FhbArguments:
    """Raises UsageError for what fhb would not take either, Refused for what only fhb does."""
    found = FhbArguments()
    words = list(argv)
    while words and words[0].startswith("-") and len(words[0]) > 1:
        word = words.pop(0)
        flag, joined = word[:2], word[2:]
        if flag in _VALUED:
            if not joined and not words:
                _wrong(f"{flag} needs a value")
            _VALUED[flag](found, joined or words.pop(0))
        else:
            _switch(found, flag)
    if found.help or found.version:
        return found
    if not words:
        _wrong("expected a URL at the end, found none")
    if len(words) > 1:
        _wrong(f"expected one URL at the end, found {' '.join(words)}")
    found.url = words[0]
    if not found.url.startswith(("http://", "https://")):
        _wrong(f"the URL is '{found.url}'; expected http://HOST:PORT/PATH or https://…")
    parse_url(found.url)
    if found.binary and found.data is None:
        _wrong("-b says how the data of -p are sent; give -p FILE as well")
    return found


def _switch(into: FhbArguments, flag: str) -> None:
    match flag:
        case "-s":
            into.save = True
        case "-b":
            into.binary = True
        case "-k":
            into.notes.append("connections are always kept alive; -k changes nothing")
        case "-V":
            into.version = True
        case "-h":
            into.help = True
        case "-S":
            instead = "write ${random int 1 9} and the like in a workload of prony run (docs/workloads.md)"
            raise Refused(flag, TOOL, None, "Faban's substitutions", instead)
        case _:
            _wrong(f"unknown option {flag}")


def _clients(into: FhbArguments, text: str) -> None:
    if not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        _wrong(f"-c is '{text}'; expected 1 to 1000000 clients")
    into.clients = int(text)


def _times(into: FhbArguments, text: str) -> None:
    parts = text.split("/")
    if len(parts) != 3:
        _wrong(f"-r is '{text}'; expected three numbers of seconds: 60/300/30")
    into.ramp_up_s, into.steady_s, into.ramp_down_s = (_number("-r", part, 0.0, LONGEST_S) for part in parts)
    if into.steady_s < 1:
        _wrong(f"-r is '{text}'; expected a steady part of at least a second")


def _think(into: FhbArguments, text: str) -> None:
    _number("-W", text, 0.0, LONGEST_S * 1000)
    into.think = text


def _target(into: FhbArguments, text: str) -> None:
    into.target_s = _number("-t", text, 0.0, LONGEST_S)


def _data(into: FhbArguments, text: str) -> None:
    if not Path(text).is_file():
        _wrong(f"-p names {text}, which is not a file that can be read")
    into.data = Path(text)


def _accept(into: FhbArguments, text: str) -> None:
    into.accept = text


def _folder(into: FhbArguments, text: str) -> None:
    into.folder = Path(text)


def _java(into: FhbArguments, text: str) -> None:
    into.notes.append(f"nothing here runs on Java; -J {text} changes nothing")


def _speed(_into: FhbArguments, text: str) -> None:
    raise Refused(
        "-K", TOOL, None, f"sockets of {text} kilobytes a second", "shape the traffic on the host: tc"
    )


def _file(_into: FhbArguments, text: str) -> None:
    instead = "give its settings as options, or write a plan (docs/plans.md)"
    raise Refused("-f", text, None, "a run configuration of Faban", instead)


def _count(_into: FhbArguments, text: str) -> None:
    raise Refused("-n", TOOL, None, f"{text} requests", "give times with -r, as with fhb, or use prony ab -n")


_VALUED = {"-c": _clients, "-r": _times, "-W": _think, "-t": _target, "-p": _data, "-z": _accept,
           "-D": _folder, "-J": _java, "-K": _speed, "-f": _file, "-n": _count}  # fmt: skip


def _number(flag: str, text: str, least: float, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        _wrong(f"{flag} has '{text}'; expected a number")
    if not least <= value <= most:
        _wrong(f"{flag} has {text}; expected {least:g} to {most:g}")
    return value


def _wrong(sentence: str) -> NoReturn:
    raise UsageError(f"fhb: {sentence}; see prony fhb -h")


def translate(argv: Sequence[str]) -> Translated:
    """fhb's arguments as a load. Raises UsageError."""
    return translated(parse(argv))


def translated(asked: FhbArguments) -> Translated:
    """The clients come one every 20 ms; what is measured begins with the steady part."""
    target, path = parse_url(asked.url)
    trial = TrialPlan(
        workload=_workload(asked, path),
        load=ClosedLoad(
            users=asked.clients,
            think=Think(kind="constant", ms=asked.think_ms) if asked.think_ms else NO_THINK,
            ramp_up_s=min(asked.ramp_up_s, asked.clients * START_EVERY_S),
        ),
        measured=SteadyWindow(window_s=asked.steady_s),
        warm_up=fixed(asked.ramp_up_s),
        request_timeout_ms=30_000,
        preflight=False,
    )
    if target.https:
        target = target.model_copy(update={"tls": TlsOptions(insecure=True)})
    notes = list(asked.notes)
    if asked.ramp_down_s:
        notes.append(
            f"the load ends with the steady part: nothing is measured in the {asked.ramp_down_s:g} s after it"
        )
    return Translated(TOOL, target, trial, f"fhb {asked.url}", tuple(notes))


def _workload(asked: FhbArguments, path: str) -> Workload:
    headers: dict[str, str] = {"Accept": asked.accept or ACCEPT}
    if asked.data is not None:
        headers["Content-Type"] = BINARY if asked.binary else FORM
    literal = {name: value.replace("${", "$${") for name, value in headers.items()}
    try:
        step = Step.model_validate(
            {
                "name": "test",
                "path": path.replace("${", "$${"),
                "method": "GET" if asked.data is None else "POST",
                "headers": literal,
                "body_file": None if asked.data is None else str(asked.data.absolute()),
                "expect": Expectation(status=tuple(range(200, 400))),
            }
        )
        return Workload(name=TOOL, title=f"{step.method} {path}", steps=(step,))
    except ValidationError as fault:
        reason = str(fault.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
        raise UsageError(f"fhb: the request cannot be sent: {reason}") from fault


@dataclass(frozen=True, slots=True)
class FhbFigures:
    """What fhb prints; times in seconds."""

    per_s: float
    successes: int
    failures: int
    mean_s: float
    max_s: float
    percentiles_s: dict[int, float]
    simulated: float
    """Users, by Little's law."""
    drawn_s: float
    thought_s: float

    @property
    def error_percent(self) -> float:
        """Of all requests."""
        total = self.successes + self.failures
        return 100.0 * self.failures / total if total else 0.0


def figures(window: Window) -> FhbFigures:
    """Of the steady part. A request without a response in time or with a status from 400 on has failed."""
    decoded = None if window.service_time is None else decode(window.service_time)
    if decoded is None or not decoded.count:
        raise EnvironmentFault("nothing was answered in the steady part; look at the server, then try again")
    unmet = sum(n for kind, n in window.errors.items() if kind.startswith("expect_"))
    successes = max(0, window.completed - unmet)
    count = window.think_count or 0
    return FhbFigures(
        per_s=successes / window.duration_s,
        successes=successes,
        failures=window.failed,
        mean_s=decoded.moment(1),
        max_s=decoded.max_ns / 1e9,
        percentiles_s={nth: (decoded.percentile_ns(nth) or 0.0) / 1e9 for nth in (90, 95, 99)},
        simulated=(window.clipped_cycle_s or 0.0) / window.duration_s,
        drawn_s=(window.think_drawn_sum_s or 0.0) / count if count else 0.0,
        thought_s=(window.think_actual_sum_s or 0.0) / count if count else 0.0,
    )


def report(asked: FhbArguments, found: FhbFigures) -> Iterator[str]:
    """fhb's lines."""
    yield f"ops/sec: {found.per_s:.3f}"
    yield f"% errors: {found.error_percent!r}"
    yield f"avg. time: {found.mean_s:.3f}"
    yield f"max time: {found.max_s:.3f}"
    yield f"90th %: {found.percentiles_s[90]:.3f}"
    if found.percentiles_s[90] > asked.target_s:
        yield f"ERROR: Missed target 90% of {asked.target_s!r}"
    yield f"95th %: {found.percentiles_s[95]:.3f}"
    yield f"99th %: {found.percentiles_s[99]:.3f}"
    if asked.clients * SIMULATED_SHARE > found.simulated:
        yield (
            f"WARNING: Little's law verification results low: {asked.clients} users requested; "
            f"{found.simulated:.3f} users simulated"
        )
    if found.drawn_s and abs(found.thought_s - found.drawn_s) / found.drawn_s > THINK_DEVIATION:
        yield (
            f"ERROR: Think time deviation is too high; requested {asked.think}; "
            f"actual is {found.thought_s * 1000:.3f}"
        )


def summary(asked: FhbArguments, found: FhbFigures, ran: Ran) -> str:
    """What -s saves: the elements of Faban's summary.xml that hold these figures."""
    passed = str(found.percentiles_s[90] <= asked.target_s).lower()
    nth = "".join(
        f'\n                <percentile nth="{n}">{value:.3f}</percentile>'
        for n, value in found.percentiles_s.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<benchResults>
    <benchSummary name="fhb" version="1.0">
        <runId>{escape(ran.identifier)}</runId>
        <metric unit="ops/sec">{found.per_s:.3f}</metric>
        <verdict>{ran.verdict.value}</verdict>
    </benchSummary>
    <driverSummary name="http_driver1">
        <metric unit="ops/sec">{found.per_s:.3f}</metric>
        <users>{asked.clients}</users>
        <rtXtps>{found.simulated:.4f}</rtXtps>
        <mix>
            <operation name="test">
                <successes>{found.successes}</successes>
                <failures>{found.failures}</failures>
            </operation>
        </mix>
        <responseTimes unit="seconds">
            <operation name="test" r90th={quoteattr(repr(asked.target_s))}>
                <avg>{found.mean_s:.3f}</avg>
                <max>{found.max_s:.3f}</max>{nth}
                <passed>{passed}</passed>
            </operation>
        </responseTimes>
        <delayTimes>
            <operation name="test" type="thinkTime">
                <targetedAvg>{found.drawn_s:.3f}</targetedAvg>
                <actualAvg>{found.thought_s:.3f}</actualAvg>
            </operation>
        </delayTimes>
    </driverSummary>
</benchResults>
"""


def save(asked: FhbArguments, text: str) -> None:
    """FOLDER/N/summary.xml, N counted in fhb.seq as Faban does. Raises EnvironmentFault."""
    sequence = asked.folder / "fhb.seq"
    try:
        asked.folder.mkdir(parents=True, exist_ok=True)
        last = sequence.read_text(encoding="ascii").strip() if sequence.is_file() else "1"
        number = int(last) if last.isdigit() else 1
        place = asked.folder / str(number)
        place.mkdir(exist_ok=True)
        (place / "summary.xml").write_text(text, encoding="utf-8")
        sequence.write_text(f"{number + 1}\n", encoding="ascii")
    except OSError as fault:
        raise EnvironmentFault(
            f"{asked.folder} cannot be written: {fault.strerror}; name another folder with -D (the run is "
            "stored: prony results show latest)"
        ) from fault


def run(argv: Sequence[str], context: Context) -> int:
    """One run, from the first line to the exit code."""
    asked = parse(argv)
    if asked.help or asked.version:
        context.stdout.write(USAGE if asked.help else "Faban cd: Version 0.1\n")
        return 0
    made = translated(asked)
    if context.asked.explain:
        return context.explained(made)
    ran = context.measure(made, SilentProgress())
    found = figures(ran.window)
    for line in report(asked, found):
        print(line, file=context.stdout)
    if asked.save:
        save(asked, summary(asked, found, ran))
        print(f"Saving output from run in {asked.folder}", file=context.stdout)
    return context.end(ran)


FRONT_END = FrontEnd(
    name=TOOL,
    usage=USAGE,
    translate=translate,
    run=run,
)
