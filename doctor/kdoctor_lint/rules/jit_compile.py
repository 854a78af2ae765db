from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED


def _judge(trace: Trace) -> Hits:
    if trace.legacy:
        return
    for event in trace.compiled:
        if event.jit and event.home and event.home.kinds <= MIRRORED:
            yield event.node, "`jit_compile=True` is set under a mirrored strategy"


RULE = Rule(
    id="lint.jit-compile",
    code="KD402",
    severity=Severity.ERROR,
    sources=("https://keras.io/api/models/model_training_apis/", MEASURED),
    judge=_judge,
)
