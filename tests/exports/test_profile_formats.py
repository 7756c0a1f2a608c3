"""CPU profiles for other programs: collapsed stacks and pprof, read back."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace

import pytest

from prony.errors import UsageError
from prony.evidence.profile import Profile, Stack
from prony.report import exports
from prony.report.cell_view import TrialView
from prony.report.result import ResultView
from prony_explain.kernel import cpu_samples
from prony_explain.rules import rules_for
from prony_explain.sampling import sampling
from tests.report import factory

FIRST: dict[Stack, int] = {("java/Thread.run_[0]", "app/Burn.spin_[j]"): 3, ("libc.so.6`start_thread",): 1}
SECOND: dict[Stack, int] = {("java/Thread.run_[0]", "app/Burn.spin_[j]"): 2}


def explained(trial: TrialView) -> TrialView:
    cpu = sampling("samples", [(0.0, 1.0, FIRST), (1.0, 2.0, SECOND)])
    profile = Profile(runtime="jvm", profiler="async-profiler 4.2", event="cpu", cpu=cpu)
    evidence = trial.record.evidence.model_copy(update={"profile": profile})
    record = trial.record.model_copy(update={"kind": "explained", "evidence": evidence})
    return replace(trial, record=record)


def view(servers: int) -> ResultView:
    made = factory.experiment(blocks=1)
    (part,) = made.parts
    cells = tuple(
        replace(cell, explained=(explained(cell.trials[0]),)) if at < servers else cell
        for at, cell in enumerate(part.cells)
    )
    return replace(made, parts=(replace(part, cells=cells),))


def test_stacks_of_one_server_as_lines_with_all_their_samples() -> None:
    assert exports.named("collapsed").write(view(1)).text == (
        "java/Thread.run_[0];app/Burn.spin_[j] 5\nlibc.so.6`start_thread 1\n"
    )


def test_of_several_servers_each_has_a_frame_of_its_own() -> None:
    lines = exports.named("collapsed").write(view(2)).text.splitlines()
    assert sorted(int(line.rpartition(" ")[2]) for line in lines) == [1, 1, 5, 5]
    assert len({line.partition(";")[0] for line in lines}) == 2


@pytest.mark.parametrize("form", ["collapsed", "jfr", "pprof"])
def test_a_result_without_a_profile_says_how_to_get_one(form: str) -> None:
    with pytest.raises(UsageError, match="prony explain"):
        exports.named(form).write(factory.experiment(blocks=1))


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protocol buffer."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        assert key & 7 == 2
        size = varint()
        yield key >> 3, message[at : at + size]
        at += size


def test_a_pprof_profile_holds_the_same_stacks() -> None:
    content = exports.named("pprof").write(view(1)).content
    assert isinstance(content, bytes)
    found = list(fields(gzip.decompress(content)))
    strings = [value.decode() for number, value in found if number == 6 and isinstance(value, bytes)]
    assert strings[0] == ""
    functions = {}
    for number, value in found:
        if number == 5 and isinstance(value, bytes):
            known = dict(fields(value))
            functions[known[1]] = (strings[int(known[2])], strings[int(known.get(4, 0))])
    assert ("start_thread", "libc.so.6") in functions.values()
    samples = {}
    for number, value in found:
        if number == 2 and isinstance(value, bytes):
            ids, (weight,) = (list(one) for _, one in fields(value) if isinstance(one, bytes))
            samples[tuple(functions[one][0] for one in ids)] = weight
    assert samples == {("app/Burn.spin_[j]", "java/Thread.run_[0]"): 5, ("start_thread",): 1}


def test_the_kernel_that_perf_saw_stands_in_the_stacks_as_the_flame_graph_has_it() -> None:
    made = view(1)
    (part,) = made.parts
    (trial,) = part.cells[0].explained
    plain = trial.record.evidence.profile
    assert plain is not None
    seen: dict[Stack, int] = {("entry_SYSCALL_64_[k]", "ksys_write_[k]", "tcp_sendmsg_[k]"): 3}
    profile = plain.model_copy(update={"kernel": sampling("samples", [(0.0, 1.0, seen), (1.0, 2.0, seen)])})
    evidence = trial.record.evidence.model_copy(update={"profile": profile})
    told = replace(trial, record=trial.record.model_copy(update={"evidence": evidence}))
    cells = (replace(part.cells[0], explained=(told,)), *part.cells[1:])
    whole = replace(made, parts=(replace(part, cells=cells),))
    lines = exports.named("collapsed").write(whole).text.splitlines()
    found = cpu_samples(profile, rules_for("jvm"))
    assert found is not None
    expected = {";".join(stack): weight for stack, weight in found.all_stacks().items()}
    assert {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines} == expected
    assert any("tcp_sendmsg_[k]" in line for line in lines)
