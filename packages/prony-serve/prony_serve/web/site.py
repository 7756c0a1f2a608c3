"""Shared by all pages: the store, the templates, the static files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from prony.report.delivery import as_plain
from prony.report.html.page import environment, style
from prony.report.out import Out
from prony.report.wording import counted, duration, number, printable
from prony.store import Store
from prony_serve.web.access import Access, Rules
from prony_serve.web.cache import Cache
from prony_serve.web.change_points import Changes
from prony_serve.web.refusal import Refusal

MOST_UPLOAD_BYTES = 256 * 2**20
DRAWN_PAGES = 32
"""Cached reports and trends; drawing takes a second or more."""
KEPT_S = 60.0
"""Maximum age of a cached page: a trial may have been judged again."""
SECTIONS = (("/", "Experiments"), ("/trends", "Trends"), ("/changes", "Changes"), ("/hosts", "Hosts"))


@dataclass(frozen=True)
class Site:
    """One store, shown."""

    store: Store
    rules: Rules = field(default_factory=Rules)
    most_upload_bytes: int = MOST_UPLOAD_BYTES
    drawn: Cache[str] = field(default_factory=lambda: Cache(DRAWN_PAGES))

    @cached_property
    def access(self) -> Access:
        """Access control."""
        return Access(self.rules)

    @cached_property
    def changes(self) -> Changes:
        """Change points of its store."""
        return Changes(self.store)

    @cached_property
    def own_style(self) -> str:
        """The site's stylesheet, which follows the report's."""
        return files("prony_serve.web").joinpath("static", "site.css").read_text(encoding="utf-8")

    @cached_property
    def statics(self) -> Mapping[str, tuple[bytes, str]]:
        """Name -> (content, media type)."""
        script = files("prony_serve.web").joinpath("static", "site.js").read_bytes()
        return {
            "site.css": ((style() + self.own_style).encode(), "text/css; charset=utf-8"),
            "site.js": (script, "text/javascript; charset=utf-8"),
        }

    @cached_property
    def version(self) -> str:
        """Digest in the address of static files, so that browsers may cache them for ever."""
        return hashlib.sha256(b"".join(content for content, _ in self.statics.values())).hexdigest()[:12]

    @cached_property
    def _templates(self) -> Any:
        templates = environment("prony_serve.web")
        templates.globals |= {
            "view": {"quick": False},  # read by the report's blocks
            "marks": {},
            "subtitles": {},
            "kind": lambda value: type(value).__name__,
            "counted": counted,
            "duration": duration,
            "number": number,
            "when": when,
            "query": query,
            "sections": SECTIONS,
            "version": self.version,
            "has_log_in": self.access.has_log_in,
        }
        return templates

    def text(self, template: str, **values: Any) -> str:
        """A template, filled in; every value is escaped."""
        return printable(self._templates.get_template(template).render(**values))

    def drawn_once(self, key: tuple[Hashable, ...], draw: Callable[[], str]) -> str:
        """A cached page. `key`: the state of the store that it shows."""
        return self.drawn.get((*key, int(time.monotonic() / KEPT_S)), draw)

    def page(self, template: str, code: int = 200, **values: Any) -> HTMLResponse:
        """A rendered page with this status."""
        return HTMLResponse(self.text(template, **values), code)

    async def refuse(self, request: Request, refusal: Refusal) -> Response:
        """A refusal, as a page for browsers and JSON for programs."""
        if refusal.log_in and wants_page(request) and request.method in ("GET", "HEAD"):
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return self.page("login.html.j2", 401, next=path, wrong="")
        if wants_page(request):
            response: Response = self.page(
                "refused.html.j2", refusal.status, sentence=refusal.sentence, status=refusal.status
            )
        else:
            response = JSONResponse({"error": refusal.sentence}, refusal.status)
        response.headers.update(refusal.headers)
        return response


def wants_page(request: Request) -> bool:
    """Whether the client is a browser; addresses below /api are for programs."""
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def as_json(model: Out) -> JSONResponse:
    """A model as JSON, as printed by every command."""
    return JSONResponse(as_plain(model))


def when(moment: datetime) -> Markup:
    """Date and time in UTC."""
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), f"{utc:%Y-%m-%d %H:%M}"
    )


def query(values: Mapping[str, str], **changed: str | int | None) -> str:
    """A query string with some values changed; empty values are left out."""
    merged = {**values, **{name: "" if value is None else str(value) for name, value in changed.items()}}
    text = urlencode({name: value for name, value in merged.items() if value})
    return f"?{text}" if text else ""
