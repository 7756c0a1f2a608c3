"""What a cluster said that is not a success, in a few words, and the faults that follow."""

from __future__ import annotations

from typing import Any

from prony.errors import EnvironmentFault

TRY_AGAIN = frozenset({"N/A", "TIMEOUT", 408, 429, 500, 502, 503, 504})
"""Statuses that pass: no connection, no response in time, overload, a full disk (429), a restart."""


class PushFault(EnvironmentFault):
    """The cluster could not be reached, or does not take documents now."""


class Refused(PushFault):
    """A status that stays."""

    def __init__(self, message: str, status: Any, why: str) -> None:
        super().__init__(message)
        self.status, self.why = status, why


class TooLarge(Exception):
    """The request, not the documents in it."""


def refused(where: str, fault: Any) -> Refused:
    """The sentence for a status that stays; `fault` is the client's."""
    why = why_of(fault)
    if fault.status_code == 401:
        said = (
            f"{where} does not accept the credentials (401); put them into the URL "
            "(https://USER:PASSWORD@HOST:9200) or an API key into the file that PRONY_PUSH_API_KEY_FILE names"
        )
    elif fault.status_code == 403:
        said = (
            f"{where} does not allow this user to do that (403: {why}); it needs the cluster privileges "
            "manage_index_templates and manage_ingest_pipelines, and create_doc on prony-*"
        )
    else:
        said = f"{where} refused ({why})"
    return Refused(said, fault.status_code, why)


def no_search_engine(where: str, fault: object) -> PushFault:
    """Something else answers there."""
    return PushFault(f"{where} did not answer as a search engine does: {first_line(fault)}")


def why_of(fault: Any) -> str:
    """What the cluster, or the system, said, in a few words."""
    info = fault.info
    if isinstance(info, dict) and "error" in info:
        return reason_of(info["error"], fault.status_code)
    if fault.status_code in {"N/A", "TIMEOUT"}:
        return _system_words(info)
    return str(fault.status_code)


def _system_words(cause: Any) -> str:
    """What the system said of a connection: its own words, where the libraries between have kept them."""
    seen: BaseException | None = cause if isinstance(cause, BaseException) else None
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        seen = seen.__cause__ or seen.__context__
    return first_line(cause)


def reason_of(error: Any, status: Any) -> str:
    if not isinstance(error, dict):
        return f"{status}: {first_line(error)}" if error else str(status)
    cause = (error.get("caused_by") or {}).get("reason")
    said = ": ".join(str(one) for one in (error.get("type"), error.get("reason"), cause) if one)
    return f"{status}: {first_line(said)}"


def first_line(said: object) -> str:
    text = str(said).strip().split("\n")[0]
    return text if len(text) <= 300 else f"{text[:300]}…"
