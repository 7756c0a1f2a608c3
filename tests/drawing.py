"""Draws the charts of the test run in a process of its own: the threads of the library that draws are not in
a fork, so that no process that has drawn could start commands (tests/command.py).

Must not know what a chart shows.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARY = "vl_convert"
"""Of all its functions, Prony calls this one (prony/report/html/plot.py)."""
CALLED = "vegalite_to_svg"


class Elsewhere(ModuleType):
    """Stands for the library where this process would import it. A fork of this process, which has drawn
    nothing, imports the library itself.
    """

    def __init__(self) -> None:
        super().__init__(LIBRARY)
        self._process = os.getpid()
        self._one_at_a_time = threading.Lock()
        self._drawer: subprocess.Popen[bytes] | None = None
        self._library: ModuleType | None = None

    def vegalite_to_svg(self, *args: Any, **options: Any) -> str:
        """As the library does it; what it raises there is raised here."""
        if os.getpid() != self._process:
            drawn: str = getattr(self._own(), CALLED)(*args, **options)
            return drawn
        with self._one_at_a_time:
            return self._ask(args, options)

    def _own(self) -> ModuleType:
        if self._library is None:
            sys.modules.pop(LIBRARY, None)
            self._library = importlib.import_module(LIBRARY)
        return self._library

    def _ask(self, args: tuple[Any, ...], options: dict[str, Any]) -> str:
        if self._drawer is None:
            self._drawer = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._drawer.stdin is not None
        assert self._drawer.stdout is not None
        pickle.dump((args, options), self._drawer.stdin)
        self._drawer.stdin.flush()
        came, found = pickle.load(self._drawer.stdout)
        if not came:
            raise ValueError(found)
        return str(found)

    def close(self) -> None:
        """End the process that draws, if there is one."""
        if self._drawer is not None and os.getpid() == self._process:
            self._drawer.communicate()


def serve() -> None:
    """Draw what standard input asks for, until it ends."""
    library = importlib.import_module(LIBRARY)
    while True:
        args, options = pickle.load(sys.stdin.buffer)
        try:
            answer = (True, getattr(library, CALLED)(*args, **options))
        except ValueError as fault:
            answer = (False, str(fault))
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    with suppress(EOFError, KeyboardInterrupt):
        serve()
