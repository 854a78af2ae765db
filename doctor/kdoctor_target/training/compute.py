"""How fast each device multiplies matrices and copies memory, with the framework of the target.

Each device is measured in a separate process that sees no other GPU, in sequence: GPUs at work at the same time share
the power and the cooling of the machine. Products are of float16, which every GPU with tensor cores computes at its
highest dense rate, on random numbers: GPUs are faster on zeros. A block of products is queued before the device is
waited for, so launches do not count.

Measures: ``tflops <i>``, 10^12 operations per second of a product; ``copy_gbs <i>``, 10^9 bytes per second that an
elementwise operation reads and writes. ``<i>`` is the place in ``SmokeCase.devices``.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any, Callable, Dict, NamedTuple

import numpy as np

from kdoctor_target.runner.case import Case
from kdoctor_target.training.timing import seconds_of
from kdoctor_target.training.workers import Facts, Task, expect_all_trained, in_a_process

SIZES = {"gpu": 8192, "cpu": 256}
"""Rows of a matrix."""
BYTES = {"gpu": 2**30, "cpu": 2**22}
"""Bytes that are copied: many times the caches of a GPU."""
_BLOCK = {"gpu": 10, "cpu": 2}
_WARM_UP, _TIMED = 2, 5
_PATIENCE_S = 180.0
"""Seconds for one device. On a GPU newer than the framework, the driver compiles every kernel first."""


class Work(NamedTuple):
    """What one device does, as a framework expresses it."""

    product: Callable[[], Any]
    """Queues a product."""
    copy: Callable[[], Any]
    """Queues a copy."""
    wait: Callable[[Any], None]
    """Waits for a result."""


def measure_each(case: Case, survey: Callable[[Case], None], prepare: Callable[[Case, int], Work]) -> None:
    """Measure every device.

    Args:
        case: the case, whose process must not have used a device.
        survey: notes the devices, in a separate process.
        prepare: makes the work of the device at that place, in a separate process.
    """
    end = time.monotonic() + 0.9 * case.deadline_s
    case.phase("strategy")
    found = _in_a_process(case, 0, survey, end)
    names = list(found.get("devices") or [])
    noted = ("devices", "bus_ids", "gpus_seen")
    case.note(replicas=len(names), **{name: found[name] for name in noted if name in found})
    for index in range(len(names)):
        case.phase(f"device {index}")
        facts = _in_a_process(case, index + 1, partial(_measure, index=index, prepare=prepare), end)
        case.measure(facts["measures"])


def _in_a_process(case: Case, number: int, function: Callable[[Case], None], end: float) -> Facts:
    facts = in_a_process(case, Task("process", number), function, min(_PATIENCE_S, end - time.monotonic()))
    if facts["outcome"] == "skipped":
        case.skip(facts["error_message"])
    expect_all_trained([facts])
    return facts


def _measure(case: Case, index: int, prepare: Callable[[Case, int], Work]) -> None:
    work = prepare(case, index)
    kind = case.devices_kind
    product_s = _seconds(work.product, work.wait, _BLOCK[kind])
    copy_s = _seconds(work.copy, work.wait, _BLOCK[kind])
    case.measure(
        {
            f"tflops {index}": 2 * SIZES[kind] ** 3 / product_s / 1e12,
            f"copy_gbs {index}": 2 * BYTES[kind] / copy_s / 1e9,
        }
    )


def _seconds(once: Callable[[], Any], wait: Callable[[Any], None], block: int) -> float:
    """Median seconds of one call over several blocks."""

    def a_block() -> None:
        for _ in range(block - 1):
            once()
        wait(once())

    return float(np.median(seconds_of(a_block, _TIMED, _WARM_UP))) / block


def numbers(kind: str) -> Dict[str, Any]:
    """The matrix and the memory to copy."""
    random = np.random.RandomState(5)
    size = SIZES[kind]
    matrix = (random.standard_normal((size, size)) / np.sqrt(size)).astype("float16")
    return {"matrix": matrix, "memory": np.ones(BYTES[kind] // 4, "float32")}


def show_only(index: int) -> None:
    """Hide the other GPUs from a framework that has not used CUDA yet, within the job's CUDA_VISIBLE_DEVICES."""
    listed = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
    os.environ["CUDA_VISIBLE_DEVICES"] = listed[index] if listed else str(index)
