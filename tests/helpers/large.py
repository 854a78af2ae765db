"""Machines and reports that are larger than any real one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from helpers.facts import gpu, gpus, h100_node, pci
from helpers.reports import failure, finding, gpu_report, result, waiver
from kdoctor.engine.causes import find_causes, relevant
from kdoctor.engine.fixes import plan_fixes
from kdoctor.engine.report import JudgedFinding, Report, Result
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.model import Severity, Status, Unjudged
from kdoctor.testing import fact_table

Shape = Literal["alike", "different", "waived", "unjudged"]


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


def report(number: int, shape: Shape = "alike") -> Report:
    """A report with a number of findings.

    Args:
        number: of findings, waived findings or reasons why something could not be judged.
        shape: whether it is one problem of many GPUs; or two problems of half as many, one of which explains the other,
            with another fix for each GPU; or findings that are waived; or GPUs that could not be judged.
    """
    names = [f"GPU {index} ({_address(index)})" for index in range(number // 2 if shape == "different" else number)]
    results = tuple(_results(names, shape))
    causes = find_causes(results)
    plan = plan_fixes(relevant(causes, Severity.ERROR), "kdoctor check")
    return replace(gpu_report(), results=results, causes=causes, plan=plan)


def _results(names: Sequence[str], shape: Shape) -> Iterator[Result]:
    if shape == "alike":
        yield failure("gpu.free", *map(finding, names))
    elif shape == "different":
        fixes = (replace(finding().remedy, commands=(f"reset {name}",)) for name in names)
        yield failure(
            "driver.loaded",
            *(finding(name, remedy=fix, explains=("gpu.*",)) for name, fix in zip(names, fixes, strict=True)),
        )
        yield failure(
            "gpu.free", *(finding(name, observed=f"{name} is slow", explained_by=("driver.loaded",)) for name in names)
        )
    elif shape == "waived":
        accepted = waiver("gpu.free")
        judged = tuple(JudgedFinding(finding=finding(name), waiver=accepted) for name in names)
        yield replace(failure("gpu.free"), status=Status.PASS, findings=judged)
    else:
        unjudged = tuple(Unjudged(subject=name, reason=f"{name} did not answer") for name in names)
        yield result("gpu.free", Status.UNKNOWN, unjudged=unjudged)


def _address(index: int) -> str:
    return f"{index >> 8:04x}:{index & 0xFF:02x}:00.0"
