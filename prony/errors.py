"""Errors that a user can fix: one sentence each (found, expected, what to do) and a documented exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every `prony` command (documented in docs/commands.md)."""

    OK = 0
    DEFECT = 1
    """A defect in Prony; the details are in the log file that the message names."""
    USAGE = 2
    """Bad input: an unknown name, an absurd number, a plan that cannot be read."""
    NO_FIGURE = 3
    """Something that was asked has no figure: its trials do not conform; with --strict, too, one that is not
    known that well.
    """
    ENVIRONMENT = 4
    """The host cannot do it: no tool, a failed build, a server that did not start, a port taken."""
    STORE = 5
    """The results could not be read or written."""
    NONCONFORMING = 6
    """A server does not answer as its workloads declare (`prony servers check`)."""
    WORSE = 7
    """A candidate is worse than its base by more than the margin (`prony gate`)."""
    UNDECIDED = 8
    """Whether it is could not be told within the budget (`prony gate`)."""
    INTERRUPTED = 130


class PronyError(Exception):
    """An error that a user can fix. `str()` is the sentence to print; `details` may hold the end of a log."""

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, *, details: str | None = None) -> None:
        super().__init__(message)
        self.details = details


class UsageError(PronyError):
    """Bad input on the command line or in a file."""

    exit_code = ExitCode.USAGE


class EnvironmentFault(PronyError):
    """The host, a tool, a build or a server under test does not do what is needed."""

    exit_code = ExitCode.ENVIRONMENT


class LoadRefused(EnvironmentFault):
    """The engine found a load that cannot be offered as it is written."""


class StoreError(PronyError):
    """The catalogue of results cannot be read or written."""

    exit_code = ExitCode.STORE


class TrialNotStored(StoreError):
    """A trial was not stored; the sentence names the file that has it."""
