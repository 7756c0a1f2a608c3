"""A laboratory on the rig: the command `prony`, started in the namespace of the laboratory, with the other
hosts behind ssh and TLS. Must not know what is tested.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.evidence.trial import TrialRecord
from prony.report.delivery import as_plain
from prony.report.export import to_json
from prony.report.reading import load_result
from prony.store import Store
from prony_hosts import certificates
from tests.hosts.rig import Rig

BIN = Path(sys.executable).parent
PRONY, ENGINE = str(BIN / "prony"), str(BIN / "prony-engine")
SERVES = "prony-engine serve"
"""Words of a reference server in the list of processes."""
SHORT = ("--quick", "--window", "1s", "--warm-up-cap", "1s")
"""For a command whose trials take seconds."""
NO_FIGURE = 3
"""Exit code: measured, and not valid."""
PATIENCE_S = 30.0
"""For what takes a second on a machine with nothing else to do."""


def until(happens: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for it. AssertionError that says what did not happen."""
    ends_s = time.monotonic() + within_s
    while not happens():
        assert time.monotonic() < ends_s, f"{what}: not within {within_s:g} s"
        time.sleep(0.05)


@dataclass
class Run:
    """A command that was started on the laboratory's host."""

    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """What it printed so far, both ways."""
        return self.output.read_text() + self.errors.read_text()

    def until(self, pattern: str, within_s: float = 90.0) -> None:
        """Wait until it has said this (a regular expression). AssertionError where it ends before."""
        found = re.compile(pattern)

        def has_said() -> bool:
            over = self.process.poll() is not None
            if found.search(self.said()):
                return True
            assert not over, f"it ended without saying '{pattern}': {self.said()[-3000:]}"
            return False

        until(has_said, f"it did not say '{pattern}'", within_s)

    def ended(self, within_s: float = 60.0) -> int:
        """Its exit code; AssertionError with what it said where it does not end."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s:g} s: {self.said()[-3000:]}") from None


def one_sentence(run: Run, *words: str) -> None:
    """It was said, and nothing of a traceback, nor of a task of the event loop that was left over."""
    said = run.said()
    for never in ("Traceback", "Task was destroyed", "never awaited"):
        assert never not in said, said[-4000:]
    for word in words:
        assert word in said, said[-4000:]


class Lab:
    """hosts.yaml with a server's host and two load hosts, reached by ssh; those of `by_hand` by workers that
    `worker` starts. `servers`: the servers' hosts by group; the one without a group is called "".
    """

    def __init__(
        self,
        rig: Rig,
        *,
        servers: Mapping[str, str] | None = None,
        loads: Sequence[str] = ("load1", "load2"),
        link: str = "1 Gbit/s",
        by_hand: Sequence[str] = (),
    ) -> None:
        groups = {"": "server"} if servers is None else servers
        self.rig = rig
        self.file = rig.folder / "hosts.yaml"
        self._runs = 0
        self._certificates = rig.folder / "certs"
        self._scheduler = f"tls://{rig.address('lab')}:8786"
        certificates.make(self._certificates)
        reached = {}
        for name in (*groups.values(), *loads):
            if name in by_hand:
                reached[name] = f"{{connect: {name}, link: {link}}}"
            else:
                rig.sshd(name)
                reached[name] = f"{{ssh: {name}, prony: {PRONY}, link: {link}}}"
        text = f"lab: {{scheduler: '{self._scheduler}', certificates: {self._certificates}}}\n"
        if "" in groups:
            text += f"server: {reached[groups['']]}\n"
        elif groups:
            listed = ", ".join(f"{group}: {reached[name]}" for group, name in groups.items())
            text += f"servers: {{{listed}}}\n"
        self.file.write_text(f"{text}load: [{', '.join(reached[name] for name in loads)}]\n")

    def worker(self, name: str, *, role: str = "load", clock_ahead_s: int = 0) -> None:
        """`prony hosts worker` as somebody starts it by hand on that host."""
        words = ["hosts", "worker", self._scheduler, "--name", name, "--role", role]
        self.rig.start(
            name,
            [PRONY, *words, "--certificates", str(self._certificates)],
            clock_ahead_s=clock_ahead_s,
            output=self.rig.folder / f"worker-{name}.log",
        )

    def serve(self, *options: str) -> str:
        """A reference server on the server's host that nobody launched for a trial; its URL."""
        address = f"{self.rig.address('server')}:8080"
        self.rig.start("server", [ENGINE, "serve", "--listen", address, *options])
        self.rig.until_listening("server", 8080)
        return f"http://{address}/"

    def start(self, *words: str) -> Run:
        """`prony WORDS --hosts FILE`, with a store of its own."""
        self._runs += 1
        output, errors = (self.rig.folder / f"run{self._runs}.{end}" for end in ("out", "err"))
        store = self.rig.folder / "results.db"
        process = self.rig.start(
            "lab",
            [PRONY, *words, "--hosts", str(self.file), "--db", str(store)],
            output=output,
            errors=errors,
        )
        return Run(process, output, errors)

    def load(self, *, warm_up_s: float = 1.0, window_s: float) -> Run:
        """A load from the load hosts on a server that runs on the server's host."""
        times = ("--warmup", f"{warm_up_s:g}s", "--duration", f"{window_s:g}s")
        return self.start("load", self.serve(), "-c", "8", *times)

    def stored(self) -> list[str]:
        """The ids of the experiments in the store."""
        with self._store() as store:
            return [one.id for one in store.experiments()]

    def result(self) -> dict[str, Any]:
        """What was measured last, as `prony results show --json` has it."""
        with self._store() as store:
            return as_plain(to_json(load_result(store, "latest")))

    def _store(self) -> closing[Store]:
        return closing(Store.open(str(self.rig.folder / "results.db")))

    def trials(self) -> list[dict[str, Any]]:
        """The trials of what was measured last."""
        return [t for part in self.result()["parts"] for cell in part["cells"] for t in cell["trials"]]

    def records(self) -> list[TrialRecord]:
        """All trials of the store with their evidence, in the order in which they ran."""
        with self._store() as store:
            return [trial.record for one in store.experiments() for trial in store.trials(one.id)]

    def engines(self, host: str) -> list[int]:
        """The engines that offer a load there."""
        return self.rig.processes(host, "prony-engine run")

    def assert_nothing_left(self, *, besides: str = "", within_s: float = 15.0) -> None:
        """No process of Prony on any host, within seconds: what is held by a lease outlives the laboratory
        for so long. `besides`: words of what the test itself started.
        """

        def left() -> list[str]:
            return [
                f"{host}: {line}"
                for host in self.rig.hosts
                for line in self.rig.left(host)
                if not (besides and besides in line)
            ]

        try:
            until(lambda: not left(), "processes are left over", within_s)
        except AssertionError as late:
            raise AssertionError(f"{late}: {left()}") from None
