"""How the end of a case is described: its error, hang or crash, with the line that tells most."""

from dataclasses import replace
from typing import Any

from helpers.cases import cases
from helpers.facts import smoke_case
from kdoctor.facts import SmokeWorker
from kdoctor_checks.smoke._cases import describe_end, format_losses, in_phase, innermost_frames, was_refused
from kdoctor_checks.smoke._judging import brief_end

RAISED: dict[str, Any] = {"outcome": "raised", "phase": "train", "error_type": "ValueError"}


def raised(message: str | None, **changes: Any) -> str:
    return describe_end(smoke_case(**{**RAISED, "error_message": message, **changes}))


@cases(
    ("trace", "in phase trace"), ("step 3", "in step 3"), ("first step", "in the first step"),
    ("between steps", "between steps"), (None, "before its first phase"), ("", "in phase "),
)  # fmt: skip
def test_phases_have_their_preposition(phase: str | None, text: str) -> None:
    assert in_phase(phase) == text


@cases(
    ("no", "no"),
    (None, "no message"),
    ("\n \n", "no message"),
    ("first\nsecond", "first"),
    ("Exception encountered when calling X.\n\nthe cause\nmore", "the cause"),
    ("Graph execution error:\nDetected at node Y\n<stack traces unavailable>\nthe cause", "the cause"),
    ("Graph execution error:", "Graph execution error:"),  # nothing else is known
    ("in user code:\n  File a\n  ValueError: the end", "ValueError: the end"),
    ("got {\n 'a': 1\n}", "got { ... }"),
    ("got {\n 'a': 1\nafter", "got {"),
    ("expected:\nan integer", "expected: an integer"),
    ("expected:\nan integer\nmore", "expected: an integer"),
    ("expected:", "expected:"),
    ("\x1b[31mred\x1b[0m", "red"),
    ("<keras.src.models.Sequential object at 0x7f00> failed", "Sequential failed"),
    ("{{function_node __wrapped__X}} failed", "failed"),
)
def test_line_that_tells_most_is_shown(message: str | None, shown: str) -> None:
    assert raised(message) == f"ValueError in phase train: {shown}"


def test_long_line_is_cut_at_300_characters() -> None:
    assert raised("x" * 300).endswith(": " + "x" * 300)
    assert raised("x" * 301).endswith(": " + "x" * 300 + " ...")


def test_error_without_a_phase_has_no_place() -> None:
    assert raised("no", phase=None) == "ValueError: no"


@cases(("E0000 b", ""), ("NCCL WARN no", '; log: "NCCL WARN no"'), ids=["other", "NCCL"])
def test_error_of_a_worker_names_its_place_itself(line: str, shown: str) -> None:
    worker = SmokeWorker(name="worker 1", outcome="raised")
    message = "worker 1: ValueError in phase train: no"
    assert raised(f"{message}\nmore", workers=(worker,), log_lines=(line,)) == message + shown


@cases(
    ((), "", ""),
    (("a", "NCCL WARN no"), '; log: "NCCL WARN no"', '; log: "NCCL WARN no"'),
    (("NCCL INFO one", " NCCL WARN two ", "other"), '; log: "NCCL WARN two"', '; log: "NCCL WARN two"'),
    (("a", "E0000 b"), "", '; log: "E0000 b"'),  # an error has its message; a hang has only the log
)
def test_last_line_of_the_log_is_that_of_nccl(lines: tuple[str, ...], after_error: str, after_hang: str) -> None:
    assert raised("no", log_lines=lines) == f"ValueError in phase train: no{after_error}"
    hung = smoke_case(outcome="timed-out", phase="trace", seconds=9.6, log_lines=lines)
    assert describe_end(hung) == f"hung in phase trace and was ended after 10 s{after_hang}"


@cases(
    ({"phase": "trace", "seconds": None}, "hung in phase trace and was ended"),
    ({"phase": "train", "steps": 3, "seconds": None}, "hung in phase train after step 3 and was ended"),
    ({"phase": "train", "steps": 0, "seconds": None},
     "hung in phase train in the first step (tracing) and was ended"),
    ({"phase": "train", "steps": None, "seconds": None}, "hung in phase train and was ended"),
    ({"phase": "trace", "steps": 3, "seconds": None}, "hung in phase trace and was ended"),
    ({"phase": "train", "steps": 3, "finished": "pair 0-1", "seconds": None},
     "hung in phase train (last finished: pair 0-1) and was ended"),
)  # fmt: skip
def test_hang_has_its_progress(changes: dict[str, Any], text: str) -> None:
    assert describe_end(smoke_case(outcome="timed-out", **changes)) == text


@cases(
    ({"signal": "SIGSEGV", "exit_code": -11}, "terminated by SIGSEGV in phase trace"),
    ({"signal": None, "exit_code": 3}, "exited with status 3 in phase trace"),
    ({"signal": "SIGSEGV", "stderr_tail": "one\ntwo\n\n"},
     'terminated by SIGSEGV in phase trace; last line of stderr: "two"'),
    ({"signal": "SIGSEGV", "stderr_tail": "one", "log_lines": ("E0000 b",)},
     'terminated by SIGSEGV in phase trace; log: "E0000 b"'),
)  # fmt: skip
def test_crash_has_its_signal_and_last_line(changes: dict[str, Any], text: str) -> None:
    assert describe_end(smoke_case(outcome="died", phase="trace", **changes)) == text


def test_skip_has_its_reason() -> None:
    assert describe_end(smoke_case(outcome="skipped", skip_reason="no port")) == "skipped: no port"


WAITS = """\
Thread 0x00007f01 (most recent call first):
  File "/usr/lib/python3/threading.py", line 5 in wait
"""
FITS = """\
Thread 0x00007f02 (most recent call first):
  File "/venv/site-packages/tensorflow/python/a.py", line 1 in one
  File "/venv/site-packages/keras/src/b.py", line 2 in two
  File "/venv/site-packages/keras/src/c.py", line 3 in three
"""
JOB = '  File "/job/train.py", line 4 in main\n'
KDOCTOR = '  File "/venv/site-packages/kdoctor_job/target/script.py", line 6 in run\n'
READS = f'Thread 0x00007f03 (most recent call first):\n{JOB}  File "/usr/lib/python3.11/queue.py", line 9 in get\n'
AWAITED = f"Thread 0x00007f04 (most recent call first):\n{KDOCTOR}{JOB}{KDOCTOR}"
LIBRARIES = " at python/a.py:1 one, from src/b.py:2 two, from src/c.py:3 three"


@cases(
    (None, ""),
    ("", ""),
    ("no frames", ""),
    (WAITS + FITS, LIBRARIES),
    (FITS + WAITS, LIBRARIES),  # a thread that waits for another one says nothing
    (WAITS, " at python3/threading.py:5 wait"),
    (WAITS + FITS + JOB, " at python/a.py:1 one, from job/train.py:4 main"),
    (WAITS + FITS + KDOCTOR + JOB, LIBRARIES),  # the job's code waits for kdoctor's, which trains
    (READS + FITS + KDOCTOR + AWAITED, " at job/train.py:4 main"),  # a generator, in a thread of TensorFlow
    (READS + FITS + JOB, " at python/a.py:1 one, from job/train.py:4 main"),  # the main thread comes first
    (WAITS.replace("Thread", "Current thread") + FITS + JOB, " at python3/threading.py:5 wait"),
)
def test_frames_are_those_of_the_thread_that_runs_the_job(stacks: str | None, text: str) -> None:
    assert innermost_frames(stacks) == text


def test_hang_in_the_jobs_own_code_is_not_explained_by_a_log() -> None:
    hung = smoke_case(outcome="timed-out", phase="data", seconds=9.6, log_lines=("E0000 b",), stacks=READS)
    assert describe_end(hung) == "hung in phase data and was ended after 10 s at job/train.py:4 main"
    assert brief_end(hung) == "hangs at job/train.py:4 main"
    assert brief_end(replace(hung, stacks=FITS + JOB)) == "hangs in phase data"


@cases(
    ({}, True), ({"phase": "build"}, True), ({"phase": "inspect"}, True), ({"phase": "first step"}, True),
    ({"phase": "step 3"}, True), ({"phase": "strategy"}, False), ({"phase": None}, False),
    ({"error_type": "KeyError"}, False), ({"outcome": "died"}, False),
)  # fmt: skip
def test_refusal_is_a_known_error_of_the_model(changes: dict[str, Any], *, refused: bool) -> None:
    assert was_refused(smoke_case(**{**RAISED, **changes}), ("ValueError", "TypeError")) is refused


def test_losses_are_listed() -> None:
    assert format_losses((1.0, 0.123456, None)) == "1, 0.1235, not finite"
    assert format_losses(()) == ""
