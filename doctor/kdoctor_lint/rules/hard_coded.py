import ast
import re
from collections.abc import Iterator

from kdoctor_lint.flow.trace import has_several, literal
from kdoctor_lint.flow.values import Counted, Many, Number, Text
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import WORKER
from kdoctor_lint.rules._batches import count_names, divided_batches

_GPU = re.compile(r"gpu:\d+$", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*\d+\s*(,\s*\d+\s*)+,?\s*")  # Numbers of several GPUs


def _judge(trace: Trace) -> Hits:
    for node, number, use in _uses(trace):
        counts = [name for name in count_names(number) if name in trace.counts and name not in trace.verified]
        if counts:
            kind = "worker" if WORKER.search(counts[0]) else "device"
            yield trace.counts[counts[0]], f"{counts[0]} is a hard-coded {kind} count, and {use}"
        elif not number.names:
            yield node, f"{number.value:g} is a hard-coded device count, and {use}"


def _uses(trace: Trace) -> Iterator[tuple[ast.AST, Number, str]]:
    for strategy in trace.strategies:
        devices = strategy.devices
        count = literal(devices.count) if isinstance(devices, Counted) and "gpu" in devices.text.lower() else None
        if has_several(strategy) and count is not None:
            yield strategy.node, count, "the strategy's device list is built from it"
    for _, node, size, _ in divided_batches(trace):
        if literal(size) is not None and count_names(size):
            yield node, size, "the batch size depends on it"
    for node, size in trace.meshes:
        if size.value != 1:
            yield node, size, "the mesh of all devices depends on it"


def _judge_lists(trace: Trace) -> Hits:
    for strategy in trace.strategies:
        if not has_several(strategy) or not isinstance(strategy.devices, Many):
            continue
        names = [item.value for item in strategy.devices.items if isinstance(item, Text)]
        if names and all(_GPU.search(name) for name in names):
            yield strategy.node, f"strategy uses a hard-coded list of GPUs: {', '.join(names)}"
    if any(map(has_several, trace.strategies)):
        for node, name, value in trace.variables:
            if name == "CUDA_VISIBLE_DEVICES" and isinstance(value, Text) and _SEVERAL.fullmatch(value.value):
                yield node, f"`CUDA_VISIBLE_DEVICES` is a hard-coded list of GPUs: {value.value}"


RULE = Rule(
    id="lint.hard-coded-device-count",
    code="KD301",
    severity=Severity.WARNING,
    judge=_judge,
    words=("distribute", "Strategy", "DeviceMesh"),
)
LISTS = Rule(id="lint.hard-coded-devices", code="KD302", severity=Severity.INFO, judge=_judge_lists)
