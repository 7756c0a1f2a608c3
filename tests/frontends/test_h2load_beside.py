"""`prony h2load` and the real h2load with the same flags against nghttpd: standard output, the counts of
bytes, the exit code, and what the server sees.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from prony_frontends.h2load import FRONT_END
from tests.frontends.conftest import Served, quick_desk
from tests.programs import program

pytestmark = [pytest.mark.needs("h2load"), pytest.mark.needs("nghttpd")]
run = FRONT_END.run
STARTS_S = 60.0
DATES = 5


@dataclass
class Nghttpd:
    """A running nghttpd."""

    process: subprocess.Popen[bytes]
    port: int
    said: Path

    def heard(self) -> list[tuple[str, ...]]:
        """The fields of each request, in any order."""
        self.process.terminate()
        self.process.wait(60)
        requests: dict[tuple[str, str], list[str]] = {}
        for line in self.said.read_text().splitlines():
            found = re.match(r"\[id=(\d+)\].* recv \(stream_id=(\d+)\) (.*)", line)
            if found:
                requests.setdefault((found[1], found[2]), []).append(found[3])
        return sorted(tuple(sorted(fields)) for fields in requests.values())


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def nghttpd(tmp_path: Path) -> Iterator[Callable[..., Nghttpd]]:
    """Starts it with these options; it takes no port 0, so that one that was taken meanwhile is given up."""
    running: list[Nghttpd] = []
    htdocs = tmp_path / "htdocs"
    htdocs.mkdir()
    (htdocs / "index.html").write_text("Hello, World!\n")
    (htdocs / "a").write_text("a" * 6756)

    def start(*options: str, keys: tuple[Path, ...] = ()) -> Nghttpd:
        until_s = time.monotonic() + STARTS_S
        while time.monotonic() < until_s:
            port, said = free_port(), tmp_path / f"nghttpd-{len(running)}"
            tls = [] if keys else ["--no-tls"]
            with said.open("wb") as log:
                process = subprocess.Popen(
                    [program("nghttpd"), "-v", "-a", "127.0.0.1", "-d", htdocs, *tls, *options,
                     str(port), *keys],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                )  # fmt: skip
            found = Nghttpd(process, port, said)
            running.append(found)
            while process.poll() is None and time.monotonic() < until_s:
                if b"listen" in said.read_bytes():
                    return found
                time.sleep(0.02)
        raise AssertionError("nghttpd did not start")

    yield start
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()


def shape(text: str) -> list[str]:
    """Standard output with its times and rates as letters, as neither program has them twice alike; progress,
    which comes once a second here, as its last line.
    """
    lines = []
    for line in text.splitlines():
        if line.startswith("progress:") and "100%" not in line:
            continue
        if line.startswith("Server Temp Key"):
            continue  # Which key was agreed on the engine does not tell.
        times = re.sub(r"\d+(?:\.\d+)?(?:us|ms|s)\b", "T", line)
        if line.startswith(("finished", "time ", "req/s")):
            times = re.sub(r"[\d.]+(?:[KMG]?B/s| req/s|%)?", "N", times)
        lines.append(re.sub(r" +", " ", times))
    return lines


def alike(ours: Callable[[], str], theirs: Callable[[], str], flags: str) -> None:
    """Both print the same. A response's head is longer where its date is the first of a second: once more."""
    for _ in range(DATES):
        found, expected = shape(ours()), shape(theirs())
        if "-r " in flags:  # When its connection tells the protocol depends on when it is made.
            found, expected = sorted(found), sorted(expected)
        if found == expected:
            return
    assert found == expected


def ended(argv: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("h2load"), *argv], capture_output=True, text=True, timeout=120, cwd=cwd, check=False
    )


def real(argv: list[str], cwd: Path) -> str:
    """Standard output of h2load."""
    done = ended(argv, cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(argv: list[str]) -> str:
    """Standard output of `prony h2load`."""
    context, out, _ = quick_desk()
    assert run(argv, context) == 0
    return out.getvalue()


CASES = [
    "-n 1 URL",
    "-n 40 -c 4 -m 5 URL",
    "-n 11 -c 3 -m 2 URL",
    pytest.param("-n 21 -c 3 -m 2 URL BASE/a BASE/none", marks=pytest.mark.everyday),
    "-n 12 -c 4 -r 2 --rate-period=50ms URL",
    "-n 6 -c 2 -d body URL",
    "-n 4 -H x-a:b -H user-agent:me URL",
    "-n 4 -H :authority:there -w 16 -W 17 URL",
    "-n 6 -c 2 -i uris",
    "-n 4 -B BASE /a",
    "-n 4 --connect-to=127.0.0.1:PORT http://there:81/a",
    "--timing-script-file=timing -c 2",
    "--rps=200 -n 4 -c 2 -m 2 URL",
]


@pytest.mark.parametrize("flags", CASES)
def test_output_counts_and_headers_are_h2loads(
    flags: str, nghttpd: Callable[..., Nghttpd], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_text("body")
    theirs, ours = nghttpd(), nghttpd()

    def argv(server: Nghttpd) -> list[str]:
        base = f"http://127.0.0.1:{server.port}"
        (tmp_path / "uris").write_text(f"{base}/\n/a\n{base}/none?x=y\n")
        (tmp_path / "timing").write_text(f"0\t{base}/\n20.5\t/a\n40\t/none\n")
        text = flags.replace("BASE", base).replace("URL", f"{base}/").replace("PORT", str(server.port))
        return shlex.split(text)

    alike(lambda: printed(argv(ours)), lambda: real(argv(theirs), tmp_path), flags)
    heard = [
        tuple(field.replace(f":{server.port}", ":PORT") for field in fields)
        for server in (theirs, ours)
        for fields in server.heard()
    ]
    half = len(heard) // 2
    assert Counter(heard[:half]) == Counter(heard[half:])
    assert half > 0


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("flags", ["-n 12 -c 2 -m 3 URL", "-n 6 -c 2 --npn-list=h2 URL"])
def test_over_tls(flags: str, nghttpd: Callable[..., Nghttpd], tmp_path: Path) -> None:
    key, chain = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    subprocess.run(["openssl", *made.split(), "-keyout", key, "-out", chain], check=True, capture_output=True)
    theirs, ours = nghttpd(keys=(key, chain)), nghttpd(keys=(key, chain))

    def argv(server: Nghttpd) -> list[str]:
        return shlex.split(flags.replace("URL", f"https://127.0.0.1:{server.port}/"))

    alike(lambda: printed(argv(ours)), lambda: real(argv(theirs), tmp_path), flags)


@pytest.mark.parametrize("flags", ["-n 1 URL", "-n 30 -c 3 -m 4 URL", "-n 7 -c 2 -d body URL"])
@pytest.mark.parametrize("options", ["", "--status 404", "--body-bytes 0"])
def test_on_the_reference_server(
    flags: str,
    options: str,
    serve: Callable[..., Served],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_text("body")
    theirs, ours = (serve("--http2", *shlex.split(options)) for _ in range(2))

    def argv(server: Served) -> list[str]:
        return shlex.split(flags.replace("URL", f"{server.url}/a"))

    alike(lambda: printed(argv(ours)), lambda: real(argv(theirs), tmp_path), flags)
    assert ours.ended()["requests"] == theirs.ended()["requests"]


@pytest.mark.parametrize("flags", ["--h1 -n 6 -c 2 URL", "-p http/1.1 -n 3 -d body -H x-a:b URL"])
def test_over_http_1(
    flags: str, serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_text("body")
    theirs, ours = serve(), serve()

    def argv(server: Served) -> list[str]:
        return shlex.split(flags.replace("URL", f"{server.url}/a"))

    alike(lambda: printed(argv(ours)), lambda: real(argv(theirs), tmp_path), flags)
    assert ours.ended()["requests"] == theirs.ended()["requests"]

    def sent(server: Served) -> str:
        return server.recorded().decode().replace(server.address, "A").lower()

    assert sent(ours) == sent(theirs)


@pytest.mark.parametrize(
    "flags", ["-n 2 -c 5 URL", "-n 1k URL", "-p foo URL", "-i nofile", "/foo", "-w 40 URL", "-H x URL"]
)
def test_a_command_line_that_it_does_not_take(flags: str, tmp_path: Path) -> None:
    argv = shlex.split(flags.replace("URL", "http://127.0.0.1:1/"))
    said = ended(argv, tmp_path)
    context, out, err = quick_desk()
    assert run(argv, context) == said.returncode == 1
    assert (out.getvalue(), err.getvalue().strip()) == ("", said.stderr.strip())
