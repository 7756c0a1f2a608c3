"""What the laboratory asks of several hosts (`prony.seams`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony_hosts.testbed import HostsTestbed


def machines(file: Path) -> int:
    """On how many hosts of this file servers are launched. Raises UsageError."""
    from prony_hosts.file import read

    return len(read(file).servers)


@contextmanager
def attached(file: Path, say: Callable[[str], None]) -> Iterator[HostsTestbed]:
    """The hosts of this file for the time of a command. Raises PronyError."""
    from prony_hosts.attach import attached as attached_to
    from prony_hosts.file import read
    from prony_hosts.testbed import HostsTestbed

    found = read(file)
    with attached_to(found, say=say) as laboratory:
        yield HostsTestbed(laboratory, found, file)
