"""Pages of results: experiments, a single report, two results compared, hosts. Read-only."""

from __future__ import annotations

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from prony.host.fingerprint import differences
from prony.report.html.page import SITE_POLICY, policy, render_html
from prony.report.reading import load_result, remember_answer
from prony.report.two_results import blocks, compared
from prony.store import Search
from prony_serve import running
from prony_serve.host_facts import describe
from prony_serve.trends.stored import fingerprints
from prony_serve.web import asking
from prony_serve.web.drawing import seconds_line
from prony_serve.web.refusal import Refusal
from prony_serve.web.site import Site

REPORT_POLICY = f"{SITE_POLICY}; frame-ancestors 'none'"
"""The report's policy (prony.report.html.page) plus what only a header can set."""


def experiments(site: Site, request: Request) -> Response:
    """Stored experiments, newest first, filtered by the query."""
    fields = asking.fields(request.query_params)
    page = asking.whole(request.query_params, "page", 1, 1_000_000, 1)
    matches = site.store.search(
        asking.search(fields), limit=asking.PAGE_ROWS, offset=(page - 1) * asking.PAGE_ROWS
    )
    last = max(1, -(-matches.total // asking.PAGE_ROWS))
    return site.page(
        "experiments.html.j2",
        here="/",
        rows=matches.experiments,
        unreadable=matches.unreadable,
        total=matches.total,
        fields=fields,
        box=asking.box(fields),
        page_number=page,
        last_page=last,
        running=running.running(site.store.where),
    )


def experiment(site: Site, request: Request) -> Response:
    """The report of one experiment."""
    row = site.store.experiment(request.path_params["which"])
    if row.id != request.path_params["which"]:
        return RedirectResponse(f"/results/{row.id}", 302)
    live = running.find(site.store.where, row.id)
    key = (row.id, row.status, row.trials, live is not None)

    def drawn() -> str:
        above = site.text("result_links.html.j2", here="/", id=row.id, live=live is not None)
        view = load_result(site.store, row.id)
        remember_answer(site.store, view)
        page = render_html(view, above=Markup(above), more_style=site.own_style)
        return f"{policy(view, REPORT_POLICY)}\n{page}"

    allowed, _, page = site.drawn_once(key, drawn).partition("\n")
    return HTMLResponse(page, headers={"Content-Security-Policy": allowed})


def live(site: Site, request: Request) -> Response:
    """Progress of a running experiment; once it has ended, its report."""
    identifier = site.store.experiment(request.path_params["which"]).id
    state = running.find(site.store.where, identifier)
    if state is None:
        return RedirectResponse(f"/results/{identifier}", 302)
    return site.page("live.html.j2", here="/", state=state, line=seconds_line(state.seconds))


def compare(site: Site, request: Request) -> Response:
    """Redirects from two ticked experiments to their comparison."""
    chosen = list(dict.fromkeys(request.query_params.getlist("id")))
    if len(chosen) != 2:
        raise Refusal(400, f"{len(chosen)} results are ticked; expected two to compare")
    first, second = (site.store.experiment(which).id for which in chosen)
    return RedirectResponse(f"/compare/{first}/{second}", 302)


def two(site: Site, request: Request) -> Response:
    """Two results compared, as by prony compare-results."""
    first, second = (site.store.experiment(request.path_params[name]).id for name in ("first", "second"))
    if first == second:
        raise Refusal(400, f"{first} is named twice; expected two results")
    pair = compared(load_result(site.store, first), load_result(site.store, second))
    return site.page("two.html.j2", here="/", pair=pair, blocks=blocks(pair))


def hosts(site: Site, request: Request) -> Response:
    """All fingerprints measured on, newest first."""
    del request
    seen = sorted(fingerprints(site.store), key=lambda host: host.newest, reverse=True)
    return site.page("hosts.html.j2", here="/hosts", seen=seen)


def host(site: Site, request: Request) -> Response:
    """A fingerprint: its fields, its differences from others of the same host name, its experiments."""
    key = request.path_params["key"]
    seen = {host.fingerprint.key: host for host in fingerprints(site.store)}
    if key not in seen:
        raise Refusal(404, f"no host with the fingerprint '{key[:40]}' has been measured on")
    own = seen[key]
    others = [
        (other.fingerprint, differences(other.fingerprint, own.fingerprint))
        for other in seen.values()
        if other.fingerprint.hostname == own.fingerprint.hostname and other is not own
    ]
    matches = site.store.search(Search(fingerprint_key=key), limit=asking.PAGE_ROWS)
    return site.page(
        "host.html.j2",
        here="/hosts",
        own=own,
        facts=describe(own.fingerprint),
        others=others,
        rows=matches.experiments,
        total=matches.total,
    )
