"""The yardstick for the collection: the same NVML calls in sequence."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml import calls as nvml_calls


def ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of the call, or the name of its error."""
    try:
        return call(*arguments)
    except Exception as error:  # noqa: BLE001 - as kdoctor does
        return nvml_calls.error_name(error)


def main() -> None:
    """Read everything and print it."""
    pynvml.nvmlInit()
    system = {field: ask(read) for field, read in nvml_calls.SYSTEM_FIELDS.items()}
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(system["count"])]
    reads = [*nvml_calls.FIELDS.values(), *nvml_calls.JOINT.values(), nvml_calls.links]
    reads += [nvml_calls.clock_event_reasons] * 3
    devices = [[ask(read, handle) for read in reads] for handle in handles]
    pairs = [
        [ask(read, first, second) for read in nvml_calls.PAIR_FIELDS.values()]
        for first, second in itertools.combinations(handles, 2)
    ]
    print(json.dumps([system, devices, pairs], default=str))
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


if __name__ == "__main__":
    main()
