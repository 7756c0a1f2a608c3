"""An Elasticsearch or OpenSearch cluster: streams, then documents until acknowledged or rejected."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from prony_serve.documents import TRIALS, Document
from prony_serve.push import setup
from prony_serve.push.connection import connected
from prony_serve.push.faults import (
    TRY_AGAIN,
    PushFault,
    Refused,
    TooLarge,
    no_search_engine,
    reason_of,
    refused,
    why_of,
)

ATTEMPTS = 7
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 16.0
TIMEOUT_S = 30.0
MOST_DOCUMENTS, MOST_BYTES = 500, 5_000_000
"""Per bulk request; clusters accept 100 MB by default, proxies often 10 MB."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A document that the cluster refuses for good."""

    stream: str
    id: str
    why: str

    def __str__(self) -> str:
        return f"{self.stream} {self.id}: {self.why}"


@dataclass(slots=True)
class Sent:
    """Outcome of sending documents."""

    created: int = 0
    there: int = 0
    """Already acknowledged by an earlier push."""
    rejected: list[Rejected] = field(default_factory=list)

    def add(self, other: Sent) -> None:
        """Adds another outcome to this one."""
        self.created += other.created
        self.there += other.there
        self.rejected += other.rejected


@dataclass(frozen=True, slots=True)
class Patience:
    """Retries for a cluster that is unreachable or full."""

    attempts: int = ATTEMPTS
    first_wait_s: float = FIRST_WAIT_S
    timeout_s: float = TIMEOUT_S

    def waits_s(self) -> Iterator[float]:
        """Seconds before each retry, doubling up to LONGEST_WAIT_S."""
        for attempt in range(self.attempts - 1):
            yield min(LONGEST_WAIT_S, self.first_wait_s * 2**attempt)


BRIEF = Patience(attempts=3, timeout_s=5.0)
"""Between two trials of a running experiment; whatever is missing is sent at the end."""


class Cluster:
    """At https://USER:PASSWORD@search.example:9200/prefix. Raises UsageError, EnvironmentFault."""

    def __init__(
        self, url: str, patience: Patience | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.patience = patience or Patience()
        self._sleep = sleep
        self._client, self.where = connected(url, self.patience.timeout_s)
        self.identity = ""
        """The cluster's UUID; set by `prepare`."""
        self.had_streams = False
        """Whether the trials stream existed before, or a document has been acknowledged since."""
        self.data_streams = True
        """False: the cluster has no data streams; plain indices are used."""

    # -- before the first document

    def prepare(self) -> None:
        """Installs pipeline and template unless the cluster's are as new. Raises PushFault."""
        info = self._retried(lambda: self._client.info())
        if not isinstance(info, dict) or "cluster_uuid" not in info:
            raise no_search_engine(self.where, "no cluster_uuid in its response")
        self.identity = str(info["cluster_uuid"])
        self.had_streams = bool(self._retried(lambda: self._client.indices.exists(index=TRIALS)))
        present = self._version(lambda: self._client.ingest.get_pipeline(id=setup.NAME), setup.NAME)
        if present is None or present < setup.VERSION:
            body = setup.pipeline(self._processors())
            self._retried(lambda: self._client.ingest.put_pipeline(id=setup.NAME, body=body))
        self._put_template()

    def _put_template(self) -> None:
        def stored() -> Any:
            response = self._client.indices.get_index_template(name=setup.NAME)
            return {setup.NAME: response["index_templates"][0]["index_template"]}

        present = self._version(stored, setup.NAME)
        if present is not None and present >= setup.VERSION:
            return
        try:
            self._put(data_streams=True)
        except Refused as fault:
            if fault.status != 400 or "data stream" not in fault.why.replace("_", " "):
                raise PushFault(str(fault)) from fault
            self.data_streams = False
            self._put(data_streams=False)

    def _put(self, *, data_streams: bool) -> None:
        body = setup.template(data_streams=data_streams)
        self._retried(lambda: self._client.indices.put_index_template(name=setup.NAME, body=body))

    def _version(self, ask: Callable[[], Any], name: str) -> int | None:
        """The installed version of a template or pipeline; None when absent."""
        try:
            response = self._retried(ask)
        except Refused as fault:
            if fault.status == 404:
                return None
            raise
        version = response.get(name, {}).get("version") if isinstance(response, dict) else None
        return version if isinstance(version, int) else 0

    def _processors(self) -> frozenset[str]:
        nodes = self._retried(lambda: self._client.nodes.info(metric="ingest")).get("nodes", {}).values()
        types = [{entry["type"] for entry in node.get("ingest", {}).get("processors", [])} for node in nodes]
        return frozenset(set.intersection(*types)) if types else frozenset()

    # -- documents

    def send(self, documents: Sequence[Document]) -> Sent:
        """Sends until each document is acknowledged or rejected. Raises PushFault when some are neither;
        sending them again creates no duplicates.
        """
        sent = Sent()
        for batch in _batches(documents):
            known = self._known(batch)
            sent.there += len(known)
            sent.add(self._batch([document for document in batch if document.id not in known]))
            self.had_streams = True
        return sent

    def _known(self, batch: Sequence[Document]) -> set[str]:
        """Ids in any generation of a stream; empty when this user may not search."""
        if not self.had_streams:
            return set()
        streams = ",".join(dict.fromkeys(document.stream for document in batch))
        ids = [document.id for document in batch]
        body = {"query": {"ids": {"values": ids}}, "_source": False, "size": len(batch)}
        try:
            response = self._retried(
                lambda: self._client.search(index=streams, body=body, params={"ignore_unavailable": "true"})
            )
        except Refused:
            return set()
        return {str(hit["_id"]) for hit in response["hits"]["hits"]}

    def _batch(self, batch: Sequence[Document]) -> Sent:
        sent = Sent()
        pending = {document.id: document for document in batch}
        waits_s = self.patience.waits_s()
        reason = ""
        while pending:
            try:
                reason = self._once(pending, sent) or reason
            except TooLarge as fault:
                documents = list(pending.values())
                if len(documents) == 1:
                    sent.rejected.append(Rejected(documents[0].stream, documents[0].id, str(fault)))
                    return sent
                half = len(documents) // 2
                sent.add(self._batch(documents[:half]))
                sent.add(self._batch(documents[half:]))
                return sent
            if not pending:
                return sent
            wait_s = next(waits_s, None)
            if wait_s is None:
                raise PushFault(
                    f"{self.where} has not acknowledged {len(pending)} of {len(batch)} documents after "
                    f"{self.patience.attempts} attempts ({reason or 'they are missing from its response'})"
                )
            self._sleep(wait_s)
        return sent

    def _once(self, pending: dict[str, Document], sent: Sent) -> str:
        """One bulk request; removes decided documents from `pending`. Returns why others are undecided."""
        from opensearchpy.exceptions import TransportError
        from opensearchpy.helpers import streaming_bulk

        actions = [
            {"_op_type": "create", "_index": document.stream, "_id": document.id, "_source": document.body}
            for document in pending.values()
        ]
        reason = ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they address the cluster's administrator
                for _, item in streaming_bulk(
                    self._client,
                    actions,
                    chunk_size=len(actions),
                    max_chunk_bytes=10 * MOST_BYTES,
                    raise_on_error=False,
                ):
                    reason = self._decided(item["create"], pending, sent) or reason
        except TransportError as fault:
            if fault.status_code == 413:
                raise TooLarge("over the size limit of the cluster or of a proxy (413)") from fault
            if fault.status_code not in TRY_AGAIN:
                raise refused(self.where, fault) from fault
            return why_of(fault)
        except Exception as fault:  # raised by the helper on a malformed response
            raise no_search_engine(self.where, fault) from fault
        return reason

    @staticmethod
    def _decided(item: dict[str, Any], pending: dict[str, Document], sent: Sent) -> str:
        document = pending.get(str(item.get("_id")))
        if document is None:
            return ""
        status = item.get("status", 500)
        if status in TRY_AGAIN:
            return reason_of(item.get("error"), status)
        del pending[document.id]
        if 200 <= status < 300:
            sent.created += 1
        elif status == 409:
            sent.there += 1
        else:
            sent.rejected.append(Rejected(document.stream, document.id, reason_of(item.get("error"), status)))
        return ""

    # -- requests that are not bulk

    def _retried(self, ask: Callable[[], Any]) -> Any:
        """Retries while the status is temporary. Raises PushFault; Refused for a permanent status."""
        from opensearchpy.exceptions import TransportError

        waits_s = self.patience.waits_s()
        while True:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return ask()
            except TransportError as fault:
                if fault.status_code not in TRY_AGAIN:
                    raise refused(self.where, fault) from fault
                wait_s = next(waits_s, None)
                if wait_s is None:
                    raise PushFault(f"{self.where} cannot be reached: {why_of(fault)}") from fault
            except Exception as fault:
                raise no_search_engine(self.where, fault) from fault
            self._sleep(wait_s)


def _batches(documents: Sequence[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        length = len(json.dumps(document.body)) + 200
        if batch and (len(batch) == MOST_DOCUMENTS or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch
