"""TLS certificates: one authority, one certificate for the laboratory and one for the hosts.

`ca.pem` and `host.pem` go to a host; `laboratory.pem` and the authority's key stay with the laboratory.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import UsageError
from prony.server.certificates import Authority, pem_of

if TYPE_CHECKING:
    from distributed import Security

LABORATORY = "prony laboratory"
HOST = "prony host"
VALID_DAYS = 365
CA, CA_KEY, LAB, ON_HOST = "ca.pem", "ca-key.pem", "laboratory.pem", "host.pem"
USES = (
    "goes to every host whose worker is started by hand",
    "signs certificates; keep it off the hosts",
    "stays with the laboratory; its holder can run programs on every host",
    "goes to every host whose worker is started by hand",
)
"""Uses of the files of `make`, in the same order."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its key, and the authority's certificate (PEM)."""

    ca: str
    own: str

    def security(self) -> Security:
        """TLS 1.3 with mutual authentication, for every role in Dask."""
        import ssl

        from distributed import Security

        own: dict[str, str] = {
            f"tls_{role}_{part}": self.own
            for role in ("client", "scheduler", "worker")
            for part in ("cert", "key")
        }
        return Security(
            require_encryption=True, tls_ca_file=self.ca, tls_min_version=ssl.TLSVersion.TLSv1_3, **own
        )


def make(folder: Path) -> tuple[Path, ...]:
    """Creates authority and certificates in `folder`, readable by the owner only. Raises UsageError where
    some exist: a new authority would lock out hosts with certificates of the old authority.
    """
    files = tuple(folder / name for name in (CA, CA_KEY, LAB, ON_HOST))
    there = [file for file in files if file.exists()]
    if there:
        raise UsageError(
            f"{there[0]} exists; hosts that have its certificates would be locked out by new ones: "
            "name another folder, or remove this one"
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = Authority("prony authority", VALID_DAYS)
    texts = [pem_of(authority.cert), pem_of(authority.key)]
    for subject in (LABORATORY, HOST):
        key, cert = authority.issue(subject, (), client=True)
        texts.append(pem_of(cert) + pem_of(key))
    for file, text in zip(files, texts, strict=True):
        file.touch(mode=0o600)
        file.write_bytes(text)
    return files


def identity(folder: Path, file: str) -> Identity:
    """`LAB` or `ON_HOST` of the folder. Raises UsageError for a missing, expired or world-readable file."""
    own, ca = folder / file, folder / CA
    for path in (ca, own):
        if not path.is_file():
            raise UsageError(
                f"there is no {path.name} in {folder}; make certificates with prony hosts certificates DIR, "
                f"and copy {CA} and {ON_HOST} to a host whose worker is started there"
            )
    if own.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"the key in {own} is readable by other users; run chmod 600 {own}")
    side = Identity(ca=ca.read_text(encoding="ascii"), own=own.read_text(encoding="ascii"))
    ended = _expired(side.own)
    if ended is not None:
        raise UsageError(
            f"the certificate in {own} expired on {ended:%Y-%m-%d}; remove {folder}, make new ones "
            "(prony hosts certificates DIR) and copy them to the hosts"
        )
    return side


def _expired(pem: str) -> datetime | None:
    """The expiry date, when it has passed; else None."""
    from cryptography import x509

    try:
        until = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
    except ValueError as fault:
        raise UsageError(f"expected a certificate made by prony hosts certificates: {fault}") from fault
    return until if until < datetime.now(UTC) else None
