"""A refused request: a status and one sentence."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """Answers a request with an error status."""

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None, *, log_in: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})
        self.log_in = log_in
        """Whether a browser is shown the log-in form instead."""
