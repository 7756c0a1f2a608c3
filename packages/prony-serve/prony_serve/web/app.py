"""The site as an ASGI application: routes, and the status of each fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from prony.errors import EnvironmentFault, PronyError, StoreError, UsageError
from prony_serve.web import api, bodies, pages, trend_pages
from prony_serve.web.access import COOKIE, SESSION_S
from prony_serve.web.events import Streams
from prony_serve.web.guard import Guard, defect, own_names
from prony_serve.web.refusal import Refusal
from prony_serve.web.site import Site

View = Callable[[Site, Request], Response]
FOR_EVER = "public, max-age=31536000, immutable"
_STATUS = ((UsageError, 404), (StoreError, 503), (EnvironmentFault, 503))
"""Fault -> status: an unknown id, an unusable store or host."""
_WORDS = {404: "no such page; start at /", 405: "this address does not support the request's method"}


def create(site: Site, names: tuple[str, ...] = ()) -> ASGIApp:
    """The whole site. `names`: further host names of this server."""
    streams = Streams(site)

    def get(path: str, view: View) -> Route:
        return Route(path, partial(view, site), methods=["GET"])

    routes = [
        get("/", pages.experiments),
        get("/results/{which}", pages.experiment),
        get("/results/{which}/live", pages.live),
        Route("/results/{which}/events", streams.events, methods=["GET"]),
        get("/compare", pages.compare),
        get("/compare/{first}/{second}", pages.two),
        get("/trends", trend_pages.trends),
        get("/trend", trend_pages.trend),
        get("/changes", trend_pages.changes),
        get("/changes.atom", trend_pages.atom),
        get("/hosts", pages.hosts),
        get("/hosts/{key}", pages.host),
        get("/api/results", api.results),
        Route("/api/results", partial(api.upload, site), methods=["POST"]),
        get("/api/results/{which}", api.result),
        get("/api/compare/{first}/{second}", api.compare),
        get("/api/trends", api.trends),
        get("/api/trend", api.trend),
        get("/api/running", api.now_running),
        get("/static/{version}/{name}", _static),
        get("/login", _log_in_form),
        Route("/login", partial(_log_in, site), methods=["POST"]),
        Route("/logout", partial(_log_out, site), methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            Refusal: _handler(site, lambda fault: fault if isinstance(fault, Refusal) else Refusal(500, "")),
            PronyError: _handler(site, _of_prony),
            HTTPException: _handler(site, _of_http),
            Exception: _handler(site, defect),
        },
    )
    return Guard(app, site.access, own_names(names), site.refuse)


def _handler(
    site: Site, refusal: Callable[[Exception], Refusal]
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, fault: Exception) -> Response:
        return await site.refuse(request, refusal(fault))

    return handle


def _of_prony(fault: Exception) -> Refusal:
    status = next((status for kind, status in _STATUS if isinstance(fault, kind)), 500)
    return Refusal(status, str(fault))


def _of_http(fault: Exception) -> Refusal:
    assert isinstance(fault, HTTPException)
    sentence = _WORDS.get(fault.status_code, fault.detail)
    return Refusal(fault.status_code, sentence, dict(fault.headers or {}))


def _static(site: Site, request: Request) -> Response:
    """A static file; an outdated version in the address yields the current file, uncached."""
    file = site.statics.get(request.path_params["name"])
    if file is None:
        raise HTTPException(404)
    kept = FOR_EVER if request.path_params["version"] == site.version else "no-store"
    return Response(file[0], media_type=file[1], headers={"Cache-Control": kept})


def _log_in_form(site: Site, request: Request) -> Response:
    if not site.access.has_log_in:
        return RedirectResponse("/", 302)
    return site.page("login.html.j2", next=_own_path(request.query_params.get("next", "/")), wrong="")


async def _log_in(site: Site, request: Request) -> Response:
    fields = await bodies.form(request)
    back = _own_path(fields.get("next", "/"))
    try:
        site.access.check_token(fields.get("token", "").strip(), request)
    except Refusal as refusal:
        page = site.page("login.html.j2", refusal.status, next=back, wrong=refusal.sentence)
        page.headers.update(refusal.headers)
        return page
    response = RedirectResponse(back, 303)
    response.set_cookie(
        COOKIE,
        site.access.begin_session(),
        max_age=int(SESSION_S),
        httponly=True,
        samesite="lax",
        secure=site.access.scheme(request) == "https",
    )
    return response


async def _log_out(site: Site, request: Request) -> Response:
    site.access.end_session(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


def _own_path(path: str) -> str:
    """The path if it is of this site, else /."""
    inside = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if inside and "\\" not in path else "/"
