"""Faults of a push, and the cluster's reason in a few words."""

from __future__ import annotations

from typing import Any

from prony.errors import EnvironmentFault

TRY_AGAIN = frozenset({"N/A", "TIMEOUT", 408, 429, 500, 502, 503, 504})
"""Temporary statuses: no connection, timeout, overload, full disk (429), restart."""


class PushFault(EnvironmentFault):
    """The cluster is unreachable, or takes no documents now."""


class Refused(PushFault):
    """A permanent status."""

    def __init__(self, message: str, status: Any, why: str) -> None:
        super().__init__(message)
        self.status, self.why = status, why


class TooLarge(Exception):
    """The bulk request exceeds a size limit; its documents may be sent in smaller ones."""


def refused(where: str, fault: Any) -> Refused:
    """The fault for a permanent status; `fault` is the client's exception."""
    why = why_of(fault)
    if fault.status_code == 401:
        message = (
            f"{where} does not accept the credentials (401); put them into the URL "
            "(https://USER:PASSWORD@HOST:9200), or an API key into the file named by PRONY_PUSH_API_KEY_FILE"
        )
    elif fault.status_code == 403:
        message = (
            f"{where} denies this user access (403: {why}); required: the cluster privileges "
            "manage_index_templates and manage_ingest_pipelines, and create_doc on prony-*"
        )
    else:
        message = f"{where} refused ({why})"
    return Refused(message, fault.status_code, why)


def no_search_engine(where: str, fault: object) -> PushFault:
    """The response is not that of a search engine."""
    return PushFault(f"{where} did not answer as a search engine does: {first_line(fault)}")


def why_of(fault: Any) -> str:
    """The reason of the cluster or of the operating system, in a few words."""
    info = fault.info
    if isinstance(info, dict) and "error" in info:
        return reason_of(info["error"], fault.status_code)
    if fault.status_code in {"N/A", "TIMEOUT"}:
        return _system_words(info)
    return str(fault.status_code)


def _system_words(cause: Any) -> str:
    """The operating system's message for a failed connection, where an exception of the chain has it."""
    fault: BaseException | None = cause if isinstance(cause, BaseException) else None
    while fault is not None:
        if isinstance(fault, OSError) and fault.strerror:
            return fault.strerror
        fault = fault.__cause__ or fault.__context__
    return first_line(cause)


def reason_of(error: Any, status: Any) -> str:
    if not isinstance(error, dict):
        return f"{status}: {first_line(error)}" if error else str(status)
    cause = (error.get("caused_by") or {}).get("reason")
    parts = ": ".join(str(part) for part in (error.get("type"), error.get("reason"), cause) if part)
    return f"{status}: {first_line(parts)}"


def first_line(said: object) -> str:
    text = str(said).strip().split("\n")[0]
    return text if len(text) <= 300 else f"{text[:300]}…"
