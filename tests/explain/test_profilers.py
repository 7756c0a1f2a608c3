"""What profilers print becomes stacks: parsers and slices, without any process."""

from __future__ import annotations

import math
import os
import subprocess
from pathlib import Path

import pytest

from prony.evidence.profile import Profile
from prony.host.proc import cpus_text
from prony_explain import counters
from prony_explain.profilers import async_profiler, jvm_log, node, perf, py_spy
from prony_explain.profilers.base import Schedule, Unavailable, collapsed
from prony_explain.sampling import MOST_EVENTS, sampling


def schedule(*ends_s: float) -> Schedule:
    return Schedule(100.0, ends_s, lambda _wait_s: False)


def test_a_stored_profile_keeps_every_stack_and_weight() -> None:
    first = {("a", "b"): 3, ("a", "b", "c"): 1, ("d",): 2}
    second = {("a", "b"): 1, ("a",): 5}
    made = sampling("samples", [(0.0, 1.0, first), (1.0, 2.0, second)])
    profile = Profile(runtime="native", profiler="perf 6", cpu=made)
    read = Profile.model_validate_json(profile.model_dump_json()).cpu
    assert read is not None
    assert [read.stacks(one) for one in read.slices] == [first, second]
    assert read.all_stacks() == {("a", "b"): 4, ("a", "b", "c"): 1, ("d",): 2, ("a",): 5}
    assert read.total == 12
    assert len(read.parents) == 4


def test_a_frame_of_a_collapsed_profile_may_hold_blanks() -> None:
    text = "a;void Table<Mark, narrowOop> f(int) 11\na;b 2\na;b 3\nnot a line\n"
    assert collapsed(text) == {("a", "void Table<Mark, narrowOop> f(int)"): 11, ("a", "b"): 5}


PERF = """\
server/7 100.100000000:
\tffffffff8100 finish_task_switch.isra.0+0x5 ([kernel.kallsyms])
\tffffffff8101 __schedule ([kernel.kallsyms])
\t    7f0001 epoll_wait+0x10 (/usr/lib/libc.so.6)
\t    7f0002 serve;loop (/opt/app/server (deleted))
\t    000000 [unknown] ([unknown])

my server 100.900000000:
\t    7f0003 [unknown] (/opt/app/server)

late 103.000000000:
\t    7f0003 handle (/opt/app/server)
"""


def test_samples_of_perf_are_cut_by_their_time() -> None:
    samples = list(perf.parsed(PERF.splitlines()))
    assert [time_s for time_s, _ in samples] == [100.1, 100.9, 103.0]
    assert samples[0][1] == (
        "server (deleted)`serve,loop",
        "libc.so.6`epoll_wait",
        "__schedule_[k]",
        "finish_task_switch.isra.0_[k]",
    )
    found = perf.cut(samples, schedule(100.5, 101.0, 102.0)).sampling("samples")
    assert found is not None
    assert [(one.start_s, one.end_s, one.total) for one in found.slices] == [(0.0, 0.5, 1), (0.5, 1.0, 1)]


def test_what_perf_cannot_see_is_said() -> None:
    assert list(perf.lacking([(1.0, ("a`b", "read_[k]"))])) == []
    kernel, symbols = perf.lacking([(1.0, ("server`[unknown]",))])
    assert "kernel.perf_event_paranoid" in kernel
    assert "debug symbols" in symbols
    assert len(list(perf.lacking([]))) == 1


@pytest.mark.parametrize(
    ("said", "frame"),
    [
        ("Http.http1 (http1.py:105)", "http1.py`Http.http1_[s]"),
        ("<module> (app/server.py)", "app/server.py`<module>_[s]"),
        ("connection_task (connection_task:1)", "connection_task`connection_task_[s]"),
        ("_run (<frozen runpy>:86)", "<frozen runpy>`_run_[s]"),
        ("UVStream_write (loop.c:110085)", "loop.c`UVStream_write"),
        ("write (/usr/lib/x86_64-linux-gnu/libc.so.6)", "libc.so.6`write"),
        ("void f(int) (libx.so)", "libx.so`void f(int)"),
        ("thread (0x7F12)", "0x7F12`thread_[s]"),
        ("nothing known", "nothing known"),
    ],
)
def test_frames_of_py_spy(said: str, frame: str) -> None:
    assert py_spy.frame(said) == frame


def v8_node(number: int, name: str, url: str = "", *children: int) -> dict[str, object]:
    return {"id": number, "callFrame": {"functionName": name, "url": url}, "children": list(children)}


def test_a_recording_of_v8_is_cut_by_the_time_of_its_samples() -> None:
    samples = [3, 2, 4, 5, 2, 5, 6, 5]
    recorded = {
        "nodes": [
            v8_node(1, "(root)", "", 2, 3, 4, 6),
            v8_node(2, "(idle)"),
            v8_node(3, "(program)"),
            v8_node(4, "", "file:///app/server.js", 5),
            v8_node(5, "writev"),
            v8_node(6, "(garbage collector)"),
        ],
        "samples": samples,
        "timeDeltas": [50_000] + [100_000] * (len(samples) - 1),
    }
    found = node.cut(recorded, 10.0, 10.5, (10.2, 10.8, 11.2)).made
    script = "/app/server.js`(anonymous)_[s]"
    assert [stacks for _, _, stacks in found] == [
        {("(program)",): 1, (script,): 1},
        {(script, "node`writev_[s]"): 2, ("(garbage collector)",): 1},
    ], "without what was idle, after the end, or before it began"
    assert [end_s for one in found for end_s in one[:2]] == pytest.approx([0.5, 0.8, 0.8, 1.2])


def test_allocations_of_v8_are_bytes_by_stack() -> None:
    leaf = {"callFrame": {"functionName": "f", "url": "node:net"}, "selfSize": 64, "children": []}
    head = {
        "callFrame": {},
        "children": [{"callFrame": {"functionName": "g", "url": "a.js"}, "children": [leaf]}],
    }
    assert node.allocated(head) == {("a.js`g_[s]", "node:net`f_[s]"): 64}


JVM = """\
[100500000000ns][gc             ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 60M->20M(256M) 12.500ms
[100500400000ns][safepoint      ] Safepoint "G1Collect", Time since last: 1 ns, Total: 13000000 ns
[100600000000ns][safepoint      ] Safepoint "ICBufferFull", Time since last: 1 ns, Total: 4000 ns
[100700000000ns][jit,compilation] 5188       3       java.util.TreeMap::contains (11 bytes)
[100800000000ns][jit,compilation] 5190 %  b  4       app.Handler::serve @ 5 (120 bytes)
[101000000000ns][gc             ] GC(1) Pause Young (Normal) 90M->25M(256M) 7.500ms
[101000000000ns][gc             ] GC(2) Concurrent Mark Cycle 3.1ms
not a line of it
"""


def test_the_log_of_a_jvm() -> None:
    mib = 1 << 20
    opened, closed = jvm_log.Heap(100.4, 10 * mib), jvm_log.Heap(102.4, 30 * mib)
    told = jvm_log.read(JVM.splitlines(), 100.0, opened, closed)
    assert told.collections == 2
    assert told.collection_pause_s == pytest.approx(0.020)
    assert told.allocated_bytes == (50 + 70 + 5) * mib
    assert told.allocated_s == pytest.approx(2.0)
    opened, closed = jvm_log.Heap(100.6, 22 * mib), jvm_log.Heap(100.9, 82 * mib)
    between = jvm_log.read(JVM.splitlines(), 100.0, opened, closed)
    assert between.allocated_bytes == 60 * mib, "without the collections before and after"
    assert between.collections == 2
    assert [one.kind for one in told.events] == ["safepoint", "collection", "compilation", "collection"]
    first = next(one for one in told.events if one.kind == "collection")
    assert first.start_s == pytest.approx(0.4875)
    assert first.duration_s == pytest.approx(0.0125)
    assert told.events[2].text == "app.Handler::serve"
    assert told.missing == ()


def test_of_too_many_events_the_longest_are_kept() -> None:
    many = [
        f'[{100_000_000_000 + at}ns][safepoint] Safepoint "X", Total: {1_000_000 + at} ns'
        for at in range(MOST_EVENTS + 5)
    ]
    told = jvm_log.read(many, 100.0, jvm_log.Heap(100.0, None), jvm_log.Heap(101.0, None))
    assert len(told.events) == MOST_EVENTS
    assert min(one.duration_s for one in told.events) == pytest.approx(0.001000005)
    assert (told.allocated_bytes, told.allocated_s) == (None, None)
    assert [one.partition(":")[0].partition(" 10")[0] for one in told.missing] == [
        "bytes allocated are missing",
        f"{MOST_EVENTS} of",
    ]


def test_of_too_many_compilations_the_first_are_kept() -> None:
    many = [
        f"[{100_000_000_000 + at}ns][jit,compilation] {at}       4       app.A::m{at} (9 bytes)"
        for at in range(MOST_EVENTS + 5)
    ]
    told = jvm_log.read(many, 100.0, jvm_log.Heap(100.0, 0), jvm_log.Heap(101.0, 0))
    assert [one.text for one in told.events] == [f"app.A::m{at}" for at in range(MOST_EVENTS)]
    assert told.missing == ("1000 of 1005 events of the JVM (compilation) are kept: the first",)


@pytest.mark.parametrize(
    ("said", "mib"),
    [
        ("garbage-first heap   total 262144K, used 55296K [0x1, 0x2)\n Metaspace  used 9K, committed 9K", 54),
        ("garbage-first heap   total reserved 4194304K, committed 262144K, used 9216K [0x1, 0x2)", 9),
        ("def new generation   total 78656K, used 5120K\n tenured generation   total 174784K, used 1024K", 6),
        ("ZHeap           used 106M, capacity 254M, max capacity 4096M", None),
        ("Shenandoah Heap\n 4096M max, 4096M soft max, 256M committed, 45M used, 256 x 1024K regions", None),
    ],
)
def test_what_heaps_hold(said: str, mib: int | None) -> None:
    assert jvm_log.used_bytes(said) == (None if mib is None else mib << 20)


def test_system_calls_that_are_not_named_are_the_rest() -> None:
    said = (
        "100;;raw_syscalls:sys_enter;7;100.00;;\n60;;syscalls:sys_enter_read;7;100.00;;\n"
        "0;;syscalls:sys_enter_futex;7;100.00;;\n<not counted>;;syscalls:sys_enter_write;0;0.00;;\n"
    )
    found = counters.counted(said, 2.0)
    assert (found.seconds, found.by_name, found.missing) == (2.0, {"read": 60, "other": 40}, "")


def test_tracepoints_that_may_not_be_read_are_said_in_a_sentence() -> None:
    found = counters.counted("Error:\nNo permission to enable raw_syscalls:sys_enter event.\n", 2.0)
    assert found.by_name is None
    assert "No permission" in found.missing
    assert "perf_event_paranoid" in found.missing


def test_counting_that_cannot_begin_leaves_no_descriptor_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("prony_explain.counters.shutil.which", lambda _name: "/usr/bin/perf")
    monkeypatch.setattr("prony_explain.counters.subprocess.Popen", fails)
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match="temporarily unavailable"):
        counters.count_calls([os.getpid()], lambda _wait_s: True, 0.1)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_counters_never_go_back() -> None:
    first = counters.Reading(1.0, 2.0, 100, 5, 7, 0, 0.5)
    last = counters.Reading(3.0, 2.5, 90, 8, 9, None, 0.75)
    found = counters.between(first, last)
    assert (found.seconds, found.cpu_s, found.switches_voluntary) == (2.0, 0.5, 0)
    assert (found.switches_involuntary, found.faults_major, found.run_queue_wait_s) == (3, None, 0.25)


SNMP = (
    "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
    "Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens InSegs OutSegs RetransSegs\n"
    "Tcp: 1 -1 7 5 1000 900 3\n"
)


@pytest.mark.parametrize(
    ("server", "segments", "opened"), [("net:[1]", 900, 7), ("net:[2]", 1900, 12)], ids=["same", "another"]
)
def test_tcp_is_counted_in_the_servers_namespace(
    tmp_path: Path, server: str, segments: int, opened: int
) -> None:
    for process, namespace in (("self", "net:[1]"), ("42", server)):
        folder = tmp_path / "proc" / process
        (folder / "net").mkdir(parents=True)
        (folder / "net/snmp").write_text(SNMP)
        (folder / "ns").mkdir()
        (folder / "ns/net").symlink_to(namespace)
    found = counters.tcp(42, tmp_path)
    assert found == counters.Tcp(segments, opened)
    assert counters.tcp(43, tmp_path) is None
    first = counters.Reading(1.0, None, None, None, None, None, None, counters.Tcp(100, 2))
    last = counters.Reading(3.0, None, None, None, None, None, None, found)
    between = counters.between(first, last)
    assert (between.tcp_segments, between.tcp_opened) == (segments - 100, opened - 2)
    assert counters.between(first, counters.Reading(3.0, *[None] * 6)).tcp_segments is None


def test_a_timer_is_asked_for_each_tick_and_perf_events_for_less_than_they_cost() -> None:
    def interval(event: str, wanted_s: float, longest_s: float = math.inf) -> tuple[float, int]:
        made = async_profiler.AsyncProfiler(1, Path("/nowhere"), "4")
        made._event = event
        return made._interval(wanted_s, longest_s)

    tick_s = async_profiler.TICK_S
    assert 0.0005 < tick_s <= 0.01
    assert interval("ctimer", 0.02) == (tick_s, 100)
    assert interval("cpu", 0.003) == (0.01, 10_000)
    assert interval("cpu", 0.02) == (0.02, 20_000)
    # Of many threads with little CPU time each, few would have that much: never below 1 ms.
    assert interval("cpu", 0.003, 0.0024) == (0.0024, 2_400)
    assert interval("cpu", 0.003, 0.0001) == (0.001, 1_000)
    assert interval("itimer", 0.05) == (0.05, 50_000)


def test_perf_records_by_cpu_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the program, which refuses all but the events of a thread, and then those too."""
    asked: list[list[str]] = []
    refuses: list[bool] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(
            command, 0 if "-p" in command and not refuses else 255, "", "No permission\n"
        )

    monkeypatch.setattr("prony_explain.profilers.perf.shutil.which", lambda _name: "/usr/bin/perf")
    monkeypatch.setattr("prony_explain.profilers.perf.tool.ask_version", lambda *_: "6.1")
    monkeypatch.setattr("prony_explain.profilers.perf.subprocess.run", run)
    pid = os.getpid()
    perf.Perf([pid]).attach()
    by_cpu, by_thread = asked
    assert by_cpu[by_cpu.index("-C") + 1] == cpus_text(os.sched_getaffinity(pid))
    assert by_thread[by_thread.index("-p") + 1] == str(pid)
    refuses.append(True)
    with pytest.raises(Unavailable, match="perf_event_paranoid"):
        perf.Perf([pid]).attach()
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("interval_s", "per_s"), [(0.001, 999), (0.01, 99), (1 / 300, 299), (0.04, 24), (1 / 333, 333), (1.0, 1)]
)
def test_perf_does_not_sample_in_step_with_the_kernels_tick(interval_s: float, per_s: int) -> None:
    assert perf.frequency(interval_s) == per_s


def test_py_spy_takes_fewer_samples_where_it_unwinds_native_frames() -> None:
    assert [py_spy.rate(1 / 300, native=native) for native in (True, False)] == [50, 200]
    assert [py_spy.rate(1 / 30, native=native) for native in (True, False)] == [30, 30]
