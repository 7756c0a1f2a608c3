"""Certificates of one run: a client that trusts the authority, and nothing else, accepts the server."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import pkcs12

from prony.server import certificates
from prony.server.build import Built
from prony.server.launch import launch


def handshake(made: certificates.Certificates, trusted: Path, name: str) -> None:
    """A TLS handshake between two sockets; raises ssl.SSLError on the client's side."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(made.cert, made.key)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            serving.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with ours, ssl.create_default_context(cafile=str(trusted)).wrap_socket(ours, server_hostname=name):
            pass
    finally:
        thread.join()


def test_the_server_is_trusted_under_its_loopback_names_and_no_other(tmp_path: Path) -> None:
    made = certificates.make(tmp_path / "tls", "127.0.0.7")
    for name in ("127.0.0.1", "localhost", "127.0.0.7"):
        handshake(made, made.ca, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        handshake(made, made.ca, "127.0.0.8")
    other = certificates.make(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(made, other.ca, "127.0.0.1")


def test_the_keystore_holds_the_same_key_and_the_chain(tmp_path: Path) -> None:
    made = certificates.make(tmp_path / "tls")
    store = pkcs12.load_pkcs12(made.keystore.read_bytes(), made.password.encode())
    assert store.cert is not None
    assert len(store.additional_certs) == 1
    validity = store.cert.certificate.not_valid_after_utc - store.cert.certificate.not_valid_before_utc
    assert validity.days < 7
    assert (made.key.parent.stat().st_mode & 0o77) == 0, "for this user only"


def test_a_launch_makes_them_and_removes_them(toy: Callable[..., Built], tmp_path: Path) -> None:
    built = toy("--report", "{tls_keystore} {tls_cert} {tls_key} {tls_ca} {tls_password}", scheme="https")
    with launch(built) as server:
        assert server.url == f"https://127.0.0.1:{server.port}"
        assert server.address.tls
        assert server.ca is not None
        assert server.ca.is_relative_to(server.scratch)
        *files, password = server.command[-1].split()
        assert all(Path(file).is_file() for file in files)
        assert password == certificates.PASSWORD
    assert not server.ca.exists()
    with launch(toy()) as server:
        assert server.ca is None
        assert not server.address.tls
    assert not list(tmp_path.glob("**/*.p12"))
