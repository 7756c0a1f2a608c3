"""`prony ab` and the real ab with the same flags against the same kind of server: standard output by lines,
the exit code, and what both say when nobody answers.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from prony_frontends.ab import run
from tests.frontends.conftest import Front, Served, quick_desk
from tests.programs import program

pytestmark = pytest.mark.needs("ab")
NUMBER = re.compile(r" *-?\d+(?:\.\d+)?")
"""With the blanks before it: a wider number takes some of them."""
OWN = ("This is ApacheBench", " This is ApacheBench", "Copyright", " Copyright", "Licensed", " Licensed",
       "The layout", " The layout", "(the whole", " (the whole", "WARNING", "ERROR", "        These",
       "       deviation")  # fmt: skip
"""Lines of the banner, and warnings that depend on the times."""


def lines_of(text: str) -> list[str]:
    return [NUMBER.sub(" N", line) for line in text.splitlines() if not line.startswith(OWN)]


CASES = [
    ("-n 20 -c 2", ""),
    pytest.param("-n 300 -c 5 -k", "", marks=pytest.mark.everyday),
    ("-n 300 -c 5 -q", ""),
    ("-n 20 -i", ""),
    ("-n 20 -i -k", "--status 404"),
    ("-n 20 -k", "--body-bytes 0"),
    ("-n 20 -c 2", "--status 301"),
    ("-n 20 -k", "--status 204"),
    ("-n 20 -k", "--chunked"),
    ("-n 20 -w", ""),
    ("-n 20 -w -k -p body", ""),
    ("-n 20 -w -i -x border=1 -y class=a -z class=b", "--status 404"),
    ("-n 200 -w -c 2", ""),
    ("-n 20 -d", ""),
    ("-n 20 -S", ""),
    ("-n 20 -l", "--wrong-body share=0.5"),
    ("-n 20 -u body -T text/x", ""),
    ("-n 20 -p empty", ""),
    ("-n 20 -m DELETE -H 'X: 1' -A a -C b=c", ""),
    ("-n 20 -r -c 2", "--reset share=0.5"),
    ("-n 20 -X ADDRESS", ""),
]


@pytest.mark.parametrize(("flags", "options"), CASES)
def test_standard_output_and_exit_code_are_abs(
    flags: str, options: str, serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_text("x" * 33)
    (tmp_path / "empty").write_text("")
    theirs, ours = serve(*shlex.split(options)), serve(*shlex.split(options))

    def argv(server: Served) -> list[str]:
        return [word.replace("ADDRESS", server.address) for word in shlex.split(flags)] + [f"{server.url}/a"]

    real = subprocess.run([program("ab"), *argv(theirs)], capture_output=True, text=True, timeout=120)
    context, out, err = quick_desk()
    assert run(argv(ours), context) == real.returncode == 0
    assert lines_of(out.getvalue()) == lines_of(real.stdout)
    assert lines_of(err.getvalue()) == lines_of(real.stderr)
    assert ours.ended()["requests"] == theirs.ended()["requests"]


def test_over_ipv6(serve: Callable[..., Served]) -> None:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        pytest.skip("this host has no IPv6 loopback address")
    theirs, ours = serve(listen="[::1]:0"), serve(listen="[::1]:0")
    words = ["-n", "10", "-k"]
    real = subprocess.run(
        [program("ab"), *words, theirs.url + "/"], capture_output=True, text=True, timeout=120
    )
    context, out, _ = quick_desk()
    assert run([*words, ours.url + "/"], context) == real.returncode == 0
    assert lines_of(out.getvalue()) == lines_of(real.stdout)
    theirs.ended(), ours.ended()
    assert ours.recorded().replace(ours.address.encode(), b"A") == theirs.recorded().replace(
        theirs.address.encode(), b"A"
    )


@pytest.mark.needs("openssl")
def test_over_tls(serve: Callable[..., Served], tmp_path: Path) -> None:
    key, chain = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", chain], check=True, capture_output=True)
    options = ("--tls", "--cert", str(chain), "--key", str(key))
    theirs, ours = serve(*options), serve(*options)
    words = ["-n", "6", "-c", "2"]
    real = subprocess.run(
        [program("ab"), *words, f"https://{theirs.address}/"], capture_output=True, text=True, timeout=120
    )
    context, out, _ = quick_desk()
    assert run([*words, f"https://{ours.address}/"], context) == real.returncode == 0

    def known(text: str) -> list[str]:
        # The engine does not know the length of the server's key; ab also names the key exchange.
        return [
            "SSL/TLS Protocol" if line.startswith("SSL/TLS Protocol") else line
            for line in lines_of(text)
            if not line.startswith("Server Temp Key")
        ]

    assert known(out.getvalue()) == known(real.stdout)
    assert ours.ended()["requests"] == theirs.ended()["requests"] == 6


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://no-such-host.invalid/"])
def test_where_nobody_answers(url: str, front: Front) -> None:
    real = subprocess.run([program("ab"), "-n", "3", url], capture_output=True, text=True, timeout=120)
    assert run(["-n", "3", url], front.context()) == real.returncode
    said = front.err.getvalue().splitlines()
    assert said[0] == real.stderr.strip()
    assert said[1].startswith("prony: ")
    assert lines_of(front.out.getvalue()) == lines_of(real.stdout)


@pytest.mark.parametrize(
    ("flags", "options"), [("-n 40 -c 2", "--reset share=0.5"), ("-n 4 -c 4 -s 1", "--delay fixed:20s")]
)
def test_a_run_that_breaks_ends_without_a_report(
    flags: str, options: str, serve: Callable[..., Served]
) -> None:
    theirs, ours = serve(*options.split()), serve(*options.split())
    real = subprocess.run(
        [program("ab"), *flags.split(), theirs.url + "/"], capture_output=True, text=True, timeout=120
    )
    context, out, err = quick_desk()
    assert run([*flags.split(), ours.url + "/"], context) == real.returncode
    assert err.getvalue() == real.stderr

    def before_the_end(text: str) -> list[str]:
        # How many had been completed until then depends on when it broke.
        return lines_of(text.partition("Total of")[0])

    assert before_the_end(out.getvalue()) == before_the_end(real.stdout)
