"""Pages of trends: all series, one figure of a series, the newest change points."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from prony.report.labels import named, rounded
from prony_serve.trends.reading import figures_of, trend_of
from prony_serve.trends.series import TrendView, change_words, direction
from prony_serve.trends.stored import SeriesTrial, series_names, series_trials
from prony_serve.web import asking, feed
from prony_serve.web.drawing import by_commit, draw_trend
from prony_serve.web.refusal import Refusal
from prony_serve.web.site import Site

SERIES = ("server", "workload", "load")
MOST_SERIES = 1000


def trends(site: Site, request: Request) -> Response:
    """All series: a server under a workload and a load."""
    del request
    names = sorted(series_names(site.store), key=lambda name: (name.server, name.workload, name.load_name))
    return site.page("trends.html.j2", here="/trends", names=names[:MOST_SERIES], total=len(names))


def trend(site: Site, request: Request) -> Response:
    """One figure of a series over time or over commits."""
    address = _address(site, request)
    order = request.query_params.get("by", "time")
    if order not in ("time", "commit"):
        raise Refusal(400, f"by is '{order[:40]}'; expected time or commit")

    def drawn() -> str:
        view = address.view(site)
        return site.text(
            "trend.html.j2",
            here="/trends",
            trend=view,
            fields=address.names,
            drawn=draw_trend(view, commits=order == "commit"),
            order=order,
            has_commits=bool(by_commit(view)),
            figures=[(name, named(name)) for name in figures_of(address.series)],
            rounded=rounded,
            change_words=change_words,
            direction=direction,
        )

    state = (len(address.series), address.series[-1].trial_id)
    return HTMLResponse(site.drawn_once((*address.names.values(), order, *state), drawn))


def changes(site: Site, request: Request) -> Response:
    """The newest change points of all series."""
    del request
    return site.page(
        "changes.html.j2",
        here="/changes",
        changes=site.changes.newest(),
        note=site.changes.note(),
        change_words=change_words,
        direction=direction,
        address=feed.trend_address,
    )


def atom(site: Site, request: Request) -> Response:
    """The newest change points as an Atom feed."""
    base = f"{site.access.scheme(request)}://{request.headers['host']}"
    return Response(feed.feed(site.changes.newest(), base, site.store.where), media_type=feed.KIND)


@dataclass(frozen=True, slots=True)
class TrendAddress:
    """The trend that an address names."""

    server: str
    workload: str
    load: str
    figure: str
    series: tuple[SeriesTrial, ...]

    @property
    def names(self) -> dict[str, str]:
        """The fields of its address."""
        return {"server": self.server, "workload": self.workload, "load": self.load, "figure": self.figure}

    def view(self, site: Site) -> TrendView:
        """The trend with its changes; takes seconds with thousands of trials."""
        return trend_of(site.store, self.series, self.server, self.workload, self.load, self.figure)


def addressed_trend(site: Site, request: Request) -> TrendView:
    """The trend of an address. Raises Refusal: 400 or 404."""
    return _address(site, request).view(site)


def _address(site: Site, request: Request) -> TrendAddress:
    server, workload, load = asking.needed(request.query_params, *SERIES)
    series = tuple(series_trials(site.store, server, workload, load))
    known = figures_of(series)
    if not series or not known:
        raise Refusal(404, f"no trial of {server[:100]}, {workload[:100]}, {load[:100]} has a figure")
    figure = request.query_params.get("figure") or known[0]
    if figure not in known:
        raise Refusal(404, f"no figure '{figure[:60]}' in this series; it has {', '.join(known)}")
    return TrendAddress(server, workload, load, figure, series)
