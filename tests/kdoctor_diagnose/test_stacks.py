"""Where the processes were when their stacks were dumped, and which stopped first."""

import faulthandler
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from helpers.cases import cases
from kdoctor_diagnose.diagnose import diagnose, diagnose_text
from kdoctor_diagnose.inputs import Log
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.report.formats import FORMATS, render
from kdoctor_diagnose.report.sections import notes

REDUCE = ("psum", "jax/_src/lax/parallel.py", 120), ("main", "train.py", 80), ("<module>", "train.py", 120)
LOAD = ("read", "ssl.py", 1307), ("__getitem__", "loader.py", 44), ("<module>", "train.py", 120)
SAVE = ("write", "h5py/files.py", 7), ("save_weights", "train.py", 90), ("<module>", "train.py", 120)
Stack = tuple[tuple[str, str, int], ...]


def py_spy(pid: int, stack: Stack) -> str:
    frames = "".join(f"    {function} ({file}:{line})\n" for function, file, line in stack)
    other = "    wait (threading.py:327)\n    _bootstrap (threading.py:1002)\n"
    head = f"Process {pid}: python train.py\nPython v3.11.5 (/usr/bin/python3.11)\n\n"
    return f'{head}Thread {pid} (active): "MainThread"\n{frames}Thread 77 (idle): "Thread-1"\n{other}'


def faults(rank: int, stack: Stack) -> str:
    frames = [f'  File "/job/{file}", line {line} in {function}' for function, file, line in stack]
    other = ["Thread 0x00007f66f1f7c640 (most recent call first):", '  File "/job/x.py", line 3 in _bootstrap', ""]
    lines = ["Timeout (0:05:00)!", *other, "Thread 0x00007f1b5b5c6740 (most recent call first):", *frames]
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def of(*texts: str, name: str = "rank{}.log") -> Diagnosis:
    logs = [Log(name.format(place), partial(_blocks, text)) for place, text in enumerate(texts)]
    return diagnose(logs, {}, {})


def _blocks(text: str) -> Iterator[bytes]:
    yield text.encode()


def found(diagnosis: Diagnosis) -> list[tuple[str, list[str]]]:
    return [(group.activity, group.processes) for group in diagnosis.stacks]


def looks(diagnosis: Diagnosis) -> list[str]:
    return [field.text for field in notes(diagnosis) if field.label == "Look"]


def test_late_process_is_named_in_dumps_of_py_spy_and_of_faulthandler() -> None:
    stacks = [{3: LOAD, 5: SAVE}.get(rank, REDUCE) for rank in range(8)]
    spied = of(*(py_spy(100 + rank, stack) for rank, stack in enumerate(stacks)))
    timed = of("".join(faults(rank, stack) for rank, stack in enumerate(stacks)))
    for diagnosis in (spied, timed):
        assert found(diagnosis) == [("collective", list("012467")), ("data", ["3"]), ("saving", ["5"])]
        assert diagnosis.stacks[0].program == "train.py:80"
        assert diagnosis.stacks[1].frame == "__getitem__ (loader.py:44)"
        assert diagnosis.conclusion == "not-recognised"
        (look,) = looks(diagnosis)
        assert "rank 3 and rank 5" in look
        assert all("loader.py:44" in render(diagnosis, name) for name in FORMATS)


def test_lines_of_ranks_may_be_mixed() -> None:
    both = zip(faults(0, REDUCE).splitlines(), faults(1, LOAD).splitlines(), strict=True)
    assert found(of("".join(f"{one}\n{other}\n" for one, other in both))) == [("collective", ["0"]), ("data", ["1"])]


def test_different_collectives_are_a_finding_and_equal_ones_are_none() -> None:
    gather = ("all_gather", "jax/_src/lax/parallel.py", 300), *REDUCE[1:]
    assert looks(of(py_spy(1, REDUCE), py_spy(2, gather)))
    assert not looks(of(py_spy(1, REDUCE), py_spy(2, REDUCE)))


def test_processes_of_one_dump_are_named_by_their_numbers_and_logs_by_their_names() -> None:
    assert found(of(py_spy(71, REDUCE) + py_spy(72, LOAD))) == [("collective", ["pid 71"]), ("data", ["pid 72"])]
    assert found(of(py_spy(71, REDUCE), py_spy(72, LOAD), name="{}.txt"))[1] == ("data", ["1.txt"])


def test_last_dump_of_a_process_counts() -> None:
    assert found(of(faults(0, LOAD) + "later\n" + faults(0, REDUCE))) == [("collective", ["0"])]


def test_dump_of_a_training_that_went_on_is_no_failure() -> None:
    bar = "[rank0]: 8/8 ━━━━ 1s 3ms/step - loss: 0.1\n"
    assert of(bar + faults(0, LOAD)).conclusion == "not-recognised"
    assert of(faults(0, LOAD) + bar).conclusion == "no-failure"


@cases("Epoch 1/2\n", "Thread 0x00007f1b5b5c6740 (most recent call first):\n", 'Thread 7 (idle): "MainThread"\nx\n')
def test_log_without_frames_has_no_stacks(log: str) -> None:
    assert diagnose_text(log, {}, {}).stacks == []


def test_dump_of_this_python_is_read(tmp_path: Path) -> None:
    """Its main thread runs pytest, whose outermost function is that of a program."""
    release = threading.Event()
    other = threading.Thread(target=release.wait)
    other.start()
    file = tmp_path / "stacks.txt"
    with file.open("w") as output:
        faulthandler.dump_traceback(output, all_threads=True)
    release.set()
    other.join()
    stacks = diagnose_text(file.read_text(), {}, {}).stacks
    assert [group.program for group in stacks] != [None] or stacks[0].frame.startswith(
        "test_dump_of_this_python_is_read"
    )


def trained(minute: int, *more: str) -> str:
    return "\n".join([f"2026-11-20 10:{minute:02}:00 INFO step 9 loss: 0.4", *more, ""])


LOST = (
    "2026-11-20 10:30:00 E x.cc:3] Collective ops is aborted by: Error reported from /job:worker/task:1: Socket closed"
)


@cases(
    ([trained(5, LOST), trained(4), trained(5, LOST)], [("rank1.log", 1, 1560.0)]),
    ([trained(5, LOST), trained(4, "KeyError: 'label'"), trained(5, LOST)], []),
    ([trained(5), trained(4)], []),
    ([trained(5, LOST)], []),
    ([trained(5, LOST), "2026-11-20 10:04:00 kernel: eth0 is up\n"], []),
    ([trained(30, LOST), trained(30)], []),
    ([trained(5, LOST), "step 9 loss: 0.4\n"], []),
)
def test_process_that_stops_first_without_a_failure_is_silent(
    texts: list[str], expected: list[tuple[str, int, float]]
) -> None:
    silent = of(*texts).silent
    assert [(item.last.log, item.last.line, item.seconds) for item in silent] == expected
