from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import stray_models


def _judge(trace: Trace) -> Hits:
    for model, use in stray_models(trace):
        if not model.loaded:
            yield model.node, f"model is created outside `strategy.scope()` {use}"


RULE = Rule(
    id="lint.model-outside-scope",
    code="KD101",
    severity=Severity.ERROR,
    title="Checks for models created outside `strategy.scope()` but trained by the strategy.",
    fix="Create the model inside `strategy.scope()`.",
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/", MEASURED),
    judge=_judge,
)
