"""Laboratories that write to one store at the same time, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from prony.store import Store

WRITER = """
import sys
sys.path.insert(0, {tests!r})
from store_samples import FINGERPRINT, JUDGEMENT, make_trial
from prony.store import Store
sys.stdin.readline()
store = Store.open({path!r})
identifier = store.create_experiment(name="x", spec={{}}, fingerprint=FINGERPRINT, seed=1, quick=False)
for number in range(1, 16):
    store.add_trial(make_trial(identifier, number), JUDGEMENT, {{"n": number}})
    assert len(store.trials(identifier)) == number
store.finish_experiment(identifier)
print(identifier)
"""


def several_labs(target: str | Path) -> None:
    """Three of them, which even make the tables together; nothing may be missing afterwards."""
    script = WRITER.format(tests=str(Path(__file__).parent), path=str(target))
    labs = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for lab in labs:
        assert lab.stdin is not None
        lab.stdin.write("go\n")
        lab.stdin.flush()
    made = [lab.communicate(timeout=240)[0].strip() for lab in labs]
    assert [lab.returncode for lab in labs] == [0, 0, 0]
    assert len(set(made)) == 3
    store = Store.open(target)
    for identifier in made:
        assert [one.figures["n"] for one in store.trials(identifier)] == list(range(1, 16))
        assert store.experiment(identifier).status == "finished"
    store.close()
