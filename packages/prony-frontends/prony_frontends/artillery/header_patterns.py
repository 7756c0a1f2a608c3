"""Regexes for the head of a response (the line with the status, and the headers) that hold where the plugin
expect of Artillery calls a header right.
"""

from __future__ import annotations

import re

JSON_TYPE = r"(?m)^(?i:content-type):[^\r\n]*application/(?:problem\+|ld\+)?json"
"""A content type of which the plugin reads the body as JSON."""
NEVER = r"\A\z"
"""Found in no head: a header without a value is none to the plugin, so that it equals nothing."""
FIRST_COUNTS = frozenset({
    "age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host",
    "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards",
    "proxy-authorization", "referer", "retry-after", "server", "user-agent",
})  # fmt: skip
"""Of these Node keeps the first line; the lines of another header it joins with a comma and a blank."""


def content_type(value: str) -> str:
    """The whole content type, its parameters too, in any case."""
    return rf"(?im)^content-type:[ \t]*{re.escape(value)}[ \t]*\r?$" if value else NEVER


def equal(name: str, value: str) -> tuple[str, str | None]:
    """What must be found where the header has this value, in this case, in one line or joined from several;
    and what must not be found beside it.
    """
    if not value:
        return NEVER, None
    line = rf"^(?i:{re.escape(name)}):[ \t]*"
    if name.lower() in FIRST_COUNTS:
        return rf"(?m){line}{re.escape(value)}[ \t]*\r?$", None
    parts = [re.escape(part) for part in value.split(", ")]
    joined = rf"(?:, |[ \t]*\r?\n(?s-u:.*?){line})".join(parts)
    return rf"(?m){line}{joined}[ \t]*\r?$", rf"(?m)(?:{line}(?s-u:.*)){{{len(parts) + 1}}}"


def of_cdn(hit: bool) -> str:
    """That a cache of Cloudflare, CloudFront, Fastly or Vercel had the response, or had it not."""
    return rf"(?im)^(?:cf-cache-status|x-cache|x-vercel-cache):[ \t]*(?:{'hit|stale' if hit else 'miss'})"
