"""The certificates of a laboratory and its hosts: one authority, one certificate for each side.

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
    "signs; keep it off every host",
    "the laboratory's: who has it can run programs on every host",
    "goes to every host whose worker is started by hand",
)
"""Of the files that `make` gives, in its order."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One side's certificate with its key, and the authority's certificate: PEM texts."""

    ca: str
    own: str

    def security(self) -> Security:
        """TLS 1.3 with certificates on both sides, for whatever role in Dask."""
        import ssl

        from distributed import Security

        own: dict[str, str] = {
            f"tls_{role}_{part}": self.own
            for role in ("client", "scheduler", "worker")
            for part in ("cert", "key")
        }
        return Security(
            require_encryption=True,
            tls_ca_file=self.ca,
            tls_min_version=ssl.TLSVersion.TLSv1_3,
            **own,
        )


def make(folder: Path) -> tuple[Path, ...]:
    """Create authority and certificates in `folder`, for its owner only. Raises UsageError where there are
    some: a new authority would lock out every host that has the old one's.
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
    """`LAB` or `ON_HOST` of the folder. Raises UsageError: missing, readable by others, run out."""
    own, ca = folder / file, folder / CA
    for one in (ca, own):
        if not one.is_file():
            raise UsageError(
                f"there is no {one.name} in {folder}; make certificates with prony hosts certificates DIR, "
                f"and copy {CA} and {ON_HOST} to a host whose worker is started there"
            )
    if own.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"others can read the key in {own}; chmod 600 {own}")
    found = Identity(ca=ca.read_text(encoding="ascii"), own=own.read_text(encoding="ascii"))
    ended = _expired(found.own)
    if ended is not None:
        raise UsageError(
            f"the certificate in {own} ran out on {ended:%Y-%m-%d}; remove {folder}, make new ones "
            "(prony hosts certificates DIR) and copy them to the hosts"
        )
    return found


def _expired(pem: str) -> datetime | None:
    """When the certificate ran out; None when it has not."""
    from cryptography import x509

    try:
        until = x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc
    except ValueError as fault:
        raise UsageError(f"a certificate that prony hosts certificates made was expected: {fault}") from fault
    return until if until < datetime.now(UTC) else None
