import re

from kdoctor_lint.flow.trace import has_several
from kdoctor_lint.flow.values import Many, Text
from kdoctor_lint.model import Hits, Rule, Severity, Trace

_GPU = re.compile(r"gpu:\d+$", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*\d+\s*(,\s*\d+\s*)+,?\s*")  # Numbers of several GPUs


def _judge(trace: Trace) -> Hits:
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


RULE = Rule(id="lint.hard-coded-devices", code="KD302", severity=Severity.INFO, judge=_judge)
