from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import stray_models


def _judge(trace: Trace) -> Hits:
    for model, use in stray_models(trace):
        if model.loaded:
            yield model.node, f"model is loaded outside `strategy.scope()` {use}"


RULE = Rule(
    id="lint.load-model-outside-scope",
    code="KD105",
    severity=Severity.ERROR,
    title="Checks for saved models loaded outside `strategy.scope()` and then trained by the strategy.",
    fix="Load the model inside `strategy.scope()`.",
    sources=("https://www.tensorflow.org/tutorials/distribute/save_and_load", MEASURED),
    judge=_judge,
)
