"""Regexes on a response head that match where Artillery's plugin expect accepts a header."""

from __future__ import annotations

import re

JSON_TYPE = r"(?m)^(?i:content-type):[^\r\n]*application/(?:problem\+|ld\+)?json"
"""Content types whose body the plugin parses as JSON."""
NEVER = r"\A\z"
"""Matches no head: the plugin treats an empty header as missing, so it equals nothing."""
FIRST_COUNTS = frozenset({
    "age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host",
    "if-modified-since", "if-unmodified-since", "last-modified", "location", "max-forwards",
    "proxy-authorization", "referer", "retry-after", "server", "user-agent",
})  # fmt: skip
"""Headers of which Node keeps the first line; lines of other headers are joined with ", "."""


def content_type(value: str) -> str:
    """Matches the whole content type with parameters, case-insensitively."""
    return rf"(?im)^content-type:[ \t]*{re.escape(value)}[ \t]*\r?$" if value else NEVER


def equal(name: str, value: str) -> tuple[str, str | None]:
    """Regex that must match if the header has this value (in one line or joined); regex that must not."""
    if not value:
        return NEVER, None
    line = rf"^(?i:{re.escape(name)}):[ \t]*"
    if name.lower() in FIRST_COUNTS:
        return rf"(?m){line}{re.escape(value)}[ \t]*\r?$", None
    parts = [re.escape(part) for part in value.split(", ")]
    joined = rf"(?:, |[ \t]*\r?\n(?s-u:.*?){line})".join(parts)
    return rf"(?m){line}{joined}[ \t]*\r?$", rf"(?m)(?:{line}(?s-u:.*)){{{len(parts) + 1}}}"


def of_cdn(hit: bool) -> str:
    """Matches a cache hit (or miss) of Cloudflare, CloudFront, Fastly or Vercel."""
    return rf"(?im)^(?:cf-cache-status|x-cache|x-vercel-cache):[ \t]*(?:{'hit|stale' if hit else 'miss'})"
