"""The kinds of target: a server that Prony launches, or one that is running already.

A further kind is a class of `prony.plan.target`, a module here, and a line in `under_test`; trial, judge,
store and report know none of them.
"""

from __future__ import annotations

from prony.plan.target import Launch, Target, Url
from prony.server.catalogue import Catalogue
from prony.targets.base import Placement, RunningTarget, ServerUnderTest
from prony.targets.external import ExternalServer, RunningExternal
from prony.targets.launched import LaunchedServer

__all__ = [
    "ExternalServer",
    "LaunchedServer",
    "Placement",
    "RunningExternal",
    "RunningTarget",
    "ServerUnderTest",
    "under_test",
]


def under_test(target: Target, catalogue: Catalogue) -> ServerUnderTest:
    """The server that a plan names. Raises UsageError for what is not in the catalogue."""
    match target:
        case Launch():
            return LaunchedServer.of(target, catalogue)
        case Url():
            return ExternalServer(target)
