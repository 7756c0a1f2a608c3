"""Frames find their parts: staged stacks, a recorded profile, and a server's rules before its runtime's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from prony.errors import UsageError
from prony_explain.rules import Part, Place, defaults, read, rules_for
from prony_explain.sampling import sampling

from .profiles import SERVERS, STAGED, THREAD, recorded

JVM = rules_for("jvm")


@pytest.mark.parametrize("name", STAGED)
def test_each_staged_stack_has_its_part(name: str) -> None:
    assert JVM.place(STAGED[name]).part.value == name


@pytest.mark.parametrize(
    ("stack", "part", "name"),
    [
        # The class library works for whoever calls it; at the root of a thread it is the runtime's.
        ((THREAD, "java/util/TimerThread.run_[j]"), Part.RUNTIME, "JDK"),
        ((THREAD, "shop/App.go_[j]", "java/util/HashMap.get_[j]"), Part.APPLICATION, "shop"),
        # Java that no rule names is the application, whatever its package.
        ((THREAD, "com/acme/Cart$Line.sum_[j]"), Part.APPLICATION, "com.acme"),
        # A name is whole: org.springframework does not match org.springframeworks.
        ((THREAD, "org/springframeworks/A.b_[j]"), Part.APPLICATION, "org.springframeworks"),
        ((THREAD, "shop/A.b_[j]", "libjvm.so`JVM_Clone"), Part.RUNTIME, "JVM"),
        ((THREAD, "shop/A.b_[j]", "itable stub"), Part.APPLICATION, "shop"),
        ((THREAD, "shop/A.b_[j]", "libnio.so`Java_sun_nio_ch_Net_poll"), Part.APPLICATION, "shop"),
        ((THREAD, "shop/A.b_[j]", "libc.so.6`__GI___libc_malloc"), Part.LIBRARY, "C library"),
        # What a TLS engine calls is TLS, but the kernel is the kernel's.
        ((THREAD, "sun/security/ssl/A.b_[j]", "java/util/Arrays.fill_[j]"), Part.LIBRARY, "TLS"),
        ((THREAD, "sun/security/ssl/A.b_[j]", "tcp_sendmsg_[k]"), Part.NETWORK, "TCP and IP"),
        # The JIT's own memcpy is the JIT's, its page fault the kernel's.
        (("[C2 CompilerThre tid=9]", "libc.so.6`memcpy"), Part.RUNTIME, "JIT compiler"),
        (("[C2 CompilerThre tid=9]", "asm_exc_page_fault_[k]", "clear_page_[k]"), Part.KERNEL, "page faults"),
        # In the kernel the innermost named function counts, and lends its part to what it calls.
        (
            (THREAD, "tcp_sendmsg_[k]", "sock_def_readable_[k]", "__wake_up_[k]", "x_[k]"),
            Part.SCHEDULING,
            "scheduler",
        ),
        ((THREAD, "futex_wait_[k]", "_raw_spin_lock_[k]"), Part.SCHEDULING, "futex"),
        ((THREAD, "do_syscall_64_[k]", "fdget_pos_[k]"), Part.KERNEL, ""),
        ((THREAD, "finish_task_switch.isra.0_[k]"), Part.SCHEDULING, "scheduler"),
        ((THREAD, "shop/A.b_[j]", "[unknown]"), Part.UNATTRIBUTED, ""),
        ((THREAD, "shop/A.b_[j]", "libasyncProfiler.so`walk", "libc.so.6`memcpy"), Part.PROFILER, ""),
        (("[Attach Listener tid=3]", "libasyncProfiler.so`Profiler::dump", "libc.so.6`x"), Part.PROFILER, ""),
    ],
)
def test_jvm(stack: tuple[str, ...], part: Part, name: str) -> None:
    assert JVM.place(stack) == Place(part, name)


@pytest.mark.parametrize(
    ("stack", "part"),
    [
        (("MainThread", "shop/app.py`burn_[s]"), Part.APPLICATION),
        (("MainThread", "shop/app.py`burn_[s]", "json/encoder.py`encode_[s]"), Part.APPLICATION),
        (("MainThread", "sanic/app.py`handle_request_[s]"), Part.FRAMEWORK),
        (("MainThread", "sanic/server/protocols/http_protocol.py`send_[s]"), Part.CONTAINER),
        (("MainThread", "/x/lib/python3.11/site-packages/jinja2/environment.py`render_[s]"), Part.FRAMEWORK),
        (("MainThread", "/x/lib/python3.11/asyncio/base_events.py`run_[s]"), Part.RUNTIME),
        # py-spy sees no kernel: the C function that makes a system call stands for it.
        (("MainThread", "shop/app.py`burn_[s]", "libc.so.6`write"), Part.NETWORK),
        (("MainThread", "shop/app.py`burn_[s]", "libc.so.6`malloc"), Part.LIBRARY),
        (("MainThread", "shop/app.py`burn_[s]", "ceval.c`_PyEval_EvalFrameDefault"), Part.APPLICATION),
    ],
)
def test_python(stack: tuple[str, ...], part: Part) -> None:
    assert rules_for("python").place(stack).part is part


@pytest.mark.parametrize(
    ("stack", "part", "name"),
    [
        (("/app/server.js`hello_[s]",), Part.APPLICATION, ""),
        (("/app/server.js`hello_[s]", "node:internal/util`x_[s]"), Part.APPLICATION, ""),
        (("file:///app/node_modules/koa/lib/application.js`handle_[s]",), Part.FRAMEWORK, "koa"),
        (("file:///app/node_modules/@koa/router/lib/router.js`match_[s]",), Part.FRAMEWORK, "@koa/router"),
        (("node:_http_outgoing`end_[s]",), Part.CONTAINER, "Node's HTTP"),
        (("(garbage collector)",), Part.RUNTIME, "garbage collection"),
        (("(program)",), Part.UNATTRIBUTED, ""),
        # V8 sees no kernel: the binding that makes a system call stands for it.
        (("node:net`_writevGeneric_[s]", "node`writev_[s]"), Part.NETWORK, "system calls"),
        (("node:events`emit_[s]", "node`runMicrotasks_[s]"), Part.RUNTIME, "bindings"),
    ],
)
def test_node(stack: tuple[str, ...], part: Part, name: str) -> None:
    assert rules_for("node").place(stack) == Place(part, name)


def test_a_recorded_profile_is_attributed_but_for_a_hundredth() -> None:
    samples = recorded(1)
    places = rules_for("jvm", "spring-tomcat", [SERVERS]).places(samples)
    weights: Counter[Part] = Counter()
    for node, weight in samples.slices[0].weights.items():
        weights[places[node].part] += weight
    share = {part: weight / samples.total for part, weight in weights.items()}
    assert share.get(Part.UNATTRIBUTED, 0) < 0.01
    assert share[Part.FRAMEWORK] > share[Part.CONTAINER] > share[Part.NETWORK] > 0.02
    assert {place.name for place in places if place.part is Part.CONTAINER} == {"Tomcat", "Servlet API"}


def test_the_tree_and_its_stacks_say_the_same() -> None:
    samples = recorded(1)
    places = JVM.places(samples)
    stacks = samples.all_stacks()
    by_tree: Counter[Place] = Counter()
    for node, weight in samples.slices[0].weights.items():
        by_tree[places[node]] += weight
    by_stack: Counter[Place] = Counter()
    for stack, weight in stacks.items():
        by_stack[JVM.place(stack)] += weight
    assert by_tree == by_stack


def test_a_server_s_rules_stand_before_its_runtime_s() -> None:
    stack = (THREAD, "org/apache/catalina/core/A.b_[j]")
    assert JVM.place(stack).name == "Tomcat"
    assert rules_for("jvm", "glassfish", [SERVERS]).place(stack).name == "GlassFish"
    mvc = (THREAD, "org/springframework/web/servlet/A.b_[j]")
    assert rules_for("jvm", "spring-tomcat:virtual", [SERVERS]).place(mvc).name == "Spring MVC"
    assert rules_for("jvm", "http://127.0.0.1:1", [SERVERS]).place(mvc).name == "org.springframework.web"


@pytest.mark.parametrize("path", sorted(SERVERS.glob("*/explain.yaml")), ids=lambda path: path.parent.name)
def test_every_rule_file_of_the_catalogue_can_be_read(path: Path) -> None:
    assert read(path).rules


@pytest.mark.parametrize("runtime", ["jvm", "python", "node", "native"])
def test_every_default_can_be_read(runtime: str) -> None:
    files = defaults(runtime)
    assert len(files) == len({runtime, "native", "kernel"})
    assert all(one.rules for one in files)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules:\n  - {part: framwork, java: [a]}\n", "1 'rules.0.part' is 'framwork'"),
        ("rules:\n  - {part: framework, jva: [a]}\n", "'rules.0.jva'"),
        ("rules:\n  - {part: framework}\n", "java, script, kernel, native, library, thread"),
        ("rule: []\n", "'rule'"),
    ],
)
def test_a_wrong_rule_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "explain.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as fault:
        read(path)
    assert said.removeprefix("1 ") in str(fault.value)
    assert f"{path}:" in str(fault.value)


def test_a_stack_without_frames_of_its_own_is_the_runtime_s() -> None:
    assert JVM.places(sampling("samples", [(0, 1, {(THREAD,): 1})])) == [Place(Part.RUNTIME, "JDK")]
