"""A server's address."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a server, with or without TLS."""

    host: str
    port: int
    tls: bool = False

    @property
    def authority(self) -> str:
        """As in the Host header."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}"
