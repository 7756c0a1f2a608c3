"""The fingerprint of a set of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prony.evidence.host import Fingerprint
from prony.evidence.hosts import Link
from prony.host.fingerprint import key_of


@dataclass(frozen=True, slots=True)
class HostFacts:
    name: str
    role: Literal["server", "load"]
    fingerprint: Fingerprint
    weight: float = 1.0
    link: Link | None = None


def of_hosts(hosts: Sequence[HostFacts]) -> Fingerprint:
    """The first server's (or first) host, and all by name; the key covers hosts, weights, roles, links."""
    first = next((host for host in hosts if host.role == "server"), hosts[0])
    named = {host.name: _described(host) for host in hosts}
    whole = first.fingerprint.model_copy(update={"hosts": named})
    return whole.model_copy(update={"key": key_of(whole)})


def _described(host: HostFacts) -> str:
    words: list[str] = [host.role]
    if host.role == "load":
        words.append(f"weight {host.weight:g}")
    words.append(f"fingerprint {host.fingerprint.key}")
    link = host.link
    if link is not None:
        speed = "unknown" if link.speed_bits_per_s is None else f"{link.speed_bits_per_s / 1e9:g} Gbit/s"
        words.append(f"link {speed}, MTU {link.mtu or 'unknown'}")
    return ", ".join(words)
