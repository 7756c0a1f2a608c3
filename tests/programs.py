"""Programs that some tests need beside Prony's own: where they are, and how one gets those that are missing.

A test says `@pytest.mark.needs("jmeter")`; tests/conftest.py does the rest: without the program the test is
skipped with the reason, or fails where PRONY_TEST_ALL is set, as in CI.
"""

from __future__ import annotations

from pathlib import Path

from prony.server.cache import installed

FETCHED = "tools/fetch.py {}, which `make test-all` runs"
PROGRAMS = {
    "ab": (("ab",), "apt-get install apache2-utils"),
    "artillery": (("artillery",), FETCHED),
    "axe": (("axe.min.js",), FETCHED),
    "chromium": (("chromium", "chromium-browser", "google-chrome"), FETCHED),
    "elasticsearch": (("elasticsearch",), FETCHED),
    "ethtool": (("ethtool",), "apt-get install ethtool"),
    "go": (("go", "/usr/local/go/bin/go"), "apt-get install golang-go"),
    "h2load": (("h2load",), "apt-get install nghttp2-client"),
    "h2spec": (("h2spec",), FETCHED),
    "hdrhistogram": (("HistogramLogProcessor",), FETCHED),
    "ip": (("ip",), "apt-get install iproute2"),
    "jfrconv": (("jfrconv",), FETCHED),
    "jmeter": (("jmeter",), FETCHED),
    "jmeter-plugins": (("jmeter-plugins",), FETCHED),
    "memcached": (("memcached",), "apt-get install memcached"),
    "nghttpd": (("nghttpd",), "apt-get install nghttp2-server"),
    "node": (("node",), "install Node.js 18 or newer"),
    "opensearch": (("opensearch",), FETCHED),
    "openssl": (("openssl",), "apt-get install openssl"),
    "postgresql": (("initdb",), FETCHED),
    "prometheus": (("prometheus",), "apt-get install prometheus"),
    "ssh-keygen": (("ssh-keygen",), "apt-get install openssh-client"),
    "sshd": (("sshd",), "apt-get install openssh-server"),
    "tc": (("tc",), "apt-get install iproute2"),
    "unshare": (("unshare",), "apt-get install util-linux"),
    "wrk": (("wrk",), "apt-get install wrk"),
}
"""Name -> the names of its program, and what installs it."""


def find(name: str) -> Path | None:
    """On the PATH, or where tools/fetch.py puts it."""
    names, _ = PROGRAMS[name]
    return next((found for one in names if (found := installed(one, name)) is not None), None)


def program(name: str) -> str:
    """The path of a program that a test needs."""
    found = find(name)
    assert found is not None, missing(name)
    return str(found)


def missing(name: str) -> str | None:
    """Why a test that needs this program cannot run, in a sentence; None where it can."""
    if find(name) is not None:
        return None
    return f"{name} is not installed: {PROGRAMS[name][1].format(name)}"
