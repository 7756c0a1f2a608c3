"""Certificate authorities, and a server certificate for one run: valid for a few days, for loopback names,
never stored beyond the run (so the keystore's password protects nothing).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

PASSWORD = "for-this-run"
VALID_DAYS = 3
LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the PEM files, and of a PKCS#12 store for a JVM."""

    ca: Path
    cert: Path
    """Chain: the server's, then the authority's."""
    key: Path
    keystore: Path
    password: str = PASSWORD

    def placeholders(self) -> dict[str, str]:
        """For the command in a server.yaml."""
        return {
            "tls_ca": str(self.ca),
            "tls_cert": str(self.cert),
            "tls_key": str(self.key),
            "tls_keystore": str(self.keystore),
            "tls_password": self.password,
        }


class Authority:
    """ECDSA on P-256."""

    def __init__(self, name: str, days: int) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._name, self._days = name, days
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.cert = self._signed(self._begun(name, self.key.public_key(), authority=True))

    def issue(
        self, subject: str, names: Sequence[x509.GeneralName], *, client: bool = False
    ) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        """Key and certificate for a server with these names; `client`: also for one that connects."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if client else [])]
        begun = self._begun(subject, key.public_key(), authority=False).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if names:
            begun = begun.add_extension(x509.SubjectAlternativeName([*names]), critical=False)
        return key, self._signed(begun)

    def _signed(self, begun: x509.CertificateBuilder) -> x509.Certificate:
        from cryptography.hazmat.primitives import hashes

        return begun.sign(self.key, hashes.SHA256())

    def _begun(
        self, subject: str, public: ec.EllipticCurvePublicKey, *, authority: bool
    ) -> x509.CertificateBuilder:
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named(self._name))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=self._days))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
            .add_extension(
                x509.KeyUsage(
                    digital_signature=not authority, key_cert_sign=authority, crl_sign=authority,
                    content_commitment=False, key_encipherment=False, data_encipherment=False,
                    key_agreement=False, encipher_only=False, decipher_only=False,
                ),
                critical=True,
            )
        )  # fmt: skip


def pem_of(what: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    """Keys without a password."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    if isinstance(what, x509.Certificate):
        return what.public_bytes(serialization.Encoding.PEM)
    return what.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make(folder: Path, host: str = LOOPBACK[0]) -> Certificates:
    """For `localhost`, the loopback addresses and `host`; `folder` is created."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    authority = Authority("Test authority of one run", VALID_DAYS)
    key, cert = authority.issue("localhost", _names(host))
    files = Certificates(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", folder / "store.p12")
    folder.mkdir(mode=0o700, parents=True)
    files.ca.write_bytes(pem_of(authority.cert))
    files.cert.write_bytes(pem_of(cert) + pem_of(authority.cert))
    files.key.write_bytes(pem_of(key))
    files.keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", key, cert, [authority.cert], serialization.BestAvailableEncryption(PASSWORD.encode())
        )
    )
    return files


def _names(host: str) -> list[x509.GeneralName]:
    from cryptography import x509

    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    for address in dict.fromkeys((*LOOPBACK, host)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return names
