"""What a credential is, and a text without it: known by its name (header, parameter, field, option,
variable), by its form (user and password of a URL, `Bearer …`), or from then on by its text. Placeholders
such as `Bearer ${token}` stay.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote, unquote

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


def suspicious(written: str) -> bool:
    lowered = written.lower()
    return (
        ("@" in lowered and "://" in lowered)
        or any(word in lowered for word in _SUSPICIOUS)
        or _TOKEN.search(written) is not None
        or any(lowered.count(word) > lowered.count(f"{word}s") for word in _SUSPICIOUS_ALONE)
    )


class Redaction:
    """One pass, and what it took out."""

    def __init__(self, filling: Collection[str] = ()) -> None:
        self.filling = set(filling)
        """Names of variables and columns within credentials."""
        self._taken: set[str] = set()
        self.same_length = False

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
        if self.same_length:
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
        if (value.isalnum() and len(value) < 20) or (len(value) > _LONG and not suspicious(value)):
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


def _decoded(value: str) -> str:
    """The password in Basic credentials; else empty."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return ""
    return password if colon and user.isprintable() else ""
