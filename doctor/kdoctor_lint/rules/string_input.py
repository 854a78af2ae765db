from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.fitted:
        if event.model is not None and event.model.strings is not None and is_mirrored(event.home):
            yield event.model.strings, "`fit` of Keras 3 fails with an input of strings on several replicas"


RULE = Rule(
    id="lint.string-input",
    code="KD510",
    severity=Severity.ERROR,
    sources=("https://github.com/tensorflow/tensorflow/issues/80951", MEASURED),
    judge=_judge,
)
