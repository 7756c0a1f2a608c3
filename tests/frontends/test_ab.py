"""`prony ab`: the command line, the bytes on the wire beside the real ab's, and the layout."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.errors import UsageError
from prony_frontends.ab import FRONT_END, _files, html, layout, run, translate
from prony_frontends.ab.arguments import AbArguments, parse
from prony_frontends.ab.figures import AbFigures, AbTimes, TimeDistribution
from prony_frontends.base import Refused, openssl_name
from tests.frontends.conftest import Front, Served, offered
from tests.frontends.recorder import Recorder
from tests.programs import program

real = pytest.mark.needs("ab")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def real_ab(*words: str, cwd: Path) -> str:
    done = subprocess.run([program("ab"), *words], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "flags",
    [
        "-n 1", "-n 2 -k", "-i -k -n 2", "-p body", "-p body -T a/b -k -n 2", "-u body -T application/json",
        "-m DELETE", "-p body -m PATCH", "-H 'X-A: 1' -H 'Host: other' -H 'x-b: 2'", "-H 'User-Agent: me'",
        "-C a=b -A user:word -P proxy:word", "-H X:b -H 'A: 1' -H 'A: 2' -p body", "-H host:z -H ' X: y ' -k",
        "-C a=b -C c=d", "-A 'a:b c' -H 'accept: */x'", "-p empty",
    ],
)  # fmt: skip
@real
def test_the_server_gets_the_bytes_that_ab_sends(
    serve: Callable[..., Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_bytes(b"a=1&b=\x00${uuid}\n")
    (tmp_path / "empty").write_bytes(b"")
    theirs, ours = serve(), serve()
    words = shlex.split(flags)
    real_ab(*words, f"{theirs.url}/path?a=1&b=${{uuid}}", cwd=tmp_path)
    offered(translate([*words, f"{ours.url}/path?a=1&b=${{uuid}}"]))
    counted = theirs.ended(), ours.ended()
    sent = theirs.recorded().replace(theirs.address.encode(), b"ADDRESS")
    assert ours.recorded().replace(ours.address.encode(), b"ADDRESS") == sent
    assert counted[0]["requests"] == counted[1]["requests"]
    assert counted[0]["connections"] == counted[1]["connections"]


HEADERS = {
    "-H X:b": b"X:b\r\n", "-H 'X:  b  '": b"X:  b  \r\n", "-H Xb": b"Xb\r\n",
    "-H 'X: 1' -H 'X: 2'": b"X: 1\r\nX: 2\r\n",
    "-H ' Accept:z'": b" Accept:z\r\n", "-H 'Host :z'": b"Host :z\r\n", "-H 'é:${x}'": "é:${x}\r\n".encode(),
}  # fmt: skip
"""Lines of -H, and how ab 2.3 sends them, before its own."""


@pytest.mark.parametrize(("flags", "lines"), HEADERS.items(), ids=HEADERS)
def test_lines_of_headers_are_sent_as_they_are(flags: str, lines: bytes) -> None:
    with Recorder() as server:
        offered(translate([*shlex.split(flags), f"{server.url}/"]))
    own = f"Host: 127.0.0.1:{server.port}\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n".encode()
    assert server.requests == [b"GET / HTTP/1.0\r\n" + lines + own]


def test_a_line_replaces_a_header_of_ab_in_its_place() -> None:
    with Recorder() as server:
        offered(translate(["-H", "host:z", "-H", "Accept:", "-C", " a = b ", f"{server.url}/a b?c d#e"]))
    assert server.requests == [
        b"GET /a b?c d#e HTTP/1.0\r\nCookie:  a = b \r\nhost:z\r\nAccept:\r\n"
        b"User-Agent: ApacheBench/2.3\r\n\r\n"
    ]


def test_a_body_that_cannot_be_read(front: Front, tmp_path: Path) -> None:
    for flag, name, sentence in (
        ("-p", "none", "ab: Could not open POST data file (none): No such file or directory"),
        ("-u", "none", "ab: Could not open POST data file (none): No such file or directory"),
        ("-p", str(tmp_path), "ab: Could not read POST data file: Is a directory"),
    ):
        assert run([flag, name, "http://127.0.0.1:9/"], front.context()) == 1
        assert front.err.getvalue().splitlines()[-1] == sentence


@real
def test_through_a_proxy_the_whole_url_is_asked_for(serve: Callable[..., Served], tmp_path: Path) -> None:
    theirs, ours = serve(), serve()
    real_ab("-X", theirs.address, "http://example.org/a?b", cwd=tmp_path)
    offered(translate(["-X", ours.address, "http://example.org/a?b"]))
    theirs.ended(), ours.ended()
    # The default port is written out or not: a proxy understands both.
    assert ours.recorded().replace(b"http://example.org:80/", b"http://example.org/") == theirs.recorded()


def test_a_connection_that_ends_at_once_takes_no_other_with_it(serve: Callable[..., Served]) -> None:
    """The server's loop once ended the sending side of the next connection in the same slot."""
    server = serve()
    totals = offered(translate(["-n", "1500", "-c", "3", f"{server.url}/"])).totals
    assert (totals.completed, totals.errors) == (1500, {})
    assert server.ended()["connections"] == 1500


def lines_of(out: str) -> list[str]:
    """The words of a report, without its numbers and what stands above it."""
    kept = out[out.index("Server Software") :].splitlines()
    return [re.sub(r"\s+", " ", NUMBER.sub("N", line)).strip() for line in kept if "ERROR" not in line]


def value(out: str, name: str) -> str:
    found = re.search(rf"^{re.escape(name)}:\s+(.*)$", out, re.MULTILINE)
    assert found is not None, out
    return found[1]


@real
@pytest.mark.parametrize(
    ("flags", "options", "same"),
    [
        ("-n 120 -c 4 -k", ("--body-bytes", "777"), ("Document Length", "Complete requests",
         "Failed requests", "Keep-Alive requests", "Total transferred", "HTML transferred",
         "Server Software")),
        # One connection: how requests spread over several decides how many of them end.
        ("-n 60 -c 1 -k", ("--close-after", "5"), ("Complete requests", "Keep-Alive requests",
         "Failed requests")),
        ("-n 40 -c 2 -p body", ("--status", "404"), ("Non-2xx responses", "Complete requests",
         "Failed requests", "Total body sent", "HTML transferred", "Total transferred")),
    ],
)  # fmt: skip
def test_the_report_is_abs_line_by_line(
    serve: Callable[..., Served], front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    flags: str, options: tuple[str, ...], same: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body").write_bytes(b"x" * 33)
    server = serve("--content-type", "text/plain", *options)
    words = [*shlex.split(flags), f"{server.url}/a"]
    theirs = real_ab(*words, cwd=tmp_path)
    code = run(words, front.context(exit_like_original=True))
    ours = front.out.getvalue()
    assert code == 0
    # Who takes the report by the numbers of its lines finds it where it was.
    assert ours[: ours.index("Document Path")].count("\n") == theirs[: theirs.index("Document Path")].count(
        "\n"
    )
    stable = [line for line in lines_of(theirs) if not line.startswith(("WARNING", "deviation", "These"))]
    mine = [line for line in lines_of(ours) if not line.startswith(("WARNING", "deviation", "These"))]
    assert mine == stable
    for name in same:
        assert value(ours, name) == value(theirs, name), name
    assert "Benchmarking 127.0.0.1 (be patient).....done" in ours
    said = front.err.getvalue().splitlines()
    assert len(said) == 2
    assert said[0].startswith("prony: ")


@real
@pytest.mark.parametrize(
    "words", [["-n", "5"], ["-n", "2", "-c", "3", "http://127.0.0.1:1/"], ["http://h"], ["-%"]]
)
def test_a_wrong_command_line_ends_as_with_ab(front: Front, tmp_path: Path, words: list[str]) -> None:
    theirs = subprocess.run([program("ab"), *words], cwd=tmp_path, capture_output=True, check=False)
    assert run(words, front.context()) == theirs.returncode == 22
    assert front.err.getvalue().startswith("ab: ")
    assert front.out.getvalue() == ""


@real
@pytest.mark.parametrize(
    "words", [["-i", "-p", "b"], ["-p", "b", "-u", "b"], ["-m", "GET", "-i"], ["-n", "0"], ["-n", "x"]]
)
def test_two_methods_and_no_requests_end_with_1_as_with_ab(
    front: Front, tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").write_text("x")
    words = [*words, "http://127.0.0.1:1/"]
    theirs = subprocess.run([program("ab"), *words], cwd=tmp_path, capture_output=True, check=False)
    assert run(words, front.context()) == theirs.returncode == 1
    assert front.err.getvalue().startswith("ab: -")


def spread(*values_ms: float) -> TimeDistribution:
    return TimeDistribution.of(values_ms)


TIMES = AbTimes(
    connect=spread(0.0, 0.0, 0.6, 2.4),
    processing=spread(1.0, 5.0, 6.0, 40.0),
    waiting=spread(1.0, 4.0, 6.0, 39.0),
    total=spread(1.0, 5.0, 6.6, 42.4),
)
FIGURES = AbFigures(
    seconds=0.5, complete=4, connect_failed=0, receive_failed=1, length_failed=2, exceptions=0,
    write_errors=0, other_status=3, kept_alive=4, document_bytes=64, transferred_bytes=2048, sent_bytes=1024,
    body_bytes=256,
)  # fmt: skip


def test_golden_text(tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(b"")
    asked = parse(["-n", "4", "-c", "2", "-k", "-p", str(body), "http://h:81/p"])
    made = [
        *layout.head(asked, FIGURES, "nginx/1.2", ()),
        *layout.counts(asked, FIGURES),
        *layout.connection_times(asked, TIMES),
        *layout.percentiles(TIMES.total),
    ]
    assert "\n".join(made) == GOLDEN


GOLDEN = """\


Server Software:        nginx/1.2
Server Hostname:        h
Server Port:            81

Document Path:          /p
Document Length:        64 bytes

Concurrency Level:      2
Time taken for tests:   0.500 seconds
Complete requests:      4
Failed requests:        3
   (Connect: 0, Receive: 1, Length: 2, Exceptions: 0)
Non-2xx responses:      3
Keep-Alive requests:    4
Total transferred:      2048 bytes
Total body sent:        1024
HTML transferred:       256 bytes
Requests per second:    8.00 [#/sec] (mean)
Time per request:       250.000 [ms] (mean)
Time per request:       125.000 [ms] (mean, across all concurrent requests)
Transfer rate:          4.00 [Kbytes/sec] received
                        2.00 kb/s sent
                        6.00 kb/s total

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        0    1   1.1      1       2
Processing:     1   13  18.1      6      40
Waiting:        1   13  17.8      6      39
Total:          1   14  19.2      7      42

Percentage of the requests served within a certain time (ms)
  50%      7
  66%      7
  75%     42
  80%     42
  90%     42
  95%     42
  98%     42
  99%     42
 100%     42 (longest request)"""


def test_without_confidence_and_percentiles() -> None:
    asked = parse(["-S", "-d", "http://h/"])
    assert not asked.percentiles
    made = list(layout.connection_times(asked, TIMES))
    assert made[2] == "              min   avg   max"
    assert made[3] == "Connect:        0     1    2"


def test_the_csv_has_a_line_per_hundredth() -> None:
    made = list(layout.csv(TIMES.total))
    assert made[0] == "Percentage served,Time in ms"
    assert len(made) == 102
    assert made[1] == "0,1.000"
    assert made[101] == "100,42.400"


def test_html_has_abs_rows_and_escapes_what_a_server_says() -> None:
    asked = parse(["-w", "-y", "class=x", "-n", "4", "http://h/p"])
    made = list(html.page(asked, FIGURES, TIMES, "<b>"))
    assert made[2] == "<table >"
    assert made[3] == (
        "<tr class=x><th colspan=2 bgcolor=white>Server Software:</th>"
        "<td colspan=2 bgcolor=white>&lt;b&gt;</td></tr>"
    )
    assert made[-1] == "</table>"


def test_a_sum_has_the_sum_of_the_means_and_keeps_the_count() -> None:
    both = TIMES.processing.plus(TIMES.connect)
    assert both.count == pytest.approx(TIMES.processing.count)
    assert both.mean == pytest.approx(TIMES.processing.mean + TIMES.connect.mean)
    many = TimeDistribution.of(np.arange(10_000) / 100).plus(TIMES.connect)
    assert many.mean == pytest.approx(49.995 + TIMES.connect.mean, rel=1e-3)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("-n 5 -c 10 http://h/", "-c 10 is more than -n 5"),
        ("http://h", "has no path"),
        ("-n 0 http://h/", "-n is 0; expected 1 to"),
        ("-n x http://h/", "-n is 'x'; expected a whole number"),
        ("-i -p none http://h/", "-p comes after the method HEAD"),
        ("http://u:secret1@h/", "'http://REDACTED@h/' names a user"),
        ("u@h/", "names a user"),
        ("-E none http://h/", "not a readable file"),
        ("http://a/ http://b/", "expected one URL"),
        ("-Q http://h/", "option -Q not recognized"),
        ("-b 10 http://h/", "ab: -b is not supported"),
        ("-f SSL2 http://h/", "use TLS1.2, TLS1.3 or ALL"),
        ("-m BREW http://h/", "ab: -m is not supported: the method BREW"),
        ("-A a:b -A c:d http://h/", "the same credentials header twice"),
        ("-H '' http://h/", "-H is not supported"),
        ("-X nowhere http://h/", "expected a host and a port"),
        ("-X p:1 https://h/", "https through a proxy"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(argv: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        translate(shlex.split(argv))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_t_implies_n_and_a_later_n_wins() -> None:
    timed = translate(["-t", "5", "http://h/"]).trial.measured
    assert timed.kind == "whole"
    assert (timed.duration_s, timed.total_requests) == (5.0, 50_000)
    both = translate(["-t", "5", "-n", "7", "http://h/"]).trial.measured
    assert both.kind == "whole"
    assert both.total_requests == 7


WORDS = st.one_of(
    st.sampled_from(["-n", "-c", "-t", "-k", "-i", "-m", "-p", "-u", "-T", "-H", "-C", "-A", "-P", "-X", "-l",
                     "-r", "-q", "-e", "-g", "-w", "-v", "-s", "-kc", "10", "3", "A: b", "GET", "http://h/",
                     "https://h:1/x", "-", "--", "-x"]),
    st.text(max_size=8),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(WORDS, max_size=7), st.sampled_from(["http://127.0.0.1:1/a", "http://h/ä b", "h/", "http://[/"])
)
def test_any_words_translate_or_are_refused(words: list[str], url: str) -> None:
    try:
        made = translate([*words, url])
    except UsageError:
        return
    assert made.trial.measured.kind == "whole"


def test_files_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which cannot be written"):
        parse(["-e", str(tmp_path / "no" / "x.csv"), "http://h/"])
    with pytest.raises(Refused):
        parse(["-Z", "x", "http://h/"])
    # What goes wrong with a file after the load costs neither the report nor the judgement.
    assert _files(AbArguments(csv=tmp_path), [], TIMES) == "Cannot open CSV output file: Is a directory"
    assert (
        _files(AbArguments(gnuplot=tmp_path), [], TIMES) == "Cannot open gnuplot output file: Is a directory"
    )


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
    ],
)
def test_cipher_suites_have_abs_names(suite: str, name: str) -> None:
    assert openssl_name(suite) == name


def test_version_and_help_run_nothing(front: Front) -> None:
    assert run(["-V"], front.context()) == 0
    assert run(["-h"], front.context()) == 0
    assert front.out.getvalue().startswith("This is ApacheBench, Version 2.3")
    assert "Usage: prony ab" in front.out.getvalue()
    assert FRONT_END.name == "ab"


def test_a_broken_connection_ends_as_in_ab(serve: Callable[..., Served], front: Front) -> None:
    server = serve("--reset", "share=0.5")
    assert run(["-n", "40", f"{server.url}/"], front.context(exit_like_original=True)) == 104
    assert "apr_socket_recv: Connection reset by peer (104)" in front.err.getvalue()
    assert "Document Path" not in front.out.getvalue()
    assert run(["-r", "-n", "40", f"{server.url}/"], front.context()) == 3
    assert "Complete requests:      40" in front.out.getvalue()
