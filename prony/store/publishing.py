"""The rows of an experiment as they may be published: without what says who measured.

The command lines of servers are evidence, so paths stay: a home folder becomes `~`, the cache
`~/.cache/prony`, the checkout `.`. The host is named by its fingerprint; a note keeps its text, not its
author. Programs that ran beside the measurement, which are somebody's own, are "another process"; what
they took stays.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from prony.store.rows import RawExperiment

CACHE = "~/.cache/prony"
NOBODY = "anonymous"
"""The author of a published note."""
ANOTHER = "another process"
_PROCESS = re.compile(r"(.+ \(pid \d+\)), ", re.DOTALL)
"""At the head of `busiest_other`; a name may have any character, so it is taken from there and looked for."""
_BUILT = re.compile(r"(/[^\s:=,;\"']*)/builds/[\w.+-]+-[0-9a-f]{16}/")
"""A build in the cache, whose folder is the group."""
_CATALOGUE = re.compile(r"(?<![\w.~/-])(/[^\s:=,;\"']*)/servers/[\w.-]+/")
"""A file beside a server's own, whose checkout is the group."""
_HOME = re.compile(
    r"(?<![\w.~/-])(/root|/(?:var/|export/|usr/)?home/[^\s/:=,;\"']+|/Users/[^\s/:=,;\"']+)(?=/)"
)
_SENT = "workload"
"""What a plan sends: there `/home/…` is the path of a request, and only these keys name files."""
_FILES = frozenset({"file", "body_file"})


def anonymous(found: RawExperiment, home: Path | None = None) -> RawExperiment:
    """The same trials and judgements. The folders are `home`, of who publishes, and the home folders and
    caches in the servers' command lines. Publishing what was published changes nothing.
    """
    records = {str(trial["id"]): json.loads(zlib.decompress(trial["record"])) for trial in found.trials}
    words = [word for record in records.values() for word in _commands(record)]
    others = {name for record in records.values() for name in _others(record.get("evidence"))}
    named = _Names(words, [] if home is None or len(home.parts) < 2 else [str(home)], others)

    def trial(row: dict[str, Any]) -> dict[str, Any]:
        record = _json(named.without(records[str(row["id"])]))
        return row | {"record": zlib.compress(record.encode()), "failure": named.without(row["failure"])}

    def parsed(row: dict[str, Any], *columns: str) -> dict[str, Any]:
        return {name: _json(named.without(json.loads(row[name]))) for name in columns}

    experiment = parsed(found.experiment, "spec", "fingerprint")
    experiment["name"] = named.without(found.experiment["name"])
    return replace(
        found,
        experiment=found.experiment | experiment,
        trials=tuple(trial(row) for row in found.trials),
        judgements=tuple(row | parsed(row, "judgement") for row in found.judgements),
        notes=tuple(row | {"made_by": NOBODY, "text": named.without(row["text"])} for row in found.notes),
    )


def mentions(found: RawExperiment, names: Iterable[str]) -> dict[str, str]:
    """Which of these names still stand as words in the rows, each with the text around its first place:
    what no rule can know, such as a folder that somebody named after himself.
    """
    texts = [str(found.experiment[key]) for key in ("name", "spec", "fingerprint")]
    texts += [zlib.decompress(trial["record"]).decode() for trial in found.trials]
    texts += [str(one["judgement"]) for one in found.judgements] + [str(one["text"]) for one in found.notes]
    left: dict[str, str] = {}
    for name in names:
        word = re.compile(rf".{{0,30}}(?<![\w.-]){re.escape(name)}(?![\w.-]).{{0,30}}")
        place = next((match[0] for text in texts if (match := word.search(text))), None)
        if place is not None:
            left[name] = place
    return left


def host_name(key: str) -> str:
    """What a host with this fingerprint is called where it is published."""
    return f"host-{key[:6]}"


class _Names:
    """What stands for which folder and process, and values without them."""

    def __init__(self, words: Iterable[str], homes: Iterable[str], others: Iterable[str]) -> None:
        said = list(words)
        short = {match[1]: CACHE for word in said for match in _BUILT.finditer(word)}
        short |= {match[1]: "." for word in said for match in _CATALOGUE.finditer(word)}
        short |= {match[1]: "~" for word in said for match in _HOME.finditer(word)}
        short |= dict.fromkeys(homes, "~")
        self._rules = [
            (re.compile(rf"(?<!\w){re.escape(name)}"), ANOTHER)
            for name in sorted(others, key=len, reverse=True)
        ]
        self._rules += [
            (re.compile(rf"(?<![\w.~-]){re.escape(folder)}(?![\w-])"), short[folder])
            for folder in sorted(short, key=len, reverse=True)
        ]

    def without(self, value: Any, *, sent: bool = False) -> Any:
        """A value of JSON with other texts. `sent`: it is sent to the server, so that only its files have
        other names.
        """
        if isinstance(value, str):
            return value if sent else self._text(value)
        if isinstance(value, list):
            return [self.without(one, sent=sent) for one in value]
        if not isinstance(value, Mapping):
            return value
        made = {}
        for key, one in value.items():
            if key == "hostname" and not sent:
                made[key] = host_name(str(value.get("key", "")))
            else:
                below = key not in _FILES and (sent or (key == _SENT and isinstance(one, Mapping)))
                made[key] = self.without(one, sent=below)
        return made

    def _text(self, text: str) -> str:
        for name, short in self._rules:
            text = name.sub(short, text)
        return text


def _commands(record: Mapping[str, Any]) -> Iterator[str]:
    """The words of the command lines of the server and of its backing services."""
    evidence = record.get("evidence") or {}
    for one in (evidence.get("server") or {}, *(evidence.get("services") or ())):
        yield from (word for word in one.get("command") or () if isinstance(word, str))


def _others(evidence: Any) -> Iterator[str]:
    """The processes, each with its pid, that `busiest_other` names: of each host that was sampled."""
    if isinstance(evidence, list):
        for one in evidence:
            yield from _others(one)
    if not isinstance(evidence, Mapping):
        return
    for key, one in evidence.items():
        if key == "busiest_other" and isinstance(one, str):
            found = _PROCESS.match(one)
            yield from () if found is None else (found[1],)
        else:
            yield from _others(one)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
