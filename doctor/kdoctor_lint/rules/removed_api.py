import re
from functools import partial

from kdoctor_lint.model import Hits, Rule, Severity, Trace

_MULTI_GPU = re.compile(r"keras\.utils\.(\w+\.)*multi_gpu_model$")
_PACKAGES = {"tensorflow": "TensorFlow", "keras": "Keras"}


def _judge(trace: Trace, *, certain: bool) -> Hits:
    """What is certainly removed, or what only its name says."""
    for node, removed, fix, is_certain in trace.gone:
        if (removed.package == "keras" and trace.legacy) or is_certain() is not certain:
            continue
        if removed.name.startswith("tensorflow.compat.v1.disable") and not trace.compiled:
            continue  # a graph without Keras
        target = trace.targets.get(removed.package)
        if target is None or target >= removed.since:
            name = removed.name.replace("tensorflow.", "tf.", 1).replace(" without ", "` without `")
            since = f"{_PACKAGES[removed.package]} {'.'.join(map(str, removed.since))}"
            if certain:
                yield node, f"`{name}` does not work since {since}; use {removed.instead}", fix
            else:
                yield node, f"if this is `{name}`, it does not work since {since}; use {removed.instead}"


def _models(trace: Trace) -> Hits:
    calls = [call for call in trace.calls if _MULTI_GPU.match(call.name)]
    for place in calls or [name for name in trace.imports if _MULTI_GPU.match(name.name)]:
        yield place.node, "`multi_gpu_model` was removed from Keras in 2020"


RULE = Rule(
    id="lint.removed-api",
    code="KD403",
    severity=Severity.ERROR,
    judge=partial(_judge, certain=True),
    words=("tensorflow", "keras"),
    once=True,
)
NAMES = Rule(
    id="lint.removed-names",
    code="KD404",
    severity=Severity.INFO,
    judge=partial(_judge, certain=False),
    words=RULE.words,
    once=True,
)
MULTI_GPU = Rule(
    id="lint.multi-gpu-model", code="KD401", severity=Severity.ERROR, judge=_models, words=("multi_gpu_model",)
)
