"""`prony h2load`: its command line, the load that it becomes, its figures and its lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from prony.errors import EnvironmentFault
from prony.evidence.counts import Http2Counts, ResponseCount
from prony.evidence.engine import EngineReport, Ready, Window
from prony.plan.load import ClosedLoad, OpenLoad, SteadyWindow, WholeRun
from prony.plan.step import Block
from prony.plan.trial import TrialPlan
from prony_frontends.base import Reason
from prony_frontends.counted import CountedValues
from prony_frontends.h2load import FRONT_END, Tenths, layout
from prony_frontends.h2load.arguments import parse, seconds
from prony_frontends.h2load.figures import H2loadTimes, Rows, client_of, figures
from prony_frontends.h2load.translate import logs_all
from prony_frontends.h2load.walks import Ramp, Walk, merged, ramped, walks
from prony_frontends.request_log import LoggedRequest
from tests.frontends.codes import noted, refuses
from tests.frontends.conftest import Front, Served, explained, quick_desk
from tests.frontends.test_short_runs import DISTURBED
from tests.ports import refusing

URL = "http://127.0.0.1:8080/a"
run, translate = FRONT_END.run, FRONT_END.translate


def trial(*argv: str, url: str = URL) -> TrialPlan:
    return translate([*argv, url]).trial


def test_streams_are_users_who_share_the_clients_connections() -> None:
    found = trial("-n", "100", "-c", "2", "-m", "5")
    assert isinstance(found.load, ClosedLoad)
    assert (found.load.users, found.connections.count, found.connections.http_version) == (10, 2, "2")
    assert found.measured == WholeRun(iterations_per_user=10)
    assert trial("-n", "10", "-c", "2").connections.count is None


def test_requests_that_do_not_divide_go_to_the_first_clients() -> None:
    load = trial("-n", "11", "-c", "3", "-m", "2").load
    assert isinstance(load, ClosedLoad)
    # Clients with 4, 4 and 3 requests: their first streams have two each, the second ones 2, 2 and 1.
    assert [(one.users, one.iterations_per_user) for one in load.populations] == [(5, 2), (1, 1)]


@pytest.mark.parametrize(
    ("clients", "streams", "uris", "total"), [(3, 2, 3, 20), (4, 7, 2, 9), (1, 4, 6, 50)]
)
def test_each_client_asks_for_the_uris_in_turn(clients: int, streams: int, uris: int, total: int) -> None:
    sent: dict[int, list[int]] = {client: [] for client in range(clients)}
    user = 0
    for walk in merged(walks(clients, streams, uris, total)):
        for _ in range(walk.users):
            assert walk.requests is not None
            sent[user % clients] += [walk.uris[n % len(walk.uris)] for n in range(walk.requests)]
            user += 1
    for client, asked in sent.items():
        number = total // clients + (client < total % clients)
        assert sorted(asked) == sorted(n % uris for n in range(number))


def test_a_walk_is_written_out_as_rounds_and_a_rest() -> None:
    steps = trial("-n", "1").workload.all_steps * 2
    assert len(Walk(1, 0, (0, 1), 6).entries(steps)) == 2
    assert Walk(1, 0, (0, 1), 6).rounds == 3
    assert len(Walk(1, 0, (0, 1), 7).entries(steps)) == 2  # a loop of three rounds, and one more
    assert Walk(1, 0, (0, 1), 7).rounds == 1
    assert len(Walk(1, 0, (0, 1), 1).entries(steps)) == 1


def test_time_in_place_of_a_number_and_a_warm_up_before_it() -> None:
    assert trial("-D", "5s", "-c", "2").measured == WholeRun(duration_s=5)
    warmed = trial("-D", "5", "--warm-up-time=500ms")
    assert warmed.measured == SteadyWindow(window_s=5)
    assert (warmed.warm_up.cap_s, warmed.scaling_probe) == (0.5, False)
    assert trial("-n", "3", "-T", "2s").measured == WholeRun(iterations_per_user=3, duration_s=2)


def test_rates() -> None:
    load = trial("--rps=5", "-n", "10", "-c", "2", "-m", "3").load
    assert isinstance(load, OpenLoad)
    assert (load.rate_per_s, load.max_users, load.at_cap) == (10, 6, "wait")
    ramp = trial("-n", "4", "-c", "4", "-r", "2", "--rate-period=500ms").load
    assert isinstance(ramp, ClosedLoad)
    assert (ramp.ramp_up_s, ramp.ramp_up_steps) == (1.0, 2)
    assert ramped(Ramp(2, 0.5), 3, first=4)["start_s"] == 1.0


def test_a_timing_script_is_a_group_of_users_for_each_line(tmp_path: Path) -> None:
    script = tmp_path / "t"
    script.write_text(f"0\t{URL}\n100.5\t/b\n200\t/c?d\n")
    made = translate(["--timing-script-file", str(script), "-c", "2"])
    load = made.trial.load
    assert isinstance(load, ClosedLoad)
    assert [(one.users, one.start_s) for one in load.populations] == [(2, 0), (2, 0.1005)]
    assert [step.path for step in made.trial.workload.all_steps] == ["/a", "/c?d", "/b"]
    assert made.trial.connections.count == 2
    stays = made.trial.workload.scenarios[0].steps[1]
    assert isinstance(stays, Block)
    assert stays.pause is not None
    assert stays.pause.expected_ms == 200  # so that the connection stays
    (short,) = translate(["--timing-script-file", str(script), "-n", "1"]).trial.workload.all_steps
    assert short.path == "/a"


def test_http_1_has_pipelining_in_place_of_streams(tmp_path: Path) -> None:
    plain = trial("--h1", "-n", "8", "-c", "2", "-m", "4")
    assert (plain.connections.http_version, plain.connections.pipeline) == ("1.1", 4)
    assert trial("-p", "http/1.1").connections.http_version == "1.1"
    https = "https://127.0.0.1:8443/"
    assert trial("--npn-list=http/1.1", url=https).connections.http_version == "1.1"
    assert trial("--alpn-list=h2-16,http/1.1", url=https).connections.http_version == "2"
    body = tmp_path / "b"
    body.write_text("x")
    assert trial("--h1", "-m", "4", "-d", str(body)).connections.pipeline == 1


def test_sizes() -> None:
    found = trial("-w", "16", "-W", "20", "--header-table-size=8k").connections
    sizes = (found.stream_window_bytes, found.connection_window_bytes, found.header_table_bytes)
    assert sizes == (65_535, 2**20 - 1, 8192)
    assert trial().connections.stream_window_bytes is None
    small = translate(["-W", "3", URL])
    assert small.trial.connections.connection_window_bytes == 65_535
    assert noted(small.notes, "window", "-W", "3 becomes 16")


def test_what_is_sent() -> None:
    (step,) = trial("-H", "X-A: b", "-H", "User-Agent:me", "-H", ":authority: there").workload.all_steps
    assert step.headers == {"user-agent": "me", "x-a": "b", "Host": "there"}
    (step,) = trial("-H", ":method: PUT", url=f"{URL}?x=${{y}}").workload.all_steps
    assert (step.method, step.path) == ("PUT", "/a?x=$${y}")
    made = translate(["-B", "unix:/run/x.sock", "http://there:81/b"])
    assert made.target.unix == "/run/x.sock"
    assert made.trial.workload.all_steps[0].headers["Host"] == "there:81"
    made = translate(["--connect-to=127.0.0.2", URL])
    assert made.target.addresses == ("127.0.0.2:8080",)
    made = translate(["-B", "http://there:81", "/b"])
    assert (made.target.url, made.trial.workload.all_steps[0].path) == ("http://there:81", "/b")


@pytest.mark.parametrize(
    "argv",
    [
        ["-n", "20", "-c", "3", "-m", "2", URL, "/b", "/c"],
        ["-n", "7", "-c", "4", "-r", "2", URL],
        ["-D", "3", "-w", "16", URL],
        ["--rps=5", "-n", "10", URL],
        ["-n", "2", "--h1", "-m", "2", URL],
    ],
)
def test_the_plan_can_be_read_again(argv: list[str]) -> None:
    made = translate(argv)
    again = explained(made)
    assert (again.load, again.workload.walks) == (made.trial.load, made.trial.workload.walks)
    assert (again.measured, again.connections) == (made.trial.measured, made.trial.connections)


def test_a_repeated_header_is_a_line_each() -> None:
    argv = ["-H", "A: 1", "-H", "user-agent: me", "-H", "a: 2", "-H", "user-agent: you", URL]
    (step,) = translate(argv).trial.workload.all_steps
    assert step.header_pairs == [("user-agent", "you"), ("a", "1"), ("a", "2")]


@pytest.mark.parametrize(
    ("argv", "code", "named"),
    [
        (["--tls13-ciphers=X", "https://h/"], "unsupported", ["--tls13-ciphers"]),
        (["--npn-list=h3", "https://h/"], "unsupported", ["--npn-list", "h3", "http/1.1"]),
        (["-f", "1m", URL], "unsupported", ["-f", "16 KiB"]),
        (["-w", "0", URL], "unsupported", ["-w: 0"]),
        (["--header-table-size=1m", URL], "limit", ["--header-table-size", "64K"]),
        (["--header-table-size=1k", "--encoder-header-table-size=2k", URL], "conflict", ["table-size"]),
        (["-H", ":path: /x", URL], "unsupported", ["-H", ":path"]),
        (["--rps=3", URL, "/b"], "conflict", ["--rps", "2 URIs"]),
        (["-B", "unix:/x", "https://h/"], "conflict", ["-B", "https"]),
        (["-r", "1", "--rps=1", URL], "conflict", ["-r", "--rps"]),
    ],
)
def test_what_is_refused(argv: list[str], code: Reason, named: list[str]) -> None:
    with refuses(code, *named):
        translate(argv)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "no URI or input file given"),
        (["/foo"], "invalid URI: /foo"),
        (["http://h/a b"], "invalid URI: http://h/a b"),
        (["http://h/ä"], "invalid URI: http://h/ä"),
        ([URL, "http://h/x?ü"], "invalid URI"),
        (["-n", "1k", URL], "-n: bad option value: 1k"),
        (["--requests=x", URL], "-n: bad option value: x"),
        (["-n", "2", "-c", "5", URL], "-n, -c: the number of requests must be"),
        (["-D", "1", "-r", "2", URL], "-r, -D: they are mutually exclusive."),
        (["-c", "2", "-t", "3", "-n", "5", URL], "-c, -t: the number of clients"),
        (["-w", "31", URL], "-w: specify the integer in the range [0, 30], inclusive"),
        (["-p", "foo", URL], "-p: unsupported protocol foo"),
        (["-d", "/no/file", URL], "-d: Could not open file /no/file"),
        (["-i", "/no/file"], "cannot read input file: /no/file"),
        (["-H", "x", URL], "-H: invalid header: x"),
        (["--connect-to=foo:x", URL], "--connect-to: Invalid value foo:x"),
        (["-B", "foo", URL], "--base-uri: invalid base URI: foo"),
        (["-D", "x", URL], "-D: value error x"),
        (["--bogus"], "h2load: option --bogus not recognized"),
    ],
)
def test_a_wrong_command_line_ends_with_its_sentence_and_1(argv: list[str], says: str) -> None:
    desk, _, err = quick_desk()
    assert run(argv, desk) == 1
    assert says in err.getvalue()


def test_options_that_change_nothing_are_named() -> None:
    made = translate(["-v", "--ktls", "--ciphers=X", URL])
    assert [note.element for note in made.notes] == ["-v", "--ktls", "--ciphers"]


def test_durations() -> None:
    assert [seconds(text) for text in ("10", "1s", "500ms", "2m", "1h")] == [10, 1, 0.5, 120, 3600]
    assert [seconds(text) for text in ("", "x", "1.5s", "-1", "999999h")] == [None] * 5


def test_what_bounds_the_rows_that_are_kept(tmp_path: Path) -> None:
    assert logs_all(parse(["-n", "1000000", URL]))
    assert not logs_all(parse(["-n", "1000001", URL]))
    assert not logs_all(parse(["-D", "1", URL]))
    assert logs_all(parse(["-D", "1", "--log-file", str(tmp_path / "l"), URL]))
    assert trial("-D", "10", "-c", "3").rate_groups == 3
    assert trial("-D", "10", "-c", "3").rate_span_ms == 9800


def window(**fields: object) -> Window:
    return Window.model_validate({"opened_ms": 0, "duration_s": 2, **fields})


def report_of(found: Window, **fields: object) -> EngineReport:
    ready = Ready(version="1", driver="epoll", pid=1, started_unix_ns=0, started_monotonic_ns=0)
    return EngineReport.model_validate(
        {"ready": ready, "reason": "done", "elapsed_ms": 2000, "totals": found, "window": found, **fields}
    )


def test_figures_and_lines() -> None:
    found = window(
        sent=20,
        completed=19,
        errors={"stream_reset": 1, "expect_status": 3},
        status={"200": 13, "404": 6},
        answers=[ResponseCount(status=200, body_bytes=100, count=19)],
        bytes_received=3000,
        http2=Http2Counts(
            header_list_bytes_received=3000, header_fields_received=60, header_block_bytes_received=270
        ),
    )
    one = figures(report_of(found), found, 20)
    times = H2loadTimes(request_s=CountedValues.of([(0.000012, 1), (0.0015, 2), (1.25, 1)]))
    assert list(layout.report(one, times, 2)) == [
        "",
        "finished in 2.00s, 9.50 req/s, 1.46KB/s",
        "requests: 20 total, 20 started, 19 done, 13 succeeded, 7 failed, 1 errored, 0 timeout",
        "status codes: 13 2xx, 0 3xx, 6 4xx, 0 5xx",
        "traffic: 2.93KB (3000) total, 270B (270) headers (space savings 75.00%), 1.86KB (1900) data",
        "                     min         max         mean         sd        +/- sd",
        "time for request:       12us       1.25s    313.25ms    624.50ms    75.00%",
        "time for connect:        0us         0us         0us         0us     0.00%",
        "time to 1st byte:        n/a         n/a         n/a         n/a      n/a",
        "req/s           :        0.00        0.00        0.00        0.00     0.00%",
    ]


def test_what_the_time_limit_cut_off_has_failed() -> None:
    found = window(sent=4, completed=1, errors={"timeout": 1})
    one = figures(report_of(found), found, 4)
    assert (one.errored, one.timed_out, one.failed) == (3, 3, 4)
    timed = figures(report_of(found), found, None)
    assert (timed.total, timed.errored, timed.timed_out) == (1, 1, 1)


def test_heads_of_http_1_are_names_and_values() -> None:
    head = "HTTP/1.1 200 OK\r\ncontent-length: 64\r\nserver: x\r\n\r\n"
    found = window(
        completed=2,
        bytes_received=2 * (len(head) + 64),
        answers=[ResponseCount(status=200, body_bytes=64, count=2)],
        first_head=head,
    )
    one = figures(report_of(found), found, 2)
    assert (one.head_bytes, one.body_bytes) == (2 * len("content-length64serverx"), 128)
    assert one.savings == 0
    chunked = found.model_copy(update={"first_head": "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"})
    assert figures(report_of(chunked), chunked, 2).head_bytes == 2 * len("transfer-encodingchunked")


def row(user: int, start_us: int, took_us: int, **fields: object) -> LoggedRequest:
    known: dict[str, object] = dict.fromkeys(LoggedRequest.__slots__)
    known |= {"user": user, "start_ns": start_us * 1000, "service_ns": took_us * 1000, "status": 200}
    return LoggedRequest(**{**known, **fields})  # type: ignore[arg-type]


def test_rows_belong_to_clients_whose_first_one_has_the_connect() -> None:
    rows = Rows(clients=2, threads=1)
    rows.add(row(2, 150, 100, connect_ns=50_000, first_byte_ns=90_000))  # the second stream of client 0
    rows.add(row(0, 100, 100, connect_ns=50_000, tls_ns=25_000, first_byte_ns=80_000))
    rows.add(row(1, 100, 0, connect_ns=10_000, status=None))
    times = rows.times()
    assert times.request_s.count == 2
    assert times.connect_s.values.tolist() == pytest.approx([10e-6, 75e-6])
    assert times.first_byte_s.values.tolist() == pytest.approx([155e-6])
    assert times.per_s.values.tolist() == pytest.approx([0, 2 / 225e-6])


def test_users_share_connections_in_turn_over_the_threads() -> None:
    assert [client_of(user, 4, 2) for user in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    # Three connections on two threads: the first thread has two of them.
    assert [client_of(user, 3, 2) for user in range(6)] == [0, 1, 2, 1, 0, 1]


def test_progress_by_tenths() -> None:
    desk, out, _ = quick_desk()
    Tenths(19, False, desk.stdout).ended(19, desk.stdout)
    assert re.findall(r"(\d+)% done", out.getvalue())[:2] == ["5", "10"]
    assert "100% done" in out.getvalue()
    desk, out, _ = quick_desk()
    Tenths(2, True, desk.stdout).ended(5, desk.stdout)
    assert out.getvalue() == "progress: 50% of clients started\nprogress: 100% of clients started\n"


def test_the_first_lines() -> None:
    asked = parse(["-n", "11", "-c", "3", "-t", "2", "-r", "2", "--rate-period=200ms", URL])
    first, *threads = layout.begin(asked, 11)
    assert first == "starting benchmark..."
    each = "Up to 1 client(s) will be created every 200ms"
    assert threads == [
        f"spawning thread #0: 2 total client(s). {each} 6 total requests",
        f"spawning thread #1: 1 total client(s). {each} 5 total requests",
    ]


def test_help_and_version() -> None:
    desk, out, _ = quick_desk()
    assert run(["--version"], desk) == 0
    assert out.getvalue() == "h2load nghttp2/1.52.0\n"
    assert run(["-h"], desk) == 0
    assert "prony h2load" in out.getvalue()


def test_a_run_over_http_1_writes_a_line_per_request(serve: Callable[..., Served], tmp_path: Path) -> None:
    served, log = serve(), tmp_path / "log"
    desk, out, _ = quick_desk()
    argv = ["--h1", "-n", "12", "-c", "2", "-m", "3", "--log-file", str(log), served.url]
    assert run(argv, desk) == 0
    assert served.ended()["requests"] == 12
    assert "12 total, 12 started, 12 done, 12 succeeded, 0 failed, 0 errored, 0 timeout" in out.getvalue()
    assert "Application protocol: http/1.1" in out.getvalue()
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert len(lines) == 12
    assert {status for _, status, _ in lines} == {"200"}
    text = served.recorded().decode()
    assert text.startswith("GET / HTTP/1.1\r\nHost: ")
    assert "user-agent: h2load nghttp2/1.52.0\r\n" in text


def test_a_log_that_cannot_be_written_is_said_before_the_load() -> None:
    desk, out, err = quick_desk()
    assert run(["--log-file=/no/such/folder/l", URL], desk) == 1
    assert out.getvalue() == ""
    assert "--log-file: Could not open file /no/such/folder/l, reason = " in err.getvalue()


def test_where_nobody_listens(front: Front) -> None:
    with refusing() as port:
        argv = ["-n", "3", f"http://127.0.0.1:{port}/"]
        with pytest.raises(EnvironmentFault, match="nothing takes connections"):
            run(argv, front.context())
        assert run(argv, front.context(exit_like_original=True)) == 0
    assert "client could not connect to host" in front.err.getvalue()
    assert not list(front.store.experiments())


def test_a_warm_up_is_in_no_figure_but_the_time_that_it_took(
    front: Front, serve: Callable[..., Served]
) -> None:
    server = serve("--http2", "--delay", "fixed:2ms")
    argv = ["-D", "1", "--warm-up-time=1", "-c", "2", "-m", "3", server.url]
    assert run(argv, front.context(exit_like_original=True)) == 0
    text = front.out.getvalue()
    seen = int(re.search(r"^requests: (\d+) total", text, re.MULTILINE)[1])  # type: ignore[index]
    assert 0 < seen < server.ended()["requests"]
    rate = float(re.search(r"^finished in [\d.]+s, ([\d.]+) req/s", text, re.MULTILINE)[1])  # type: ignore[index]
    assert rate == pytest.approx(seen)  # of one second
    assert "Main benchmark duration is started for thread #0." in text
    (trial,) = front.store.trials(front.store.experiment("latest").id)
    assert trial.record.evidence.load.shared_connections == 2


def test_a_few_requests_over_http_2_are_not_wrong(front: Front, serve: Callable[..., Served]) -> None:
    server = serve("--http2", "--delay", "fixed:2ms")
    assert run(["-n", "19", "-c", "2", "-m", "2", server.url], front.context(exit_like_original=True)) == 0
    (trial,) = front.store.trials(front.store.experiment("latest").id)
    wrong = {one.check: one.reason for one in trial.judgement.not_conforming}
    assert {check: why for check, why in wrong.items() if check not in DISTURBED} == {}


def test_the_judgement_follows_the_report(front: Front, serve: Callable[..., Served]) -> None:
    assert run(["--h1", "-n", "20", serve().url], front.context(exit_like_original=True)) == 0
    assert "20 succeeded" in front.out.getvalue()
    assert len([line for line in front.err.getvalue().splitlines() if line.startswith("prony: ")]) == 2
