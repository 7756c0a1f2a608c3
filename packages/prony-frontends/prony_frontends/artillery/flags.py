"""Artillery's command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prony.errors import UsageError
from prony_frontends.base import Refused

USAGE = """\
prony artillery run [flags] SCRIPT

Runs an Artillery test script (YAML or JSON) on Prony's engine.
  -t, --target URL        Instead of config.target
  -o, --output FILE       Write a JSON report
  -e, --environment NAME  Environment of config.environments
  -v, --variables JSON    Variables for the users (an object)
  -p, --payload FILE      The CSV file of config.payload, for a single payload
  -c, --config FILE       Config file, merged over that of the script
  -i, --input FILE        Another script, merged over the first (repeatable)
      --overrides JSON    Values that override the script's
      --scenario-name X   Only this scenario
      --dotenv, --env-file FILE
                          Environment variables for {{ $env.X }}
  -k, --insecure          Accept any certificate
  -q, --quiet             Print checks and output of functions only
  -s, --solo              One user
      --name, --tags, --note TEXT
                          Accepted, without effect
Functions of config.processor run here, with packages that are installed next to the script.
Not supported: engines other than HTTP, --record, --key, --count above 1, --platform other
than local, --platform-opt.
"""
VALUES = {
    "-t": "target", "-o": "output", "-e": "environment", "-v": "variables", "-p": "payload", "-c": "config",
    "-i": "input", "--input": "input", "--target": "target", "--output": "output",
    "--environment": "environment", "--variables": "variables", "--payload": "payload", "--config": "config",
    "--overrides": "overrides", "--scenario-name": "scenario-name", "--dotenv": "dotenv",
    "--env-file": "dotenv", "--name": "name", "--tags": "tags", "--note": "note",
    "--platform": "platform", "--count": "count", "--platform-opt": "platform-opt", "--key": "key",
}  # fmt: skip
SWITCHES = {
    "-k": "insecure", "--insecure": "insecure", "-q": "quiet", "--quiet": "quiet", "-s": "solo",
    "--solo": "solo", "--record": "record",
}  # fmt: skip
CLOUD = "leave it out; results are kept in Prony's own catalogue (prony results list)"
REFUSED = {"record": CLOUD, "key": CLOUD, "platform-opt": "run it on this host"}
COMMAND_LINE = "the command line"


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags of `artillery run`."""

    scripts: tuple[str, ...]
    """The script, and scripts merged into it."""
    values: Mapping[str, str]
    switches: frozenset[str]
    variables: Mapping[str, Any]
    overrides: Mapping[str, Any]

    @property
    def quiet(self) -> bool:
        return "quiet" in self.switches


def parse(argv: Sequence[str]) -> Flags:
    """Parses the arguments after `artillery`. Raises UsageError, Refused for unsupported flags."""
    words = iter(argv)
    command = next(words, None)
    if command is None:
        raise UsageError("artillery: no command; expected: prony artillery run [flags] SCRIPT")
    if command != "run":
        raise Refused(
            f"the command '{command}'",
            "artillery",
            None,
            " ".join(argv)[:60],
            "use: prony artillery run SCRIPT",
        )
    scripts: list[str] = []
    values: dict[str, str] = {}
    switches: set[str] = set()
    for flag, value in _flags(words):
        if flag == "":
            scripts.append(value)
        elif flag in REFUSED:
            raise Refused(f"--{flag}", COMMAND_LINE, None, value or "given", REFUSED[flag])
        elif flag == "input":
            scripts.append(value)
        elif flag in SWITCHES.values():
            switches.add(flag)
        else:
            values[flag] = value
    if not scripts:
        raise UsageError("artillery run: no script; expected: prony artillery run [flags] SCRIPT")
    if values.get("count", "1") != "1":
        raise Refused("--count", COMMAND_LINE, None, values["count"], "one engine uses all --client-cpus")
    if values.get("platform", "local") != "local":
        raise Refused("--platform", COMMAND_LINE, None, values["platform"], "run it on this host")
    return Flags(
        tuple(scripts),
        values,
        frozenset(switches),
        _object(values, "variables"),
        _object(values, "overrides"),
    )


def _flags(words: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Flag and value; plain arguments have an empty flag."""
    only_arguments = False
    for word in words:
        if only_arguments or word == "-" or not word.startswith("-"):
            yield "", word
            continue
        if word == "--":
            only_arguments = True
            continue
        name, equals, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:
            name, equals, value = word[:2], "=", word[2:].removeprefix("=")
            if name in SWITCHES:  # -kq
                yield SWITCHES[name], ""
                yield from _flags(iter([f"-{value}"]))
                continue
        if name in SWITCHES:
            yield SWITCHES[name], ""
        elif name in VALUES:
            given = value if equals else next(words, None)
            if given is None:
                raise UsageError(f"artillery run: {name} needs a value")
            yield VALUES[name], given
        else:
            raise UsageError(f"artillery run: unknown flag {name}; prony artillery -h lists the flags")


def _object(values: Mapping[str, str], flag: str) -> dict[str, Any]:
    text = values.get(flag)
    if text is None:
        return {}
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f'--{flag}: invalid JSON ({fault}); expected an object, as {{"a": 1}}') from fault
    if not isinstance(parsed, dict):
        raise UsageError(f"--{flag} is {type(parsed).__name__}; expected an object such as '{{\"a\": 1}}'")
    return parsed
