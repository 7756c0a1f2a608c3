"""Credentials reach the server, and nothing else: no store, no export, no page, no terminal."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.store import Store
from tests import command
from tests.frontends.jmx_text import document, element, prop, repeated, sampler
from tests.web.conftest import reader

PASSWORD, TOKEN, COOKIE, QUERY, SET, FILED = (
    "hunter2-pw",
    "t0ken-abcdef",
    "c00kie-value",
    "query-s3cret",
    "s3t-by-server",
    "of-a-csv-f1le",
)
BASIC = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, TOKEN, COOKIE, QUERY, SET, FILED, BASIC)
SHORT = ("--driver", "epoll")


class Echo:
    """A server that repeats what it is sent: in its head, and in its body where it says no."""

    def __init__(self, status: str) -> None:
        self.seen = b""
        self.status = status
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _listen(self) -> None:
        while True:
            try:
                connection = self._listening.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                while asked := connection.recv(65536):
                    if len(self.seen) < 100_000:
                        self.seen += asked
                    words = re.findall(rb"t0ken-\w+|hunter2-pw|c00kie-value|query-s3cret", asked)
                    body = b"you sent " + b", ".join(words)
                    time.sleep(0.005)
                    connection.sendall(
                        b"HTTP/1.1 %s\r\nServer: x\r\nSet-Cookie: sid=%s; Path=/\r\nX-Echo: %s\r\n"
                        b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
                        % (self.status.encode(), SET.encode(), b" ".join(words), len(body), body)
                    )
            except OSError:
                return

    def close(self) -> None:
        self._listening.close()


@pytest.fixture(params=["200 OK", pytest.param("401 Unauthorized", marks=pytest.mark.rarely)])
def echo(request: pytest.FixtureRequest) -> Iterator[Echo]:
    server = Echo(request.param)
    yield server
    server.close()


def ran(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command with a store of its own; nothing that it prints holds a credential."""
    surroundings = os.environ | {"PRONY_DB": str(folder / "r.db"), "COLUMNS": "200"} | env
    done = command.run([*words], cwd=folder, env=surroundings)
    assert "Traceback" not in done.stderr, done.stderr[-3000:]
    assert kept(done.stdout + done.stderr) == [], done.stdout + done.stderr
    return done


def kept(text: str) -> list[str]:
    return [one for one in SECRETS if one in text]


def rows(database: Path) -> str:
    """Everything in a store, unpacked."""
    connection = sqlite3.connect(database)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = [
        zlib.decompress(value).decode() if isinstance(value, bytes) else str(value)
        for table in tables
        for row in connection.execute(f"SELECT * FROM {table}")
        for value in row
    ]
    connection.close()
    return "\n".join(found)


def nothing_leaks(folder: Path) -> None:
    """From the store with its only result, in any form in which it can be had."""
    database = folder / "r.db"
    assert kept(rows(database)) == []
    assert kept(database.read_bytes().decode("latin-1")) == []
    ran(folder, "results", "publish", "latest", "-o", str(folder / "public"))
    ran(folder, "results", "export", "latest", "-o", str(folder / "file"))
    for made in (folder / "public" / "results.prony", folder / "file"):
        assert kept(gzip.decompress(made.read_bytes()).decode()) == []
    for made in (folder / "public").iterdir():
        assert kept(made.read_bytes().decode("latin-1")) == []
    ran(folder, "results", "list")
    ran(folder, "results", "show", "latest", "--json", "--report", str(folder / "page.html"))
    assert kept((folder / "page.html").read_text()) == []
    for form in ("json", "csv", "elasticsearch", "markdown", "openmetrics"):
        ran(folder, "results", "export", "latest", "--format", form)
    store = Store.open(database)
    identifier = store.experiment("latest").id
    client = reader(store)
    # No report here: what draws it would leave a driver behind that no command forked from here can use.
    for page in ("/", f"/api/results/{identifier}", "/api/results", "/trends"):
        assert kept(client.get(page).text) == []
    store.close()


def sent(server: Echo, *secrets: str) -> None:
    assert [one for one in secrets if one.encode() not in server.seen] == []


def test_load(tmp_path: Path, echo: Echo) -> None:
    done = ran(
        tmp_path, "load", f"http://me:{PASSWORD}@127.0.0.1:{echo.port}/x?access_token={QUERY}&page=2",
        "-H", f"Authorization: Bearer {TOKEN}", "-H", f"Cookie: s={COOKIE}", "-r", "20", "-d", "1s",
        "--warmup", "100ms", *SHORT,
    )  # fmt: skip
    sent(echo, TOKEN, COOKIE, QUERY)
    if done.returncode == 4:  # the server says no to the first request, and nothing is measured
        assert echo.status != "200 OK"
        return
    nothing_leaks(tmp_path)
    assert "access_token=REDACTED&page=2" in rows(tmp_path / "r.db"), "what is no credential stays"


@pytest.mark.rarely
def test_a_plan_file(tmp_path: Path, echo: Echo) -> None:
    plan = {
        "title": f"against http://me:{PASSWORD}@127.0.0.1/",
        "servers": {"url": echo.url},
        "workloads": {
            "steps": [
                {
                    "name": f"POST /login?api_key={QUERY}", "path": f"/login?api_key={QUERY}",
                    "method": "POST",
                    "headers": {"X-Api-Key": TOKEN, "Content-Type": "application/json"},
                    "body": json.dumps({"user": "me", "password": PASSWORD}),
                    "expect": {"status": [200], "headers": {"set-cookie": "another"}},
                },
                {"path": "/next", "auth": {"basic": {"user": "me", "password": PASSWORD}}},
                {"path": "/last", "auth": {"bearer": TOKEN}},
            ],
            "cookies": {"given": [{"name": "s", "value": COOKIE}]},
        },
        "loads": {"users": 1},
        "measured": {"total_requests": 6},
    }  # fmt: skip
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    ran(tmp_path, "run", "plan.yaml", "--dry-run")
    ran(tmp_path, "run", "plan.yaml", *SHORT)
    sent(echo, TOKEN, QUERY, PASSWORD)
    for step in plan["workloads"]["steps"]:  # type: ignore[index]
        step["expect"] = {"status": []}
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    assert ran(tmp_path, "run", "plan.yaml", *SHORT).returncode in (0, 3)
    sent(echo, TOKEN, COOKIE, QUERY, PASSWORD, BASIC)
    nothing_leaks(tmp_path)


ARTILLERY = """
config:
  target: "{url}"
  variables: {{apiKey: "{query}"}}
  phases: [{{duration: 1, arrivalCount: 2}}]
scenarios:
  - flow:
      - post:
          url: "/login?api_key={{{{ apiKey }}}}"
          headers: {{Authorization: "Bearer {{{{ $processEnvironment.API_TOKEN }}}}"}}
          cookie: {{s: "{cookie}"}}
          json: {{user: me, password: "{password}"}}
      - get: {{url: "/next", auth: {{user: me, pass: "{password}"}}}}
"""

ARTILLERY_FUNCTIONS = """
config:
  target: "{url}"
  processor: s.js
  variables: {{unlock: "{password}", visit: ["{cookie}", "{cookie}"]}}
  payload: {{path: people.csv, fields: [person, code]}}
  phases: [{{duration: 1, arrivalCount: 2}}]
scenarios:
  - beforeRequest: sign
    flow:
      - post:
          url: "/login?token={{{{ $processEnvironment.DEPLOY }}}}"
          headers: {{Authorization: "Bearer {{{{ code }}}}"}}
          cookie: {{s: "{{{{ visit }}}}", t: "{cookie}"}}
          json: {{user: "{{{{ person }}}}", password: "{{{{ unlock }}}}"}}
"""
FUNCTIONS = (
    "module.exports = {sign(req, context, ee, next) { req.headers.person = context.vars.person; next(); }}"
)


FRONT_ENDS = {
    "ab": ("ab", "-n", "3", "-v", "2", "-A", f"me:{PASSWORD}", "-C", f"s={COOKIE}", "-H",
           f"X-Auth-Token: {TOKEN}", "{url}/x?token=" + QUERY),
    "wrk": ("wrk", "-d", "1s", "-c", "1", "-t", "1", "-H", f"Authorization: Bearer {TOKEN}", "-H",
            f"Cookie: s={COOKIE}", "{with_user}/x?token=" + QUERY),
    "h2load": ("h2load", "--h1", "-n", "3", "-c", "1", "-H", f"authorization: Bearer {TOKEN}", "-H",
               f"cookie: s={COOKIE}", "{url}/x?token=" + QUERY),
    "wrk with a script": ("wrk", "-d", "1s", "-c", "1", "-t", "1", "-s", "s.lua", "{url}/x", "--",
                          "--token", TOKEN, f"password={PASSWORD}"),
    "artillery": ("artillery", "run", "s.yml"),
    "artillery with functions": ("artillery", "run", "f.yml"),
    "jmeter": ("jmeter", "-n", "-t", "s.jmx", f"-Jpassword={PASSWORD}"),
}  # fmt: skip
SENT = {
    "ab": (BASIC, COOKIE, TOKEN, QUERY),
    "wrk": (TOKEN, COOKIE, QUERY),
    "h2load": (TOKEN, COOKIE, QUERY),
    "wrk with a script": (TOKEN, COOKIE, PASSWORD),
    "artillery": (TOKEN, COOKIE, QUERY, PASSWORD, BASIC),
    "artillery with functions": (FILED, COOKIE, QUERY, PASSWORD),
    "jmeter": (TOKEN, COOKIE, QUERY, BASIC, SET),
}
LUA = """
function init(args)
   wrk.headers["Authorization"] = "Bearer " .. args[2]
   wrk.headers["Cookie"] = "s={cookie}"
   wrk.path = "/x?" .. args[3]
end
function done(summary, latency, requests)
   print("sent the header Authorization: " .. wrk.headers["Authorization"])
   print("as " .. wrk.path)
end
"""


def jmx(port: int) -> str:
    """A test plan with a header, credentials, a cookie and a parameter."""

    def listed(manager: str, collection: str, kind: str, called: str = "", **values: str) -> str:
        inside = "".join(prop(name.replace("__", "."), value) for name, value in values.items())
        one = f'<elementProp name="{called}" elementType="{kind}">{inside}</elementProp>'
        return element(manager, f'<collectionProp name="{collection}">{one}</collectionProp>')

    below = (
        element("ConfigTestElement", prop("HTTPSampler.port", port))
        + listed(
            "AuthManager", "AuthManager.auth_list", "Authorization", Authorization__url="",
            Authorization__username="me", Authorization__password="${__P(password)}",
            Authorization__mechanism="BASIC",
        )
        + listed(
            "HeaderManager", "HeaderManager.headers", "Header", Header__name="X-Api-Key", Header__value=TOKEN,
        )
        + listed(
            "CookieManager", "CookieManager.cookies", "Cookie", "s", Cookie__value=COOKIE,
            Cookie__domain="127.0.0.1", Cookie__path="/",
        )
        + element(
            "JSR223PreProcessor", prop("script", f"vars.put('visit', '{SET}')"), prop("cacheKey", "true")
        )
        + sampler(f"/x?token={QUERY}&amp;sid=${{visit}}", name=f"GET /x?token={QUERY}")
    )  # fmt: skip
    threads = prop("ThreadGroup.num_threads", 1) + prop("ThreadGroup.ramp_time", 0) + repeated(2)
    return document(below, group=threads).decode()


@pytest.mark.parametrize("tool", FRONT_ENDS)
@pytest.mark.rarely
def test_front_ends(tmp_path: Path, echo: Echo, tool: str) -> None:
    (tmp_path / "s.yml").write_text(
        ARTILLERY.format(url=echo.url, query=QUERY, cookie=COOKIE, password=PASSWORD)
    )
    (tmp_path / "f.yml").write_text(
        ARTILLERY_FUNCTIONS.format(url=echo.url, cookie=COOKIE, password=PASSWORD)
    )
    (tmp_path / "s.js").write_text(FUNCTIONS)
    (tmp_path / "people.csv").write_text(f"ada,{FILED}\n")
    (tmp_path / "s.lua").write_text(LUA.replace("{cookie}", COOKIE))
    (tmp_path / "s.jmx").write_text(jmx(echo.port))
    places = {"url": echo.url, "with_user": f"http://me:{PASSWORD}@127.0.0.1:{echo.port}"}
    ran(
        tmp_path, *(word.format(**places) for word in FRONT_ENDS[tool]), *SHORT, API_TOKEN=TOKEN, DEPLOY=QUERY
    )
    sent(echo, *SENT[tool])
    nothing_leaks(tmp_path)


def interrupted(folder: Path, *words: str) -> str:
    """What is said of a run that is interrupted within its second trial."""
    surroundings = os.environ | {"PRONY_DB": str(folder / "r.db")}
    with command.start([*words], cwd=folder, env=surroundings) as process:
        assert process.stderr is not None
        said = ""
        while "trial 2 of 3" not in said:
            said += process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert kept(out + said + err) == []
    return err


@pytest.mark.parametrize("echo", ["200 OK"], indirect=True)
@pytest.mark.parametrize("words", [("run", "plan.yaml"), ("load",)])
@pytest.mark.rarely
def test_who_goes_on_gives_them_again(tmp_path: Path, echo: Echo, words: tuple[str, ...]) -> None:
    step = {"path": f"/x?key={QUERY}", "headers": {"Authorization": f"Bearer {TOKEN}"}}
    plan = {
        "title": "x", "servers": {"url": echo.url}, "workloads": {"steps": [step]}, "loads": {"users": 1},
        "measured": {"duration_s": 2}, "trials": 3,
    }  # fmt: skip
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    whole = (*words, *SHORT)
    if words == ("load",):
        whole = (
            "load", f"{echo.url}/x?key={QUERY}", "-H", f"Authorization: Bearer {TOKEN}", "-c", "1",
            "-d", "2s", "--whole", "--trials", "3", *SHORT,
        )  # fmt: skip
    assert "as credentials are never stored" in interrupted(tmp_path, *whole)
    echo.seen = b""
    assert ran(tmp_path, words[0], "--resume", "latest").returncode == 2
    assert "credentials are never stored" in ran(tmp_path, words[0], "--resume", "latest").stderr
    assert ran(tmp_path, "run", "--resume", "latest", "--dry-run").returncode == 0
    assert echo.seen == b"", "nothing is sent without them"
    assert ran(tmp_path, *whole, "--resume", "latest").returncode in (0, 3)
    sent(echo, TOKEN, QUERY)
    assert b"REDACTED" not in echo.seen
    assert ran(tmp_path, words[0], "--resume", "latest").returncode in (0, 3), "nothing is left to run"
    nothing_leaks(tmp_path)
