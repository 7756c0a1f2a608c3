"""Starts `prony` as a process of its own without starting Python anew: a child of the test run that has
Prony's modules already and starts at the same entry point. Must not know what a test asks for.

A process, its streams, signals and exit code are real. What differs from the installed command, which some
tests start instead: imports cost nothing, and what surrounds a measurement (calibration, the published
requests, JVMs' compilers) is a fraction of what a user gets, as no test of a count needs more. Where the test
run cannot be forked, Python starts anew, and the rest is the same.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import logging
import os
import pkgutil
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import prony

PRONY = Path(sys.executable).parent / "prony"
"""The installed command."""
CALIBRATION_WARM_S, CALIBRATION_S, PUBLISHED_REQUESTS = 0.1, 0.4, 100
HASTY_JVM = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""For a server's environment: its JVM compiles with the first compiler alone, which is sooner ready and good
enough for who looks at responses and counts.
"""
STACKS = signal.SIGUSR2
"""A command that is not the installed one prints the stacks of its threads."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


def start(
    words: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[str]:
    """`prony WORDS` with pipes for its standard output and error; `env` is the whole environment."""
    surroundings = dict(os.environ if env is None else env)
    typed = [str(word) for word in words]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams: dict[str, Any] = {**pipes, "cwd": cwd, "text": True}
    if _holds_a_database():
        anew = [sys.executable, "-P", str(Path(__file__)), *typed]
        return subprocess.Popen(anew, env=surroundings, **streams)
    _load_everything()

    def become_prony() -> None:
        os.closerange(3, 65_536)  # also the pipe on which Popen waits for an exec that never comes
        _become(typed, surroundings)

    return subprocess.Popen(
        [str(PRONY)],
        preexec_fn=become_prony,
        restore_signals=False,  # they are made those of a fresh Python below
        **streams,
    )


def run(
    words: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 240,
) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    with start(words, env=env, cwd=cwd) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(list(words), process.returncode, out, err)


def ended(process: subprocess.Popen[str], timeout_s: float) -> tuple[str, str]:
    """What it printed on standard output and error until its end. Where it does not end, AssertionError with
    the stacks of its threads: what hangs once in a hundred runs is not seen again.
    """
    try:
        return process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(STACKS)  # the installed command ends by it
        time.sleep(2)
        process.kill()
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"still running after {timeout_s:g} s: {out[-2000:]}{err[-8000:]}") from None


@cache
def _load_everything() -> None:
    """What commands import when they need it, once for all children."""
    for module in pkgutil.walk_packages(prony.__path__, "prony."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("scipy.optimize", "scipy.stats", "sqlalchemy.dialects.sqlite"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _holds_a_database() -> bool:
    """Whether the test run has one open. SQLite keeps what it knows of a file for the whole process, which a
    fork may not carry on: the child would find the file broken.
    """
    for attempt in range(2):
        if not any(".db" in file for file in _open_files()):
            return False
        if not attempt:
            gc.collect()  # a connection that nobody closed and nobody has
    return True


def _open_files() -> list[str]:
    found = []
    for number in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of this listing
            found.append(str(number.readlink()))
    return found


def _become(words: list[str], env: Mapping[str, str]) -> NoReturn:
    """This process is the command from here on."""
    code = 1
    try:
        code = _enter(words, env)
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _enter(words: list[str], env: Mapping[str, str]) -> int:
    gc.enable()
    random.seed()  # else every child would try the same ports in the same order
    os.environ.clear()
    os.environ.update(env)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.register(STACKS, file=2, all_threads=True)
    logging.getLogger().handlers.clear()
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.argv = [str(PRONY), *words]

    from prony.cli.main import main
    from prony.load import reference
    from prony.plan import trial
    from prony.server import command as server

    reference.WARM_S, reference.MEASURED_S = CALIBRATION_WARM_S, CALIBRATION_S
    trial.PUBLISHED_REQUESTS = PUBLISHED_REQUESTS
    usual = server.inherited
    server.inherited = lambda tmp: usual(tmp) | HASTY_JVM
    try:
        return int(main())
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader has gone: a test's to look at
            stream.flush()


if __name__ == "__main__":
    _become(sys.argv[1:], dict(os.environ))
