"""A certificate authority and a server certificate for one run, made anew each time. Must not know who uses
them.

ECDSA on P-256, valid for a few days, for the loopback names; never stored beyond the run, so the password of
the keystore protects nothing.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509

PASSWORD = "for-this-run"
VALID_DAYS = 3
LOOPBACK = ("127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the PEM files, and of a PKCS#12 store with key and chain for a JVM."""

    ca: Path
    cert: Path
    """The server's certificate and then the authority's."""
    key: Path
    keystore: Path
    password: str = PASSWORD

    def placeholders(self) -> dict[str, str]:
        """As placeholders of a command in a server.yaml."""
        return {
            "tls_ca": str(self.ca),
            "tls_cert": str(self.cert),
            "tls_key": str(self.key),
            "tls_keystore": str(self.keystore),
            "tls_password": self.password,
        }


def make(folder: Path, host: str = LOOPBACK[0]) -> Certificates:
    """Create them in `folder` (created) for `localhost`, the loopback addresses and `host`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import pkcs12
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def begun(subject: str, public: ec.EllipticCurvePublicKey, authority: bool) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(named(subject))
            .issuer_name(named("Test authority of one run"))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=VALID_DAYS))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
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

    ca = begun("Test authority of one run", ca_key.public_key(), True).sign(ca_key, hashes.SHA256())
    cert = (
        begun("localhost", key.public_key(), False)
        .add_extension(x509.SubjectAlternativeName([*_names(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    files = Certificates(folder / "ca.pem", folder / "cert.pem", folder / "key.pem", folder / "store.p12")
    folder.mkdir(mode=0o700, parents=True)
    files.ca.write_bytes(ca.public_bytes(pem))
    files.cert.write_bytes(cert.public_bytes(pem) + ca.public_bytes(pem))
    files.key.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files.keystore.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", key, cert, [ca], serialization.BestAvailableEncryption(PASSWORD.encode())
        )
    )
    return files


def _names(host: str) -> list[x509.GeneralName]:
    """The names and addresses under which the server may be reached."""
    from cryptography import x509

    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    for address in dict.fromkeys((*LOOPBACK, host)):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return names
