import re

from kdoctor_lint.model import Hits, Rule, Severity, Trace

_MESSAGE = "`multi_gpu_model` was removed from Keras in 2020"
_NAME = re.compile(r"keras\.utils\.(\w+\.)*multi_gpu_model$")


def _models(trace: Trace) -> Hits:
    calls = [call for call in trace.calls if _NAME.match(call.name)]
    for place in calls or [name for name in trace.imports if _NAME.match(name.name)]:
        yield place.node, _MESSAGE


def _devices(trace: Trace) -> Hits:
    for call in trace.calls:
        if call.name == "tensorflow.python.client.device_lib.list_local_devices":
            yield call.node, "`list_local_devices()` initializes every GPU of the machine"


MODELS = Rule(
    id="lint.multi-gpu-model", code="KD401", severity=Severity.ERROR, judge=_models, words=("multi_gpu_model",)
)
DEVICES = Rule(
    id="lint.list-local-devices", code="KD303", severity=Severity.WARNING, judge=_devices, words=("list_local_devices",)
)
