"""One Elasticsearch or OpenSearch cluster: told of the streams once, then sent documents until it has
acknowledged each.
"""

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
"""Of one bulk request; clusters take 100 MB by default, proxies before them often 10."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A document that the cluster will never take as it is."""

    stream: str
    id: str
    why: str

    def __str__(self) -> str:
        return f"{self.stream} {self.id}: {self.why}"


@dataclass(slots=True)
class Sent:
    """What became of documents."""

    created: int = 0
    there: int = 0
    """They had been acknowledged before, by this push or another."""
    rejected: list[Rejected] = field(default_factory=list)

    def add(self, other: Sent) -> None:
        """The sum of both."""
        self.created += other.created
        self.there += other.there
        self.rejected += other.rejected


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a cluster that cannot be reached, or is full, is waited for."""

    attempts: int = ATTEMPTS
    first_wait_s: float = FIRST_WAIT_S
    timeout_s: float = TIMEOUT_S

    def waits_s(self) -> Iterator[float]:
        """Before each attempt after the first: twice as long each time."""
        for attempt in range(self.attempts - 1):
            yield min(LONGEST_WAIT_S, self.first_wait_s * 2**attempt)


BRIEF = Patience(attempts=3, timeout_s=5.0)
"""Between two trials of a running experiment: what does not arrive now is sent at its end."""


class Cluster:
    """A connection to a URL such as https://USER:PASSWORD@search.example:9200/prefix. Raises UsageError for a
    URL that is none, EnvironmentFault without the client.
    """

    def __init__(
        self, url: str, patience: Patience | None = None, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.patience = patience or Patience()
        self._sleep = sleep
        self._client, self.where = connected(url, self.patience.timeout_s)
        self.identity = ""
        """The cluster's own id, once it is prepared."""
        self.had_streams = False
        """Whether it knew trials before; True once it has acknowledged a document."""
        self.data_streams = True
        """False where the cluster has none: the streams are plain indices there."""

    # -- before the first document

    def prepare(self) -> None:
        """Pipeline and template, where the cluster has no newer ones. Raises PushFault."""
        info = self._asked(lambda: self._client.info())
        if not isinstance(info, dict) or "cluster_uuid" not in info:
            raise no_search_engine(self.where, "it does not say which cluster it is")
        self.identity = str(info["cluster_uuid"])
        self.had_streams = bool(self._asked(lambda: self._client.indices.exists(index=TRIALS)))
        known = self._version(lambda: self._client.ingest.get_pipeline(id=setup.NAME), setup.NAME)
        if known is None or known < setup.VERSION:
            body = setup.pipeline(self._processors())
            self._asked(lambda: self._client.ingest.put_pipeline(id=setup.NAME, body=body))
        self._put_template()

    def _put_template(self) -> None:
        def stored() -> Any:
            found = self._client.indices.get_index_template(name=setup.NAME)
            return {setup.NAME: found["index_templates"][0]["index_template"]}

        known = self._version(stored, setup.NAME)
        if known is not None and known >= setup.VERSION:
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
        self._asked(lambda: self._client.indices.put_index_template(name=setup.NAME, body=body))

    def _version(self, ask: Callable[[], Any], name: str) -> int | None:
        """The version of a template or pipeline that the cluster has; None when it has none."""
        try:
            found = self._asked(ask)
        except Refused as fault:
            if fault.status == 404:
                return None
            raise
        version = found.get(name, {}).get("version") if isinstance(found, dict) else None
        return version if isinstance(version, int) else 0

    def _processors(self) -> frozenset[str]:
        nodes = self._asked(lambda: self._client.nodes.info(metric="ingest")).get("nodes", {}).values()
        every = [{one["type"] for one in node.get("ingest", {}).get("processors", [])} for node in nodes]
        return frozenset(set.intersection(*every)) if every else frozenset()

    # -- documents

    def send(self, documents: Sequence[Document]) -> Sent:
        """Each acknowledged, or rejected by the cluster. Raises PushFault when some are neither in the end:
        they may be sent again, and what is there already makes no second document.
        """
        sent = Sent()
        for batch in _batches(documents):
            known = self._known(batch)
            sent.there += len(known)
            sent.add(self._batch([one for one in batch if one.id not in known]))
            self.had_streams = True
        return sent

    def _known(self, batch: Sequence[Document]) -> set[str]:
        """Those that any generation of a stream has: an id is unique within one only. Nothing where this user
        may not search.
        """
        if not self.had_streams:
            return set()
        streams = ",".join(dict.fromkeys(one.stream for one in batch))
        body = {"query": {"ids": {"values": [one.id for one in batch]}}, "_source": False, "size": len(batch)}
        try:
            found = self._asked(
                lambda: self._client.search(index=streams, body=body, params={"ignore_unavailable": "true"})
            )
        except Refused:
            return set()
        return {str(hit["_id"]) for hit in found["hits"]["hits"]}

    def _batch(self, batch: Sequence[Document]) -> Sent:
        sent = Sent()
        pending = {one.id: one for one in batch}
        waits_s = self.patience.waits_s()
        why = ""
        while pending:
            try:
                why = self._once(pending, sent) or why
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
                    f"{self.patience.attempts} attempts ({why or 'it did not mention them in its response'})"
                )
            self._sleep(wait_s)
        return sent

    def _once(self, pending: dict[str, Document], sent: Sent) -> str:
        """One bulk request: takes out of `pending` what is decided. Returns why the rest is not."""
        from opensearchpy.exceptions import TransportError
        from opensearchpy.helpers import streaming_bulk

        actions = [
            {"_op_type": "create", "_index": one.stream, "_id": one.id, "_source": one.body}
            for one in pending.values()
        ]
        why = ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the cluster, for its administrator
                for _, item in streaming_bulk(
                    self._client,
                    actions,
                    chunk_size=len(actions),
                    max_chunk_bytes=10 * MOST_BYTES,
                    raise_on_error=False,
                ):
                    why = self._decided(item["create"], pending, sent) or why
        except TransportError as fault:
            if fault.status_code == 413:
                raise TooLarge("larger than the cluster, or a proxy before it, takes (413)") from fault
            if fault.status_code not in TRY_AGAIN:
                raise refused(self.where, fault) from fault
            return why_of(fault)
        except Exception as fault:  # the helper's own, on a response that is none
            raise no_search_engine(self.where, fault) from fault
        return why

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

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """The response, after as many attempts as patience allows. Raises PushFault; Refused for a status
        that stays.
        """
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
    for one in documents:
        length = len(json.dumps(one.body)) + 200
        if batch and (len(batch) == MOST_DOCUMENTS or size + length > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += length
    if batch:
        yield batch
