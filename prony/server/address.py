"""Where a server is reached."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Host, port, and whether connections are secured. Certificates are the client's concern."""

    host: str
    port: int
    tls: bool = False

    @property
    def authority(self) -> str:
        """Host and port, as the Host header has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"{'https' if self.tls else 'http'}://{self.authority}"
