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
    why="""Variables belong to the strategy whose scope they are created in. A model created and compiled outside the
scope silently trains on one device while the others are idle. A model created outside and compiled inside fails
with an error that depends on the optimizer. Layers create their variables when they are called, so call them
inside the scope, too.""",
    fix="Create the model inside `strategy.scope()`.",
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/", MEASURED),
    judge=_judge,
)
