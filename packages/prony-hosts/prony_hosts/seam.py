"""Entry points of `prony.seams` for several hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony_hosts.testbed import HostsTestbed


def machines(file: Path) -> int:
    """Number of hosts in this file on which servers are launched. Raises UsageError."""
    from prony_hosts.file import read

    return len(read(file).servers)


@contextmanager
def attached(file: Path, say: Callable[[str], None]) -> Iterator[HostsTestbed]:
    """The hosts of this file, attached for the duration of a command. Raises PronyError."""
    from prony_hosts.attach import attached as attached_to
    from prony_hosts.file import read
    from prony_hosts.testbed import HostsTestbed

    hosts = read(file)
    with attached_to(hosts, say=say) as laboratory:
        yield HostsTestbed(laboratory, hosts, file)
