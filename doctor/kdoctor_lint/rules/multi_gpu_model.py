import re

from kdoctor_lint.model import Hits, Rule, Severity, Trace

_MESSAGE = "`multi_gpu_model` was removed from Keras in 2020"
_NAME = re.compile(r"keras\.utils\.(\w+\.)*multi_gpu_model$")


def _judge(trace: Trace) -> Hits:
    calls = [call for call in trace.calls if _NAME.match(call.name)]
    for call in calls:
        yield call.node, _MESSAGE
    for name in () if calls else trace.imports:
        if _NAME.match(name.name):
            yield name.node, _MESSAGE


RULE = Rule(id="lint.multi-gpu-model", code="KD401", severity=Severity.ERROR, judge=_judge, words=("multi_gpu_model",))
