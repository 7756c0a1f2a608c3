"""Values without credentials: what is stored, shown or sent elsewhere holds `REDACTED` instead; the engine
gets the real ones. A credential is known by its name (header, parameter, field, option, variable), by its
form (user and password of a URL, `Bearer …`), or from then on by its text (`without`). Placeholders such as
`Bearer ${token}` stay.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import quote, unquote

from pydantic import AfterValidator

MARK = "REDACTED"
PUBLIC = frozenset({"for-this-run"})
"""The password of keystores for one run (prony.server.certificates)."""
SHORTEST = 6
"""A shorter credential is not searched for in other texts: it occurs by chance."""

_ANYWHERE = re.compile(
    r"passw|passphrase|passcode|pwd|secret(?!ar)|credential|authoriz|cookie(?!s)|token(?!s|iz)|csrf|xsrf|jwt|"
    r"(?:api|access|private|secret|signing|encryption|account|subscription)[._-]?key|sess(?:ion)?[._-]?id|"
    r"requirepass|masterauth"
)
_WORDS = frozenset({"pass", "psw", "pw", "otp", "totp", "pin", "bearer"})
_WORDS_OF_REQUESTS = frozenset({"key", "auth", "session", "sid", "sig", "signature", "hmac"})
_NO_SECRETS = frozenset({
    "algorithm", "bits", "count", "dir", "endpoint", "expires", "expiry", "field", "file", "files", "folder",
    "header", "hint", "length", "limit", "max", "min", "name", "param", "path", "policy", "size", "timeout",
    "ttl", "type", "uri", "url", "version",
})  # fmt: skip
"""Last words of names without a credential as value: `token_url`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=4096)
def is_credential(name: str, *, of_request: bool = False) -> bool:
    """`of_request`: a header or a parameter of a URL, where a key or a signature counts, too."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _NO_SECRETS or name.lower().startswith("access-control-"):
        return False
    if _ANYWHERE.search(name.lower()) or not _WORDS.isdisjoint(words):
        return True
    return of_request and not _WORDS_OF_REQUESTS.isdisjoint(words)


_PLACEHOLDER = re.compile(r"(?<!\$)\$\{[^}]*\}|\{\{[^{}]*\}\}")
"""Ours, and other tools'."""
_FILLED = re.compile(r"(?:\$\{|\{{2,3})\s{0,99}(?:[^|}\[\s]{0,99}\.)?([^|}\[.\s]{1,99})")
"""The variable or column in one."""
_SCHEME = re.compile(r"(?i)(?:basic|bearer|digest|token|api-?key|negotiate|ntlm|dpop|aws4-[\w-]+)[ \t]+")
_IN_URL = re.compile(
    r"((?<![\w+.-])[A-Za-z][\w+.-]*://)"
    r"([^\s/:@?#\"'<>\[${}]{0,256}:(?!\d{1,5}(?:[/?#\s\"'<>]|$))[^\s\"'<>]{0,256}?)@"
    r"(?=[^@\s\"'<>/]{0,256}(?:[/?#\s\"'<>]|$))"
)
"""User and password, up to the last @ before the path: a password may hold anything, and is no port."""
_TOKEN_IN_URL = re.compile(
    r"((?<![\w+.-])[A-Za-z][\w+.-]*://)((?=[^\s/@]{0,256}\d)(?=[^\s/@]{0,256}[A-Za-z])[\w.~%-]{20,256})@"
)
_BEFORE_HOST = re.compile(r"^([^\s/:@?#]+:[^\s/@?#]+)@(?=[\w\[])")
"""Without a scheme."""
_HEADER = re.compile(r"(^|[\r\n\"'`])([A-Za-z][\w.-]{0,99})[ \t]{0,9}:[ \t]{0,9}")
"""A header on a line or in quotation marks."""
_SURE_HEADER = re.compile(
    r"(?i)()(?<![\w.-])((?:proxy-)?authorization|(?:set-)?cookie2?|x-[\w-]{1,99})[ \t]{0,9}:[ \t]{0,9}"
)
"""Unambiguous within a sentence."""
_PAIR = re.compile(r"()(?<![\w.%\[\]])([A-Za-z_][\w.%\[\]-]{0,99})=")
_QUOTED_PAIR = re.compile(
    r"(?<![\w.-])(\\{0,8}[\"']?)([A-Za-z_][\w.-]{0,99})\1\]?(?:\s{0,99}[:=]\s{0,99}|\s+is\s+)"
)
"""JSON, script or sentence: the name may have quotation marks, the value has."""
_ELEMENT = re.compile(r"(<)((?:[\w-]{1,99}:)?[\w.-]{1,99})(?:\s[^<>]{0,500})?>")
_PART = re.compile(r"(name=)\"?([\w.\[\]-]{1,99})\"?[^\r\n]{0,500}(?:\r?\n[^\r\n]{1,500}){0,5}\r?\n\r?\n")
"""A field of multipart/form-data."""
_OPTION = re.compile(r"()(?<![\w-])--?([A-Za-z][\w.-]{0,99})[ \t]{1,9}(?!-)")
_LINE = re.compile(r"()([^\r\n]*)")
_UNQUOTED_LINE = re.compile(r"()([^\r\n\"'`]*)")
_PLAIN_VALUE = re.compile(r"()((?:\$\{[^}]*\}|\{\{[^{}]*\}\}|[^\s&;,\"'<>\\])*)")
_QUOTED_VALUE = re.compile(r"(\\{0,8}[\"'])(.{0,16384}?)(?<!\\)\1|()(-?\d[\d.]*)(?![\w.])", re.DOTALL)
_CONTENT = re.compile(r"()([^<]+)(?=</)")
_WORD_VALUE = re.compile(r"()([^\s\"']+)")
_USER_IN_LINE = re.compile(
    r"((?<![\w-])(?:-[uUAP]|--user|--proxy-user)[ \t]{1,9}[\"']?[^\s:\"']{1,99}:)(?!//)([^\s\"']{1,256})"
)
_SCHEMED = re.compile(r"\b((?:Bearer|Basic)[ \t]+)((?=[\w.~+/-]{0,500}[\d+/=_-])[\w.~+/-]{12,}=*)")
_TOKEN = re.compile(
    r"\beyJ[\w-]{8,}(?:\.[\w-]+)+|(?<![A-Za-z0-9])(?:[spr]k_(?:live|test)_\w{10,}|sk-[\w-]{20,}|"
    r"gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|A[KS]IA[0-9A-Z]{12,}|AIza[\w-]{20,}|"
    r"ya29\.[\w-]{20,}|npm_\w{20,}|pypi-[\w-]{30,}|hf_\w{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_\w{30,}|"
    r"shp[a-z]{2}_\w{20,})"
)
"""By their makers' forms: JSON Web Tokens, Stripe, OpenAI, GitHub, GitLab, Slack, AWS, Google and others."""
_PRIVATE_KEY = re.compile(r"(?s)(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(.{1,20000}?)(?=-----END|\Z)")
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_OPAQUE = re.compile(rf"(?!{_UUID}$)(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[\w.~+/=-]{{24,}}")
"""A header's value that is one run of letters and digits, and no UUID."""
_NOT_OPAQUE = (
    "accept", "content-", "if-", "user-agent", "host", "origin", "referer", "trace", "server", "via",
)  # fmt: skip

_NAMED = (
    (_HEADER, _LINE, True),
    (_SURE_HEADER, _UNQUOTED_LINE, True),
    (_QUOTED_PAIR, _QUOTED_VALUE, False),
    (_ELEMENT, _CONTENT, False),
    (_PART, _LINE, False),
    (_OPTION, _WORD_VALUE, False),
)
"""Name, value, whether both are a header."""
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
_SUSPICIOUS = (
    "passw", "passphrase", "passcode", "secret", "credential", "authoriz", "csrf", "xsrf", "bearer", "psw",
    "requirepass", "masterauth", "subscription", "signature", "hmac", "private key-", "basic ", "\"key\"",
    "-key:", "-key\"", "key=", "-pass", "_pass", "-pwd", "_pwd", "-jwt", "_jwt", " -u ", " -a ", " -p ",
    " --user ", " --proxy-user ", "sessid", "sessionid", "session_id", "session-id",
    *(f"{whose}{mark}key" for whose in ("api", "access", "private", "signing", "encryption", "account")
      for mark in ("", "_", "-", ".")),
    *(f"{word}{mark}" for word in ("auth", "session", "sid", "sig", "pass", "pw", "otp", "pin", "pwd", "jwt")
      for mark in "=:\""),
)  # fmt: skip
"""A long text without any of these or the next is not searched."""
_SUSPICIOUS_ALONE = ("cookie", "token")
"""Not their plurals, which name counts."""
_LONG = 2_000
_TEXT = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"')
"""Of JSON: nearly all numbers and repeated names."""
_HISTOGRAM = "HISTF"
"""Beginning of its longest texts."""
_PUBLIC_OPTION = re.compile(rf"-[\w.-]+=(?:{'|'.join(map(re.escape, sorted(PUBLIC)))})")
"""Names a credential and holds none."""


def text(value: str) -> str:
    """A sentence, a title, a line of a log, a body."""
    return _Redaction().text(value)


def url(value: str) -> str:
    """Also one without a scheme."""
    return text(_BEFORE_HOST.sub(f"{MARK}@", value))


def name(value: str) -> str:
    """What is called so, such as the path of a request: words of a person stay, whatever they are about."""
    return _Redaction().name(value)


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


def _passed(value: Any) -> tuple[Any, _Redaction]:
    """Again for variables and columns that only fill in a credential: their own values are some."""
    filling = frozenset[str]()
    while True:
        redaction = _Redaction(filling)
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
    return any(one in holds or is_credential(one[:99]) for one in texts) or _suspicious(
        '"'.join(("", *texts, ""))
    )


def secrets_of(value: Any) -> frozenset[str]:
    """The credentials in a value of JSON, as they would stand in other texts."""
    return _passed(value)[1].secrets


def secrets_in(written: str) -> frozenset[str]:
    """The same of a text, such as a script."""
    redaction = _Redaction()
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


def _suspicious(written: str) -> bool:
    lowered = written.lower()
    return (
        ("@" in lowered and "://" in lowered)
        or any(word in lowered for word in _SUSPICIOUS)
        or _TOKEN.search(written) is not None
        or any(lowered.count(word) > lowered.count(f"{word}s") for word in _SUSPICIOUS_ALONE)
    )


class _Redaction:
    """One pass, and what it took out."""

    def __init__(self, filling: Collection[str] = ()) -> None:
        self.filling = set(filling)
        """Names of variables and columns within credentials."""
        self._taken: set[str] = set()
        self._same_length = False

    @property
    def secrets(self) -> frozenset[str]:
        """In every form in which they may occur elsewhere, except very short ones."""
        found = {one.strip('"') for one in self._taken}
        for one in tuple(found):
            found |= {unquote(one), quote(one, safe=""), one.rpartition(":")[2], _decoded(one)}
            found |= {pair.partition("=")[2].strip() for pair in one.split(";")}
        return frozenset(one for one in found if len(one) >= SHORTEST and one not in PUBLIC and one != MARK)

    def hidden(self, value: str) -> str:
        """Behind the scheme of an Authorization; placeholders stay."""
        scheme = _SCHEME.match(value)
        begin = value[: scheme.end()] if scheme else ""
        rest = value[len(begin) :]
        self.filling |= set(_FILLED.findall(value))
        if not _PLACEHOLDER.sub("", rest).strip(" \t;,=:&\"'") or rest in PUBLIC or rest == MARK:
            return value
        if self._same_length:
            return begin + MARK[: len(rest)].ljust(len(rest), "*")
        self._taken.add(rest.strip())
        return begin + MARK

    def header(self, name: str, value: str) -> str:
        """Names of cookies stay."""
        if not is_credential(name, of_request=True):
            plain = name.lower().startswith(_NOT_OPAQUE) or not _OPAQUE.fullmatch(value.strip())
            return self.text(value) if plain else self.hidden(value)
        if name.lower() in ("cookie", "cookie2"):
            return self.cookies(value)
        if name.lower() in ("set-cookie", "set-cookie2"):
            cookie, semicolon, more = value.partition(";")
            return self.cookies(cookie) + semicolon + more
        return self.hidden(value)

    def cookies(self, value: str) -> str:
        """`a=b; c=d`."""

        def one(pair: str) -> str:
            name, equals, own = pair.partition("=")
            return f"{name}={self.hidden(own)}" if equals else self.hidden(pair)

        return ";".join(map(one, value.split(";")))

    def text(self, value: str) -> str:
        if (value.isalnum() and len(value) < 20) or (len(value) > _LONG and not _suspicious(value)):
            return value
        value = self.name(value)
        for names, values, header in _NAMED:
            value = self._named(value, names, values, header=header)
        value = _USER_IN_LINE.sub(lambda m: m[1] + self.hidden(m[2]), value)
        value = _SCHEMED.sub(lambda m: m[1] + self.hidden(m[2]), value)
        value = _PRIVATE_KEY.sub(lambda m: m[1] + self.hidden(m[2]), value)
        return _TOKEN.sub(lambda m: self.hidden(m[0]), value)

    def name(self, value: str) -> str:
        """By URLs alone."""
        value = _IN_URL.sub(lambda m: f"{m[1]}{self.hidden(m[2])}@", value)
        value = _TOKEN_IN_URL.sub(lambda m: f"{m[1]}{self.hidden(m[2])}@", value)
        return self._named(value, _PAIR, _PLAIN_VALUE, header=False)

    def _named(self, value: str, names: re.Pattern[str], values: re.Pattern[str], *, header: bool) -> str:
        """With the mark behind every name of a credential."""
        made: list[str] = []
        at = 0
        for found in names.finditer(value):
            before, name = found[1], unquote(found[2])
            of_request = "-" in name if header else value[found.start() - 1 : found.start()] in ("?", "&")
            if found.start() < at or not is_credential(name, of_request=of_request):
                continue
            if (own := values.match(value, found.end())) is None:
                continue
            group = 2 if own[2] is not None else 4
            text = own[group]
            if header and before and before in "\"'`":
                text = text.partition(before)[0]
            made += [value[at : own.start(group)], self.header(name, text) if header else self.hidden(text)]
            at = own.start(group) + len(text)
        return "".join([*made, value[at:]])

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
            self._same_length = True
            try:
                return self.text(value)
            finally:
                self._same_length = False
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


def _decoded(value: str) -> str:
    """The password in Basic credentials; else empty."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return ""
    return password if colon and user.isprintable() else ""
