"""Expectations on responses, and captures from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from prony.evidence.base import Record


def _codes(value: object) -> object:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    codes: list[object] = []
    for code in value:
        if isinstance(code, str) and re.fullmatch("[1-5]xx", code):
            first = int(code[0]) * 100
            codes += range(first, first + 100)
        elif isinstance(code, str) and not code.isdigit():
            raise ValueError(f"status '{code}'; expected a code such as 200 or a class such as 2xx")
        else:
            codes.append(code)
    return tuple(codes)


Codes = Annotated[tuple[int, ...], BeforeValidator(_codes)]
"""Status codes; `2xx` is the whole class."""


class FilledText(Record):
    """A text with placeholders that must occur in a part of the response."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    text: str
    part: Literal["body", "head", "status"] = Field(default="body", alias="in")
    whole: bool = False
    """Whether the part must equal the text."""
    absent: bool = False
    """Whether it must not: not occur there, or with `whole` not equal the part."""


class Expectation(Record):
    """Expectations on a response; all must hold."""

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
    """Regexes that must match in the body."""
    body_not_matches: tuple[str, ...] = ()
    head_matches: tuple[str, ...] = ()
    """Regexes that must match in the status line and headers; like the next, checked by the engine only."""
    head_not_matches: tuple[str, ...] = ()
    body_bytes: int | None = None
    min_bytes: int | None = Field(default=None, ge=0)
    max_bytes: int | None = Field(default=None, ge=0)
    max_ms: float | None = Field(default=None, gt=0)
    """Longest service time, under load only."""
    body_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Digest of the body, for long ones, checked before the load; `body_bytes` replaces it under load."""
    json_values: dict[str, Any] = Field(default_factory=dict, alias="json")
    """JSON pointer (RFC 6901) -> expected value."""
    json_filled: dict[str, str] = Field(default_factory=dict)
    """JSON pointer -> expected value as JSON with placeholders."""
    json_matches: dict[str, str] = Field(default_factory=dict)
    """JSON pointer -> regex that must match in the value: raw text, or JSON of other types."""
    json_exists: tuple[str, ...] = ()
    """JSON pointers that must exist."""
    json_absent: tuple[str, ...] = ()
    """JSON pointers that must not exist in the JSON body."""
    json_paths: dict[str, str] = Field(default_factory=dict)
    """JSON path (RFC 9535) -> regex that must match a value, as in `json_matches`; under load only."""
    filled: tuple[FilledText, ...] = ()
    """Texts with placeholders; under load only."""

    @model_validator(mode="after")
    def _lengths_agree(self) -> Self:
        if self.body_sha256 is not None and self.body_bytes is None:
            raise ValueError("body_sha256 is not checked under load; add body_bytes")
        bounds = (self.min_bytes, self.max_bytes)
        if self.body_bytes is not None and bounds != (None, None):
            raise ValueError("expected body_bytes, or min_bytes and max_bytes")
        if (self.min_bytes or 0) > (self.max_bytes if self.max_bytes is not None else float("inf")):
            raise ValueError("min_bytes is above max_bytes")
        return self

    @property
    def declares_body(self) -> bool:
        """Whether a truncated or different body would be detected."""
        return any(
            getattr(self, name) not in (None, (), {})
            for name in type(self).model_fields
            if name.startswith(("body_", "json_")) or name in ("min_bytes", "max_bytes", "filled")
        )

    def why_not(self, status: int, headers: dict[str, str], body: bytes) -> str | None:
        """None for a correct response, else a sentence. `headers` has lower-case names."""
        if self.status and status not in self.status:
            return f"status {status}, expected {_in_words(self.status)}"
        if status in self.not_status:
            return f"status {status}, expected anything but {_in_words(self.not_status)}"
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
            return f"the body ({len(body)} bytes) differs from the declared body"
        if self.body_not_equals is not None and body == self.body_not_equals.encode():
            return f"the body ({len(body)} bytes) equals the excluded body"
        if self.body_sha256 is not None and hashlib.sha256(body).hexdigest() != self.body_sha256:
            return f"the body has the declared length ({len(body)} bytes), but not the declared SHA-256"
        for part in self.body_contains:
            if part.encode() not in body:
                return f"the body does not contain {part!r}"
        for part in self.body_not_contains:
            if part.encode() in body:
                return f"the body contains {part!r}"
        text = body.decode(errors="replace")
        for regex in self.body_matches:
            if _matches(regex, text) is False:
                return f"the body does not match {regex!r}"
        for regex in self.body_not_matches:
            if _matches(regex, text):
                return f"the body matches {regex!r}"
        return None

    def _why_not_json(self, body: bytes) -> str | None:
        if not any((self.json_values, self.json_matches, self.json_exists, self.json_absent)):
            return None
        try:
            document = json.loads(body)
        except ValueError:
            return f"the body ({len(body)} bytes) is not JSON"
        for pointer in (*self.json_exists, *self.json_values, *self.json_matches):
            try:
                value = at_pointer(document, pointer)
            except LookupError:
                return f"the JSON has nothing at {pointer}"
            if pointer in self.json_values and value != self.json_values[pointer]:
                return f"the JSON has {value!r} at {pointer}, expected {self.json_values[pointer]!r}"
            regex = self.json_matches.get(pointer)
            if regex is not None and _matches(regex, _as_text(value)) is False:
                return f"the JSON has {value!r} at {pointer}, expected it to match {regex!r}"
        for pointer in self.json_absent:
            try:
                value = at_pointer(document, pointer)
            except LookupError:
                continue
            return f"the JSON has {value!r} at {pointer}, expected nothing"
        return None


def _in_words(codes: Sequence[int]) -> str:
    words: list[str] = []
    left = list(dict.fromkeys(codes))
    for digit in range(1, 6):
        whole = range(digit * 100, digit * 100 + 100)
        if set(whole) <= set(left):
            words.append(f"{digit}xx")
            left = [code for code in left if code not in whole]
    return " or ".join([*words, *map(str, left)])


def _as_text(value: object) -> str:
    """The text that the engine matches."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _matches(regex: str, text: str) -> bool | None:
    """Whether the regex matches; None if only the engine's Rust `regex` can read it."""
    try:
        return re.search(regex, text) is not None
    except re.error:
        return None


def at_pointer(value: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901). Raises LookupError."""
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
    """Texts around a value; an empty text is the beginning or the end."""

    left: str
    right: str


class Resources(Record):
    """Embedded resources of an HTML page or a style sheet on its own server, as a JSON list of paths (without
    the first slash) for a loop with `each`. Tags: docs/engine.md.
    """

    into: str
    """Name of the list."""
    matching: str | None = None
    """A regex that must match in the URL (syntax of the Rust crate `regex`)."""
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
    """A cookie that the response sets."""
    regex: str | None = None
    group: int | None = Field(default=None, ge=0)
    template: str | None = None
    """With regex: a text in which `$1$` is the first group."""
    boundary: Boundary | None = None
    status: bool = False
    part: Literal["body", "head"] = Field(default="body", alias="in")
    """Part searched by regex and boundary."""
    match: int = Field(default=1, ge=-1)
    """Which match: from 1; 0 any; -1 all, as `${name_1}`… and `${name_matchNr}`."""
    default: str | None = None
    """Value without a match, which else is an error."""
    optional: bool = False
    """Whether the value stays unchanged without a match."""
    always: bool = False
    """Whether it also captures from an unexpected response."""
    as_json: bool = False
    """Whether it is kept as JSON: texts with quotes, all matches (`match`: -1) as a list."""

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
