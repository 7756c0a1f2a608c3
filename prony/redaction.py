"""Values without credentials: what is stored, shown or sent elsewhere holds `REDACTED` instead; the engine
gets the real ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from prony.credentials import MARK, PUBLIC, Redaction, is_credential, suspicious

_BEFORE_HOST = re.compile(r"^([^\s/:@?#]+:[^\s/@?#]+)@(?=[\w\[])")
"""Without a scheme."""
_USER_OPTIONS = frozenset({"-u", "--user", "-U", "--proxy-user", "-A", "-P"})
"""Of curl and ab: USER:PASSWORD follows."""
_COOKIE_OPTIONS = frozenset({"-b", "--cookie", "-C"})
_COMMANDS = frozenset({"command", "args", "argv", "jvm_flags"})
_HEADERS = frozenset({"headers"})
_COOKIES = frozenset({"given"})
_COOKIE_LINES = "set_cookies"
_CHOSEN = frozenset({"variables", "set", "env", "give"})
"""Values by names that an author chose."""
_PATTERNS = frozenset({"capture", "expect", "resources"})
"""Of a plan: patterns, no credentials."""
_NAMES = frozenset({"name", "id", "part", "server", "cell", "workload", "load_name", "scenario", "step"})
"""Keys by which stored things are found."""
_TITLES = frozenset({"title", "note", "transaction"})
_SAME_LENGTH = frozenset({"first_head"})
"""Heads whose bytes are counted."""
_SAID = frozenset({
    "command", "content_type", "died", "error", "error_reasons", "expected", "failure", "first_head", "found",
    "lost", "missing", "notes", "other_listener", "printed_done", "printed_run", "printed_setup", "reason",
    "server_header", "text", "thread", "values", "via", "why_not",
})  # fmt: skip
"""Of a record: words of servers, scripts and programs."""
_TEXT = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
"""Of JSON: nearly all numbers and repeated names."""
_HISTOGRAM = "HISTF"
"""Beginning of its longest texts."""
_PUBLIC_OPTION = re.compile(rf"-[\w.-]+=(?:{'|'.join(map(re.escape, sorted(PUBLIC)))})")
"""Names a credential and holds none."""


def text(value: str) -> str:
    """A sentence, a title, a line of a log, a body."""
    return Redaction().text(value)


def url(value: str) -> str:
    """Also one without a scheme."""
    return text(_BEFORE_HOST.sub(f"{MARK}@", value))


def name(value: str) -> str:
    """What is called so, such as the path of a request: words of a person stay, whatever they are about."""
    return Redaction().name(value)


def beginning(line: str) -> str:
    """The name alone of an unparsable header, whose value is unknown."""
    named, colon, _ = line.partition(":")
    if colon:
        return f"{named}: {MARK}" if is_credential(named, of_request=True) else line
    first, *more = line.split(maxsplit=1) or [line]
    return f"{first} …" if more else line


def plain(value: Any) -> Any:
    """JSON: by its keys and its texts."""
    return _passed(value)[0]


def _passed(value: Any) -> tuple[Any, _Values]:
    """Again for variables and columns that only fill in a credential: their own values are some."""
    filling = frozenset[str]()
    while True:
        redaction = _Values(filling)
        made = redaction.value(value)
        if redaction.filling <= filling:
            return made, redaction
        filling |= redaction.filling


def parsed(written: str) -> Any:
    """Written JSON, parsed, without credentials."""
    found = json.loads(written)
    return plain(found) if _may_hide(written) else found


def as_json(written: str) -> str:
    """Written JSON; unchanged where there is nothing to hide."""
    if not _may_hide(written):
        return written
    found = json.loads(written)
    made = plain(found)
    return written if made == found else json.dumps(made, ensure_ascii=False, separators=(",", ":"))


def _may_hide(written: str) -> bool:
    """Far cheaper than to look at each text."""
    texts = {
        one
        for one in _TEXT.findall(written)
        if not one.startswith(_HISTOGRAM) and not _PUBLIC_OPTION.fullmatch(one)
    }
    holds = _HEADERS | _COOKIES | {_COOKIE_LINES}
    return any(one in holds or is_credential(one[:99]) for one in texts) or suspicious(
        '"'.join(("", *texts, ""))
    )


def secrets_of(value: Any) -> frozenset[str]:
    """The credentials in a value of JSON, as they would stand in other texts."""
    return _passed(value)[1].secrets


def secrets_in(written: str) -> frozenset[str]:
    """The same of a text, such as a script."""
    redaction = Redaction()
    redaction.text(written)
    return redaction.secrets


def without(value: Any, secrets: Collection[str]) -> Any:
    """A value whose texts hold none of these; of JSON only words of servers and scripts are searched."""
    if not secrets:
        return value
    longest_first = sorted(secrets, key=len, reverse=True)
    anyone = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in longest_first))

    def cleaned(one: Any, *, said: bool) -> Any:
        if isinstance(one, str):
            return anyone.sub(MARK, one) if said else one
        if isinstance(one, list):
            return [cleaned(inner, said=said) for inner in one]
        if isinstance(one, Mapping):
            return {key: cleaned(inner, said=said or key in _SAID) for key, inner in one.items()}
        return one

    return cleaned(value, said=isinstance(value, str))


def redacted_in(value: Any) -> tuple[str, ...]:
    """The keys in JSON whose values were redacted; names themselves do not count."""
    found: list[str] = []

    def look(one: Any, key: str) -> None:
        if isinstance(one, str) and key not in _NAMES | _TITLES and re.search(rf"\b{MARK}\b", one):
            found.append(key)
        elif isinstance(one, list):
            for inner in one:
                look(inner, key)
        elif isinstance(one, Mapping):
            for name, inner in one.items():
                look(inner, str(name))

    look(value, "")
    return tuple(dict.fromkeys(found))


def filled(stored: Any, given: Any) -> Any:
    """Stored JSON with the credentials of the value that it may have been made from."""
    return _filled(stored, given, plain(given))


def _filled(stored: Any, given: Any, public: Any) -> Any:
    if stored == public:
        return given
    if all(isinstance(one, Mapping) for one in (stored, given, public)):
        return {name: _filled(one, given.get(name), public.get(name)) for name, one in stored.items()}
    if all(isinstance(one, list) and len(one) == len(stored) for one in (stored, given, public)):
        return [_filled(*of_each) for of_each in zip(stored, given, public, strict=True)]
    return stored


def _without_nul(value: str) -> str:
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}")


Name = Annotated[str, AfterValidator(name), AfterValidator(_without_nul)]
Title = Annotated[str, AfterValidator(text), AfterValidator(_without_nul)]
"""Both are printed everywhere and looked up, so they hold no credentials, and are stored in columns of
databases, which take no NUL.
"""


class _Values(Redaction):
    """Of command lines and of JSON, too."""

    def words(self, given: Iterable[str]) -> list[str]:
        """Of a command line: the value follows `--password`, `-u` and the like."""
        words = list(given)
        return [self._word(before, word) for before, word in zip(["", *words], words, strict=False)]

    def _word(self, before: str, word: str) -> str:
        if word.startswith("{"):
            try:
                given = json.loads(word)
                made = self.value(given, "params")
                return word if made == given else json.dumps(made, ensure_ascii=False)
            except (ValueError, RecursionError):
                return self.text(word)
        if (before in _USER_OPTIONS or word[:2] in _USER_OPTIONS) and ":" in word and "://" not in word:
            user, colon, password = word.partition(":")
            return user + colon + self.hidden(password)
        if before in _COOKIE_OPTIONS:
            return self.cookies(word)
        if before.startswith("-") and "=" not in before and not word.startswith("-"):
            return self.hidden(word) if is_credential(before) else self.text(word)
        if word.startswith("-H") and ":" in word:
            return "-H" + self.text(word[2:])
        return self.text(word)

    def value(self, value: Any, key: str = "", within: str = "") -> Any:
        """`key`: its name; `within`: the name of what it stands in."""
        if isinstance(value, str):
            return self._leaf(value, key, within)
        if isinstance(value, list):
            if key in _COMMANDS and all(isinstance(one, str) for one in value):
                return self.words(value)
            if key in _HEADERS and all(_is_pair(one) for one in value):
                return [[name, self.header(name, own)] for name, own in value]
            passed = key if within in _HEADERS or self._names_one(key, within) else ""
            return [self.value(one, key if isinstance(one, Mapping) else passed, within) for one in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self._names_one(key, within):
            return self.hidden(str(value))
        if not isinstance(value, Mapping):
            return value
        if key in _COOKIES and isinstance(value.get("value"), str):
            return {**value, "value": self.hidden(value["value"])}
        if within == "params" and key in ("cookie", "cookies"):
            return {name: self.hidden(str(one)) for name, one in value.items()}
        made = {
            name: one if name in _PATTERNS and not isinstance(one, str) else self.value(one, str(name), key)
            for name, one in value.items()
        }
        if isinstance(value.get("over"), list) and isinstance(value.get("as"), str):
            made["over"] = self.value(value["over"], value["as"], "variables")
        columns, rows = value.get("columns"), value.get("rows")
        if isinstance(columns, list) and isinstance(rows, list):
            made["rows"] = [self._row(columns, row) for row in rows]
        return made

    def _leaf(self, value: str, key: str, within: str) -> str:
        if key in _SAME_LENGTH:
            self.same_length = True
            try:
                return self.text(value)
            finally:
                self.same_length = False
        if within in _HEADERS:
            return self.header(key, value)
        if key == _COOKIE_LINES:
            return "\n".join(self.header("set-cookie", line) for line in value.split("\n"))
        if key in _NAMES and within not in _CHOSEN:
            return self.name(value)
        return self.hidden(value) if self._names_one(key, within) else self.text(value)

    def _names_one(self, key: str, within: str) -> bool:
        chosen = within in _CHOSEN and key.rpartition(".")[2] in self.filling
        return chosen or is_credential(key, of_request=within in ("qs", "form"))

    def _row(self, columns: list[Any], row: Any) -> Any:
        if not isinstance(row, list):
            return row
        names = [*map(str, columns), *[""] * len(row)]
        return [self.value(one, name, "variables") for name, one in zip(names, row, strict=False)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)
