"""What a right response looks like, and what is taken from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from prony.evidence.base import Record


def _codes(value: object) -> object:
    """Codes, those of a class such as 2xx written out."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    found: list[object] = []
    for code in value:
        if isinstance(code, str) and re.fullmatch("[1-5]xx", code):
            first = int(code[0]) * 100
            found += range(first, first + 100)
        elif isinstance(code, str) and not code.isdigit():
            raise ValueError(f"a status is '{code}', expected a code such as 200 or a class such as 2xx")
        else:
            found.append(code)
    return tuple(found)


Codes = Annotated[tuple[int, ...], BeforeValidator(_codes)]
"""Status codes; `2xx` stands for a hundred of them."""


class Expectation(Record):
    """What a right response looks like. Everything given must hold."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    status: Codes = (200,)
    """Empty: any."""
    not_status: Codes = ()
    headers: dict[str, str] = Field(default_factory=dict)
    """Header name -> text that the value must contain (names are not case-sensitive)."""
    body_equals: str | None = None
    body_not_equals: str | None = None
    body_contains: tuple[str, ...] = ()
    body_not_contains: tuple[str, ...] = ()
    body_matches: tuple[str, ...] = ()
    """Regexes, each of which must be found in the body."""
    body_not_matches: tuple[str, ...] = ()
    head_matches: tuple[str, ...] = ()
    """Regexes, each of which must be found in the line with the status and the headers. The next, too, is
    the engine's alone.
    """
    head_not_matches: tuple[str, ...] = ()
    body_bytes: int | None = None
    min_bytes: int | None = Field(default=None, ge=0)
    max_bytes: int | None = Field(default=None, ge=0)
    max_ms: float | None = Field(default=None, gt=0)
    """The longest service time. Only under load: requests beforehand are not timed."""
    body_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Of every byte, for bodies too long to write down. Only the requests before a load are held to it;
    under load `body_bytes` stands for it.
    """
    json_values: dict[str, Any] = Field(default_factory=dict, alias="json")
    """JSON pointer (RFC 6901) -> the value that must be there."""
    json_filled: dict[str, str] = Field(default_factory=dict)
    """JSON pointer -> the value that must be there, as JSON with placeholders, filled in when the response is
    looked at.
    """
    json_matches: dict[str, str] = Field(default_factory=dict)
    """JSON pointer -> a regex that must be found in the value: a text as it is, any other as JSON."""
    json_exists: tuple[str, ...] = ()
    """JSON pointers at which there must be something."""
    json_absent: tuple[str, ...] = ()
    """JSON pointers at which there must be nothing; the body must be JSON all the same."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if self.body_sha256 is not None and self.body_bytes is None:
            raise ValueError("body_sha256 is not checked under load; give body_bytes beside it")
        bounds = (self.min_bytes, self.max_bytes)
        if self.body_bytes is not None and bounds != (None, None):
            raise ValueError("expected body_bytes, or min_bytes and max_bytes")
        if (self.min_bytes or 0) > (self.max_bytes if self.max_bytes is not None else float("inf")):
            raise ValueError("min_bytes is above max_bytes")
        return self

    @property
    def declares_body(self) -> bool:
        """Whether a body that is cut short, or another one, would be noticed."""
        return any(
            getattr(self, name) not in (None, (), {})
            for name in type(self).model_fields
            if name.startswith(("body_", "json_")) or name in ("min_bytes", "max_bytes")
        )

    def why_not(self, status: int, headers: dict[str, str], body: bytes) -> str | None:
        """None when the response is right, else one sentence. `headers` has lower-case names."""
        if self.status and status not in self.status:
            return f"status {status}, expected {_in_words(self.status)}"
        if status in self.not_status:
            return f"status {status}, expected another than {_in_words(self.not_status)}"
        for name, part in self.headers.items():
            value = headers.get(name.lower())
            if value is None or part.lower() not in value.lower():
                return f"header {name} is {value!r}, expected it to contain {part!r}"
        return self._why_not_size(body) or self._why_not_text(body) or self._why_not_json(body)

    def _why_not_size(self, body: bytes) -> str | None:
        if self.body_bytes is not None and len(body) != self.body_bytes:
            return f"the body has {len(body)} bytes, expected {self.body_bytes}"
        if self.min_bytes is not None and len(body) < self.min_bytes:
            return f"the body has {len(body)} bytes, expected at least {self.min_bytes}"
        if self.max_bytes is not None and len(body) > self.max_bytes:
            return f"the body has {len(body)} bytes, expected at most {self.max_bytes}"
        return None

    def _why_not_text(self, body: bytes) -> str | None:
        if self.body_equals is not None and body != self.body_equals.encode():
            return f"the body ({len(body)} bytes) differs from the declared one"
        if self.body_not_equals is not None and body == self.body_not_equals.encode():
            return f"the body ({len(body)} bytes) is the one that it must not be"
        if self.body_sha256 is not None and hashlib.sha256(body).hexdigest() != self.body_sha256:
            return (
                f"the body has the right length ({len(body)} bytes) and another SHA-256 than the declared one"
            )
        for part in self.body_contains:
            if part.encode() not in body:
                return f"the body does not contain {part!r}"
        for part in self.body_not_contains:
            if part.encode() in body:
                return f"the body contains {part!r}"
        text = body.decode(errors="replace")
        for regex in self.body_matches:
            if _found(regex, text) is False:
                return f"the body does not match {regex!r}"
        for regex in self.body_not_matches:
            if _found(regex, text):
                return f"the body matches {regex!r}"
        return None

    def _why_not_json(self, body: bytes) -> str | None:
        if not any((self.json_values, self.json_matches, self.json_exists, self.json_absent)):
            return None
        try:
            found = json.loads(body)
        except ValueError:
            return f"the body ({len(body)} bytes) is not JSON"
        for pointer in (*self.json_exists, *self.json_values, *self.json_matches):
            try:
                value = at_pointer(found, pointer)
            except LookupError:
                return f"the JSON has nothing at {pointer}"
            if pointer in self.json_values and value != self.json_values[pointer]:
                return f"the JSON has {value!r} at {pointer}, expected {self.json_values[pointer]!r}"
            regex = self.json_matches.get(pointer)
            if regex is not None and _found(regex, _as_text(value)) is False:
                return f"the JSON has {value!r} at {pointer}, expected it to match {regex!r}"
        for pointer in self.json_absent:
            try:
                value = at_pointer(found, pointer)
            except LookupError:
                continue
            return f"the JSON has {value!r} at {pointer}, expected nothing"
        return None


def _in_words(codes: Sequence[int]) -> str:
    """`200 or 304`; a whole class as `2xx`."""
    words: list[str] = []
    left = list(dict.fromkeys(codes))
    for digit in range(1, 6):
        whole = range(digit * 100, digit * 100 + 100)
        if set(whole) <= set(left):
            words.append(f"{digit}xx")
            left = [code for code in left if code not in whole]
    return " or ".join([*words, *map(str, left)])


def _as_text(value: object) -> str:
    """As the engine has it for a regex."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _found(regex: str, text: str) -> bool | None:
    """None for a regex that only the engine can read (the syntax is that of the Rust crate `regex`)."""
    try:
        return re.search(regex, text) is not None
    except re.error:
        return None


def at_pointer(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) points at; LookupError when there is nothing."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            if not re.fullmatch(r"0|[1-9][0-9]*", key):
                raise LookupError(pointer)
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value[key]
        else:
            raise LookupError(pointer)
    return value


class Boundary(Record):
    """The texts around a value; an empty one is the beginning or the end."""

    left: str
    right: str


class Resources(Record):
    """What an HTML page or a style sheet embeds on its own server, as a JSON list of paths (without their
    first slash) for a loop over `each` of them; which tags are looked at: docs/engine.md.
    """

    into: str
    """The name of the list."""
    matching: str | None = None
    """A regex that must be found in the whole URL (the syntax of the Rust crate `regex`)."""
    not_matching: str | None = None


class Capture(Record):
    """A value taken from a response, for `${name}` in later steps: exactly one of json (a pointer), jsonpath,
    header, cookie, regex, boundary and status.
    """

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    json_pointer: str | None = Field(default=None, alias="json")
    jsonpath: str | None = None
    """RFC 9535, such as `$.items[*].id`."""
    header: str | None = None
    cookie: str | None = None
    """One that the response sets."""
    regex: str | None = None
    group: int | None = Field(default=None, ge=0)
    template: str | None = None
    """Of the regex: a text in which `$1$` stands for the first group."""
    boundary: Boundary | None = None
    status: bool = False
    part: Literal["body", "head"] = Field(default="body", alias="in")
    """Where a regex and a boundary look."""
    match: int = Field(default=1, ge=-1)
    """Which of several: from 1, 0 for any of them, -1 for all: then `${name_1}`… and `${name_matchNr}`."""
    default: str | None = None
    """Used when nothing is found; without it that is an error."""
    optional: bool = False
    """Nothing found is no error, and the value stays as it was."""
    always: bool = False
    """Taken also from a response that is not as expected."""
    as_json: bool = False
    """Kept as JSON: a text with its quotes, and of all that are found (`match`: -1) the list."""

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        origins = (self.json_pointer, self.jsonpath, self.header, self.cookie, self.regex, self.boundary)
        if sum(origin is not None for origin in origins) + self.status != 1:
            raise ValueError(
                "expected exactly one of json, jsonpath, header, cookie, regex, boundary and status: true"
            )
        if self.part != "body" and self.regex is None and self.boundary is None:
            raise ValueError("'in' applies to regex and boundary only")
        if self.optional and self.default is not None:
            raise ValueError("expected a default or optional, not both")
        return self
