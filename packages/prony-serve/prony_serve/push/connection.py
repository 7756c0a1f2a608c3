"""A client from a URL: address, credentials, certificates.

opensearch-py is the only client that talks to both engines: elasticsearch-py refuses OpenSearch from 7.14 on,
and from 8 on sends a media type that Elasticsearch 7.17 refuses.
"""

from __future__ import annotations

import importlib.util
import os
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from prony.errors import EnvironmentFault, UsageError
from prony_serve.push.faults import first_line

API_KEY_FILE = "PRONY_PUSH_API_KEY_FILE"
CA_FILE = "PRONY_PUSH_CA_FILE"
"""Environment variables: file with an API key; file with the CA certificates trusted for https."""
DEFAULT_PORT = 9200


def connected(url: str, timeout_s: float) -> tuple[Any, str]:
    """A client, and the URL without its password. Sends nothing. Raises UsageError, EnvironmentFault."""
    if importlib.util.find_spec("opensearchpy") is None:
        raise EnvironmentFault("opensearch-py is not installed: pip install 'prony[elasticsearch]'")
    from opensearchpy import OpenSearch

    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = -1
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1 or parts.query:
        raise UsageError(
            f"invalid URL: '{_without_password(url)}'; expected a URL such as http://127.0.0.1:9200 or "
            "https://USER:PASSWORD@HOST:9200"
        )
    options: dict[str, Any] = {"use_ssl": parts.scheme == "https"} | _credentials(parts)
    if parts.scheme == "https":
        options["ssl_context"] = _trusted()
    client = OpenSearch(
        hosts=[{"host": parts.hostname, "port": port, "url_prefix": parts.path.strip("/")}],
        timeout=timeout_s,
        max_retries=0,  # Cluster retries: it knows what was acknowledged
        **options,
    )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return client, f"{parts.scheme}://{host}:{port}{parts.path.rstrip('/')}"


def _trusted() -> ssl.SSLContext:
    named = os.environ.get(CA_FILE)
    if named and not Path(named).is_file():
        raise UsageError(f"{CA_FILE}={named} is not a file; expected certificates in PEM form")
    try:
        return ssl.create_default_context(cafile=named)
    except ssl.SSLError as fault:
        raise UsageError(f"{CA_FILE}={named} holds no certificate in PEM form: {fault.reason}") from fault


def _credentials(parts: SplitResult) -> dict[str, Any]:
    if parts.username is not None:
        return {"http_auth": (unquote(parts.username), unquote(parts.password or ""))}
    named = os.environ.get(API_KEY_FILE)
    if not named:
        return {}
    try:
        key = Path(named).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"{API_KEY_FILE}={named} cannot be read: {first_line(fault)}") from fault
    if not key.isprintable() or not key:
        raise UsageError(f"{API_KEY_FILE}={named} holds no API key; expected a single line of text")
    return {"headers": {"Authorization": f"ApiKey {key}"}}


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.partition('//')[0]}//…@{after}" if at else url
