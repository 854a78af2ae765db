from kdoctor_lint.model import Hits, Rule, Severity, Trace


def _judge(trace: Trace) -> Hits:
    for call in trace.calls:
        if call.name == "tensorflow.python.client.device_lib.list_local_devices":
            yield call.node, "`list_local_devices()` initializes every GPU of the machine"


RULE = Rule(
    id="lint.list-local-devices", code="KD303", severity=Severity.WARNING, judge=_judge, words=("list_local_devices",)
)
