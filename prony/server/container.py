"""A server in a container image, by podman or docker: on the host's network, on a CPU set of its own, read by
its control group, removed by its id.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from prony.errors import EnvironmentFault
from prony.evidence.server import ProcessSample
from prony.host import cgroup
from prony.server import proc

PROGRAMS = ("podman", "docker")
EXPOSED = re.compile(r"(\d+)(?:-\d+)?(?:/tcp)?")
PULL_TIMEOUT_S = 1800.0
ANSWERS_WITHIN_S = 60.0


def program() -> str:
    """Raises EnvironmentFault where there is neither."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        raise EnvironmentFault("an image needs podman or docker, and neither was found; install one of them")
    return found


def pulled(image: str) -> tuple[str, int]:
    """Its id, and the lowest TCP port that it exposes; pulled if missing. Raises EnvironmentFault."""
    try:
        said = _run("image", "inspect", image)
    except EnvironmentFault:
        _run("pull", _qualified(image), timeout_s=PULL_TIMEOUT_S)
        said = _run("image", "inspect", image)
    described: dict[str, Any] = json.loads(said)[0]
    exposed = (described.get("Config") or {}).get("ExposedPorts") or {}
    ports = [int(match[1]) for port in exposed if (match := EXPOSED.fullmatch(port))]
    if not ports:
        raise EnvironmentFault(f"image {image} exposes no TCP port; add EXPOSE PORT to its Dockerfile")
    return str(described["Id"]).removeprefix("sha256:"), min(ports)


def _qualified(image: str) -> str:
    """With its registry, as docker reads a name without one."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if first == "localhost" or "." in first or ":" in first else f"docker.io/{image}"


def _run(*words: str, timeout_s: float = ANSWERS_WITHIN_S) -> str:
    """What it prints. Raises EnvironmentFault with its last line."""
    command = [program(), *words]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as fault:
        why = next(reversed(fault.stderr.strip().splitlines()), f"exit code {fault.returncode}")
        raise EnvironmentFault(f"{' '.join(command)}: {why}") from fault
    except subprocess.TimeoutExpired as fault:
        raise EnvironmentFault(f"{' '.join(command)} gave no response within {timeout_s:g} s") from fault
    return done.stdout


@dataclass(slots=True)
class Container:
    """One of an image, by its id."""

    id: str
    _pid: int = 0

    @classmethod
    def of(cls, image: str, cpus: Sequence[int]) -> Container:
        """Not begun; on these CPUs only, empty: all. Raises EnvironmentFault."""
        where = ("--cpuset-cpus", ",".join(map(str, cpus))) if cpus else ()
        create = ("create", "--rm", "--network", "host", "--log-driver", "none")
        return cls(_run(*create, *where, image).split()[-1])

    @property
    def starting(self) -> list[str]:
        """Starts it, lives as long as it, hands its output and signals on."""
        return [program(), "start", "--attach", "--sig-proxy", self.id]

    @property
    def removing(self) -> list[str]:
        """Leaves nothing of it."""
        return [program(), "rm", "--force", self.id]

    def remove(self) -> None:
        with suppress(subprocess.TimeoutExpired, OSError, EnvironmentFault):  # none hides why it is removed
            subprocess.run(self.removing, capture_output=True, timeout=ANSWERS_WITHIN_S, check=False)

    def begun(self) -> int | None:
        """Its first process; None before there is one, and where it ended at once."""
        if not self._pid:
            with suppress(EnvironmentFault):
                self._pid = int(_run("inspect", "--format", "{{.State.Pid}}", self.id))
        return self._pid or None

    def pids(self) -> tuple[int, ...]:
        """Living processes, the first one first."""
        return (self._pid, *proc.descendants(self._pid)) if self._pid and proc.alive(self._pid) else ()

    def sample(self) -> ProcessSample | None:
        """CPU time and memory are those of its control group where it has one of its own."""
        found = proc.sample(self.pids())
        use = None if found is None else cgroup.use(self._pid, self.id)
        if found is None or use is None:
            return found
        return found.model_copy(
            update={
                "cpu_user_s": use.cpu_user_s,
                "cpu_system_s": use.cpu_system_s,
                "rss_bytes": use.memory_bytes,
                "peak_rss_bytes": use.peak_bytes,
            }
        )
