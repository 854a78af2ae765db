from functools import partial

from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import stray_models


def _judge(trace: Trace, *, loaded: bool) -> Hits:
    for model, use in stray_models(trace):
        if model.loaded is loaded:
            yield model.node, f"model is {'loaded' if loaded else 'created'} outside `strategy.scope()` {use}"


RULE = Rule(
    id="lint.model-outside-scope",
    code="KD101",
    severity=Severity.ERROR,
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/", MEASURED),
    judge=partial(_judge, loaded=False),
)
LOADED = Rule(
    id="lint.load-model-outside-scope",
    code="KD105",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/tutorials/distribute/save_and_load", MEASURED),
    judge=partial(_judge, loaded=True),
)
