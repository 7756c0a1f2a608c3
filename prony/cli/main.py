"""Entry point: sub-commands; every fault ends as a sentence and an exit code, never a traceback."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import logging
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import typer
from typer import Option

import prony
from prony import redaction, seams
from prony.cli import lazy_commands
from prony.errors import EnvironmentFault, ExitCode, PronyError, TrialNotStored
from prony.report.delivery import defect_file, silence
from prony.report.wording import printable

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Disk faults, from any call."""
BAD_PATH = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
SUMMARY = "Measure web servers under load, and print a number only with the evidence that it is true."

app = typer.Typer(
    name="prony",
    cls=lazy_commands.Group,
    help=SUMMARY,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

lazy_commands.own(app, "compare", "compare:command", "Which of these servers carries more?")
lazy_commands.own(app, "run", "run:command", "Run an experiment from a plan.")
lazy_commands.own(app, "load", "load:command", "Measure a server under a load.")
lazy_commands.own(app, "sweep", "sweep:command", "How does it scale with the number of users?")
lazy_commands.own(app, "capacity", "capacity:command", "The highest rate at which an objective holds.")
lazy_commands.add(app, "aa")
lazy_commands.own(app, "gate", "gate:command", "Is a candidate build no worse than its base?")
lazy_commands.add(app, "second-opinion")
lazy_commands.own(app, "init", "init:command", "A server.yaml and a workload from a command line.")
lazy_commands.own(app, "servers", "servers:app", "List, build and check the servers.")
lazy_commands.add(app, "hosts")
lazy_commands.add(app, "explain")
lazy_commands.own(app, "doctor", "doctor:command", "Check whether this host is fit to measure.")
lazy_commands.add(app, "selftest")
lazy_commands.own(app, "results", "results:app", "List, show, export and import stored results.")
lazy_commands.own(app, "compare-results", "results:compare_two", "Compare two stored results.")
lazy_commands.own(app, "report", "results:page", "The HTML page of a stored experiment.")
lazy_commands.add(app, "serve")
lazy_commands.add(app, "import")

for _name in seams.own(seams.FRONT_ENDS):
    lazy_commands.front_end(app, _name)


def _version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        for line in version_lines(verbose=bool(context.obj)):
            typer.echo(line)
        raise typer.Exit


def _verbose(context: typer.Context, wanted: bool) -> None:
    context.obj = wanted


@app.callback()
def _root(
    version: bool = Option(False, "--version", callback=_version, help="Print the version."),
    verbose: bool = Option(
        False,
        "--verbose",
        callback=_verbose,
        is_eager=True,  # before --version, which ends here
        help="With --version: the engine with its hash, drivers and libraries, Python, folders.",
    ),
) -> None:
    """Measure web servers under load, and print a number only together with the evidence that it is true."""


class _Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: ends a measurement like Ctrl-C."""


def _terminate(number: int, _frame: FrameType | None) -> None:
    raise _Terminated(signal.Signals(number).name)


def main() -> int:
    """Run the command line; returns the exit code (prony.errors.ExitCode)."""
    logging.basicConfig(level=logging.CRITICAL)
    _tolerant_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup leaves it
        signal.signal(signal.SIGHUP, _terminate)
    try:
        words = sys.argv[1:]
        if is_front_end(words):
            return int(seams.need(seams.FRONT_ENDS, words[0], f"prony {words[0]}")(words))
        code = app(standalone_mode=False)
        if code == ExitCode.INTERRUPTED:  # the parser's library turns an interrupt into this code
            return _interrupted()
        return int(code) if isinstance(code, int) else ExitCode.OK
    except PronyError as fault:
        _say(str(fault))
        if fault.details:
            details = redaction.text(fault.details).splitlines()
            print(printable("\n".join(f"  | {line}" for line in details)), file=sys.stderr)
        return fault.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except typer.Exit as end:
        return int(end.exit_code)
    except BrokenPipeError:
        return _broken_pipe()
    except SystemExit as end:  # the parser's library turns a broken pipe into this, without a word
        if end.code == 1:
            return _broken_pipe()
        raise
    except OSError as fault:
        if fault.errno in DISK_FULL:
            return _disk_full(fault)
        if fault.errno in BAD_PATH:
            _say(f"{str(fault.filename)[:100]}: {fault.strerror}; name another file")
            return ExitCode.USAGE
        return _defect(fault)
    except MemoryError:
        _say("out of memory; use fewer trials, or a host with more memory")
        return ExitCode.ENVIRONMENT
    except Exception as fault:
        if hasattr(fault, "format_message") and hasattr(fault, "exit_code"):
            return _usage(fault)
        return _defect(fault)


def is_front_end(words: Sequence[str]) -> bool:
    """Whether a command line is another tool's; other packages' front ends are searched only where needed."""
    known: dict[str | None, object] = {entry.name: entry.cls for entry in app.registered_commands}
    first = words[0] if words else "--help"
    named = not first.startswith("-") and first not in known
    if named or first in ("-h", "--help") or "_PRONY_COMPLETE" in os.environ:
        for name in seams.names(seams.FRONT_ENDS):
            if name not in known:
                lazy_commands.front_end(app, name)
                known[name] = lazy_commands.FrontEnd
    return known.get(first) is lazy_commands.FrontEnd


def _tolerant_streams() -> None:
    """Output never ends a run: unsupported characters become `?`, a closed stream (`>&-`) is ignored."""
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if os.environ.get("COLUMNS", "").strip() == "0":
        del os.environ["COLUMNS"]


def _interrupted() -> int:
    _say("interrupted; every ended trial is stored (prony results list)")
    return ExitCode.INTERRUPTED


def _say(text: str) -> None:
    """Also prints where a trial was saved before this fault."""
    earlier = sys.exc_info()[1]
    sentences = [text]
    while earlier := earlier and earlier.__context__:
        if isinstance(earlier, TrialNotStored):
            sentences.insert(0, str(earlier))
    for sentence in dict.fromkeys(sentences):
        print(f"prony: {printable(redaction.text(sentence))}", file=sys.stderr)


def _broken_pipe() -> int:
    """`prony … | head`: the reader is done."""
    silence()
    return ExitCode.OK


def _disk_full(fault: OSError) -> int:
    """The disk of standard output or a file is full or read-only: no defect."""
    silence()
    where = fault.filename or "standard output or a temporary file"
    _say(
        f"{where} cannot be written: {fault.strerror}; free space or write elsewhere (stored trials are kept)"
    )
    return ExitCode.ENVIRONMENT


def _usage(fault: Exception) -> int:
    if type(fault).__name__ == "NoArgsIsHelpError":  # its message is the whole help
        print(fault.format_message(), file=sys.stderr)  # type: ignore[attr-defined]
        return ExitCode.USAGE
    context = getattr(fault, "ctx", None)
    _say(str(fault.format_message()).rstrip("."))  # type: ignore[attr-defined]
    if context is not None:
        print(f"Try: {context.command_path} --help", file=sys.stderr)
    return ExitCode.USAGE


def _defect(fault: Exception) -> int:
    """A fault of Prony itself: the traceback goes to a file, the user gets a sentence."""
    _say(
        f"defect of Prony ({type(fault).__name__}: {fault}); "
        f"please report it with the details {defect_file(fault)}"
    )
    return ExitCode.DEFECT


def version_lines(*, verbose: bool = False) -> Iterator[str]:
    """Version lines, with the reason in place of what is unavailable."""
    yield f"prony {prony.__version__}"
    if not verbose:
        return
    from prony.host.readings import probed_drivers
    from prony.load.engine import engine_version, find_engine
    from prony.server.cache import cache_dir

    yield f"installed in  {Path(prony.__file__).parent}"
    yield f"Python        {platform.python_version()}, {sys.executable}"
    yield f"host          {platform.system()} {platform.release()}, {platform.machine()}"
    try:
        engine = find_engine()
        yield f"engine        {engine_version()}, {engine}"
        yield f"              SHA-256 {hashlib.sha256(engine.read_bytes()).hexdigest()}"
        for name, driver in (probed_drivers(str(engine)) or {}).items():
            yield f"driver        {name}: {'works' if driver.works else driver.reason}"
        for name, built_with in libraries(engine).items():
            yield f"library       {name} {built_with}"
    except (EnvironmentFault, OSError) as fault:
        yield f"engine        {fault}"
    try:
        yield f"cache         {cache_dir()}"
    except EnvironmentFault as fault:
        yield f"cache         {fault}"


def libraries(engine: Path) -> dict[str, str]:
    """Name -> version of the engine's libraries by its probe; empty if unavailable."""
    try:
        done = subprocess.run([engine, "probe"], capture_output=True, text=True, timeout=10, check=False)
        versions = json.loads(done.stdout)["libraries"]
        return {str(name): str(version) for name, version in versions.items()}
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, AttributeError):
        return {}


if __name__ == "__main__":
    sys.exit(main())
