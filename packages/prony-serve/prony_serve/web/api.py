"""The site's JSON: the models printed by `--json`, and uploads."""

from __future__ import annotations

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from prony.errors import StoreError, UsageError
from prony.report.export import to_json
from prony.report.listings import ListOut
from prony.report.reading import load_result, remember_answer
from prony.report.two_results import compared
from prony.report.two_results import to_json as two_to_json
from prony.store import transfer
from prony_serve import running
from prony_serve.trends.out import SeriesListOut, SeriesOut, trend_out
from prony_serve.trends.stored import series_names
from prony_serve.web import asking, bodies
from prony_serve.web.access import Reader
from prony_serve.web.refusal import Refusal
from prony_serve.web.site import Site, as_json
from prony_serve.web.trend_pages import addressed_trend

EXPANDS_TO_BYTES = 4 * 2**30
"""Maximum size of an unpacked upload."""


def results(site: Site, request: Request) -> Response:
    """`GET /api/results`: the JSON of `prony results list`, for a search."""
    query = request.query_params
    limit = asking.whole(query, "limit", asking.PAGE_ROWS, asking.MOST_ROWS, 1)
    offset = asking.whole(query, "offset", 0, 10**9 - 1)
    matches = site.store.search(asking.search(asking.fields(query)), limit=limit, offset=offset)
    return as_json(ListOut.of(matches))


def result(site: Site, request: Request) -> Response:
    """`GET /api/results/ID`: the JSON of `prony results show ID`."""
    return as_json(to_json(load_result(site.store, request.path_params["which"])))


def compare(site: Site, request: Request) -> Response:
    """`GET /api/compare/ID/ID`: the JSON of `prony compare-results`."""
    first, second = (load_result(site.store, request.path_params[name]) for name in ("first", "second"))
    if first.id == second.id:
        raise Refusal(400, f"{first.id} is named twice; expected two results")
    return as_json(two_to_json(compared(first, second)))


def trends(site: Site, request: Request) -> Response:
    """`GET /api/trends`: all series."""
    del request
    return as_json(
        SeriesListOut(
            series=[
                SeriesOut(
                    server=name.server,
                    workload=name.workload,
                    load=name.load_name,
                    trials=name.trials,
                    newest=name.newest.isoformat(),
                )
                for name in series_names(site.store)
            ]
        )
    )


def trend(site: Site, request: Request) -> Response:
    """`GET /api/trend?server=…&workload=…&load=…&figure=…`."""
    return as_json(trend_out(addressed_trend(site, request)))


def now_running(site: Site, request: Request) -> Response:
    """`GET /api/running`: running experiments, from their progress journals."""
    del request
    states = [state.model_dump(mode="json", exclude={"owner"}) for state in running.running(site.store.where)]
    return JSONResponse({"schema": 1, "kind": "running", "running": states})


async def upload(site: Site, request: Request) -> Response:
    """`POST /api/results`: an export file, checked as by `prony results import`. Needs a token."""
    reader: Reader = request.scope["reader"]
    if not reader.may_upload:
        raise Refusal(
            401,
            "an upload needs a token: start prony serve with --token-file and send "
            "'Authorization: Bearer TOKEN'",
            {"WWW-Authenticate": 'Bearer realm="prony"'},
        )
    async with bodies.saved(request, site.most_upload_bytes) as path:

        def imported() -> tuple[str, int]:
            identifier, added = transfer.read(site.store, path, most_bytes=EXPANDS_TO_BYTES)
            remember_answer(site.store, load_result(site.store, identifier))
            return identifier, added

        try:
            identifier, added = await anyio.to_thread.run_sync(imported)
        except UsageError as fault:
            raise Refusal(422, str(fault).replace(str(path), "the upload")) from fault
        except StoreError as fault:
            # An unwritable store raises its own fault.
            await anyio.to_thread.run_sync(site.store.check_writable)
            raise Refusal(409, str(fault).replace(str(path), "the upload")) from fault
    address = f"/results/{identifier}"
    stored = {"id": identifier, "added": added, "address": address}
    return JSONResponse(stored, 201 if added else 200, {"Location": address})
