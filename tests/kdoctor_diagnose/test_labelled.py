"""The labelled set: each example of a known failure, alone and in a noisy log, and logs of healthy runs.

The examples are excerpts after real reports, which their entries name. In the noisy logs, lines that everybody has come
before, and the errors that other processes and launchers then report come after.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.failures.known import KnownFailure, load_failures
from kdoctor_diagnose.diagnose import diagnose_text
from kdoctor_diagnose.model import Diagnosis

_PARTS = re.split(r"^### ", Path(__file__).with_name("healthy.txt").read_text(), flags=re.MULTILINE)[1:]
HEALTHY = dict(part.split("\n", 1) for part in _PARTS)
EXAMPLES = [
    (failure, example.log)
    for failure in load_failures().failure_modes
    for example in failure.examples
    if not failure.harmless
]
BEFORE = [
    HEALTHY[name]
    for name in HEALTHY
    if name.startswith(("oneDNN", "NUMA", "executor", "NCCL", "XLA", "protobuf", "deprecation", "cluster"))
]
AFTER = [
    """\
[rank1]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
srun: error: gpu003: task 1: Exited with exit code 1
srun: Terminating StepId=8812.0
""",
    """\
W tensorflow/core/common_runtime/base_collective_executor.cc:203] BaseCollectiveExecutor::StartAbort Unavailable: Socket
W1128 21:12:50.210000 3139541 torch/distributed/elastic/api.py:900] Sending process 3139620 closing signal SIGTERM
""",
    """\
Traceback (most recent call last):
  File "launch.py", line 10, in <module>
    subprocess.run(command, check=True)
subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.
""",
    """\
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 88, in <module>
    writer.close()
ValueError: I/O operation on closed file.
""",
]
LEAST = 80


@cache
def catalog() -> Catalog:
    return load_catalog()


def diagnosed(text: str) -> Diagnosis:
    return diagnose_text(text, catalog().checks, catalog().scenarios)


def named(failure: KnownFailure, diagnosis: Diagnosis) -> bool:
    """Whether the failure is the cause. A code of a table is a part of its id.

    What each run on a machine without GPUs logs is only said besides.
    """
    first = diagnosis.first or next((item for item in diagnosis.also if failure.without_gpus), None)
    return first is not None and (
        first.id == failure.id or (failure.table is not None and first.id.startswith(failure.id))
    )


def missed(logs: list[tuple[KnownFailure, str]]) -> list[str]:
    found = [(failure, diagnosed(log)) for failure, log in logs]
    return [
        f"{failure.id}: {item.first.id if item.first else item.conclusion}"
        for failure, item in found
        if not named(failure, item)
    ]


def noisy(number: int, failure: KnownFailure, log: str) -> str:
    """The log in the middle of others. A job that hangs prints nothing more."""
    hangs = bool(failure.at_end) and diagnosed(log).causes[0].certainty != "certain"
    return BEFORE[number % len(BEFORE)] + log + ("" if hangs else AFTER[number % len(AFTER)])


def test_each_example_is_diagnosed() -> None:
    assert len(EXAMPLES) >= LEAST
    assert missed(EXAMPLES) == []


def test_cause_is_first_in_noisy_logs() -> None:
    logs = [(failure, noisy(number, failure, log)) for number, (failure, log) in enumerate(EXAMPLES)]
    wrong = missed(logs)
    assert len(wrong) <= len(logs) * 0.05, "\n".join(wrong)


REPORTS = yaml.safe_load(Path(__file__).with_name("reports.yaml").read_text())


def is_right(item: dict[str, Any], diagnosis: Diagnosis) -> bool:
    """Whether a correct cause is first, or the line of a failure that is not known is shown."""
    if item["expect"]:
        return diagnosis.first is not None and diagnosis.first.id in item["expect"]
    return diagnosis.first is None and any(item["shows"] in line.text for line in diagnosis.lines)


@pytest.mark.parametrize("is_noisy", [False, True])
def test_cause_is_first_in_logs_of_reports(*, is_noisy: bool) -> None:
    logs = [
        BEFORE[number % len(BEFORE)] + item["log"] + AFTER[number % len(AFTER)] for number, item in enumerate(REPORTS)
    ]
    found = [diagnosed(log if is_noisy else item["log"]) for item, log in zip(REPORTS, logs, strict=True)]
    wrong = [
        f"{item['source']}: {diagnosis.first.id if diagnosis.first else diagnosis.conclusion}"
        for item, diagnosis in zip(REPORTS, found, strict=True)
        if not is_right(item, diagnosis)
    ]
    assert len(REPORTS) >= 80
    assert len(wrong) <= len(REPORTS) * 0.05, "\n".join(wrong)


def test_sixty_healthy_logs() -> None:
    assert len(HEALTHY) >= 60


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_log_has_no_cause(name: str) -> None:
    diagnosis = diagnosed(HEALTHY[name])
    assert diagnosis.conclusion in {"no-failure", "no-end"}
    assert [*diagnosis.causes, *diagnosis.also] == []


@pytest.mark.parametrize(
    "failure", [item for item in load_failures().failure_modes if item.harmless], ids=lambda item: item.id
)
def test_harmless_message_is_not_a_cause(failure: KnownFailure) -> None:
    for example in failure.examples:
        assert diagnosed(example.log).conclusion in {"no-failure", "no-end"}


def test_each_example_names_its_source() -> None:
    wrong = [
        failure.id
        for failure in load_failures().failure_modes
        for item in failure.examples
        if not re.match(r"https://|[\w.-]+/[\w.-]+#\d+$|measured", item.source)
    ]
    assert wrong == []


def test_traceback_with_any_message_is_a_failure() -> None:
    lines = {
        line.strip()
        for failure in load_failures().failure_modes
        for item in failure.examples
        for line in item.log.splitlines()
    }
    title = 'Traceback (most recent call last):\n  File "train.py", line 1, in f\n    f()\n'
    well = [
        line
        for line in lines
        if line and diagnose_text(f"{title}ValueError: {line}\n", {}, {}).conclusion in {"no-failure", "no-end"}
    ]
    assert well == []
