"""Why a request is not answered as asked: a status and one sentence."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """A response other than the one that was asked for."""

    def __init__(
        self, status: int, sentence: str, headers: Mapping[str, str] | None = None, *, log_in: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})
        self.log_in = log_in
        """Whether a person who asked for a page is shown the log-in form."""
