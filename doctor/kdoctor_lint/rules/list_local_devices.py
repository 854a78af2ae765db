from kdoctor_lint.model import Hits, Rule, Severity, Trace


def _judge(trace: Trace) -> Hits:
    for call in trace.calls:
        if call.name == "tensorflow.python.client.device_lib.list_local_devices":
            yield call.node, "`list_local_devices()` initializes every GPU of the machine"


RULE = Rule(
    id="lint.list-local-devices",
    code="KD303",
    severity=Severity.WARNING,
    title="Checks for calls of `device_lib.list_local_devices`.",
    fix='List GPUs with `tf.config.list_physical_devices("GPU")`.',
    sources=("https://www.tensorflow.org/guide/gpu", "https://www.tensorflow.org/guide/versions"),
    judge=_judge,
    words=("list_local_devices",),
)
