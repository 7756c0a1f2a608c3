"""Removes identities from an experiment's rows: paths of command lines stay, with short names."""

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
ANOTHER = "another process"
_PROCESS = re.compile(r"(.+ \(pid \d+\)), ", re.DOTALL)
"""Start of `busiest_other`; its process name, with any characters, is then replaced everywhere."""
_BUILT = re.compile(r"(/[^\s:=,;\"']*)/builds/[\w.+-]+-[0-9a-f]{16}/")
"""A build in the cache; the group is the cache folder."""
_CATALOGUE = re.compile(r"(?<![\w.~/-])(/[^\s:=,;\"']*)/servers/[\w.-]+/")
"""A file next to a server's own; the group is the checkout."""
_HOME = re.compile(
    r"(?<![\w.~/-])(/root|/(?:var/|export/|usr/)?home/[^\s/:=,;\"']+|/Users/[^\s/:=,;\"']+)(?=/)"
)
_SENT = "workload"
"""Part of a plan where `/home/…` is a request path, and only _FILES name files."""
_FILES = frozenset({"file", "body_file"})


def anonymous(stored: RawExperiment, home: Path | None = None) -> RawExperiment:
    """The anonymised rows (idempotent). `home`: the home folder of the publisher."""
    records = {str(trial["id"]): json.loads(zlib.decompress(trial["record"])) for trial in stored.trials}
    words = [word for record in records.values() for word in _commands(record)]
    others = {name for record in records.values() for name in _others(record.get("evidence"))}
    named = _Names(words, [] if home is None or len(home.parts) < 2 else [str(home)], others)

    def trial(row: dict[str, Any]) -> dict[str, Any]:
        record = _json(named.without(records[str(row["id"])]))
        return row | {"record": zlib.compress(record.encode()), "failure": named.without(row["failure"])}

    def parsed(row: dict[str, Any], *columns: str) -> dict[str, Any]:
        return {name: _json(named.without(json.loads(row[name]))) for name in columns}

    experiment = parsed(stored.experiment, "spec", "fingerprint")
    experiment["name"] = named.without(stored.experiment["name"])
    return replace(
        stored,
        experiment=stored.experiment | experiment,
        trials=tuple(trial(row) for row in stored.trials),
        judgements=tuple(row | parsed(row, "judgement") for row in stored.judgements),
        notes=tuple(row | {"made_by": NOBODY, "text": named.without(row["text"])} for row in stored.notes),
    )


def mentions(published: RawExperiment, names: Iterable[str]) -> dict[str, str]:
    """Remaining name -> context of its first occurrence as a word."""
    texts = [str(published.experiment[key]) for key in ("name", "spec", "fingerprint")]
    texts += [zlib.decompress(trial["record"]).decode() for trial in published.trials]
    texts += [str(row["judgement"]) for row in published.judgements]
    texts += [str(row["text"]) for row in published.notes]
    left: dict[str, str] = {}
    for name in names:
        word = re.compile(rf".{{0,30}}(?<![\w.-]){re.escape(name)}(?![\w.-]).{{0,30}}")
        place = next((match[0] for text in texts if (match := word.search(text))), None)
        if place is not None:
            left[name] = place
    return left


def host_name(key: str) -> str:
    return f"host-{key[:6]}"


class _Names:
    def __init__(self, words: Iterable[str], homes: Iterable[str], others: Iterable[str]) -> None:
        commands = list(words)
        short = {match[1]: CACHE for word in commands for match in _BUILT.finditer(word)}
        short |= {match[1]: "." for word in commands for match in _CATALOGUE.finditer(word)}
        short |= {match[1]: "~" for word in commands for match in _HOME.finditer(word)}
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
        """A JSON value with replacements. `sent`: it is sent to the server, so only file names change."""
        if isinstance(value, str):
            return value if sent else self._text(value)
        if isinstance(value, list):
            return [self.without(item, sent=sent) for item in value]
        if not isinstance(value, Mapping):
            return value
        replaced = {}
        for key, item in value.items():
            if key == "hostname" and not sent:
                replaced[key] = host_name(str(value.get("key", "")))
            else:
                below = key not in _FILES and (sent or (key == _SENT and isinstance(item, Mapping)))
                replaced[key] = self.without(item, sent=below)
        return replaced

    def _text(self, text: str) -> str:
        for name, short in self._rules:
            text = name.sub(short, text)
        return text


def _commands(record: Mapping[str, Any]) -> Iterator[str]:
    evidence = record.get("evidence") or {}
    for process in (evidence.get("server") or {}, *(evidence.get("services") or ())):
        yield from (word for word in process.get("command") or () if isinstance(word, str))


def _others(evidence: Any) -> Iterator[str]:
    if isinstance(evidence, list):
        for item in evidence:
            yield from _others(item)
    if not isinstance(evidence, Mapping):
        return
    for key, item in evidence.items():
        if key == "busiest_other" and isinstance(item, str):
            match = _PROCESS.match(item)
            yield from () if match is None else (match[1],)
        else:
            yield from _others(item)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
