"""The yardstick for the collection: the same NVML calls in sequence."""

import contextlib
import itertools
import json
from collections.abc import Callable
from typing import Any

import pynvml

from kdoctor.probes.nvml.calls.answers import error_name
from kdoctor.probes.nvml.calls.links import links
from kdoctor.probes.nvml.calls.one_gpu import FIELDS, JOINT, clock_event_reasons
from kdoctor.probes.nvml.calls.pairs import PAIR_FIELDS, SYSTEM_FIELDS


def ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of the call, or the name of its error."""
    try:
        return call(*arguments)
    except Exception as error:  # noqa: BLE001 - as kdoctor does
        return error_name(error)


def main() -> None:
    """Read everything and print it."""
    pynvml.nvmlInit()
    system = {field: ask(read) for field, read in SYSTEM_FIELDS.items()}
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(system["count"])]
    reads = [*FIELDS.values(), *JOINT.values(), links]
    reads += [clock_event_reasons] * 3
    devices = [[ask(read, handle) for read in reads] for handle in handles]
    pairs = [
        [ask(read, first, second) for read in PAIR_FIELDS.values()]
        for first, second in itertools.combinations(handles, 2)
    ]
    print(json.dumps([system, devices, pairs], default=str))
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


if __name__ == "__main__":
    main()
