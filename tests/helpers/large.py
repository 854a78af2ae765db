"""Machines and reports that are larger than any real one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from helpers.facts import gpu, gpus, h100_node, pci
from helpers.reports import failure, finding, gpu_report
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.report import Report
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.model import Severity
from kdoctor.testing import fact_table


def machine(count: int, *, pairs: bool = False) -> dict[type[FactGroup], FactGroup | Unavailable]:
    """An H100 node with ``count`` GPUs, and the path between each two if asked."""
    devices = tuple(
        replace(gpu(index % 8), index=index, bus_id=_address(index), uuid=f"GPU-{index}", minor_number=index)
        for index in range(count)
    )
    one, functions = gpus(2).pairs[0], pci(8)
    ways = (
        [replace(one, first=first, second=second) for first, second in combinations(range(count), 2)] if pairs else []
    )
    return fact_table(
        *h100_node(8),
        replace(gpus(8), count=count, devices=devices, pairs=tuple(ways)),
        replace(
            functions,
            devices=tuple(replace(functions.devices[index % 8], bus_id=_address(index)) for index in range(count)),
        ),
        scenario="smoke.baseline",
    )


def report(findings: int) -> Report:
    """A report with one failed check of ``findings`` GPUs."""
    results = (failure("gpu.free", *(finding(f"GPU {index} ({_address(index)})") for index in range(findings))),)
    causes = find_causes(results)
    plan = plan_fixes(relevant(causes, Severity.ERROR), "kdoctor check")
    return replace(gpu_report(), results=results, causes=causes, plan=plan)


def _address(index: int) -> str:
    return f"{index >> 8:04x}:{index & 0xFF:02x}:00.0"
